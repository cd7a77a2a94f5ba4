"""Every tuner on machines of another structure, and the certainty of the tuner hilt there.

The runs are those of hilt_experiments.foreign_runs. The tables show trials to 1 % of each world's best, and whether
stated confidence is true.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from hilt.run_choices import CheckLevel
from hilt.schedule.checks import Checks
from hilt.tune.metrics import geometric_mean
from hilt_experiments.baselines import LEARNING_NOTHING
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender, known
from hilt_experiments.datasets import RESNET18, subject
from hilt_experiments.foreign_runs import FACTORS, NEAR, PROTOCOL, shards_of
from hilt_experiments.shards import Row, rows_of
from hilt_experiments.significance import compare_trials

BASELINE = "autotvm"
CONTENDERS = [Contender.of(name) for name in ("autotvm", "random", "ga", "hw-aware", "glimpse", "ml2tuner", "hilt")]
CONTENDERS += LEARNING_NOTHING
_SLOW = "ml2tuner"
LEVELS: tuple[Checks, ...] = (CheckLevel.TVM, CheckLevel.COMPILER)
FEW = ["resnet18.C5", "resnet18.C8", "resnet18.C9"]
CERTAINTY: tuple[tuple[Checks, str], ...] = (
    (CheckLevel.TVM, "resnet18.C5"),
    (CheckLevel.TVM, "resnet18.C8"),
    (CheckLevel.TVM, "resnet18.C9"),
    (CheckLevel.COMPILER, "resnet18.C11"),
)
"""The spaces of the experiment `certainty`."""
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
"""The edges of the bins of stated confidence."""
_TARGETS = {"hls": 0.1, "chisel": 0.1, "serial": 0.1, "rules": 0.25}
"""The target for hilt's trials over AutoTVM's, by the worlds' family."""
_TARGET_FALSE = 0.02
SURE = 0.99
"""Confidence from which a run counts as sure."""


def foreign(bench: Bench) -> None:
    """Hold the experiment: a table of trials by world, and the reliability of the stated confidence.

    With a seed the worlds are drawn from it (hilt_experiments.drawn_worlds).
    """
    _hold(bench, LEVELS, bench.settings.seed)


def factors(bench: Bench) -> None:
    """Hold the same where each configuration has a factor of its own, with other factors for each seed."""
    _hold(bench, (CheckLevel.TVM,), FACTORS)


def _hold(bench: Bench, levels: Sequence[Checks], drawn: int | str | None) -> None:
    contenders, missing = known(each for each in CONTENDERS if bench.settings.full or each.tuner != _SLOW)
    for line in missing:
        bench.report(line)
    seeds = bench.seeds(20, 20)
    subjects = [
        subject(name, checks=checks) for checks in bench.levels(levels) for name in bench.workloads(FEW, RESNET18)
    ]
    rows = rows_of(shards_of(subjects, contenders, seeds, drawn), bench.settings.jobs, bench.report)
    bench.table("runs", [_flat(row) for row in rows])
    summary = summarise(rows)
    bench.table("worlds", summary)
    _compare(bench, summary)
    _certainty(bench, [row for row in rows if row["tuner"] == "hilt"])


def certainty(bench: Bench) -> None:
    """Hold the experiment of hilt alone, with many seeds: the runs are those of `foreign`."""
    seeds = bench.seeds(13, 20)
    names = bench.workloads([name for _, name in CERTAINTY], [name for _, name in CERTAINTY])
    levels = bench.levels(LEVELS)
    subjects = [subject(name, checks=checks) for checks, name in CERTAINTY if checks in levels and name in names]
    shards = shards_of(subjects, [Contender.of("hilt")], seeds, bench.settings.seed)
    rows = rows_of(shards, bench.settings.jobs, bench.report)
    bench.table("runs", [_flat(row) for row in rows])
    bench.table("worlds", summarise(rows))
    _certainty(bench, rows)


