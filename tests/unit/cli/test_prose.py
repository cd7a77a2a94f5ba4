"""Sentences at 80 columns: wrapped at spaces on a terminal, whole elsewhere."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

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


def test_a_path_longer_than_a_line_has_no_line_break_in_it() -> None:
    file, path = io.StringIO(), "/home/me/" + 30 * "long/" + "net.hilt"
    print_text(Console(file=file, width=80, force_terminal=True, color_system=None), f"hilt: {path}: no such file")
    assert path in file.getvalue()


def test_lines_break_at_spaces_only() -> None:
    file = io.StringIO()
    console = Console(file=file, width=10, force_terminal=True, color_system=None)
    print_text(console, "of a look-up or --json-lines\n/a/path/of/hilt")
    assert file.getvalue() == "of a\nlook-up or\n--json-lines\n/a/path/of/hilt\n"


def test_an_error_wraps_between_words_on_a_terminal_of_80_columns(tmp_path: Path) -> None:
    terminal, other = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", "from hilt.cli.entry import main; main()", "show", "no-such-run"], stdin=other,
        stdout=other, stderr=other, env={**os.environ, "COLUMNS": "80", "TERM": "xterm", "HILT_HOME": str(tmp_path)},
    ) as process:  # fmt: skip
        os.close(other)
        shown = ""
        with suppress(OSError):  # the end of a terminal that has no process
            while found := os.read(terminal, 65536):
                shown += found.decode()
    os.close(terminal)
    assert process.returncode == 2
    stays = re.sub(r"\r\x1b\[2K[^\r\n]*(?=\r\x1b\[2K)", "", shown)  # of a start that takes long a line is wiped again
    lines = stays.replace("\r\x1b[2K", "").splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == (
        "hilt: there is no run or campaign 'no-such-run'; `hilt runs` and `hilt campaigns` list them"
    )


def test_a_file_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say_text(_TEXT)
    say_text("a fault", err=True)
    captured = capsys.readouterr()
    assert captured.out == f"{_TEXT}\n" and captured.err == "a fault\n"
