"""The line that stands while a command's modules are imported: on a terminal alone, and gone before any output."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.cli import starting
from hilt.cli.starting import StartingLine


class Terminal(io.StringIO):
    def __init__(self, on: bool = True) -> None:
        super().__init__()
        self._on = on

    def isatty(self) -> bool:
        return self._on


class Ended:
    """The end of a command's start, which comes at the wait of this number."""

    def __init__(self, at: int) -> None:
        self.at, self.waits = at, list[float]()
        self.is_set = False

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return len(self.waits) >= self.at

    def set(self) -> None:
        self.is_set = True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setattr(starting, "sys", SimpleNamespace(stderr=made, __stderr__=made))
    monkeypatch.setenv("TERM", "xterm")
    return made


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that begin; nothing is drawn."""
    lines: list[str] = []

    def thread(target: Any, args: tuple[str, float], daemon: bool) -> Any:
        assert daemon
        return SimpleNamespace(start=lambda: lines.append(args[0]), join=lambda: lines.append("join"))

    monkeypatch.setattr(starting, "Thread", thread)
    return lines


def test_a_command_on_a_terminal_is_named_and_ends_once(terminal: Terminal, begun: list[str]) -> None:
    line = StartingLine()
    line.begin(["compile", "x.onnx"])
    line.end()
    line.end()
    assert begun == ["starting hilt compile", "join"]


@pytest.mark.parametrize("words", [[], ["--version"], ["tune", "--help"], [""]])
def test_other_words_have_no_line(terminal: Terminal, begun: list[str], words: list[str]) -> None:
    line = StartingLine()
    line.begin(words)
    line.end()
    assert begun == []


@pytest.mark.parametrize(
    ("stream", "kind"), [(None, "xterm"), (Terminal(False), "xterm"), ("own", "dumb"), ("own", None)]
)
def test_without_a_terminal_there_is_no_line(
    terminal: Terminal, begun: list[str], monkeypatch: pytest.MonkeyPatch, stream: Any, kind: str | None
) -> None:
    monkeypatch.setattr(starting.sys, "stderr", terminal if stream == "own" else stream)
    if kind is None:
        monkeypatch.delenv("TERM")
    else:
        monkeypatch.setenv("TERM", kind)
    StartingLine().begin(["tune"])
    assert begun == []


@pytest.mark.parametrize(
    ("at", "waits", "drawn"),
    [
        (1, [0.3], ""),
        (2, [0.3, 1.0], "\r\x1b[2Kstarting hilt tune\r\x1b[2K"),
        (4, [0.3, 1.0, 1.0, 1.0], "\r\x1b[2Kstarting hilt tune\r\x1b[2Kstarting hilt tune, 1 s"
         "\r\x1b[2Kstarting hilt tune, 2 s\r\x1b[2K"),
    ],
)  # fmt: skip
def test_it_is_drawn_each_second_and_wiped(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, at: int, waits: list[float], drawn: str
) -> None:
    line, ended = StartingLine(), Ended(at)
    monkeypatch.setattr(line, "_ended", ended)
    monkeypatch.setattr(starting, "monotonic", lambda: 100.5 + len(ended.waits) - 1)
    line._show("starting hilt tune", 100.0)
    assert ended.waits == waits and terminal.getvalue() == drawn


def test_a_process_without_standard_error_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "sys", SimpleNamespace(__stderr__=None))
    starting._write("x")


def test_the_end_takes_away_a_line_that_is_drawn(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_AFTER_SECONDS", 60.0)
    line = StartingLine()
    line.begin(["tune"])
    assert line._thread is not None and line._thread.is_alive()
    line.end()
    assert line._thread is None and line._ended.is_set() and terminal.getvalue() == ""
