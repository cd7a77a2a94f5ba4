"""The help of a tuner's options, read from the docstrings of the fields."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OptionHelp:
    """One option of a tuner, as `--tuner-option NAME=VALUE` takes it."""

    name: str
    type: str
    default: object
    meaning: str
    """The effect of the option, with its unit; empty if the class does not document it."""


def option_help(options: type[Any]) -> list[OptionHelp]:
    """Return every option of an options dataclass, in the order of its fields."""
    meanings: dict[str, str] = {}
    for base in reversed(options.__mro__):
        if dataclasses.is_dataclass(base):
            meanings |= _field_docstrings(base)
    return [
        OptionHelp(field.name, type(field.default).__name__, field.default, meanings.get(field.name, ""))
        for field in dataclasses.fields(options)
    ]


def _field_docstrings(options: type[Any]) -> dict[str, str]:
    """Return the string that follows each annotated field of a class; none if its source is missing."""
    try:
        source = textwrap.dedent(inspect.getsource(options))
    except (OSError, TypeError):
        return {}
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            found[field.target.id] = " ".join(after.value.value.split())
    return found
