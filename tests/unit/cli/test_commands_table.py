"""The table of commands: help without importing a command, completion, near names."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.cli.commands import COMMANDS, LazyCommands
from hilt.cli.main import run as hilt

HILT = Path(sys.executable).with_name("hilt")


def test_help_imports_no_command_and_no_heavy_library() -> None:
    code = (
        "import sys\nfrom hilt.cli.main import run\nrun(['--help'])\n"
        "heavy = ('numpy', 'scipy', 'textual', 'paramiko', 'hilt.store', 'hilt.engine', 'hilt.schedule')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "[]\n"
    assert all(f" {entry.name} " in done.stdout for entry in COMMANDS)


@pytest.mark.slow
def test_help_takes_less_than_300_milliseconds_of_processor_time() -> None:
    """On a slow machine: 1.7 times as long as Python with nothing but the library of the command line."""

    def used(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # In turn, so that both meet the seconds in which nothing else slows the machine.
    rounds = [(used(sys.executable, "-c", "import typer.rich_utils"), used(str(HILT), "--help")) for _ in range(5)]
    library, shown = (min(column) for column in zip(*rounds, strict=True))
    assert shown < max(0.3, 1.7 * library)


def test_every_command_loads_and_has_a_summary_of_one_line() -> None:
    commands = LazyCommands()
    for entry in COMMANDS:
        assert callable(entry.load())
        assert entry.summary.endswith(".") and len(entry.summary) <= 90, entry.name
        assert commands[entry.name].name == entry.name


def completed(words: str) -> list[str]:
    """The words that the shell offers after these."""
    parts = words.split(" ")
    variables = {"_HILT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(parts) - 1)}
    done = subprocess.run([HILT], env={**os.environ, **variables}, capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("hilt tu", ["tune", "tui", "tuners"]),
        ("hilt log ex", ["export"]),
        ("hilt boards --js", ["--json"]),
        ("hilt tune --tuner-o", ["--tuner-option"]),
    ],
)
def test_the_shell_completes_commands_and_options(words: str, offered: list[str]) -> None:
    assert completed(words) == offered


def test_completion_can_be_installed() -> None:
    # Typer asks the parent processes for the shell; the tests' parent may be none that it supports.
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run([HILT, "--show-completion", "bash"], capture_output=True, text=True, env=environment)
    assert "_HILT_COMPLETE=complete_bash" in done.stdout


def test_a_mistyped_command_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["tuen"]) == 2
    assert re.search(r"Did you mean '?tune", capsys.readouterr().err)
