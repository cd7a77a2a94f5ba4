"""How fast configurations are judged and lowered on the host, on one core."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from hilt.schedule import load_workload, lower, space_for, verdicts
from hilt.virtual.personality import personality
from tests.bench.figure import Figure, Sizes, Topic

PYNQ = personality("pynq").accelerator
JUDGED, LOWERED = "deepbench.17", ("resnet18.C5", "deepbench.17")
LOWERINGS = 500
RUNS = 5


def figures(sizes: Sizes) -> Iterator[Figure]:
    workload = load_workload(JUDGED)
    space = space_for(workload, PYNQ)
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        verdicts(workload, PYNQ, space.columns(np.arange(len(space))))
        seconds.append(time.process_time() - start)
    what = f"{JUDGED}, all {len(space):,}"
    yield Figure("verdicts/s", what, "-", f"best of {RUNS}", f"{len(space) / min(seconds):,.0f}/s")

    for name in LOWERED:
        workload = load_workload(name)
        space = space_for(workload, PYNQ)
        accepted = np.flatnonzero(verdicts(workload, PYNQ, space.columns(np.arange(len(space)))) == 0)
        chosen = np.random.default_rng(1).choice(accepted, min(LOWERINGS, len(accepted)), replace=False)
        start = time.process_time()
        instructions = sum(len(lower(workload, space.configuration(int(n)), PYNQ).instructions) for n in chosen)
        elapsed = time.process_time() - start
        value = f"{len(chosen) / elapsed:,.0f}/s ({instructions / elapsed / 1e6:.1f} million instructions/s)"
        what = f"{name}, {len(chosen)} of {len(accepted):,} accepted"
        yield Figure("lowered configurations/s", what, "1", "1", value)


TOPIC = Topic("schedule", "verdicts and lowering on the host, one core, pynq", figures)
