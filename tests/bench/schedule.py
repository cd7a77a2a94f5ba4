"""The speed at which one core of the host judges, lowers and describes configurations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from hilt.schedule import Conv2d, Rejected, Space, load_workload, lower, lower_many, space_for, verdicts
from hilt.schedule import features as described
from hilt.schedule.tiling import IntArray
from tests.bench.best_by_twin import LAYERS, PYNQ
from tests.bench.figure import Figure, Sizes, Topic

JUDGED = "deepbench.17"
DESCRIBED = "resnet18.C5"
LOWERINGS = 1000
AT_ONCE = 64
SEED = 1
RUNS = 5
"""The best counts: other work on the machine only takes time away."""

Sample = list[tuple[Conv2d, Space, IntArray]]
"""Some configurations of each layer, by index."""


def figures(sizes: Sizes) -> Iterator[Figure]:
    yield _judging()
    sample, of = _accepted_of_resnet18()
    subject = f"resnet18, {LOWERINGS:,} of {of:,} accepted"
    for way, lowering in (("one by one", _one_by_one), (f"{AT_ONCE} together", _together)):
        seconds, instructions = min(_timed(partial(lowering, sample)) for _ in range(RUNS))
        value = f"{LOWERINGS / seconds:,.0f}/s ({instructions / seconds / 1e6:.1f} million instructions/s)"
        yield Figure(f"lowered configurations/s, {way}", subject, str(SEED), f"best of {RUNS}", value, "1,000/s")
    yield from _describing()


def _judging() -> Figure:
    workload = load_workload(JUDGED)
    space = space_for(workload, PYNQ, orders=4)
    seconds, _ = min(
        _timed(lambda: len(verdicts(workload, PYNQ, space.columns(np.arange(len(space)))))) for _ in range(RUNS)
    )
    subject = f"{JUDGED}, all {len(space):,} in {seconds * 1e3:.0f} ms"
    return Figure("verdicts/s", subject, "-", f"best of {RUNS}", f"{len(space) / seconds:,.0f}/s", "20,480/s")


def _accepted_of_resnet18() -> tuple[Sample, int]:
    """Return a random sample of the configurations that the compiler accepts over all layers, and the total count."""
    layers = [load_workload(name) for name in LAYERS]
    spaces = [space_for(layer, PYNQ, orders=4) for layer in layers]
    accepted = [
        np.flatnonzero(verdicts(layer, PYNQ, space.columns(np.arange(len(space)))) == 0)
        for layer, space in zip(layers, spaces, strict=True)
    ]
    layer = np.repeat(np.arange(len(layers)), [len(each) for each in accepted])
    chosen = np.random.default_rng(SEED).choice(len(layer), LOWERINGS, replace=False)
    index = np.concatenate(accepted)[chosen]
    return [(layers[number], spaces[number], index[layer[chosen] == number]) for number in range(len(layers))], len(
        layer
    )


def _one_by_one(sample: Sample) -> int:
    return sum(
        len(lower(workload, space.knobs_at(int(index)), PYNQ).instructions)
        for workload, space, indices in sample
        for index in indices
    )


def _together(sample: Sample) -> int:
    instructions = 0
    for workload, space, indices in sample:
        for first in range(0, len(indices), AT_ONCE):
            for found in lower_many(workload, space.columns(indices[first : first + AT_ONCE]), PYNQ):
                assert not isinstance(found, Rejected)
                instructions += len(found.instructions)
    return instructions


def _describing() -> Iterator[Figure]:
    workload = load_workload(DESCRIBED)
    space = space_for(workload, PYNQ, orders=4)
    everything = np.arange(len(space))
    kinds: dict[str, Callable[[], int]] = {
        "knob": lambda: described.knob_features(space, everything).shape[1],
        "hidden": lambda: described.hidden_features(workload, PYNQ, space.columns(everything)).values.shape[1],
        "loop AST": lambda: described.ast_features(workload, PYNQ, space.columns(everything)).values.shape[1],
        "context relation": lambda: described.context_relation_features(
            workload, PYNQ, space.columns(everything)
        ).values.shape[1],
    }
    for name, describe in kinds.items():
        seconds, columns = min(_timed(describe) for _ in range(RUNS))
        subject = f"{DESCRIBED}, all {len(space):,}: {columns} columns"
        yield Figure(f"rows/s of {name} features", subject, "-", f"best of {RUNS}", f"{len(space) / seconds:,.0f}/s")


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


TOPIC = Topic("schedule", "verdicts, lowering and features on the host, one core, pynq", figures)
