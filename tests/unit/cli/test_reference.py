"""docs/cli.md against the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from hilt.cli import reference
from hilt.cli.main import application

WRITTEN = Path(__file__).parents[3] / "docs" / "cli.md"


def parsed(words: str) -> Any:
    """The command as the command line's parser has it."""
    command: Any = typer.main.get_command(application)
    for word in words.split()[1:]:
        command = command.commands[word]
    return command


def test_docs_cli_is_fresh() -> None:
    assert WRITTEN.read_text(encoding="utf-8") == reference.text(), "python -m hilt.cli.reference > docs/cli.md"


@pytest.mark.parametrize("command", reference.commands(), ids=lambda command: command.words)
def test_it_describes_every_parameter_that_the_parser_takes(command: reference.CommandReference) -> None:
    assert command.help
    assert all(parameter.help for parameter in command.parameters)
    names = [name.split()[0] for each in command.parameters for name in each.syntax.split(" / ")]
    taken = [parameter for parameter in parsed(command.words).params if parameter.name != "help"]
    options = [
        name for parameter in taken for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")
    ]
    assert sorted(name for name in names if name.startswith("-")) == sorted(options)
    assert len(command.parameters) == len(taken)


@pytest.mark.parametrize("command", reference.commands(), ids=lambda command: command.words)
def test_its_help_flows(command: reference.CommandReference) -> None:
    """A line break within a paragraph would be kept in the terminal, wherever its edge is."""
    assert not [part for part in (parsed(command.words).help or "").split("\n\n") if "\n" in part]


def test_no_command_is_left_out() -> None:
    def below(command: Any, words: str) -> list[str]:
        inner = getattr(command, "commands", {})
        itself = [words] if not inner or command.invoke_without_command else []
        return itself + [name for each in inner for name in below(inner[each], f"{words} {each}")]

    listed = below(typer.main.get_command(application), "hilt")
    assert sorted(each.words for each in reference.commands()) == sorted(each for each in listed if each != "hilt")
