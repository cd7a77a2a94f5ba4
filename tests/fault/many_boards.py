"""Runs on boards with injected faults, several side by side: most of the time is spent waiting for boards to boot."""

from __future__ import annotations

import itertools
import logging
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from hilt.virtual.chaos import KINDS
from tests.bench.own_home import own_home
from tests.fault.campaign import Verdict, faulty_run, impatient, quiet_run

RATE = 0.2
RUN_TRIALS = 200
SLOW = ("daemon_crash", "ssh_gone", "freeze", "slow_reboot")
"""A board needs many seconds to recover from these: there are fewer of them."""
OFTEN = 4
FLEET_EVERY = 4
"""One run in this many is measured by two boards, both with injected faults."""


def strike(faults: int, boards: int) -> list[Verdict]:
    """Runs with one seed after the other until there were so many faults."""
    verdicts: list[Verdict] = []
    seeds = itertools.count(1)
    with ProcessPoolExecutor(boards, get_context("spawn")) as pool:
        working = {pool.submit(one_run, next(seeds)) for _ in range(boards)}
        while working:
            done = next(as_completed(working))
            working.remove(done)
            verdicts.append(done.result())
            so_far = sum(len(each.faults) for each in verdicts)
            print(f"{len(verdicts)} runs, {so_far} faults", file=sys.stderr, flush=True)
            if so_far + len(working) * RATE * RUN_TRIALS < faults:
                working.add(pool.submit(one_run, next(seeds)))
    return verdicts


def one_run(seed: int) -> Verdict:
    logging.getLogger("hilt").setLevel(logging.CRITICAL)  # faults of the boards are counted, not printed
    kinds = [kind for kind in KINDS for _ in range(1 if kind in SLOW else OFTEN)]
    with own_home(), tempfile.TemporaryDirectory() as directory, impatient():
        quiet = quiet_run(Path(directory), RUN_TRIALS)
        return faulty_run(Path(directory), quiet, seed, RATE, kinds, boards=1 if seed % FLEET_EVERY else 2)
