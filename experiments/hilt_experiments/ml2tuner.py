"""ML2Tuner (Cha et al., 2024): Figures 2 and 3, Tables 4 and 5 and the grid of Table 3, in its own space on zcu102.

The board finds out the valid configurations. It is the board without interlock: as on the public HLS design, a
schedule may be invalid because an index runs past a buffer or because its output differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset import DatasetKey
from hilt.tune.metrics import geometric_mean
from hilt.tune.ml2tuner.features import Hidden
from hilt.tune.ml2tuner.records import Records
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender
from hilt_experiments.curves import convergence_rows, draw_curves, trials_to_reach
from hilt_experiments.datasets import ML2_BOARDS, RESNET18, dataset_of, ml2_subject
from hilt_experiments.ml2tuner_grid import GRID, compare_objectives, cross_validate, points_of
from hilt_experiments.ml2tuner_models import Model, hidden_gain, importances
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Protocol
from hilt_experiments.runs import Runs
from hilt_experiments.shards import Row, Shard, rows_of

ROUND = 10
PROTOCOL = Protocol(trials=500, batch=ROUND, pipelined=False)
_STILL = 10
"""Rounds without a better configuration after which the paper holds a search to have converged."""
_PUBLISHED: Mapping[Model, str] = {
    "P": "depth 14, eta 0.01, alpha 1e-5",
    "V": "eta 0.1, alpha 1e-2",
    "A": "depth 14, eta 0.01, alpha 1e-5",
}
"""The best parameters according to Table 3."""
_HIDDEN = {Hidden.TABLE_5: "Table 5's features as hilt reads them", Hidden.ALL: "all features of hilt's compiler"}
"""Of the fifteen features of Table 5 that are no knobs, hilt reads nine or ten as constants or as copies of a knob."""
_POINTS_AT_ONCE = 5
_FEW = ("resnet18.C2", "resnet18.C4", "resnet18.C7", "resnet18.C10")
TVM, ML2, RANDOM = Contender.of("autotvm", "TVM"), Contender.of("ml2tuner"), Contender.of("random")
SMALL_PLANS = Contender.of("autotvm", f"TVM, plans of {ROUND}", plan_size=ROUND)
"""TVM that learns as often as ML2Tuner does: it shows how much of ML2Tuner's gain comes from that."""


def search(bench: Bench) -> None:
    """Figure 2: the search, its invalid attempts and the latencies of its valid ones."""
    results = _runs(bench, [TVM, ML2, RANDOM, SMALL_PLANS])
    bench.table("figure2", convergence_rows(results))
    _draw_search(bench, results)
    tvm, random = results[TVM.label], results[RANDOM.label]
    if ML2.label not in results:
        return
    mine = results[ML2.label]
    for label, paper in ((ML2.label, "12.3 %"), (SMALL_PLANS.label, "-")):
        shares = [_share_to_converge(one, other) for one, other in zip(results[label], tvm, strict=True)]
        bench.compare(
            f"Figure 2a: {label}: trials until TVM's converged result, over TVM's",
            paper,
            f"{100 * np.mean(shares):.1f} % on average ({100 * min(shares):.1f}-{100 * max(shares):.1f} %)",
            f"converged: {_STILL} rounds of {ROUND} without a better one",
        )
    names = [runs.cell.subject.workload.name for runs in mine]
    invalid = {label: [float(runs.invalid_share().mean()) for runs in cells] for label, cells in results.items()}
    reduction = [1 - one / other for one, other in zip(invalid[ML2.label], invalid[TVM.label], strict=True) if other]
    bench.compare(
        "Figure 2b: fewer invalid attempts than TVM", "60.8 %", f"{100 * np.mean(reduction):.1f} % on average"
    )
    first = 0
    bench.compare(
        f"Figure 2b: invalid share: random, TVM, ML2Tuner ({names[first]})",
        "0.926, 0.492, 0.176 (Conv1)",
        ", ".join(f"{invalid[each.label][first]:.3f}" for each in (RANDOM, TVM, ML2)),
        f"{np.mean([1 - runs.dataset.valid.mean() for runs in random]):.3f} of our spaces is invalid on average",
    )


