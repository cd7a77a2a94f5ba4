"""The certainty of the tuner hilt on worlds with a hidden side, in processes side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hilt.measure.dataset import DatasetKey
from hilt.run_choices import CheckLevel
from hilt.trial import Outcome
from hilt.tune import Feedback
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender, code_of
from hilt_experiments.datasets import subject
from hilt_experiments.foreign_runs import NEAR, described, facts_of, problem_of
from hilt_experiments.shards import Row, Shard, rows_of
from hilt_experiments.side_worlds import SideWorld, side_worlds

_USUAL = tuple(f"resnet18.{layer}" for layer in ("C2", "C5", "C8", "C9"))
_ALL = tuple(f"resnet18.C{number}" for number in range(2, 12))
_TOGETHER = 10
"""Worlds of one seed."""
_TRIALS, _BATCH = 750, 8
_SURE = 0.99
_TARGET_FALSE = 0.02


def sides(bench: Bench) -> None:
    """Hold the experiment: --seeds of the generator from --seed on, ten worlds each; all ten layers with --full."""
    seeds, first = bench.seeds(2, 13), bench.settings.seed or 0
    levels = bench.levels([CheckLevel.TVM, CheckLevel.COMPILER])
    names = bench.workloads(_USUAL, _ALL)
    spaces = [subject(name, checks=checks) for checks in levels for name in names]
    rows = rows_of(shards_of(spaces, range(first, first + seeds)), bench.settings.jobs, bench.report)
    bench.table("runs", rows)
    sure = [row for row in rows if row["confidence"] is not None and row["confidence"] >= _SURE]
    false = [row for row in sure if row["off"] is None or row["off"] > NEAR]
    trials = float(np.median([row["trials"] for row in rows])) if rows else math.nan
    bench.compare(
        "share of false ones among runs that state 99 % on hidden sides",
        f"at most {_TARGET_FALSE:.0%}",
        f"{100 * len(false) / max(len(sure), 1):.1f} % ({len(false)} of {len(sure)} sure runs; {len(rows)} runs)",
        f"trials to the end: median {trials:.0f}",
    )
    for row in false:
        bench.report(f"{row['workload']} {row['level']}, seed {row['seed']}: {row['side']}, {row['off']:.1%} off")


def shards_of(spaces: Sequence[DatasetKey], seeds: Sequence[int]) -> list[Shard]:
    """Return a shard for each space and seed of the generator."""
    contender = Contender.of("hilt")
    shards = []
    for of in spaces:
        facts = facts_of(of, contender) + code_of("hilt_experiments.side_worlds")
        for seed in seeds:
            arguments = (of.workload.name, str(of.checks), described(contender), seed, facts)
            shards.append(Shard("sides", runs_on_sides, (), arguments, False))
    return shards


def runs_on_sides(
    subjects: Sequence[DatasetKey], workload: str, checks: str, described: str, seed: int, facts: str
) -> list[Row]:
    """Return a row for each world of a seed. `subjects` are none; runs of other `facts` are other rows."""
    of = subject(workload, checks=CheckLevel(checks))
    return [
        {"level": checks, "workload": workload, "seed": seed, "kind": world.kind, "side": world.side}
        | {"factor": round(world.factor, 4)}
        | one_run(of, world, seed)
        for world in _worlds(of, seed)
    ]


@lru_cache(maxsize=1)
def _worlds(of: DatasetKey, seed: int) -> list[SideWorld]:
    return side_worlds(of, problem_of(of), _TOGETHER, seed)


def one_run(of: DatasetKey, world: SideWorld, seed: int) -> Row:
    """Return the trials, the stated confidence, and the distance of the best from the world's best."""
    started = time.process_time()
    tuner = Contender.of("hilt").make(problem_of(of), seed)
    asked: list[int] = []
    waiting: list[Feedback] = []
    while len(asked) < _TRIALS:
        batch = tuner.ask(_BATCH)
        if not batch and not waiting:
            break
        if waiting:
            tuner.tell(waiting)
        asked += batch
        waiting = [_answer(world, index) for index in batch]
    near = np.flatnonzero(world.microseconds[asked] <= (1 + NEAR) * world.optimum)
    return {
        "trials": len(asked),
        "to_1%": int(near[0]) + 1 if len(near) else None,
        "confidence": tuner.confidence(),  # type: ignore[attr-defined]
        "off": float(world.microseconds[asked].min() / world.optimum - 1),
        "seconds": round(time.process_time() - started, 3),
    }


def _answer(world: SideWorld, index: int) -> Feedback:
    latency = float(world.microseconds[index])
    return Feedback(index, Outcome.OK, latency) if math.isfinite(latency) else Feedback(index, Outcome.CRASH)
