"""Progress on a terminal: count and time left; elsewhere a line for each tenth, or nothing."""

from __future__ import annotations

import pytest

from hilt.cli.counter import counter


def test_a_terminal_sees_what_is_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = iter((0.0, 10.0, 40.0))
    monkeypatch.setattr("hilt.cli.counter.monotonic", lambda: next(now))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    advance = counter("placing", "nodes", terminal_only=True)
    advance(1, 4)
    advance(4, 4)
    said = capsys.readouterr().err
    assert "placing: 1 of 4 nodes, 30 s left" in said and said.endswith("placing: 4 of 4 nodes\x1b[K\n")


def test_no_terminal_sees_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    quiet, loud = counter("a", "nodes", terminal_only=True), counter("b", "nodes")
    for done in range(1, 101):
        quiet(done, 100)
        loud(done, 100)
    said = capsys.readouterr().err.splitlines()
    assert said == [f"b: {done} of 100 nodes" for done in range(10, 101, 10)]
