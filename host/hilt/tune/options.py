"""Options of a tuner: a frozen dataclass whose fields are the names a user may set, checked before anything runs."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from dataclasses import dataclass
from typing import Any, TypeVar


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


OptionsT = TypeVar("OptionsT")


class TunerOptionError(ValueError):
    """An option that a tuner does not have, or a value that it cannot take."""


def read_options(options: type[OptionsT], tuner: str, given: dict[str, object]) -> OptionsT:
    """Return the dataclass `options` with the given values. Raises TunerOptionError, which lists the allowed names."""
    fields = {field.name: field for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in fields:
            allowed = ", ".join(fields) or "none"
            raise TunerOptionError(f"tuner {tuner} has no option {name!r}; its options: {allowed}")
        values[name] = _as_type_of(fields[name].default, value, f"option {name} of tuner {tuner}")
    return options(**values)


def require(condition: bool, message: str) -> None:
    """Raise TunerOptionError with the message unless the condition holds."""
    if not condition:
        raise TunerOptionError(message)


def _as_type_of(default: object, value: object, option: str) -> object:
    """Return the value as the default's type: a whole number serves as a fraction, nothing else is converted."""
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise TunerOptionError(f"{option} is a {type(default).__name__}, such as {default!r}; not {value!r}")
    return value
