"""The TUI on a long run that is live: opening it, keys, and the processor time it takes; in a terminal of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

from hilt.store import Store, database_path
from tests.bench.figure import Figure, Sizes, Topic
from tests.bench.tui_terminal import TuiTerminal
from tests.unit.store import examples
from tests.unit.tui.live import UUID, trial

COLUMNS, LINES = 120, 40
TRIALS_PER_SECOND = 20
OPENINGS = 5
REPEATS = 15
SETTLED_SECONDS = 10.0
WATCHED_SECONDS = 20.0
SHOWN = "recorded, by trial"
DOWN, PAGE_DOWN, HOME, END = "\x1b[B", "\x1b[6~", "\x1b[H", "\x1b[F"
_ROW = re.compile(r" (\d+) +(?:[\d,]+\.\d|–) ")


def figures(sizes: Sizes) -> Iterator[Figure]:
    count = sizes.stored_trials
    subject = f"{count:,} trials, live at {TRIALS_PER_SECOND} a second, {COLUMNS}x{LINES}"
    with tempfile.TemporaryDirectory(prefix="hilt-bench-") as folder:
        home = Path(folder)
        with Store(database_path(home)) as store:
            store.create_run(examples.run(UUID, budget=2 * count, space_size=2 * count))
            store.record(UUID, [trial(number) for number in range(count)])
        with _engine(home, count):
            for measured in (_openings(home), _watched_and_steered(home)):
                for name, repeats, value, goal in measured:
                    yield Figure(name, subject, "-", repeats, value, goal)
            load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
            yield Figure("load of the machine in the last 1, 5, 15 minutes", f"{os.cpu_count()} cores", "-", "1", load)


Measured = Iterator[tuple[str, str, str, str]]
"""The name, repeats, value and goal of each figure.

Times are of the wall clock, and so include other work of the machine, unless they are marked as processor time.
"""


def _openings(home: Path) -> Measured:
    clock, spent = [], []
    for _ in range(OPENINGS):
        with closing(TuiTerminal(home, UUID, COLUMNS, LINES)) as terminal:
            clock.append(terminal.seconds_until(SHOWN))
            spent.append(terminal.processor_seconds())
    subject, repeats = "from the command to the newest page, Python's start included", f"median of {OPENINGS}"
    yield subject, repeats, f"{median(clock):.2f} s (least {min(clock):.2f}, most {max(clock):.2f})", "below 1 s"
    yield "the same in processor time", repeats, f"{median(spent):.2f} s", "below 1 s"


def _watched_and_steered(home: Path) -> Measured:
    with closing(TuiTerminal(home, UUID, COLUMNS, LINES)) as terminal:
        terminal.seconds_until(SHOWN)
        terminal.processor_share(SETTLED_SECONDS)  # the first loading and drawing, which happen once
        share = terminal.processor_share(WATCHED_SECONDS)
        yield f"processor, watched for {WATCHED_SECONDS:.0f} s", "1", f"{100 * share:.1f} % of a core", "below 10 %"
        for name, press in _keys(terminal).items():
            seconds = [press(repeat) for repeat in range(REPEATS)]
            value = f"{1e3 * median(seconds):.0f} ms (least {1e3 * min(seconds):.0f}, most {1e3 * max(seconds):.0f})"
            yield f"key: {name}", f"median of {REPEATS}", value, "below 100 ms"
        for name, key, wanted in (
            ("valid trials only", "f", "valid, by trial"),
            ("by latency", "o", "valid, by latency"),
        ):
            yield f"key: {name}, of all", "1", f"{1e3 * terminal.seconds_until(wanted, key):.0f} ms", ""


def _keys(terminal: TuiTerminal) -> dict[str, Callable[[int], float]]:
    """Return functions that press a key and give the seconds until its effect is drawn."""
    shown = {int(each) for each in _ROW.findall(terminal.drawn_after(HOME))}
    rows = max(each for each in shown if each < LINES) + 1

    def home(repeat: int) -> float:
        terminal.drawn_after(END)
        return terminal.seconds_until(f"{0:>7} ", HOME)

    def to_the_log(repeat: int) -> float:
        if repeat:
            terminal.drawn_after("2")
        return terminal.seconds_until("log: all", "6")

    def back_to_the_run(repeat: int) -> float:
        terminal.drawn_after("6")
        return terminal.seconds_until(SHOWN, "2")

    return {
        "down": lambda repeat: terminal.seconds_until(f"{repeat + 1:>7} ", DOWN),
        "a page down": lambda repeat: terminal.seconds_until(f"{REPEATS + (repeat + 1) * rows:>7} ", PAGE_DOWN),
        "to the first trial": home,
        "to the log's screen": to_the_log,
        "back to the run's screen": back_to_the_run,
    }


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
