"""HW-Aware Initialization (Rieber et al., 2022): its space analysis, and its tuner beside AutoTVM and transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hilt.measure.dataset import DatasetKey
from hilt.schedule.clusters import clusters
from hilt.schedule.literature import published_spaces
from hilt.tune.metrics import spread_of_trials
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender
from hilt_experiments.curves import convergence_rows, draw_boxes, mean_ratio, median_trials
from hilt_experiments.datasets import DEEPBENCH, dataset_of, subject
from hilt_experiments.histories import history_of
from hilt_experiments.replay import Protocol
from hilt_experiments.runs import Runs

EPOCH = 50
PROTOCOL = Protocol(trials=750, batch=EPOCH, pipelined=False)
"""The paper's protocol: epochs of 50, each measured before the next is planned."""
_TO_THE_BEST = Protocol(trials=750, batch=EPOCH, pipelined=False, until_optimum=True)
"""The protocol for trials to the best. Figures 3, 5 and 6 show nothing else."""
AUTOTVM = Contender.of("autotvm", "AutoTVM", plan_size=EPOCH)
HARDWARE_AWARE = Contender.of("hw-aware", "HW-aware")
ABLATIONS = [
    Contender.of("hw-aware", "no presampling", presampling=False),
    Contender.of("hw-aware", "no selection", selection=False),
    Contender.of("hw-aware", "no bias", biased_annealing=False),
    Contender.of("hw-aware", "invalid left out", invalid="left_out"),
]
CONTEXT = Contender.of("autotvm", "AutoTVM, context features", plan_size=EPOCH, features="context")
_PICTURED = "deepbench.48"


def spaces(bench: Bench) -> None:
    """Table II and Figure 1: how much of each space is valid, and how it hangs together. No board is asked."""
    published = published_spaces()
    rows: list[dict[str, Any]] = []
    for name in bench.workloads(DEEPBENCH, DEEPBENCH):
        of = subject(name)
        valid = of.summarize_validity.verdicts == 0
        found = clusters(of.space, valid)
        paper = published.get(name)
        sizes = np.sort(found.sizes)[::-1]
        rows.append(
            {
                "workload": name,
                "configurations": len(of.space),
                "paper_configurations": paper.size if paper else "",
                "valid_ratio": round(of.summarize_validity.valid_ratio, 4),
                "paper_valid_ratio": paper.valid_ratio if paper else "",
                "clusters": len(sizes),
                "largest_cluster": int(sizes[0]) if len(sizes) else 0,
                "share_in_largest": round(float(sizes[0] / sizes.sum()), 3) if len(sizes) else "",
            }
        )
    bench.table("table2", rows)
    ratios = [row["valid_ratio"] for row in rows]
    bench.compare(
        "Table II: valid ratio, mean (least-most)",
        "0.083 (0.008-0.231)",
        f"{np.mean(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})",
        "rules of TVM v0.9's compiler and runtime, with four loop orders of our own",
    )
    neighbours = [_valid_neighbours(subject(row["workload"])) for row in rows]
    bench.compare(
        "Figure 1: valid configurations lie in clusters",
        "seen in every space",
        f"a neighbour of a valid configuration is valid with {np.nanmean([each[0] for each in neighbours]):.2f}, "
        f"of any with {np.nanmean([each[1] for each in neighbours]):.2f}",
    )
    _draw_graph(bench)


def _valid_neighbours(of: DatasetKey) -> tuple[float, float]:
    """Return the share of valid ones among the neighbours of valid configurations, and of all."""
    grid = (of.summarize_validity.verdicts == 0).reshape(of.space.sizes[::-1])
    both = valid_pairs = any_pairs = 0
    for axis in range(grid.ndim):
        low, high = np.take(grid, range(grid.shape[axis] - 1), axis), np.take(grid, range(1, grid.shape[axis]), axis)
        both += 2 * int((low & high).sum())
        valid_pairs += int(low.sum()) + int(high.sum())
        any_pairs += 2 * low.size
    return both / valid_pairs if valid_pairs else np.nan, valid_pairs / any_pairs


