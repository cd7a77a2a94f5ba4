"""Records commands in a terminal of 80x24: an asciicast v2 file, and an animated SVG that needs no script.

`make pictures` runs it. Times are cut: a pause of the recording is at most PAUSE seconds.
"""

from __future__ import annotations

import fcntl
import html
import json
import os
import pty
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyte

COLUMNS, ROWS = 80, 24
PAUSE = 0.8
"""Longest time between two frames, seconds."""
LAST = 4.0
"""Time that the last frame stays, seconds."""
FRAME = 0.25
"""Frames that would be shown for a shorter time are left out."""
_COLOURS = {
    "default": "#d8dee6", "black": "#3b4252", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b",
    "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d8dee6",
}  # fmt: skip
_WIDTH, _HEIGHT, _SIZE = 8.0, 17, 13


def record(lines: Sequence[str], directory: Path) -> list[tuple[float, str]]:
    """Run shell-quoted commands one after another; return (seconds, output) as in an asciicast."""
    events: list[tuple[float, str]] = []
    began = time.monotonic()
    for line in lines:
        for character in f"\x1b[1m$ {line}\x1b[0m\r\n":
            events.append((time.monotonic() - began, character))
        events += [(time.monotonic() - began, text) for text in _output(shlex.split(line), directory)]
    return events


def _output(words: list[str], directory: Path) -> Iterator[str]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    program = str(Path(sys.executable).with_name(words[0]))
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    with subprocess.Popen(
        [program, *words[1:]], stdin=theirs, stdout=theirs, stderr=theirs, cwd=directory, env=environment
    ) as process:
        os.close(theirs)
        while True:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(ours, 65536)
            except OSError:  # the command has ended
                break
            if not data:
                break
            yield data.decode("utf-8", "replace")
    os.close(ours)
    assert process.returncode == 0, f"{shlex.join(words)} ended with {process.returncode}"


def write_cast(path: Path, events: Sequence[tuple[float, str]]) -> None:
    """Write an asciicast v2 file (docs.asciinema.org/manual/asciicast/v2)."""
    head = {"version": 2, "width": COLUMNS, "height": ROWS}
    lines = [json.dumps(head), *(json.dumps([round(at, 3), "o", text]) for at, text in events)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def frames(events: Sequence[tuple[float, str]]) -> list[tuple[float, list[str]]]:
    """Return (seconds shown, the rows as SVG text) of each frame."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    shown: list[tuple[float, list[str]]] = []
    for place, (at, text) in enumerate(events):
        stream.feed(text)
        after = events[place + 1][0] - at if place + 1 < len(events) else LAST
        if after < FRAME and place + 1 < len(events):
            continue
        rows = [_row(screen, row) for row in range(ROWS)]
        seconds = LAST if place + 1 == len(events) else min(after, PAUSE)
        if shown and shown[-1][1] == rows:
            shown[-1] = (shown[-1][0] + seconds, rows)
        else:
            shown.append((seconds, rows))
    return shown


def _row(screen: pyte.Screen, row: int) -> str:
    """Return the spans of a row: text of one colour and weight each."""
    spans: list[tuple[str, bool, str]] = []
    for column in range(COLUMNS):
        cell = screen.buffer[row][column]
        colour = _COLOURS.get(cell.fg, cell.fg if cell.fg.startswith("#") else f"#{cell.fg}")
        if spans and spans[-1][:2] == (colour, cell.bold):
            spans[-1] = (colour, cell.bold, spans[-1][2] + cell.data)
        else:
            spans.append((colour, cell.bold, cell.data))
    while spans and not spans[-1][2].strip():
        spans.pop()
    weight = {True: ' font-weight="bold"', False: ""}
    return "".join(f'<tspan fill="{colour}"{weight[bold]}>{html.escape(text)}</tspan>' for colour, bold, text in spans)


def svg(shown: Sequence[tuple[float, list[str]]]) -> str:
    """Return the animation: each frame visible in its turn, over and over. A row that recurs is stored once."""
    total = sum(seconds for seconds, _ in shown)
    names: dict[str, str] = {}
    body, begin = [], 0.0
    for number, (seconds, rows) in enumerate(shown):
        used = []
        for place, row in enumerate(rows):
            if row:
                name = names.setdefault(row, f"r{len(names)}")
                used.append(f'<use href="#{name}" y="{(place + 1) * _HEIGHT}"/>')
        start, end = begin / total, (begin + seconds) / total
        values = "hidden;visible;hidden" if number else "visible;hidden;hidden"
        times = f"0;{start:.5f};{min(end, 1):.5f}" if number else f"0;{end:.5f};1"
        body.append(
            f'<g visibility="hidden">{"".join(used)}<animate attributeName="visibility" values="{values}" '
            f'keyTimes="{times}" dur="{total:.2f}s" calcMode="discrete" repeatCount="indefinite"/></g>'
        )
        begin += seconds
    width, height = round(COLUMNS * _WIDTH) + 20, (ROWS + 1) * _HEIGHT
    stored = "".join(f'<text id="{name}" xml:space="preserve">{row}</text>' for row, name in names.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{_SIZE}">'
        f'<title>hilt tunes a layer</title><rect width="100%" height="100%" rx="6" fill="#1e2329"/>'
        f'<defs>{stored}</defs><g transform="translate(10 0)">{"".join(body)}</g></svg>\n'
    )


def main(folder: Path) -> None:
    """Write hilt.cast and hilt.svg into the folder."""
    lines = ["hilt tune resnet18.C10 --trials 24", "hilt show last", "hilt compare last"]
    events = record(lines, folder)
    write_cast(folder / "hilt.cast", events)
    (folder / "recording.svg").write_text(svg(frames(events)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
