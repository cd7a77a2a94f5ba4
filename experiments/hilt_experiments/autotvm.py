"""Learning to Optimize Tensor Programs (AutoTVM, 2018): Figures 4 to 9, on VTA datasets in place of a GPU.

The spaces are those of hilt's own compiler, of which about half is valid: of ours, nearest to the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hilt.measure.dataset import DatasetKey
from hilt.run_choices import CheckLevel
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.metrics import geometric_mean, ndcg_at, pairwise_accuracy
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender
from hilt_experiments.curves import (
    convergence_rows,
    draw_curves,
    ratio_of_medians,
    trials_to_reach,
)
from hilt_experiments.datasets import MATMUL, RESNET18, dataset_of, subject
from hilt_experiments.histories import history_of
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Protocol
from hilt_experiments.runs import Runs
from hilt_experiments.shards import Row, Shard, rows_of

TRIALS = 512
PROTOCOL = Protocol(trials=TRIALS, batch=64, pipelined=False, until_optimum=True)
"""A batch is a plan: it is measured before the next is made. The best so far does not change after the optimum."""
DOUBLED = Protocol(trials=2 * TRIALS, batch=128, pipelined=False, until_optimum=True)
"""Two measurements for each trial of the others."""
_FEW = ("resnet18.C2", "resnet18.C5", "resnet18.C8", "resnet18.C11")
_SOURCES = RESNET18[:5]
"""C2 to C6: VTA does not run C1, whose three input channels are no block."""
_TARGETS = RESNET18[5:8]
GBT, TREE_GRU = Contender.of("autotvm", "GBT"), Contender.of("treegru", "TreeGRU")


def models(bench: Bench) -> None:
    """Figure 4: statistical cost models against blind search, which also gets twice the measurements."""
    blind = [Contender.of("random", "random"), Contender.of("ga", "GA")]
    doubled = [Contender.of("random", "random x2"), Contender.of("ga", "GA x2")]
    contenders = [GBT, TREE_GRU, *blind, *doubled]
    protocols = {each.label: DOUBLED for each in doubled}
    results = _hold(bench, "figure4", contenders, bench.seeds(3, 20), protocols)
    at = TRIALS
    for label in ("random", "GA", "random x2", "GA x2"):
        speedup = geometric_mean(
            [
                float(np.median(other.best_so_far[:, -1]) / np.median(one.best_so_far[:, at - 1]))
                for one, other in zip(results[GBT.label], results[label], strict=True)
                if np.isfinite(np.median(other.best_so_far[:, -1]))
            ]
        )
        each = results[label][0].cell.protocol.trials / at  # measurements of a trial of the other
        fewer = 1 / (_trials_ratio(results[GBT.label], results[label]) * each)
        bench.compare(
            f"Figure 4: GBT's best after {at} trials over that of {label}",
            "2x faster than random" if label == "random" else "better",
            f"{speedup:.2f}x faster; {fewer:.1f}x fewer trials to its final result",
            "a trial of the other is two measurements, as in the paper" if each > 1 else "",
        )


def objectives(bench: Bench) -> None:
    """Figure 5: rank against regression, for both models."""
    contenders = [
        Contender.of("autotvm", "GBT rank"),
        Contender.of("autotvm", "GBT regression", loss="regression"),
        Contender.of("treegru", "TreeGRU rank"),
        Contender.of("treegru", "TreeGRU regression", loss="regression"),
    ]
    results = _hold(bench, "figure5", contenders, bench.seeds(3, 20))
    for model in ("GBT", "TreeGRU"):
        if f"{model} rank" in results:
            ratio = ratio_of_medians(results[f"{model} rank"], results[f"{model} regression"], 0.0)
            claim = f"Figure 5: {model}: trials to the best, rank over regression"
            bench.compare(claim, "equal or slightly better", f"{ratio:.2f}")


def diversity(bench: Bench) -> None:
    """Figure 6: choosing a plan for diversity, with several lambda."""
    contenders = [GBT, *(Contender.of("autotvm", f"lambda {each}", diversity=each) for each in (2, 4))]
    results = _hold(bench, "figure6", contenders, bench.seeds(5, 20))
    for label in list(results)[1:]:
        ratio = ratio_of_medians(results[label], results[GBT.label], 0.0)
        bench.compare(f"Figure 6: trials to the best, {label} over none", "no difference but on C6", f"{ratio:.2f}")


def uncertainty(bench: Bench) -> None:
    """Figure 7: bootstrapped expected improvement and upper confidence bound against the mean."""
    contenders = [
        Contender.of("autotvm", name, loss="regression", acquisition=name.lower()) for name in ("mean", "EI", "UCB")
    ]
    results = _hold(bench, "figure7", contenders, bench.seeds(3, 20))
    for label in ("EI", "UCB"):
        ratio = ratio_of_medians(results[label], results["mean"], 0.0)
        bench.compare(f"Figure 7: trials to the best, {label} over mean", "no improvement", f"{ratio:.2f}")


def transfer(bench: Bench) -> None:
    """Figure 8: a global model of C2 to C6 when C7 to C9 are tuned."""
    samples = 20_000 if bench.settings.full else 4_000
    history = str(history_of([subject(name, checks=CheckLevel.COMPILER) for name in _SOURCES], samples))
    scratch = Contender.of("autotvm", "scratch", features="context")
    learner = Contender.of("autotvm", "transfer", features="context", history=history)
    subjects = [subject(name, checks=CheckLevel.COMPILER) for name in bench.workloads(_TARGETS, _TARGETS)]
    results = bench.runs(subjects, [scratch, learner], PROTOCOL, bench.seeds(3, 20))
    bench.table("figure8", convergence_rows(results))
    _draw(bench, "figure8", results)
    ratios = [1 / each for each in _ratios(results["transfer"], results["scratch"])]
    bench.compare(
        "Figure 8: transfer: fewer trials to the final result of learning from scratch",
        "2x-10x",
        f"{min(ratios):.1f}x-{max(ratios):.1f}x",
        f"{samples:,} samples of C2 to C6",
    )


def representations(bench: Bench) -> None:
    """Hold Figure 9: how well a model of one workload, or of others, knows a target, by its features of a program."""
    samples = 10_000 if bench.settings.full else 2_000
    sources = [subject(name, checks=CheckLevel.COMPILER) for name in _SOURCES]
    shards = []
    for name in bench.workloads([_TARGETS[0], MATMUL], [_TARGETS[0], MATMUL]):
        target = subject(name, checks=CheckLevel.COMPILER)
        for seed in range(bench.seeds(2, 10)):
            for setting, of in (("within", [target]), ("C2-C6", sources)):
                for features in ("knob", "ast", "context"):
                    told = (setting, features, samples, seed)
                    shards.append(Shard(bench.name, transferred, (target, *of), told))
    rows = rows_of(shards, bench.settings.jobs, bench.report)
    bench.table("figure9", rows)
    _draw_representations(bench, rows)
    for name in dict.fromkeys(row["target"] for row in rows):
        said = ", ".join(f"{each} {_accuracy(rows, name, 'C2-C6', each):.3f}" for each in ("knob", "ast", "context"))
        bench.compare(
            f"Figure 9: pairs of {name} ordered right by a model of C2 to C6",
            "context best across operators, AST near",
            said,
            "the paper compares searches; here the models alone",
        )


def transferred(subjects: Sequence[DatasetKey], setting: str, features: str, samples: int, seed: int) -> list[Row]:
    """Return a row with the accuracy on the target of trees that learn `samples` of the sources.

    The target is the first of the subjects. The trees are judged on configurations that they did not learn, at most
    half of the target's space.
    """
    target, *sources = subjects
    generator = np.random.default_rng(seed)
    judged = _sample(target, min(2_000, len(target.space) // 2), generator)
    drawn = [
        np.setdiff1d(_sample(source, samples // len(sources), generator), judged if source == target else [])
        for source in sources
    ]
    width = max(_features(*each, features).shape[1] for each in zip(sources, drawn, strict=True))
    learnt = np.concatenate([_padded(_features(*each, features), width) for each in zip(sources, drawn, strict=True)])
    labels = np.concatenate([_performance(*each) for each in zip(sources, drawn, strict=True)])
    trees = BoostedTrees(Loss.RANK, 64, 200, 20, seed)
    trees.fit(learnt, labels.astype(np.float32))
    predicted = trees.predict(_padded(_features(target, judged, features), width))
    measured = _performance(target, judged)
    pairs = pairwise_accuracy(predicted, measured)
    found = {"accuracy": pairs.all, "valid_valid": pairs.valid_valid, "ndcg": ndcg_at(predicted, measured, 64)}
    known = {"target": target.workload.name, "from": setting, "features": features, "seed": seed}
    return [{**known, **{name: round(value, 5) for name, value in found.items()}}]


def _sample(of: DatasetKey, count: int, generator: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.sort(of.space.sample(count, generator))


def _features(of: DatasetKey, indices: Any, kind: str) -> Any:
    problem = SharedTuningProblem.of_subject(of)
    if kind == "knob":
        return problem.knob_features(indices)
    if kind == "ast":
        return problem.ast_features(indices).values
    return problem.context_relation_features(indices).values


def _padded(rows: Any, width: int) -> Any:
    """Return `rows` filled with zeros, or cut, to `width`.

    Only the invariant features have the same width everywhere.
    """
    return np.pad(rows[:, :width], ((0, 0), (0, max(width - rows.shape[1], 0))))


def _performance(of: DatasetKey, indices: Any) -> Any:
    dataset = dataset_of(of)
    return dataset.optimum / dataset.microseconds[indices]


def _accuracy(rows: Sequence[Row], target: str, setting: str, features: str) -> float:
    wanted = (target, setting, features)
    return float(np.mean([row["accuracy"] for row in rows if (row["target"], row["from"], row["features"]) == wanted]))


def _hold(
    bench: Bench, name: str, contenders: Sequence[Contender], seeds: int, protocols: dict[str, Protocol] | None = None
) -> dict[str, list[Runs]]:
    subjects = [subject(each, checks=CheckLevel.COMPILER) for each in bench.workloads(_FEW, RESNET18)]
    results = bench.runs(subjects, contenders, PROTOCOL, seeds, protocols)
    bench.table(name, convergence_rows(results))
    _draw(bench, name, results)
    return results


def _draw(bench: Bench, name: str, results: Mapping[str, Sequence[Runs]]) -> None:
    cells = next(iter(results.values()))
    columns = min(len(cells), 5)
    with bench.plot(name, rows=-(-len(cells) // columns), columns=columns) as plots:
        for place, runs in enumerate(cells):
            title = runs.cell.subject.workload.name
            draw_curves(plots[place], {label: each[place] for label, each in results.items()}, title)
            for line in plots[place].lines:  # twice the measurements, the same trials
                if str(line.get_label()).endswith("x2"):
                    line.set_xdata(np.asarray(line.get_xdata()) / 2)
            plots[place].set_xlim(0, TRIALS)


def _ratios(runs: Sequence[Runs], other: Sequence[Runs]) -> list[float]:
    """Return, for each dataset, the median trials to the latency that `other` ends with, over the trials of `other`."""
    found = []
    for one, two in zip(runs, other, strict=True):
        aim = float(np.median(two.best_so_far[:, -1]))
        if np.isfinite(aim):
            budget = two.cell.protocol.trials
            found.append(
                float(np.median(np.minimum(trials_to_reach(one, aim), budget)))
                / float(np.median(np.minimum(trials_to_reach(two, aim), budget)))
            )
    return found


def _trials_ratio(runs: Sequence[Runs], other: Sequence[Runs]) -> float:
    return geometric_mean(_ratios(runs, other))


def _draw_representations(bench: Bench, rows: Sequence[Row]) -> None:
    targets = list(dict.fromkeys(row["target"] for row in rows))
    with bench.plot("figure9", columns=len(targets)) as plots:
        for axes, target in zip(plots, targets, strict=True):
            for place, features in enumerate(("knob", "ast", "context")):
                heights = [_accuracy(rows, target, setting, features) for setting in ("within", "C2-C6")]
                axes.bar(np.arange(2) + 0.25 * (place - 1), heights, 0.25, label=features)
            axes.set_xticks([0, 1], ["within the target", "from C2-C6"])
            axes.axhline(0.5, color="0.5", linewidth=0.8)
            axes.set(title=target, ylabel="pairs ordered right", ylim=(0, 1))
            axes.legend(fontsize=7)