def _draw_graph(bench: Bench) -> None:
    """Draw the valid configurations of one layer, joined if they differ by one step of one knob."""
    of = subject(_PICTURED)
    valid = np.flatnonzero(of.summarize_validity.verdicts == 0)
    positions = of.space.positions(valid).astype(np.float64)
    centred = positions - positions.mean(axis=0)
    axes_of = np.linalg.svd(centred, full_matrices=False)[2]
    places = centred @ axes_of[:2].T + np.random.default_rng(0).normal(0, 0.06, (len(valid), 2))
    distance = np.abs(positions[:, None] - positions[None]).sum(axis=2)
    first, second = np.nonzero(np.triu(distance == 1))
    with bench.plot("figure1") as (axes,):
        joined = np.stack([places[first], places[second], np.full((len(first), 2), np.nan)], axis=1).reshape(-1, 2)
        axes.plot(joined[:, 0], joined[:, 1], linewidth=0.3, color="0.6")
        axes.plot(places[:, 0], places[:, 1], ".", markersize=3)
        axes.set_title(f"{_PICTURED}: {len(valid)} valid configurations, {len(first)} edges", fontsize=9)
        axes.set(xticks=[], yticks=[])


def robustness(bench: Bench) -> None:
    """Hold Figure 3: the variation from run to run of the trials that AutoTVM takes to the best."""
    results = bench.runs(_subjects(bench), [AUTOTVM], _TO_THE_BEST, bench.seeds(10, 20))
    bench.table("figure3", convergence_rows(results))
    _boxes(bench, results, "figure3", "trials to the best, AutoTVM")
    spreads = [spread_of_trials(runs.trials_to(0.0), runs.cell.protocol.trials) for runs in results[AUTOTVM.label]]
    bench.compare(
        "Figure 3: AutoTVM's trials to the best, median (IQR) over workloads",
        "wide IQR across most workloads",
        f"{np.median([each.median for each in spreads]):.0f} ({np.median([each.iqr for each in spreads]):.0f})",
    )


def baseline(bench: Bench) -> None:
    """Figure 5: HW-aware initialisation beside AutoTVM; with --full each part switched off, too."""
    contenders = [AUTOTVM, HARDWARE_AWARE, *(ABLATIONS if bench.settings.full else [])]
    results = bench.runs(_subjects(bench), contenders, _TO_THE_BEST, bench.seeds(10, 20))
    bench.table("figure5", convergence_rows(results))
    _boxes(bench, results, "figure5", "trials to the best")
    base = results[AUTOTVM.label]
    for label, runs in results.items():
        if label == AUTOTVM.label:
            continue
        ratios = [median_trials(one, 0) / median_trials(other, 0) for one, other in zip(runs, base, strict=True)]
        paper = "0.416 (0.111-0.735)" if label == HARDWARE_AWARE.label else "-"
        bench.compare(
            f"Figure 5: {label}: trials to the best over AutoTVM's, mean (least-most)",
            paper,
            f"{np.mean(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})",
        )
        bench.compare(
            f"Figure 5: {label}: IQR over AutoTVM's, mean",
            "0.424" if label == HARDWARE_AWARE.label else "-",
            f"{_iqr_ratio(runs, base):.3f}",
        )


_FEATURED = "transfer, as in the paper"
"""The label of the paper's method: samples that TVM extracts no features of are dropped; `transfer` has them too."""


