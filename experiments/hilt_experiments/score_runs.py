"""Runs of tuners on layers at `compiler` on drawn machines, one trial at a time, in files."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hilt.measure.dataset import Dataset
from hilt.run_choices import CheckLevel
from hilt.tune.metrics import trials_to_within
from hilt_experiments.contenders import Contender, code_of
from hilt_experiments.datasets import subject
from hilt_experiments.drawn_worlds import drawn_worlds
from hilt_experiments.foreign_runs import NEAR, described, facts_of, problem_of
from hilt_experiments.foreign_worlds import foreign_datasets
from hilt_experiments.replay import Protocol, replay
from hilt_experiments.shards import Row, Shard

WORLDS = 3
"""Machines of one seed of the generator."""
BUDGET = 150
_PROTOCOL = Protocol(trials=BUDGET, batch=1, pipelined=False, until_optimum=True)
_OWN_PROTOCOL = Protocol(trials=BUDGET, batch=8, until_optimum=True)
"""The tuner hilt asks for the engine's batches of eight, which costs it trials and saves it time."""
_BLOCK = 4
"""Seeds that one process runs one after the other."""
SLOW = {"optuna-gp": 1, "smac": 1}
"""Most runs on a dataset of tuners that take minutes for each, but with --full."""
_SLOWER = {"optuna-tpe": 2, "optuna-cmaes": 2, "nevergrad-ngopt": 2, "nevergrad-discrete": 2}
"""The same of tuners that take seconds; all others take less."""


def shards_of(
    layers: Sequence[str], there: Sequence[Contender], seeds: int, drawn: int, *, full: bool = False
) -> list[Shard]:
    """Return the shards of seeds 0..seeds-1: the first seeds of all come first, slow tuners last, with fewer seeds."""
    most = {each.label: seeds if full else min(seeds, (SLOW | _SLOWER).get(each.tuner, seeds)) for each in there}
    groups = [[each for each in there if each.tuner not in SLOW | _SLOWER]]
    groups += [[each for each in there if each.tuner in slow] for slow in (_SLOWER, SLOW)]
    shards = []
    for group in groups:
        for first in range(0, seeds, _BLOCK):
            for layer in layers:
                of = subject(layer, checks=CheckLevel.COMPILER)
                for each in group:
                    last = min(first + _BLOCK, most[each.label])
                    if first < last:
                        facts = facts_of(of, each) + code_of("hilt_experiments.drawn_worlds")
                        told = (layer, described(each), drawn, first, last, facts)
                        shards.append(Shard("score", runs_on_datasets, (), told, False))
    return shards


def runs_on_datasets(
    subjects: Sequence[object], layer: str, contender: str, drawn: int, first: int, last: int, facts: str
) -> list[Row]:
    """Return a row for each machine and seed; `improved` are pairs of a trial and the best latency from it on.

    `subjects` are none; runs of other `facts` are other rows.
    """
    fields = json.loads(contender)
    who = Contender.of(fields["tuner"], fields["label"], **fields["options"])
    problem = problem_of(subject(layer, checks=CheckLevel.COMPILER))
    rows = []
    for world, dataset in datasets_of(layer, drawn).items():
        for seed in range(first, last):
            indices = replay(
                who.make(problem, seed), dataset, _OWN_PROTOCOL if who.tuner == "hilt" else _PROTOCOL
            ).indices
            latencies = dataset.microseconds[indices]
            best = np.minimum.accumulate(latencies)
            new = np.flatnonzero(best < np.concatenate([[math.inf], best[:-1]]))
            rows.append(
                {"layer": layer, "world": world, "tuner": who.label, "seed": seed}
                | {"to_1%": trials_to_within(latencies.tolist(), dataset.optimum, NEAR)}
                | {"to_0%": trials_to_within(latencies.tolist(), dataset.optimum, 0.0), "trials": len(indices)}
                | {"invalid": int((~dataset.valid[indices]).sum())}
                | {"improved": [(int(at) + 1, float(best[at])) for at in new]}
            )
    return rows


@lru_cache(maxsize=8)
def datasets_of(layer: str, drawn: int) -> dict[str, Dataset]:
    """Return the layer's space on each machine of the seed, by the machine's name."""
    return foreign_datasets(subject(layer, checks=CheckLevel.COMPILER), drawn_worlds(drawn, WORLDS))
