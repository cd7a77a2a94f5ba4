"""Every tuner and peer on datasets of drawn machines, one trial at a time: the FGCS 2024 score, and trials to 1 %.

A dataset is a layer at `compiler` on a machine of hilt_experiments.drawn_worlds. The hard layers are shown apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt_experiments.baselines import HARD, LEARNING_NOTHING
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender
from hilt_experiments.datasets import RESNET18
from hilt_experiments.methodology import Methodology
from hilt_experiments.score_runs import BUDGET, SLOW, datasets_of, shards_of
from hilt_experiments.shards import Row, rows_of
from hilt_experiments.significance import compare_trials

BASELINE = "autotvm"
LAYERS = [*HARD, "resnet18.C9"]
"""Twelve datasets on the three machines of a seed."""
SEED = 2024
_RESAMPLES = 200
_INTERVAL = (2.5, 97.5)


def contenders() -> list[Contender]:
    """Return hilt's tuners and peers as their users run them, then with the compiler's check as their restriction."""
    plain = [Contender.of(name) for name in ("hilt", BASELINE, "random", "ga", "glimpse", "hw-aware")]
    peers = [Contender.of(name) for name in ("optuna-tpe", "optuna-cmaes")]
    peers += [Contender.of(f"nevergrad-{name}", budget=BUDGET) for name in ("ngopt", "discrete")]
    peers += [
        Contender.of(f"kernel-tuner-{name}", max_fevals=BUDGET)
        for name in ("genetic", "annealing", "mls", "bayes", "ils", "pso", "diff-evo", "vndx", "greywolf")
    ]
    unrestricted = [each for each in [*plain, *peers] if each.tuner not in ("hilt", "hw-aware")]
    return [*plain, *LEARNING_NOTHING, *peers, *(each.restricted() for each in unrestricted)]


def score(bench: Bench) -> None:
    """Hold the experiment: tables of the score over all datasets and of trials on the hard ones."""
    every, added = contenders(), bench.added()
    if bench.settings.full:
        added += [Contender.of(name) for name in SLOW]
    else:
        bench.report(f"{', '.join(SLOW)} are left out: a run takes minutes; --full has them, and --tuner adds one")
    there = bench.those_here([*every, *added, *(each.restricted() for each in added)])
    seeds, drawn = bench.seeds(5, 20), SEED if bench.settings.seed is None else bench.settings.seed
    layers = bench.workloads(LAYERS, RESNET18)
    shards = shards_of(layers, there, seeds, drawn, full=bench.settings.full)
    rows = rows_of(shards, bench.settings.jobs, bench.report)
    bench.seed_rows += [{name: value for name, value in row.items() if name != "improved"} for row in rows]
    report(bench, rows, drawn)


def best_so_far(row: Row) -> npt.NDArray[np.float64]:
    """Return a run's best latency after each trial of the budget (BUDGET,), NaN before the first valid one."""
    best = np.full(BUDGET, np.nan)
    for trial, latency in row["improved"]:
        best[trial - 1 :] = latency
    return best


def report(bench: Bench, rows: Sequence[Row], drawn: int) -> None:
    """Write both tables, and report a line for each tuner."""
    by_tuner: dict[str, dict[tuple[str, str], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_tuner[row["tuner"]][row["layer"], row["world"]].append(row)
    places = sorted({place for cells in by_tuner.values() for place in cells})
    spaces = {place: _space(*place, drawn) for place in places}
    table = []
    for tuner, cells in by_tuner.items():
        line: Row = {"tuner": tuner, "datasets": len(cells), "runs": sum(map(len, cells.values()))}
        line |= _scores(spaces, cells)
        line |= trials_on_hard(cells, by_tuner.get(BASELINE, {}))
        table.append(line)
    table.sort(key=lambda line: -line["score"])
    bench.table("score", table)
    for line in table:
        bench.compare(
            f"{line['tuner']}: FGCS 2024 score on {line['datasets']} datasets",
            "-",
            f"{line['score']:.3f} ({line['score_low']:.3f} to {line['score_high']:.3f})",
            f"hard layers: {line['hard_to_1%']} trials to 1 %, {line[f'over_{BASELINE}']} of {BASELINE}'s "
            f"({line['low']} to {line['high']}); {line['never']} of {line['hard_runs']} runs never",
        )


def _space(layer: str, world: str, drawn: int) -> Methodology:
    dataset = datasets_of(layer, drawn)[world]
    return Methodology(dataset.microseconds[dataset.valid])


def _scores(spaces: Mapping[tuple[str, str], Methodology], cells: Mapping[tuple[str, str], Sequence[Row]]) -> Row:
    """Return the mean score over datasets and its 95 % interval by a bootstrap over the runs of each."""
    generator = np.random.default_rng(0)
    found = []
    for place, rows in cells.items():
        runs = np.stack([best_so_far(row) for row in rows])
        drawn = [runs, *(runs[generator.integers(0, len(runs), len(runs))] for _ in range(_RESAMPLES))]
        found.append([spaces[place].score(list(each)) for each in drawn])
    means = np.mean(found, axis=0)
    low, high = np.percentile(means[1:], _INTERVAL)
    return {"score": round(float(means[0]), 4), "score_low": round(float(low), 4), "score_high": round(float(high), 4)}


def trials_on_hard(cells: Mapping[Any, Sequence[Row]], base: Mapping[Any, Sequence[Row]]) -> Row:
    """Return medians of trials to 1 % on hard layers, their ratio to the baseline's and its interval, and misses."""
    hard = {place: _trials(rows) for place, rows in cells.items() if place[0] in HARD}
    shared = [place for place in hard if place in base]
    line: Row = {"hard_to_1%": None, f"over_{BASELINE}": None, "low": None, "high": None}
    if hard:
        line["hard_to_1%"] = round(float(np.exp(np.mean([np.log(np.median(each)) for each in hard.values()]))), 1)
    if shared:
        found = compare_trials([hard[place] for place in shared], [_trials(base[place]) for place in shared])
        line |= {f"over_{BASELINE}": round(found.ratio, 4), "low": round(found.low, 4), "high": round(found.high, 4)}
    line["never"] = int(sum((each > BUDGET).sum() for each in hard.values()))
    return line | {"hard_runs": sum(map(len, hard.values()))}


def _trials(rows: Sequence[Row]) -> npt.NDArray[np.float64]:
    """Return the trials to 1 % (runs,); one more than the budget where a run never came there."""
    return np.array([BUDGET + 1 if row["to_1%"] is None else row["to_1%"] for row in rows], dtype=np.float64)