def hidden_features(bench: Bench) -> None:
    """Hold Figure 3: the error of A over that of P, both fitted to the results of a run."""
    rows = []
    for runs in _runs(bench, [ML2])[ML2.label]:
        problem, every = SharedTuningProblem.of_subject(runs.cell.subject), _sample(runs.cell.subject, 4_000)
        for seed, indices in enumerate(runs.indices):
            measured = _records(runs.cell.subject, indices[indices >= 0])
            for hidden in Hidden:
                gain = hidden_gain(problem, measured, every, seed, hidden)
                found = {"workload": runs.cell.subject.workload.name, "seed": seed, "hidden": str(hidden)}
                rows.append({**found, **asdict(gain), "ratio": gain.ratio})
    bench.table("figure3", rows)
    names = list(dict.fromkeys(row["workload"] for row in rows))
    with bench.plot("figure3") as (axes,):
        for place, (hidden, words) in enumerate(_HIDDEN.items()):
            ratios = [
                geometric_mean([row["ratio"] for row in rows if (row["workload"], row["hidden"]) == (name, hidden)])
                for name in names
            ]
            axes.bar(np.arange(len(names)) + 0.4 * place, ratios, width=0.4, label=words)
            bench.compare(f"Figure 3: RMSE of A over P, mean over layers, {words}", "0.919", f"{np.mean(ratios):.3f}")
        axes.axhline(1, color="0.5", linewidth=0.8)
        axes.set_xticks(range(len(names)), [name.split(".")[-1] for name in names])
        axes.set(ylabel="RMSE of A over P")
        axes.legend(fontsize=6)


def objectives(bench: Bench) -> None:
    """Table 4: objectives, by accuracy and seconds, cross-validated."""
    samples = 2_000 if bench.settings.full else 400
    rows: list[dict[str, Any]] = []
    for name in bench.workloads(_FEW[:2], RESNET18):
        of = ml2_subject(name, ML2_BOARDS[1])
        for model in ("P", "V"):
            for score in compare_objectives(SharedTuningProblem.of_subject(of), _sample(of, samples), model, 0):
                rows.append(
                    {
                        "workload": name,
                        "model": model,
                        "objective": score.hyperparameters.objective,
                        "accuracy_%": round(100 * score.accuracy, 3),
                        "seconds": round(score.seconds, 3),
                    }
                )
    bench.table("table4", rows)

    def mean_of(model: str, objective: str, column: str) -> float:
        return float(np.mean([row[column] for row in rows if (row["model"], row["objective"]) == (model, objective)]))

    for model, published in (
        ("P", {"reg:squarederror": "99.55 %, 320 s", "rank:pairwise": "99.49 %, 538 s"}),
        (
            "V",
            {
                "reg:squarederror": "99.49 %, 316 s",
                "binary:hinge": "99.41 %, 177 s",
                "binary:logistic": "99.55 %, 538 s",
            },
        ),
    ):
        for objective, paper in published.items():
            bench.compare(
                f"Table 4: model {model}, {objective}: accuracy, seconds",
                paper,
                f"{mean_of(model, objective, 'accuracy_%'):.2f} %, {mean_of(model, objective, 'seconds'):.1f} s",
                f"{samples} records; pairs ordered right for P, classes for V: the paper does not define accuracy",
            )


def importance(bench: Bench) -> None:
    """Hold Table 5: the importance of each feature for the models."""
    samples = 2_000 if bench.settings.full else 600
    rows: list[dict[str, Any]] = []
    for name in bench.workloads(_FEW, RESNET18):
        of = ml2_subject(name, ML2_BOARDS[1])
        for model in ("P", "V", "A"):
            found = importances(SharedTuningProblem.of_subject(of), _sample(of, samples), model, 0)
            rows += [
                {"workload": name, "model": model, "feature": feature, "percent": round(share, 3)}
                for feature, share in found.items()
            ]
    bench.table("table5", rows)
    for model in ("P", "V", "A"):
        mean: dict[str, list[float]] = {}
        for row in rows:
            if row["model"] == model:
                mean.setdefault(row["feature"], []).append(row["percent"])
        ranked = sorted(mean, key=lambda feature: -sum(mean[feature]))[:4]
        said = ", ".join(f"{each} {np.mean(mean[each]):.1f} %" for each in ranked)
        bench.compare(f"Table 5: what model {model} splits by most", "TW, TH, nVT lead", said)


def grid(bench: Bench) -> None:
    """Table 3: its grid, searched."""
    samples, points = (2_000, 500) if bench.settings.full else (300, 30)
    name = bench.workloads(_FEW[:1], RESNET18)[0]
    of = ml2_subject(name, ML2_BOARDS[1])
    shards = [
        Shard(bench.name, score_points, (of,), (model, samples, points, first))
        for model in _PUBLISHED
        for first in range(0, points, _POINTS_AT_ONCE)
    ]
    rows = rows_of(shards, bench.settings.jobs, bench.report)
    rows.sort(key=lambda row: (list(_PUBLISHED).index(row["model"]), -row["accuracy"], row["rmse"]))
    bench.table("table3", rows)
    _draw_grid(bench, rows)
    for model, paper in _PUBLISHED.items():
        best = next(row for row in rows if row["model"] == model)
        said = f"depth {best['max_depth']}, eta {best['learning_rate']}, alpha {best['reg_alpha']:g}"
        said += f": {best['accuracy']:.4f}"
        bench.compare(f"Table 3: model {model}: best of {points} points of the grid", paper, said, name)


