"""Error messages on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.cli.exit_codes import Exit, report_error
from hilt.cli.main import run as hilt
from hilt.cli.plain_text import plain
from hilt.link.errors import LinkError


def test_text_of_a_board_is_no_command_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(LinkError("the agent said \x1b]0;mine\x07 \x9b2J and left\x00")) == Exit.BOARD
    assert capsys.readouterr().err == "hilt: the agent said ]0;mine 2J and left\n"


def test_a_log_keeps_its_lines() -> None:
    assert plain("one\n\ttwo\r\n\x1b[2Jthree, größer") == "one\n\ttwo\n[2Jthree, größer"


def test_a_mistyped_last_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    assert hilt(["show", "lastt"]) == 2
    assert "there is no run or campaign 'lastt'; did you mean last?" in capsys.readouterr().err
