"""`python -m tests.soak`: trials and bitstream loads by the thousand, with memory, descriptors and disk sampled.

Prints the growth of every quantity, and draws it. Ends with 1 if anything grew more than it may.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.soak.phases import loads_phase, trials_phase
from tests.soak.plot import draw
from tests.soak.recorder import ROLES, Series
from tests.soak.verdict import Growth, growth

_RECORD_KIB = 0.75
"""The engine keeps every trial of its run in memory: the most KiB of one."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000, help="that run on the board")
    parser.add_argument("--loads", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=0.2, help="between two samples")
    parser.add_argument("--plot", type=Path, help="an SVG file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hilt-") as directory:
        home = Path(directory)
        os.environ["HILT_HOME"] = str(home)
        began = time.monotonic()
        trials, trial_starts, measured, recorded = trials_phase(home, options.trials, options.seconds)
        seconds = time.monotonic() - began
        print(f"{measured} trials on the board, {recorded - measured} rejected before, in {seconds:.0f} s")
        flat = _report(trials, trial_starts, engine_allowance=recorded * _RECORD_KIB / 1024)
        began = time.monotonic()
        loads, load_starts = loads_phase(options.loads, options.seconds)
        print(f"{options.loads} bitstream loads in {time.monotonic() - began:.0f} s")
        flat = _report(loads, load_starts, engine_allowance=0.0) and flat
    if options.plot is not None:
        draw(options.plot, [(f"{measured} trials", trials), (f"{options.loads} bitstream loads", loads)])
    return 0 if flat else 1


def _report(series: Series, starts: dict[str, set[int]], engine_allowance: float) -> bool:
    """Print the growth of every quantity; return True if all are flat."""
    rows = list(_growths(series, engine_allowance))
    print(f"{'quantity':22} {'early':>9} {'late':>9} {'grown':>8} {'allowed':>8}")
    for row in rows:
        mark = "" if row.flat else "  GROWS"
        name = f"{row.name}, {row.unit}" if row.unit else row.name
        print(f"{name:22} {row.early:9.1f} {row.late:9.1f} {row.grown:8.2f} {row.allowed:8.2f}{mark}")
    for role in ROLES:
        if len(starts[role]) > 1:
            print(f"{role}: {len(starts[role])} processes, one after the other")
    return all(row.flat for row in rows)


def _growths(series: Series, engine_allowance: float) -> list[Growth]:
    growths = []
    for role in ROLES:
        memory = series.column(f"{role} memory")
        if len(memory) < 20:
            continue
        allowed = 2.0 + (engine_allowance if role == "engine" else 0.0)
        growths.append(growth(f"{role} memory", "MiB", memory, allowed))
        growths.append(growth(f"{role} descriptors", "", series.column(f"{role} descriptors"), 0))
        growths.append(growth(f"{role} threads", "", series.column(f"{role} threads"), 1))
    growths.append(growth("board disk", "MiB", series.column("board disk"), 1.0))
    growths.append(growth("journal", "MiB", series.column("journal"), 0.5))
    return growths


if __name__ == "__main__":
    sys.exit(main())
