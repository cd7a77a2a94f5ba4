"""Every tuner on machines of another structure.

It shows trials to 1 % of each world's best, and whether stated confidence is true.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset import Dataset, DatasetKey
from hilt.run_choices import CheckLevel
from hilt.schedule.checks import Checks
from hilt.tune.metrics import geometric_mean, trials_to_within
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender, known
from hilt_experiments.datasets import RESNET18, subject
from hilt_experiments.foreign_worlds import WORLDS, foreign_datasets
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Answers, Protocol, replay
from hilt_experiments.shards import Row, Shard, rows_of
from hilt_experiments.significance import compare_trials

BASELINE = "autotvm"
CONTENDERS = [Contender.of(name) for name in ("autotvm", "random", "ga", "hw-aware", "glimpse", "ml2tuner", "hilt")]
_SLOW = "ml2tuner"
LEVELS: tuple[Checks, ...] = (CheckLevel.TVM, CheckLevel.COMPILER)
FEW = ["resnet18.C5", "resnet18.C8", "resnet18.C9"]
PROTOCOL = Protocol(trials=750, batch=8)
_TO_OPTIMUM = Protocol(trials=750, batch=8, until_optimum=True)
_NEAR = 0.01
EDGES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
"""The edges of the bins of stated confidence."""
_TARGETS = {"hls": 0.1, "chisel": 0.1, "serial": 0.1, "rules": 0.25}
"""The target for hilt's trials over AutoTVM's, by the worlds' family."""
_TARGET_FALSE = 0.02


def foreign(bench: Bench) -> None:
    """Hold the experiment: a table of trials by world, and the reliability of the stated confidence."""
    contenders, missing = known(each for each in CONTENDERS if bench.settings.full or each.tuner != _SLOW)
    for line in missing:
        bench.report(line)
    seeds = bench.seeds(20, 20)
    workloads = bench.workloads(FEW, RESNET18)
    shards = [
        Shard(bench.name, runs_on_worlds, (subject(name, checks=checks),), _arguments(contender, seeds), False)
        for checks in bench.levels(LEVELS)
        for name in workloads
        for contender in contenders
    ]
    rows = rows_of(shards, bench.settings.jobs, bench.report)
    bench.table("runs", rows)
    summary = summarise(rows)
    bench.table("worlds", summary)
    _compare(bench, summary, rows)
    bins = reliability([row for row in rows if row["tuner"] == "hilt"])
    bench.table("reliability", bins)
    _plot(bench, bins)


def _arguments(contender: Contender, seeds: int) -> tuple[str, int, str]:
    described = {"label": contender.label, "tuner": contender.tuner, "options": dict(contender.options)}
    return json.dumps(described, sort_keys=True), seeds, contender.code()


def runs_on_worlds(subjects: Sequence[DatasetKey], described: str, seeds: int, code: str) -> list[Row]:
    """Return a row for each world and seed.

    A row has the trials to 1 % and to the best, the stated confidence, and its error. `code` names the tuner's
    sources: rows of other sources are other rows.
    """
    fields = json.loads(described)
    contender = Contender.of(fields["tuner"], fields["label"], **fields["options"])
    (of,) = subjects
    problem = _problem(of)
    rows = []
    for world, dataset in foreign_datasets(of).items():
        for seed in range(seeds):
            row = {"level": of.checks, "workload": of.workload.name, "world": world, "family": WORLDS[world].family}
            rows.append(row | {"tuner": contender.label, "seed": seed} | one_run(contender, problem, dataset, seed))
    return rows


@lru_cache(maxsize=2)
def _problem(of: DatasetKey) -> SharedTuningProblem:
    return SharedTuningProblem.of_subject(of)


