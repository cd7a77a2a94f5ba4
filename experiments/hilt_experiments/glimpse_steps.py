"""Glimpse's Figure 6 as the paper counts: moves of the annealing's points until the best is measured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hilt.measure.dataset import DatasetKey
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender
from hilt_experiments.datasets import RESNET18, dataset_of, subject
from hilt_experiments.glimpse import AUTOTVM, GLIMPSE, LEVELS
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Protocol, replay
from hilt_experiments.shards import Row, Shard, rows_of

_LAYERS = ("resnet18.C2", "resnet18.C5", "resnet18.C7", "resnet18.C10")
_PROTOCOL = Protocol(trials=512, batch=8, pipelined=False, until_optimum=True)
_PAPER = "5.07"


def steps(bench: Bench) -> None:
    """Hold the experiment: the moves of AutoTVM's annealing over those of Glimpse's, in all runs together."""
    seeds, contenders = bench.seeds(5, 20), bench.those_here([AUTOTVM, GLIMPSE])
    rows: list[Row] = []
    for checks in bench.levels(LEVELS):
        subjects = [subject(name, checks=checks) for name in bench.workloads(_LAYERS, RESNET18)]
        shards = [
            Shard("glimpse-steps", steps_of, (of,), (each.tuner, seed, each.code()))
            for of in subjects
            for each in contenders
            for seed in range(seeds)
        ]
        found = rows_of(shards, bench.settings.jobs, bench.report)
        rows += found
        means = {each.label: _mean_steps(found, each.tuner) for each in contenders}
        if not all(means.get(each.label) for each in (AUTOTVM, GLIMPSE)):
            bench.report(f"{checks}: no comparison: {means} steps")
            continue
        theirs, ours = means[AUTOTVM.label], means[GLIMPSE.label]
        bench.compare(
            f"Figure 6 ({checks}): glimpse: times fewer moves of the annealing than AutoTVM, until the best",
            _PAPER,
            f"{theirs / ours:.2f}",
            f"{theirs:.0f} and {ours:.0f} moves, means of {len(subjects) * seeds} runs each",
        )
    bench.table("steps", rows)


def _mean_steps(rows: Sequence[Row], tuner: str) -> float:
    return float(np.mean([row["steps"] for row in rows if row["tuner"] == tuner]))


def steps_of(subjects: Sequence[DatasetKey], tuner: str, seed: int, code: str) -> list[Row]:
    """Return the moves of one run until the dataset's best is measured, or to its end; `code` is the tuner's."""
    (of,) = subjects
    dataset = dataset_of(of)
    made = Contender.of(tuner).make(_problem_of(of), seed)
    indices = replay(made, dataset, _PROTOCOL).indices
    found = bool((dataset.microseconds[indices] <= dataset.optimum).any())
    moves = made.annealing_steps  # type: ignore[attr-defined]
    return [{"dataset": of.name, "tuner": tuner, "seed": seed, "steps": moves, "trials": len(indices), "found": found}]


@lru_cache(maxsize=1)
def _problem_of(of: DatasetKey) -> SharedTuningProblem:
    return SharedTuningProblem.of_subject(of)
