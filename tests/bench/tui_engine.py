"""`python -m tests.bench.tui_engine HOME FIRST PER_SECOND`: an engine that records trials at a steady pace until its
standard input ends, for the TUI to watch."""

from __future__ import annotations

import select
import sys
import time
from pathlib import Path

from tests.unit.tui.live import live_engine, trial


def main(home: str, first: str, per_second: str) -> None:
    number, pace = int(first), float(per_second)
    with live_engine(Path(home)) as engine:
        print("ready", flush=True)
        began = time.monotonic()
        while not select.select([sys.stdin], [], [], 0)[0]:
            due = int(first) + int((time.monotonic() - began) * pace)
            while number < due:
                engine.record(trial(number))
                number += 1
            time.sleep(0.5 / pace)


if __name__ == "__main__":
    main(*sys.argv[1:])
