"""Arguments and options of every command: names, types, bounds and defaults, beside those that were accepted.

Where they are meant to change:
`build/host-env/bin/pytest tests/unit/cli/test_options_as_they_were.py --snapshot-update`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from typing import Any, get_args, get_type_hints

import pytest
import typer
from syrupy.assertion import SnapshotAssertion

from hilt.cli.commands import COMMANDS
from hilt_board.commands import _parser


def functions_of(name: str, loaded: Callable[..., Any] | typer.Typer) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield a command's function, or those of a group, with the words that call it."""
    if not isinstance(loaded, typer.Typer):
        yield name, loaded
        return
    for each in loaded.registered_commands:
        assert each.callback is not None
        yield f"{name} {each.name or each.callback.__name__}", each.callback
    if loaded.registered_callback is not None and loaded.registered_callback.callback is not None:
        yield name, loaded.registered_callback.callback


def line_of(parameter: Parameter, annotation: Any) -> str:
    """Return the facts of a parameter that a user can tell."""
    kind, *more = get_args(annotation) if hasattr(annotation, "__metadata__") else (annotation,)
    told = [f"  {parameter.name}: {getattr(kind, '__name__', kind)}"]
    for info in more:
        names = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]  # Typer's order
        told += [" ".join(names) or type(info).__name__]
        told += [f"{fact} {value}" for fact in ("min", "max", "hidden", "is_eager") if (value := getattr(info, fact))]
    default = "none" if parameter.default is Parameter.empty else repr(parameter.default)
    return ", ".join([*told, f"default {default}"])


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_options(entry: Any, snapshot: SnapshotAssertion) -> None:
    lines = []
    for words, function in functions_of(entry.name, entry.load()):
        hints = get_type_hints(function, include_extras=True)
        parameters = signature(function).parameters.values()
        lines += [f"hilt {words}", *(line_of(each, hints[each.name]) for each in parameters)]
    assert "\n".join(lines) == snapshot


def test_options_of_the_agent(snapshot: SnapshotAssertion) -> None:
    (commands,) = (each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction))
    lines = []
    for name, command in commands.choices.items():
        lines.append(f"{name}: {command.get_default('run').__name__}")
        for action in command._actions[1:]:  # the first is --help
            names = " ".join(action.option_strings) or action.dest
            lines.append(f"  {names}: {getattr(action.type, '__name__', 'str')}, default {action.default!r}")
    assert "\n".join(lines) == snapshot
