"""The Python environment of virtual boards is made once, by commands that may fail; a named one is only checked."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from hilt import paths
from hilt.virtual import board_environment
from hilt.virtual.board_environment import REQUIREMENT, ensure
from hilt.virtual.errors import VirtualBoardError


class Commands:
    """The commands of an installation; those whose words hold `fails` fail with it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._folder = folder
        self.ran: list[list[str]] = []
        self.fails: str | None = None
        monkeypatch.setattr(board_environment, "_run", self._run)

    def _run(self, command: list[str]) -> str | None:
        self.ran.append(command)
        self._folder.mkdir(parents=True, exist_ok=True)
        return self.fails if self.fails and command[-1] == REQUIREMENT else None


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(monkeypatch, tmp_path / "cache" / "board-env")


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter that hilt makes itself."""
    made = tmp_path / "cache" / "board-env" / "bin" / "python"
    monkeypatch.setattr(paths, "board_python", lambda: made)
    monkeypatch.setattr(paths, "cached_board_python", lambda: made)
    monkeypatch.setattr(board_environment.shutil, "which", lambda name: None)
    return made


@pytest.mark.parametrize("uv", [None, "/bin/uv"])
def test_an_environment_is_made_once(
    python: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch, uv: str | None
) -> None:
    monkeypatch.setattr(board_environment.shutil, "which", lambda name: uv)
    folder = python.parent.parent
    (folder / "left over").mkdir(parents=True)
    told: list[str] = []
    assert ensure(told.append) == python
    make, install = commands.ran
    if uv:
        assert make == [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        assert install == [uv, "pip", "install", "--quiet", "--python", str(python), REQUIREMENT]
    else:
        assert make == [sys.executable, "-m", "venv", str(folder)]
        assert install[:4] == [str(python), "-m", "pip", "install"] and install[-1] == REQUIREMENT
    assert told[0] == f"making the virtual boards' Python environment in {folder} (once, a minute or two)"
    assert told[1:] == [f"running {' '.join(command[-2:])}" for command in commands.ran]
    assert not (folder / "left over").exists()


def test_a_complete_environment_is_left_alone(python: Path, commands: Commands) -> None:
    folder = python.parent.parent
    folder.mkdir(parents=True)
    (folder / f".ready-{REQUIREMENT}").touch()
    told: list[str] = []
    assert ensure(told.append) == python
    assert told == [] and commands.ran == [] and not folder.with_name("board-env.lock").exists()


def test_two_processes_make_it_once(python: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits for the first, and finds its work."""
    folder = python.parent.parent
    second = threading.Thread(target=ensure, args=(lambda text: None,))

    def run(command: list[str]) -> None:
        commands.ran.append(command)
        folder.mkdir(parents=True, exist_ok=True)
        if len(commands.ran) == 1:
            second.start()

    monkeypatch.setattr(board_environment, "_run", run)
    ensure(lambda text: None)
    second.join(60)
    assert len(commands.ran) == 2


def test_an_installation_that_fails_says_why_and_what_else_there_is(python: Path, commands: Commands) -> None:
    commands.fails = "no network"
    with pytest.raises(VirtualBoardError, match="cannot be made: no network; make one with pynq==.* HILT_BOARD_PYTHON"):
        ensure(lambda text: None)
    commands.fails = None
    python.parent.parent.mkdir(parents=True, exist_ok=True)
    assert ensure(lambda text: None) == python and len(commands.ran) == 4, "it is begun anew"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "which is not an interpreter; name one that imports pynq, or unset it and hilt makes one"),
        ("echo first >&2; echo No module named pynq >&2; exit 1", "does not import pynq: No module named pynq; run"),
        ("echo on the other stream; exit 1", "does not import pynq: on the other stream; run"),
        ("exit 7", "does not import pynq: exit code 7; run"),
    ],
)
def test_a_named_interpreter_without_pynq_is_refused(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, words: str
) -> None:
    named = tmp_path / "python"
    if script is not None:
        named.write_text(f"#!/bin/sh\n{script}\n")
        named.chmod(0o700)
    monkeypatch.setattr(paths, "board_python", lambda: named)
    with pytest.raises(VirtualBoardError, match=words):
        ensure(lambda text: None)


def test_a_named_interpreter_is_asked_without_the_hosts_packages(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "python"
    named.write_text(f'#!/bin/sh\n[ -z "$PYTHONPATH" ] && [ -n "$OTHER" ] && echo "$2" > {tmp_path}/asked\n')
    named.chmod(0o700)
    monkeypatch.setattr(paths, "board_python", lambda: named)
    monkeypatch.setenv("PYTHONPATH", "/host")
    monkeypatch.setenv("OTHER", "kept")
    assert ensure(lambda text: None) == named
    assert (tmp_path / "asked").read_text() == "import numpy, pynq\n"


def test_a_command_that_takes_too_long_or_is_not_there_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_environment, "_INSTALL_SECONDS", 0.02)
    assert "timed out" in (board_environment._run(["/bin/sleep", "9"]) or "")
    assert "No such file" in (board_environment._run(["/nowhere"]) or "")
