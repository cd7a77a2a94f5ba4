"""`python -m tests.fault`: inject faults of all kinds, kill engines at random instants, print tables.

Boards work side by side, each a process with a home of its own, for most of the time is spent waiting for them to boot.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import sys
import time
from collections.abc import Iterable, Sequence

from hilt.virtual.chaos import KINDS
from tests.fault.campaign import Verdict
from tests.fault.killed_engine import kill_campaign
from tests.fault.many_boards import RUN_TRIALS, strike


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fault", description=__doc__)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--boards", type=int, default=3)
    options = parser.parse_args()
    began = time.monotonic()
    failed = options.faults > 0 and print_faults(strike(options.faults, options.boards))
    if options.kills:
        kills, different = kill_campaign(options.kills)
        print(f"engine killed at {kills} random instants and resumed: {different} databases unlike the undisturbed one")
        failed = failed or different > 0
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if failed else 0


def print_faults(verdicts: Sequence[Verdict]) -> bool:
    """Print the faults and return True if anything is wrong."""
    faults = [fault for verdict in verdicts for fault in verdict.faults]
    by_kind = collections.defaultdict(list)
    for fault in faults:
        by_kind[fault.kind].append(fault.seconds)
    print(f"{'kind':14} {'faults':>6} {'recovered':>9} {'median s':>9} {'p95 s':>8}")
    for kind in KINDS:
        _print_row(kind, by_kind[kind])
    _print_row("all", [fault.seconds for fault in faults])
    lost, doubled, wrong = (
        sum(len(getattr(each, kind)) for each in verdicts) for kind in ("lost", "doubled", "misattributed")
    )
    quarantined = sum(each.quarantined for each in verdicts)
    trials = len(verdicts) * RUN_TRIALS
    print(f"{trials} trials in {len(verdicts)} runs: {lost} lost, {doubled} doubled, {wrong} misattributed")
    print(f"records unlike a quiet run's: {lost + wrong}; boards quarantined: {quarantined}")
    return bool(lost or doubled or wrong)


def _print_row(kind: str, seconds: Iterable[float | None]) -> None:
    known = list(seconds)
    recovered = sorted(each for each in known if each is not None)
    figures = "        -        -"
    if recovered:
        p95 = recovered[min(len(recovered) - 1, int(0.95 * len(recovered)))]
        figures = f"{statistics.median(recovered):9.2f} {p95:8.2f}"
    print(f"{kind:14} {len(known):6} {len(recovered):9} {figures}")


if __name__ == "__main__":
    sys.exit(main())