def one_run(contender: Contender, problem: SharedTuningProblem, dataset: Dataset, seed: int) -> Row:
    """Return one run's figures; empty where there is none. Runs of other tuners than hilt end at the optimum."""
    started = time.process_time()
    tuner = contender.make(problem, seed)
    protocol = PROTOCOL if contender.tuner == "hilt" else _TO_OPTIMUM
    indices = replay(tuner, dataset, protocol, Answers(dataset)).indices
    latencies = dataset.microseconds[indices]
    best = float(latencies.min(initial=math.inf))
    stated = tuner.assessment() if hasattr(tuner, "assessment") else None
    return {
        "trials": len(indices),
        "to_1%": trials_to_within(latencies.tolist(), dataset.optimum, _NEAR),
        "to_0%": trials_to_within(latencies.tolist(), dataset.optimum, 0.0),
        "within_1%": int((dataset.microseconds <= (1 + _NEAR) * dataset.optimum).sum()),
        "invalid": int((~np.isfinite(latencies)).sum()),
        "confidence": None if stated is None else stated.confidence,
        "stop": None if stated is None else str(stated.stop),
        "off": best / dataset.optimum - 1 if math.isfinite(best) else None,
        "seconds": round(time.process_time() - started, 3),
    }


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each level, world and tuner.

    Trials are medians and quartiles over seeds, as geometric means over workloads. The ratio to the baseline has its
    95 % interval and the p-value of equal tuners.
    """
    cells: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["level"], row["world"], row["tuner"]][row["workload"]].append(row)
    summary = []
    for (level, world, tuner), by_workload in cells.items():
        near = {name: _trials(runs, "to_1%") for name, runs in by_workload.items()}
        best = {name: _trials(runs, "to_0%") for name, runs in by_workload.items()}
        quartiles = [np.percentile(trials, [25, 50, 75]) for trials in near.values()]
        low, middle, high = (geometric_mean([each[place] for each in quartiles]) for place in range(3))
        line: Row = {"level": level, "world": world, "family": WORLDS[world].family, "tuner": tuner}
        line |= {"trials_to_1%": round(middle, 2), "lower_quartile": round(low, 2), "upper_quartile": round(high, 2)}
        line["trials_to_0%"] = round(geometric_mean([float(np.median(trials)) for trials in best.values()]), 2)
        base = cells.get((level, world, BASELINE), {})
        line |= _against({name: _trials(runs, "to_1%") for name, runs in base.items()}, near)
        never = sum(run["to_1%"] is None for runs in by_workload.values() for run in runs)
        summary.append(line | {"never": never, "workloads": len(by_workload)})
    return summary


def _trials(runs: Sequence[Row], column: str) -> npt.NDArray[np.float64]:
    """Return the trials (runs,) of a column; one more than the budget if a run never came there."""
    trials = [PROTOCOL.trials + 1 if run[column] is None else run[column] for run in runs]
    return np.array(trials, dtype=np.float64)


def _against(baseline: Mapping[str, npt.NDArray[np.float64]], ours: Mapping[str, npt.NDArray[np.float64]]) -> Row:
    """Return the ratio of medians to the baseline's on the same workloads, its interval and p-value."""
    shared = [name for name in ours if name in baseline]
    columns = (f"over_{BASELINE}", "low", "high", "p_value")
    if not shared:
        return dict.fromkeys(columns)
    found = compare_trials([ours[name] for name in shared], [baseline[name] for name in shared])
    return dict(zip(columns, (round(x, 4) for x in (found.ratio, found.low, found.high, found.p_value)), strict=True))


def reliability(rows: Sequence[Row]) -> list[Row]:
    """Return how many runs stated a confidence in each bin, and how many of them were within 1 % of the best."""
    bins = []
    for lower, upper in itertools.pairwise(EDGES):
        last = upper == EDGES[-1]
        inside = [
            row
            for row in rows
            if row["confidence"] is not None
            and (lower <= row["confidence"] < upper or (last and row["confidence"] == 1))
        ]
        right = sum(row["off"] is not None and row["off"] <= _NEAR for row in inside)
        stated = float(np.mean([row["confidence"] for row in inside])) if inside else None
        bins.append({"from": lower, "to": upper, "runs": len(inside), "right": right, "mean_stated": stated})
    return bins


def _compare(bench: Bench, summary: Sequence[Row], rows: Sequence[Row]) -> None:
    by_tuner = {(row["level"], row["world"], row["tuner"]): row for row in summary}
    for row in summary:
        if row["tuner"] != "hilt":
            continue
        others = [
            other["trials_to_1%"]
            for (level, world, tuner), other in by_tuner.items()
            if (level, world) == (row["level"], row["world"]) and tuner != "hilt"
        ]
        target = _TARGETS.get(row["family"])
        least = f"best other tuner {min(others):.1f}" if others else "no other tuner"
        bench.compare(
            f"{row['world']}, {row['level']}: hilt: trials to within 1% over {BASELINE}'s",
            "-" if target is None else f"target {target}",
            f"{row[f'over_{BASELINE}']}",
            f"{row['trials_to_1%']:.1f} trials; {least}; {row['never']} runs never",
        )
    own = [row for row in rows if row["tuner"] == "hilt"]
    sure = [row for row in own if row["confidence"] is not None and row["confidence"] >= 0.99]
    false = sum(row["off"] is None or row["off"] > _NEAR for row in sure)
    nothing = sum(row["off"] is None and row["trials"] < PROTOCOL.trials for row in own)
    share = f"{100 * false / len(sure):.1f}%" if sure else "no run"
    bench.compare(
        "runs that state 99% and are more than 1% off",
        f"target {_TARGET_FALSE:.0%}",
        f"{share} ({false} of {len(sure)})",
        f"{len(own)} runs; {nothing} ended early with nothing valid",
    )


def _plot(bench: Bench, bins: Sequence[dict[str, Any]]) -> None:
    """Draw the share of right runs over the stated confidence, with the number of runs in each bin."""
    filled = [row for row in bins if row["runs"]]
    with bench.plot("reliability") as (axes,):
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        shares = [row["right"] / row["runs"] for row in filled]
        axes.plot([row["mean_stated"] for row in filled], shares, marker="o", label="hilt")
        for row, share in zip(filled, shares, strict=True):
            axes.annotate(str(row["runs"]), (row["mean_stated"], share), fontsize=7)
        axes.set(xlabel="stated confidence", ylabel="runs within 1% of the best", title="reliability")
        axes.legend(fontsize=7)
