"""`python -m hilt.cli.reference > docs/cli.md`: every command, argument and option, as the code declares them."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeGuard, Union, get_args, get_origin

import typer
from typer.models import ArgumentInfo, ParameterInfo, ParamMeta
from typer.utils import get_params_from_function

from hilt.cli import exit_codes
from hilt.cli.commands import COMMANDS

_HEAD = """# Command line

Made by `python -m hilt.cli.reference` from the code; tests/unit/cli/test_reference.py says when it is out of date.
`hilt COMMAND --help` shows the same in the terminal."""

_WORDS: dict[object, str] = {str: "TEXT", int: "INT", float: "FLOAT", Path: "PATH"}


@dataclass(frozen=True)
class Parameter:
    """An argument or option of a command."""

    syntax: str
    """The syntax: `WORKLOAD`, `--trials INT`, `--sudo / --no-sudo`."""
    usage: str
    """The syntax in the line of usage; empty for an option that may be left out."""
    help: str
    default: str
    """Empty where there is none to tell."""


@dataclass(frozen=True)
class CommandReference:
    """A command by its words, such as `hilt boards add`."""

    words: str
    help: str
    parameters: tuple[Parameter, ...]


def commands() -> list[CommandReference]:
    """Return every command that `hilt --help` leads to, in its order."""
    listed: list[CommandReference] = []
    for entry in COMMANDS:
        loaded, name = entry.load(), f"hilt {entry.name}"
        listed += _commands(loaded, name) if isinstance(loaded, typer.Typer) else [_command(name, loaded)]
    return listed


def text() -> str:
    """Return the whole reference, Markdown."""
    listed = commands()
    contents = " · ".join(
        f"[{command.words.removeprefix('hilt ')}](#{command.words.replace(' ', '-')})" for command in listed
    )
    parts = [_HEAD, contents, *(_section(command) for command in listed), f"## Exit codes\n\n{exit_codes.HELP}"]
    return "\n\n".join(parts) + "\n"


def _section(command: CommandReference) -> str:
    usage = " ".join([command.words, *(parameter.usage for parameter in command.parameters if parameter.usage)])
    optional = any(not parameter.usage for parameter in command.parameters)
    lines = [f"## {command.words}", "", f"`{usage}{' [OPTIONS]' if optional else ''}`", "", command.help]
    if command.parameters:
        lines += ["", "| | | default |", "|---|---|---|"]
        lines += [
            f"| `{_cell(parameter.syntax)}` | {_cell(parameter.help)} | {_cell(parameter.default)} |"
            for parameter in command.parameters
        ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _commands(group: typer.Typer, name: str) -> Iterator[CommandReference]:
    """Yield the commands of a group, and the group itself where it does something without a command."""
    callback = group.registered_callback
    if callback is not None and callback.callback is not None:
        yield _command(name, callback.callback)
    for info in group.registered_commands:
        assert info.callback is not None
        yield _command(f"{name} {info.name or info.callback.__name__.replace('_', '-')}", info.callback)


def _command(words: str, function: Callable[..., Any]) -> CommandReference:
    declared = get_params_from_function(function).values()
    parameters = (_parameter(parameter) for parameter in declared if isinstance(parameter.default, ParameterInfo))
    words_of_it = " ".join(inspect.cleandoc(function.__doc__ or "").split())
    return CommandReference(words, words_of_it, tuple(parameter for parameter in parameters if parameter is not None))


def _parameter(declared: ParamMeta) -> Parameter | None:
    """Return an argument or option as the reference shows it; None for a hidden one."""
    info: ParameterInfo = declared.default
    if isinstance(info, ArgumentInfo):
        return _argument(declared, info)
    return None if info.hidden else _option(declared, info)


def _argument(declared: ParamMeta, info: ArgumentInfo) -> Parameter:
    kind, many = _kind(declared.annotation)
    syntax = info.metavar or (_word(kind) if _is_choice(kind) else declared.name.upper())
    usage = f"{syntax}..." if many else syntax
    usage = usage if info.default is ... else f"[{usage}]"
    return Parameter(syntax, usage, (info.help or "") + _bounds(info), _default(info.default))


def _option(declared: ParamMeta, info: ParameterInfo) -> Parameter:
    kind, many = _kind(declared.annotation)
    named = " / ".join(info.param_decls or ())
    dashed = named or f"--{declared.name.replace('_', '-')}"
    if kind is bool:
        syntax = named or f"{dashed} / --no-{dashed.removeprefix('--')}"
        return Parameter(syntax, "", info.help or "", "" if named else _default(info.default))
    syntax = f"{dashed} {info.metavar or _word(kind)}"
    help_words = (info.help or "") + _bounds(info) + (" May be given several times." if many else "")
    return Parameter(syntax, syntax if info.default is ... else "", help_words, _default(info.default))


def _bounds(info: ParameterInfo) -> str:
    """Return a sentence on the least and the largest number; empty without either. 2^63 - 1 says nothing to people."""
    most = None if info.max is None or info.max >= 2**53 else f"{info.max:,}"
    if info.min is None:
        return f" At most {most}." if most else ""
    return f" From {info.min:,} to {most}." if most else f" At least {info.min:,}."


def _kind(hint: object) -> tuple[object, bool]:
    """Return the type of one value, and whether there may be many: of `list[str] | None`, str and True."""
    inner = hint
    if get_origin(inner) in (Union, types.UnionType):
        inner = next(argument for argument in get_args(inner) if argument is not type(None))
    return (get_args(inner)[0], True) if get_origin(inner) is list else (inner, False)


def _word(kind: object) -> str:
    return "|".join(str(choice.value) for choice in kind) if _is_choice(kind) else _WORDS[kind]


def _is_choice(kind: object) -> TypeGuard[type[Enum]]:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _default(value: object) -> str:
    if value is ... or value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Path):  # the place of the installation says nothing to others
        return ""
    return str(value.value if isinstance(value, Enum) else value)


if __name__ == "__main__":
    sys.stdout.write(text())