def _flat(row: Row) -> Row:
    """Return a row without its list, for a CSV."""
    return {name: value for name, value in row.items() if name != "batches"}


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each level, world and tuner.

    Trials are medians and quartiles over seeds, as geometric means over workloads. The ratio to the baseline has its
    95 % interval and the p-value of equal tuners.
    """
    cells: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["level"], row["world"], row["tuner"]][row["workload"]].append(row)
    summary = []
    families = {row["world"]: row["family"] for row in rows}
    for (level, world, tuner), by_workload in cells.items():
        family = families[world]
        near = {name: _trials(runs, "to_1%") for name, runs in by_workload.items()}
        best = {name: _trials(runs, "to_0%") for name, runs in by_workload.items()}
        quartiles = [np.percentile(trials, [25, 50, 75]) for trials in near.values()]
        low, middle, high = (geometric_mean([each[place] for each in quartiles]) for place in range(3))
        line: Row = {"level": level, "world": world, "family": family, "tuner": tuner}
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


def reliability(stated: Sequence[tuple[float, bool]]) -> list[Row]:
    """Return how many of the stated confidences are in each bin, and how many of them were of a right best.

    `stated` are pairs of a confidence and its truth: the best measured was within 1 % of the world's best.
    """
    bins: list[Row] = []
    for lower, upper in itertools.pairwise(EDGES):
        inside = [(value, true) for value, true in stated if lower <= value < upper or value == upper == EDGES[-1]]
        mean = float(np.mean([value for value, _ in inside])) if inside else None
        right = sum(true for _, true in inside)
        bins.append({"from": lower, "to": upper, "stated": len(inside), "right": right, "mean_stated": mean})
    return bins


def _compare(bench: Bench, summary: Sequence[Row]) -> None:
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


def _certainty(bench: Bench, rows: Sequence[Row]) -> None:
    """Compare the stated confidence of hilt's runs with the truth, at their ends and after each batch."""
    if not rows:
        return
    sure = [row for row in rows if row["confidence"] is not None and row["confidence"] >= SURE]
    false = [row for row in sure if not _is_right(row)]
    nothing = sum(row["off"] is None and row["trials"] < PROTOCOL.trials for row in rows)
    share = f"{100 * len(false) / len(sure):.1f}%" if sure else "no run"
    most = f"; at most {100 * beta.ppf(0.95, len(false) + 1, len(sure) - len(false)):.2f}% at 95%" if sure else ""
    bench.compare(
        "runs that state 99% and are more than 1% off",
        f"target {_TARGET_FALSE:.0%}",
        f"{share} ({len(false)} of {len(sure)}{most})",
        f"{len(rows)} runs of {len({row['seed'] for row in rows})} seeds on {len({row['world'] for row in rows})} "
        f"worlds; {nothing} ended early with nothing valid",
    )
    for row in false:
        bench.report(
            f"{row['world']}, {row['workload']}, {row['level']}, seed {row['seed']}: stated {row['confidence']:.4f}, "
            f"best {'none' if row['off'] is None else format(row['off'], '.1%')} off after {row['trials']} trials"
        )
    ended = [(row["confidence"], _is_right(row)) for row in rows if row["confidence"] is not None]
    batches = [(value, bool(true)) for row in rows for value, true in row["batches"]]
    bins = [
        {"when": when} | each
        for when, stated in (("at the end", ended), ("after each batch", batches))
        for each in reliability(stated)
    ]
    bench.table("reliability", bins)
    _plot(bench, bins)


def _is_right(row: Row) -> bool:
    return row["off"] is not None and bool(row["off"] <= NEAR)


def _plot(bench: Bench, bins: Sequence[dict[str, Any]]) -> None:
    """Draw the share of right confidences over the stated ones, with their number in each bin."""
    with bench.plot("reliability") as (axes,):
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        for when, marker in (("after each batch", "o"), ("at the end", "s")):
            filled = [row for row in bins if row["when"] == when and row["stated"]]
            shares = [row["right"] / row["stated"] for row in filled]
            stated = [row["mean_stated"] for row in filled]
            axes.plot(stated, shares, marker=marker, linewidth=1, markersize=4, label=when)
            for row, share in zip(filled, shares, strict=True):
                # The last bins are narrow: their numbers stand above each other.
                last = 8 * (row["from"] >= 0.99)
                place = (0, -10 - last) if when == "at the end" else (0, 5 + last)
                at = (row["mean_stated"], share)
                axes.annotate(str(row["stated"]), at, place, fontsize=6, ha="center", textcoords="offset points")
        axes.set(xlabel="stated confidence", ylabel="share within 1% of the best", xlim=(0, 1.05), ylim=(0, 1.12))
        axes.set_title("confidence of the tuner hilt on foreign worlds", fontsize=9)
        axes.legend(fontsize=7, loc="lower right")
