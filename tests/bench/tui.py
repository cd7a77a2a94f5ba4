"""The TUI on a long run that is live: opening it, keys, and the processor time it takes; in a terminal of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from hilt.store import Store, database_path
from tests.bench.figure import Figure, Sizes, Topic
from tests.bench.tui_terminal import TuiTerminal
from tests.unit.store import examples
from tests.unit.tui.live import UUID, trial

COLUMNS, LINES = 120, 40
TRIALS_PER_SECOND = 20
REPEATS = 15
WATCHED_SECONDS = 20.0
DOWN, PAGE_DOWN, HOME, END = "\x1b[B", "\x1b[6~", "\x1b[H", "\x1b[F"
_ROW = re.compile(r" (\d+) +(?:[\d,]+\.\d|–) ")


def figures(sizes: Sizes) -> Iterator[Figure]:
    count = sizes.stored_trials
    what = f"{count:,} trials, live at {TRIALS_PER_SECOND} a second, {COLUMNS}x{LINES}"
    with tempfile.TemporaryDirectory(prefix="hilt-bench-") as folder:
        home = Path(folder)
        with Store(database_path(home)) as store:
            store.create_run(examples.run(UUID, budget=2 * count, space_size=2 * count))
            store.record(UUID, [trial(number) for number in range(count)])
        with _engine(home, count):
            terminal = TuiTerminal(home, UUID, COLUMNS, LINES)
            try:
                for name, value, goal in _measured(terminal):
                    repeats = f"median of {REPEATS}" if "most" in value else "1"
                    yield Figure(name, what, "-", repeats, value, goal)
            finally:
                terminal.close()


def _measured(terminal: TuiTerminal) -> Iterator[tuple[str, str, str]]:
    opening = terminal.seconds_until("recorded, by trial")
    spent = terminal.processor_seconds()
    yield "from the command to the newest page, Python's start included", f"{opening:.2f} s", "below 1 s"
    yield "the same in processor time", f"{spent:.2f} s", ""
    terminal.processor_share(3.0)  # what is drawn at first, and once
    share = terminal.processor_share(WATCHED_SECONDS)
    yield f"processor, watched for {WATCHED_SECONDS:.0f} s", f"{100 * share:.1f} % of a core", "below 10 %"

    shown = {int(each) for each in _ROW.findall(terminal.drawn_after(HOME))}
    rows = max(each for each in shown if each < LINES) + 1

    def down(repeat: int) -> float:
        return terminal.seconds_until(f"{repeat + 1:>7} ", DOWN)

    def page_down(repeat: int) -> float:
        return terminal.seconds_until(f"{REPEATS + (repeat + 1) * rows:>7} ", PAGE_DOWN)

    def home(repeat: int) -> float:
        terminal.drawn_after(END)
        return terminal.seconds_until(f"{0:>7} ", HOME)

    keys: dict[str, Callable[[int], float]] = {"down": down, "a page down": page_down, "to the first trial": home}
    for name, press in keys.items():
        seconds = [press(repeat) for repeat in range(REPEATS)]
        yield f"key: {name}", f"{1e3 * median(seconds):.0f} ms (most {1e3 * max(seconds):.0f})", "below 100 ms"
    for name, key, wanted in (("valid trials only", "f", "valid, by trial"), ("by latency", "o", "valid, by latency")):
        yield f"key: {name}, of all", f"{1e3 * terminal.seconds_until(wanted, key):.0f} ms", ""


@contextmanager
def _engine(home: Path, first: int) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.bench.tui_engine", str(home), str(first), str(TRIALS_PER_SECOND)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        try:
            process.stdout.readline()
            yield
        finally:
            process.stdin.close()
            process.wait(30)


TOPIC = Topic("tui", "the TUI on a long run that is live", figures)
