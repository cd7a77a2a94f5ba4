"""Sentences at 80 columns: wrapped at spaces on a terminal, whole elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hilt.cli.prose import print_text, say_text

_TEXT = (
    "net.hilt: 123,456 bytes; `hilt run net.hilt --board virtual:pynq --input x.npy` runs it, --profile says where its "
    "time goes; conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1 takes [1.5] of it"
)


def test_no_word_is_cut_at_80_columns() -> None:
    file = io.StringIO()
    print_text(Console(file=file, width=80, force_terminal=True, color_system=None), _TEXT)
    lines = file.getvalue().splitlines()
    assert len(lines) > 2 and all(len(line) <= 80 for line in lines)
    assert " ".join(lines).split() == _TEXT.split()


def test_a_file_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say_text(_TEXT)
    say_text("a fault", err=True)
    captured = capsys.readouterr()
    assert captured.out == f"{_TEXT}\n" and captured.err == "a fault\n"