def transfer(bench: Bench) -> None:
    """Figure 6: transfer learning with context relation features beside HW-aware initialisation."""
    wanted = _subjects(bench, default=("deepbench.8", "deepbench.42", "deepbench.59", "deepbench.78", "deepbench.107"))
    seeds = bench.seeds(4, 10)
    samples = 30_000 if bench.settings.full else 9_000
    everything = [subject(name) for name in DEEPBENCH]
    pairs = []
    for of in wanted:
        sources = [source for source in everything if source != of]
        learners = [
            Contender.of("autotvm", label, plan_size=EPOCH, features="context", history=str(history))
            for label, history in (
                ("transfer", history_of(sources, samples)),
                (_FEATURED, history_of(sources, samples, featured_only=True)),
            )
        ]
        pairs += [(of, contender) for contender in (AUTOTVM, HARDWARE_AWARE, *learners, CONTEXT)]
    results = bench.runs_of(pairs, _TO_THE_BEST, seeds)
    bench.table("figure6", convergence_rows(results))
    _boxes(bench, results, "figure6", "trials to the best")
    base = results[AUTOTVM.label]
    for label in ("transfer", _FEATURED):
        for words, share in (("the best", 0.0), ("within 1 %", 0.01)):
            bench.compare(
                f"Figure 6: {label}: trials to {words} over AutoTVM's, mean",
                "0.905",
                f"{mean_ratio(results[label], base, share):.3f}",
                f"{samples:,} samples of the other workloads",
            )
    bench.compare(
        "Figure 6: transfer: IQR over AutoTVM's, mean", "1.107x better", f"{_iqr_ratio(results['transfer'], base):.3f}"
    )
    bench.compare(
        "Figure 6: HW-aware: trials to the best over AutoTVM's on the same workloads, mean",
        "0.416",
        f"{mean_ratio(results[HARDWARE_AWARE.label], base, 0):.3f}",
    )
    bench.compare(
        "Figure 6: its context relation features without transfer: trials to the best over AutoTVM's, mean",
        "-",
        f"{mean_ratio(results[CONTEXT.label], base, 0):.3f}",
    )


def overheads(bench: Bench) -> None:
    """Table III: a tuner's processor seconds by part in one run, nothing kept from another."""
    import xgboost  # noqa: F401  # takes two seconds, which the first tuner that fits trees would be charged with

    from hilt_experiments.problem import SharedTuningProblem
    from hilt_experiments.runs import Cell, run_once

    published = {"deepbench.78": (416.8, 13.4, 77.8, 656.8), "deepbench.8": (375.5, 13.0, 77.5, 1118.7)}
    published["deepbench.92"] = (396.0, 11.7, 88.4, 1139.7)
    rows: list[dict[str, Any]] = []
    for name in bench.workloads(list(published), DEEPBENCH):
        of = subject(name)
        for contender in bench.those_here([AUTOTVM, HARDWARE_AWARE, CONTEXT]):
            run = run_once(Cell(of, contender, PROTOCOL), dataset_of(of), SharedTuningProblem.of_subject(of), 0)
            rows += [
                {"workload": name, "tuner": contender.label, "part": part, "seconds": round(spent, 4)}
                for part, spent in run.seconds.items()
            ]
    bench.table("table3", rows)

    def mean_of(tuner: str, *parts: str) -> float:
        found = [row["seconds"] for row in rows if row["tuner"] == tuner and row["part"] in parts]
        return float(sum(found)) / len({row["workload"] for row in rows})

    bench.compare("Table III: presampling, seconds", "375-417", f"{mean_of('HW-aware', 'presampling'):.2f}")
    bench.compare("Table III: sample selection, seconds", "12-13", f"{mean_of('HW-aware', 'selection'):.2f}")
    whole = ("make", "ask", "tell")
    bench.compare("Table III: run with knob features, seconds", "78-88", f"{mean_of('AutoTVM', *whole):.2f}")
    bench.compare("Table III: run with context features, seconds", "657-1140", f"{mean_of(CONTEXT.label, *whole):.2f}")


def _subjects(bench: Bench, default: Sequence[str] = DEEPBENCH) -> list[DatasetKey]:
    return [of for of in map(subject, bench.workloads(default, DEEPBENCH)) if dataset_of(of).valid.any()]


def _iqr_ratio(runs: Sequence[Runs], base: Sequence[Runs]) -> float:
    """Return the mean over datasets of the ratio of interquartile ranges.

    A dataset on which AutoTVM's range is 0 has no ratio.
    """
    ratios = []
    for one, other in zip(runs, base, strict=True):
        spreads = [spread_of_trials(each.trials_to(0), each.cell.protocol.trials).iqr for each in (one, other)]
        if spreads[1] > 0:
            ratios.append(spreads[0] / spreads[1])
    return float(np.mean(ratios)) if ratios else float("nan")


def _boxes(bench: Bench, results: Mapping[str, Sequence[Runs]], name: str, title: str) -> None:
    with bench.plot(name, wide=2.6) as (axes,):
        draw_boxes(axes, results, 0.0, title)
