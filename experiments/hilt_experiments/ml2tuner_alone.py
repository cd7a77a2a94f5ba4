"""ML2Tuner's Figure 2 against TVM and against its own model P alone, in spaces that are mostly invalid.

The paper's space is 92.6 % invalid, ML2Tuner's on hilt's board without interlock 20 %. The spaces here are those that
TVM v0.9 can run (over 80 % invalid) on the public HLS machine's timing (hilt_experiments.foreign_worlds).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from hilt.measure.dataset import DatasetKey
from hilt.tune.metrics import trials_to_within
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender
from hilt_experiments.datasets import RESNET18, subject
from hilt_experiments.foreign_runs import NEAR, described, facts_of, problem_of
from hilt_experiments.foreign_worlds import foreign_datasets
from hilt_experiments.replay import Protocol, replay
from hilt_experiments.shards import Row, Shard, rows_of

ROUND = 10
PROTOCOL = Protocol(trials=500, batch=ROUND, pipelined=False)
WORLD = "hls_newer"
TVM = Contender.of("autotvm", "TVM", plan_size=ROUND)
"""The TVM approach, which learns a failure as no throughput, at the same pace as ML2Tuner."""
P_ALONE = Contender.of("ml2tuner", "P alone", model_v=False, model_a=False)
"""It learns from valid trials only, so it does not avoid failures."""
ML2 = Contender.of("ml2tuner")
RULES = {"more than ten valid trials": 11, "as many as ten rounds have": 11 * ROUND}
"""Valid trials without a better one after which a search has converged.

The paper says `the same value more than ten times`, which can be read both ways. A failed trial has no value.
"""
_FEW = ("resnet18.C4", "resnet18.C7", "resnet18.C10")
"""Layers with at most eight configurations within 1 % of the best; chance finds others at once."""


def alone(bench: Bench) -> None:
    """Hold the experiment: trials and invalid attempts to the converged result of TVM and of P."""
    names = bench.workloads(_FEW, RESNET18)
    seeds = bench.seeds(2, 10)
    shards = [
        Shard(bench.name, improvements, (), (name, described(each), seed, facts_of(subject(name), each)), False)
        for seed in range(seeds)
        for name in names
        for each in (TVM, P_ALONE, ML2)
    ]
    rows = rows_of(shards, bench.settings.jobs, bench.report)
    bench.table("runs", [{key: value for key, value in row.items() if key != "improved"} for row in rows])
    note = f"{len(names)} layers, {seeds} runs"
    table: list[Row] = []
    for base in (TVM, P_ALONE):
        for rule, still in RULES.items():
            found = _shares(rows, names, base, still)
            table += [{"over": base.label, "rule": rule, **row} for row in found]
            _compare(bench, base, rule, found, note)
    bench.table("alone", table)
    medians = []
    for each in (TVM, P_ALONE, ML2):
        mine = [row["to_1%"] for row in rows if row["tuner"] == each.label]
        medians.append(f"{np.median([PROTOCOL.trials if trials is None else trials for trials in mine]):.0f}")
    bench.compare("Figure 2a: trials to 1 % of the optimum: TVM, P alone, ML2Tuner", "-", ", ".join(medians), note)


def _shares(rows: Sequence[Row], names: Sequence[str], base: Contender, still: int) -> list[Row]:
    """Return for each layer the trials and the invalid attempts of ML2Tuner, over those of `base`."""
    found = []
    for name in names:
        those, whole = (
            [row for row in rows if (row["workload"], row["tuner"]) == (name, each.label)] for each in (base, ML2)
        )
        trials, invalid = share_of_trials(those, whole, still)
        found.append({"workload": name, "runs": len(whole), "trials": round(trials, 4), "invalid": round(invalid, 4)})
    return found


def _compare(bench: Bench, base: Contender, rule: str, found: Sequence[Row], note: str) -> None:
    trials = [row["trials"] for row in found]
    bench.compare(
        f"Figure 2a: ML2Tuner: trials to {base.label}'s converged result, over {base.label}'s; converged after {rule}",
        "12.3 %",
        f"{100 * np.mean(trials):.1f} % on average ({100 * min(trials):.1f}-{100 * max(trials):.1f} %)",
        note,
    )
    bench.compare(
        f"Figure 2b: fewer invalid attempts than {base.label} until then; converged after {rule}",
        "60.8 %",
        f"{100 * (1 - np.mean([row['invalid'] for row in found])):.1f} %",
        note,
    )


def improvements(subjects: Sequence[DatasetKey], workload: str, text: str, seed: int, facts: str) -> list[Row]:
    """Return one row: a run's improvements, each with its trial (from 1), latency and valid trials up to it.

    `subjects` are none. Runs of other `facts` are other rows.
    """
    fields = json.loads(text)
    contender = Contender.of(fields["tuner"], fields["label"], **fields["options"])
    of = subject(workload)
    dataset = foreign_datasets(of)[WORLD]
    indices = replay(contender.make(problem_of(of), seed), dataset, PROTOCOL).indices
    latencies = dataset.microseconds[indices]
    best = np.minimum.accumulate(latencies)
    valid = np.cumsum(dataset.valid[indices])
    better = np.flatnonzero(best < np.concatenate(([np.inf], best[:-1])))
    return [
        {
            "workload": workload,
            "tuner": contender.label,
            "seed": seed,
            "trials": len(indices),
            "improved": [[int(place) + 1, float(best[place]), int(valid[place])] for place in better],
            "valid": int(valid[-1]),
            "to_1%": trials_to_within(latencies.tolist(), dataset.optimum, NEAR),
            "invalid_share": float((~dataset.valid[indices]).mean()),
            "space_invalid": float(1 - dataset.valid.mean()),
        }
    ]


def converged(row: Row, still: int) -> tuple[int, float, int]:
    """Return the trial after which there is no better one for `still` valid trials, its latency, and valid trials.

    The run has a valid trial.
    """
    improved = row["improved"]
    ends = [valid for _, _, valid in improved[1:]] + [row["valid"] + still]
    return next(
        (int(trial), float(latency), int(valid))
        for (trial, latency, valid), end in zip(improved, ends, strict=True)
        if end - valid >= still
    )


def share_of_trials(base: Sequence[Row], whole: Sequence[Row], still: int) -> tuple[float, float]:
    """Return the median trials to the mean latency of the base's converged runs, over its mean trials to converge.

    The second figure is the same of invalid trials. Runs of the base without a valid trial have not converged, and are
    left out.
    """
    ends, latencies, valid = (
        np.array(each) for each in zip(*(converged(row, still) for row in base if row["improved"]), strict=True)
    )
    aim = float(latencies.mean())
    needed = np.array([_trials_to(row, aim) for row in whole])
    invalid = needed[:, 0] - needed[:, 1]
    return float(np.median(needed[:, 0]) / ends.mean()), float(np.median(invalid) / max((ends - valid).mean(), 1))


def _trials_to(row: Row, aim: float) -> tuple[int, int]:
    """Return the trials of a run to a latency, and the valid ones among them; all of the run if it never gets there."""
    found = ((trial, valid) for trial, latency, valid in row["improved"] if latency <= aim)
    return next(found, (row["trials"], row["valid"]))