def score_points(subjects: Sequence[DatasetKey], model: Model, samples: int, points: int, first: int) -> list[Row]:
    """Return scores of points of the grid, from the `first` on, cross-validated on a sample of a dataset."""
    (of,) = subjects
    tried = points_of(model, 0, points=points)[first : first + _POINTS_AT_ONCE]
    scores = cross_validate(SharedTuningProblem.of_subject(of), _sample(of, samples), model, tried, 0)
    return [
        {"model": model, "accuracy": score.accuracy, "rmse": score.rmse, **asdict(score.hyperparameters)}
        for score in scores
    ]


def _draw_grid(bench: Bench, rows: Sequence[Row]) -> None:
    """Draw accuracy by depth and learning rate, the other hyperparameters as they were drawn."""
    with bench.plot("table3", columns=len(_PUBLISHED)) as plots:
        for axes, model in zip(plots, _PUBLISHED, strict=True):
            for rate in GRID["learning_rate"]:
                chosen = [row for row in rows if (row["model"], row["learning_rate"]) == (model, rate)]
                depths, accuracies = [row["max_depth"] for row in chosen], [row["accuracy"] for row in chosen]
                axes.plot(depths, accuracies, ".", label=f"eta {rate}")
            axes.set(title=f"model {model}", xlabel="max depth", ylabel="cross-validated accuracy")
            axes.legend(fontsize=6)


def _runs(bench: Bench, contenders: Sequence[Contender]) -> dict[str, list[Runs]]:
    subjects = [ml2_subject(name, ML2_BOARDS[1]) for name in bench.workloads(_FEW, RESNET18)]
    return bench.runs(subjects, contenders, PROTOCOL, bench.seeds(2, 10))


def _records(of: DatasetKey, indices: npt.NDArray[np.int64]) -> Records:
    latencies = dataset_of(of).microseconds[indices]
    return Records(np.asarray(indices), np.where(np.isfinite(latencies), latencies, np.nan))


def _sample(of: DatasetKey, count: int) -> Records:
    """Draw configurations uniformly from the space, always the same ones."""
    return _records(of, np.sort(of.space.sample(count, np.random.default_rng(0))))


def _share_to_converge(runs: Runs, tvm: Runs) -> float:
    """Return the median trials to the mean latency at which TVM's runs converge, over TVM's mean trials to converge."""
    ends, latencies = zip(*(_converged(row) for row in tvm.best_so_far), strict=True)
    needed = np.minimum(trials_to_reach(runs, float(np.mean(latencies))), runs.cell.protocol.trials)
    return float(np.mean(needed) / np.mean(ends))


def _converged(best: npt.NDArray[np.float64]) -> tuple[int, float]:
    """Return the trial at which a run converges, and its latency by then.

    It is the first trial after which there is no better one for `_STILL` rounds.
    """
    still = _STILL * ROUND
    improved = np.flatnonzero(best < np.concatenate([[np.inf], best[:-1]]))
    for place, trial in enumerate(improved.tolist()):
        following = improved[place + 1] if place + 1 < len(improved) else len(best) + still
        if following - trial > still:
            return trial + 1, float(best[trial])
    return len(best), float(best[-1])


def _draw_search(bench: Bench, results: Mapping[str, Sequence[Runs]]) -> None:
    cells = results[TVM.label]
    with bench.plot("figure2a", columns=len(cells)) as plots:
        for place, runs in enumerate(cells):
            title = runs.cell.subject.workload.name
            draw_curves(plots[place], {label: each[place] for label, each in results.items()}, title)
    with bench.plot("figure2b", rows=2, columns=len(cells)) as plots:
        for place, runs in enumerate(cells):
            shares = [float(each[place].invalid_share().mean()) for each in results.values()]
            plots[place].bar([label.replace(", ", ",\n") for label in results], shares)
            plots[place].set(title=runs.cell.subject.workload.name, ylabel="invalid share", ylim=(0, 1))
            for label, each in results.items():
                valid = each[place].microseconds[np.isfinite(each[place].microseconds)] / runs.dataset.optimum
                axes = plots[len(cells) + place]
                axes.hist(valid, bins=np.linspace(1, 6, 26).tolist(), density=True, histtype="step", label=label)
            plots[len(cells) + place].set(xlabel="latency of valid ones over the optimum")
            plots[len(cells) + place].legend(fontsize=6)
