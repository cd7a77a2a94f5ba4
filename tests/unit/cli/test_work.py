"""Progress on a real terminal: phase, count and time left on one line; nothing elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.cli.work import CommandWork, awaited
from hilt.engine.command_progress import live_commands

_PROGRAM = """
import sys
import typer
from hilt.cli.plain_text import plain_output
from hilt.cli.prose import say_text
from hilt.cli.work import CommandWork
with plain_output():
    with CommandWork() as work:
        work.begin("reading x")
        sys.stdin.readline()
        say_text("a note", err=True)
        advance = work.counter("placing", "nodes")
        for done in range(1, 5):
            advance(done, 40)
        sys.stdin.readline()
    typer.echo("done")
"""


def test_the_line_has_phase_count_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("hilt.cli.work.time", lambda: now[0])
    work = CommandWork()
    work.begin("joining layers")
    assert work.line == "joining layers"
    now[0] = 3.0
    assert work.line == "joining layers, 3 s"
    advance = work.counter("placing", "nodes")
    advance(0, 4)
    now[0] = 13.0
    assert work.line == "placing: 0 of 4 nodes, 10 s"
    advance(1, 4)
    assert work.line == "placing: 1 of 4 nodes, 30 s left"
    advance(4, 4)
    assert work.line == "placing: 4 of 4 nodes, 10 s", "what follows the last is not silent"


@pytest.mark.slow
def test_a_terminal_sees_it_grow_and_keeps_none_of_it() -> None:
    pyte = pytest.importorskip("pyte")
    screen = pyte.Screen(80, 24)
    stream = pyte.Stream(screen)
    ours, theirs = pty.openpty()
    awaited = [re.compile(r"reading x, \d+ s"), re.compile(r"placing: \d+ of 40 nodes, .* left")]
    seen = set()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    arguments = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        assert process.stdin is not None
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            stream.feed(data.decode())
            lines = {line.rstrip() for line in screen.display}
            seen |= lines
            if awaited and any(awaited[0].fullmatch(line) for line in lines):
                del awaited[0]
                process.stdin.write(b"\n")  # it works until then
                process.stdin.flush()
    os.close(ours)
    assert process.returncode == 0
    assert "reading x" in seen and not awaited, seen
    assert [line.rstrip() for line in screen.display if line.strip()] == ["a note", "done"]


def test_others_see_a_named_command_and_without_a_terminal_a_last_stage_has_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    with CommandWork("reading", command="compile net.onnx") as work:
        assert [each.phase for each in live_commands(tmp_path)] == ["reading"]
        work.counter("placing", "nodes")(3, 9)
        (seen,) = live_commands(tmp_path)
        assert (seen.command, seen.phase, seen.campaign) == ("compile net.onnx", "placing", "")
    assert live_commands(tmp_path) == [] and capsys.readouterr().err == ""
    with CommandWork(command="campaign cccc", campaign="c" * 32) as work:
        work.begin("1/7 the board's processor")
        work.counter("2/7 bundle: placing", "nodes")(1, 9)
    assert capsys.readouterr().err == "1/7 the board's processor\n2/7 bundle: placing\n"


def test_no_terminal_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with CommandWork() as work:
        work.begin("reading x")
        advance = work.counter("placing", "nodes")
        for done in range(10):
            advance(done, 10)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_a_line_stands_while_an_item_is_made_and_none_while_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(CommandWork, "__enter__", lambda work: shown.append(work.line) or work)
    monkeypatch.setattr(CommandWork, "__exit__", lambda *_: shown.append("ended"))
    used = [(each, shown[-1]) for each in awaited(iter("ab"), "checking desk")]
    assert used == [("a", "ended"), ("b", "ended")]
    assert shown[::2] == [f"checking desk, step {number}" for number in (1, 2, 3)]
