"""The terminal while a command is loaded: a line from 0.3 s on, gone before the first output."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

_PROGRAM = """
import sys
from hilt.cli.starting import starting_line
starting_line.begin(sys.argv[1:])
from hilt.cli.plain_text import plain_output
with plain_output():
    sys.stdin.readline()
    print("said", file=sys.stderr if "--error" in sys.argv else sys.stdout)
    sys.stdin.readline()
"""
_SLOW_IMPORT = """
import sys
class Slow:
    def find_spec(self, name, path, target=None):
        if name == "typer":
            print("importing", flush=True)
            sys.stdin.readline()
sys.meta_path.insert(0, Slow())
from hilt.cli.entry import main
main()
"""
LINE = "starting hilt compile"


def screen_of(text: str) -> list[str]:
    pyte = pytest.importorskip("pyte")
    screen = pyte.Screen(80, 24)
    pyte.Stream(screen).feed(text)
    return [line.rstrip() for line in screen.display if line.strip()]


def seen_by_a_terminal(words: list[str], awaited: str) -> tuple[str, list[str]]:
    """Return all the text, and the rest on the screen; the program prints once the text matches `awaited`."""
    ours, theirs = pty.openpty()
    text = ""
    command = [sys.executable, "-c", _PROGRAM, *words]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        assert process.stdin is not None
        while not re.search(awaited, text):
            text += os.read(ours, 65536).decode()
        process.stdin.write(b"\n")
        process.stdin.flush()
        while "said" not in text:
            text += os.read(ours, 65536).decode()
        process.stdin.write(b"\n")
    os.close(ours)
    assert process.returncode == 0
    return text, screen_of(text)


@pytest.mark.parametrize("stream", [[], ["--error"]], ids=["output", "error"])
def test_the_line_comes_counts_and_goes(stream: list[str]) -> None:
    text, left = seen_by_a_terminal(["compile", "x.onnx", *stream], rf"{LINE}, \d+ s")
    assert screen_of(re.split(r", \d+ s", text)[0]) == [LINE]
    assert left == ["said"]


@pytest.mark.parametrize("words", [["--version"], ["compile", "--help"], ["x\x1b[2J"], []])
def test_nothing_comes_for_help_and_odd_words(words: list[str]) -> None:
    text, left = seen_by_a_terminal(words, "")
    assert "starting" not in text and left == ["said"]


@pytest.mark.parametrize("arguments", [["compile", "x.onnx"]])
def test_nothing_comes_without_a_terminal(arguments: list[str]) -> None:
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    done = subprocess.run(command, input="\n\n", capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("said\n", "", 0)


def test_the_entry_shows_it_before_any_library_is_loaded() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _SLOW_IMPORT, "runs", "--limit", "0"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"importing\n"
        text = ""
        while "starting hilt runs" not in text:
            text += os.read(ours, 65536).decode()
        process.stdin.write(b"\n")
        process.stdin.flush()
        while "Invalid value" not in text:
            text += os.read(ours, 65536).decode()
    os.close(ours)
    assert process.returncode == 2 and screen_of(text)[0].startswith("hilt: Invalid value")
