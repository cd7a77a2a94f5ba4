"""The headline: trials to within 1 % of the optimum, as a ratio to AutoTVM's.

It covers all datasets of deepbench and resnet18, and the same on boards that differ from the twin's assumptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset import DatasetKey
from hilt.run_choices import CheckLevel
from hilt.schedule.checks import Checks
from hilt.tune.metrics import geometric_mean, spread_of_trials
from hilt.virtual.mismatched_models import MISMATCHED
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender
from hilt_experiments.curves import convergence_rows, mean_ratio, median_trials, ratio_of_medians
from hilt_experiments.datasets import EVIDENCE, HOME_BOARD, dataset_of, subject
from hilt_experiments.replay import Protocol
from hilt_experiments.runs import Runs
from hilt_experiments.significance import compare_tuners, holm

BASELINE = "autotvm"
CONTENDERS = [Contender.of(name) for name in ("autotvm", "random", "ga", "hw-aware", "ml2tuner", "glimpse", "hilt")]
SMALL_PLANS = Contender.of("autotvm", "autotvm, plans of 16", plan_size=16)
"""AutoTVM with small plans. It separates two causes of a lead over AutoTVM.

A tuner may lead because it learns from ten trials at a time, or because of its way of learning.
"""
PROTOCOL = Protocol(trials=750, batch=8, pipelined=True)
_TO_OPTIMUM = Protocol(trials=750, batch=8, pipelined=True, until_optimum=True)
"""The protocol of all but hilt. hilt runs until it stops by itself: its invalid attempts count to the end."""
UNINFORMED = Contender.of("hilt", "hilt, runtime unknown", published_faults=False)
"""A hilt that learns the runtime's faults, as the papers' tuners do; at `tvm` hilt starts from the published ones."""
LEVELS: tuple[Checks, ...] = (CheckLevel.TVM, CheckLevel.COMPILER)
OTHERS = ("optuna-tpe", "optuna-gp", "optuna-cmaes", "smac")
_SLOW = "ml2tuner"
_TARGET_RATIO, _TARGET_INVALID = 0.05, 0.01
_TARGET_SECONDS = 10.0


def headline(bench: Bench) -> None:
    """Hold the experiment on the board that the twin models."""
    contenders = [each for each in CONTENDERS if bench.settings.full or each.tuner != _SLOW]
    if len(contenders) < len(CONTENDERS):
        bench.report(f"{_SLOW} is left out: it takes five times as long as all others together; --full has it")
    contenders = [*contenders, SMALL_PLANS, *bench.added()]
    hold(bench, [HOME_BOARD], bench.workloads(EVIDENCE, EVIDENCE), contenders)


def mismatch(bench: Bench) -> None:
    """Hold the experiment on the mismatched boards: latency, bandwidth, jitter, clock and hazards."""
    contenders = [each for each in CONTENDERS if bench.settings.full or each.tuner in (BASELINE, "hilt")]
    hold(bench, list(MISMATCHED), bench.workloads(EVIDENCE, EVIDENCE), [*contenders, *bench.added()])


def informed(bench: Bench) -> None:
    """Measure the gain for hilt, at `tvm`, of a start from the published facts about TVM's runtime."""
    few = ["deepbench.3", "deepbench.48", "deepbench.59", "resnet18.C9", "resnet18.C10", "resnet18.C11"]
    contenders = [Contender.of(BASELINE), Contender.of("hilt"), UNINFORMED]
    subjects = usable(bench, [subject(name) for name in bench.workloads(few, EVIDENCE)])
    results = bench.runs(subjects, contenders, _TO_OPTIMUM, bench.seeds(5, 20), _protocols(contenders))
    bench.table("trials", convergence_rows(results))
    _summarise(bench, results, f"{HOME_BOARD}, tvm")
    _plot(bench, results, "trials")


def peers(bench: Bench) -> None:
    """Compare with peers that others wrote, on the spaces in which most configurations are invalid."""
    few = ["deepbench.42", "deepbench.59", "deepbench.107", "resnet18.C5", "resnet18.C9", "resnet18.C11"]
    protocol = Protocol(trials=750 if bench.settings.full else 300, batch=1, pipelined=False, until_optimum=True)
    contenders = [Contender.of(name) for name in (BASELINE, "random", "hilt", *OTHERS)]
    # Kernel Tuner's strategies plan by their budget.
    contenders += [
        Contender.of(f"kernel-tuner-{name}", max_fevals=protocol.trials)
        for name in ("genetic", "annealing", "mls", "bayes", "ils", "pso", "diff-evo", "vndx", "greywolf")
    ]
    # The compiler's check costs nothing, so that a user gives it as the restriction.
    contenders += [each.restricted() for each in contenders if each.tuner != "hilt"]
    seeds = bench.seeds(3, 20)
    wanted = [subject(name) for name in bench.workloads(few, EVIDENCE)]
    results = bench.runs(usable(bench, wanted), contenders, protocol, seeds)
    bench.table("trials", convergence_rows(results))
    _summarise(bench, results, "tvm, one at a time")
    _plot(bench, results, "trials")


def hold(
    bench: Bench,
    boards: Sequence[str],
    workloads: Sequence[str],
    contenders: Sequence[Contender],
    name: str = "trials",
    levels: Sequence[Checks] = LEVELS,
) -> None:
    """Run every contender on every dataset of the boards, and report, tabulate and plot the trials to 1 %."""
    seeds = bench.seeds(5, 20)
    rows: list[dict[str, Any]] = []
    summary: list[dict[str, Any]] = []
    for board in boards:
        for checks in bench.levels(levels):
            subjects = usable(bench, [subject(each, board, checks) for each in workloads])
            results = bench.runs(subjects, contenders, _TO_OPTIMUM, seeds, _protocols(contenders))
            rows += convergence_rows(results)
            where = f"{board}, {checks}" if name == "trials" else f"{name}, {board}, {checks}"
            summary += _summarise(bench, results, where)
            _plot(bench, results, f"{board}_{checks}" if name == "trials" else f"{name}_{board}_{checks}")
    bench.table(name, rows)
    bench.table("summary" if name == "trials" else f"{name}_summary", summary)


def _protocols(contenders: Sequence[Contender]) -> dict[str, Protocol]:
    return {each.label: PROTOCOL for each in contenders if each.tuner == "hilt"}


def usable(bench: Bench, subjects: Sequence[DatasetKey]) -> list[DatasetKey]:
    """Return the subjects that have a valid configuration, and report a line for each other."""
    found = []
    for each in subjects:
        if dataset_of(each).valid.any():
            found.append(each)
        else:
            bench.report(f"{each.name} is left out: none of its configurations is valid")
    return found


def _summarise(bench: Bench, results: Mapping[str, Sequence[Runs]], where: str) -> list[dict[str, Any]]:
    """Report a line for each contender over all datasets."""
    summary = []
    base = results.get(BASELINE)
    for label, cells in results.items():
        reached = [runs.trials_to(0.01) for runs in cells]
        until = [runs.invalid_share(trials).mean() for runs, trials in zip(cells, reached, strict=True)]
        runs_held = sum(len(trials) for trials in reached)
        row: dict[str, Any] = {
            "where": where,
            "tuner": label,
            "datasets": len(cells),
            "runs": runs_held,
            "median_trials_to_1%": float(np.median([median_trials(runs, 0.01) for runs in cells])),
            "never_within_1%": sum(each is None for trials in reached for each in trials),
            "invalid_share": round(float(np.mean([runs.invalid_share().mean() for runs in cells])), 5),
            "invalid_share_until_1%": round(float(np.mean(until)), 5),
            "tuner_seconds": round(
                float(np.mean([sum(runs.seconds[part].mean() for part in ("make", "ask", "tell")) for runs in cells])),
                3,
            ),
        }
        if base is not None:
            for share in (0.0, 0.01, 0.05):
                row[f"ratio_to_{BASELINE}_{share:.0%}"] = round(ratio_of_medians(cells, base, share), 4)
            # A trial that the compiler refuses takes no time of a board.
            went = [[max(float(np.median(each.sent(each.trials_to(0.01)))), 1) for each in of] for of in (cells, base)]
            row["median_sent_to_board_to_1%"] = float(np.median(went[0]))
            row[f"ratio_sent_to_board_{BASELINE}_1%"] = round(
                geometric_mean([one / other for one, other in zip(*went, strict=True)]), 4
            )
            row["least_possible_ratio_1%"] = round(geometric_mean([1 / median_trials(runs, 0.01) for runs in base]), 4)
            row[f"mean_ratio_to_{BASELINE}_1%"] = round(mean_ratio(cells, base, 0.01), 4)
            wanted = _TARGET_RATIO if label == "hilt" else None
            bench.keep(
                f"{where}: {label}: trials to within 1% over {BASELINE}'s",
                f"target {wanted}" if wanted else "-",
                f"{row[f'ratio_to_{BASELINE}_1%']:.3f} (0%: {row[f'ratio_to_{BASELINE}_0%']:.3f}, "
                f"5%: {row[f'ratio_to_{BASELINE}_5%']:.3f}); median {row['median_trials_to_1%']:.0f} trials; "
                f"invalid {100 * row['invalid_share']:.2f}% of a run, "
                f"{100 * row['invalid_share_until_1%']:.2f}% until 1%; "
                f"{row['never_within_1%']} of {runs_held} runs never",
                f"one trial alone would be {row['least_possible_ratio_1%']}; target of invalid {_TARGET_INVALID:.0%}"
                if wanted
                else "",
            )
        summary.append(row)
    bench.summary += summary_rows(results, where)
    return summary


def summary_rows(results: Mapping[str, Sequence[Runs]], where: str) -> list[dict[str, Any]]:
    """Return a row for each tuner: trials to within 1 % of the optimum, their spread, and the comparison with AutoTVM.

    `ratio`, `low`, `high`, `p_value` (corrected for the number of tuners) and `test` are None without the baseline.
    """
    base = results.get(BASELINE)
    labels = [label for label in results if label != BASELINE]
    compared = {label: compare_tuners(results[label], base, 0.01) for label in labels} if base is not None else {}
    corrected = dict(zip(compared, holm([each.p_value for each in compared.values()]), strict=True))
    rows: list[dict[str, Any]] = []
    for label, cells in results.items():
        spreads = [spread_of_trials(runs.trials_to(0.01), runs.cell.protocol.trials) for runs in cells]
        reached = [trials for runs in cells for trials in runs.trials_to(0.01)]
        comparison = compared.get(label)
        rows.append(
            {
                "where": where,
                "tuner": label,
                "datasets": len(cells),
                "runs": len(reached),
                "median": float(np.median([spread.median for spread in spreads])),
                "lower": float(np.median([spread.lower for spread in spreads])),
                "upper": float(np.median([spread.upper for spread in spreads])),
                "never": sum(trials is None for trials in reached),
                "invalid_share": float(np.mean([runs.invalid_share().mean() for runs in cells])),
                "ratio": comparison and comparison.ratio,
                "low": comparison and comparison.low,
                "high": comparison and comparison.high,
                "p_value": corrected.get(label),
                "test": comparison and comparison.test,
            }
        )
    return rows


def _plot(bench: Bench, results: Mapping[str, Sequence[Runs]], name: str) -> None:
    """Draw the share of all runs that are within 1 % after so many trials, with the range over seeds."""
    with bench.plot(name) as (axes,):
        for label, cells in results.items():
            budget = cells[0].cell.protocol.trials
            reached = np.concatenate([[each or np.inf for each in runs.trials_to(0.01)] for runs in cells])
            every = np.arange(1, budget + 1)
            shares = (reached[:, None] <= every).mean(axis=0)
            turns = _turns(shares)
            line = axes.step(every[turns], shares[turns], where="post", label=label)[0]
            low, high = _band(cells, budget)
            turns = _turns(low, high)
            axes.fill_between(
                every[turns], low[turns], high[turns], step="post", color=line.get_color(), alpha=0.15, linewidth=0
            )
        axes.set(xscale="log", xlabel="trials", ylabel="runs within 1% of the optimum", ylim=(0, 1.02), title=name)
        axes.legend(fontsize=7)


def _turns(*curves: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the places at which a curve changes, with the first and the last: a picture needs no others."""
    changed = np.any([np.diff(curve) != 0 for curve in curves], axis=0)
    return np.union1d([0, len(curves[0]) - 1], np.flatnonzero(changed) + 1).astype(np.int64)


def _band(cells: Sequence[Runs], budget: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the least and largest share of datasets solved after each trial, over seeds; each of shape (budget,)."""
    reached = np.array([[trials or np.inf for trials in runs.trials_to(0.01)] for runs in cells])
    solved = (reached[:, :, None] <= np.arange(1, budget + 1)).mean(axis=0)
    return solved.min(axis=0), solved.max(axis=0)


def overhead(bench: Bench) -> None:
    """Measure a tuner's processor seconds for a run of 750 trials, nothing shared with another run."""
    import xgboost  # noqa: F401  # takes two seconds, which the first tuner that fits trees would be charged with

    from hilt_experiments.contenders import known
    from hilt_experiments.problem import SharedTuningProblem
    from hilt_experiments.runs import Cell, run_once

    # hilt ends its run itself, after some dozen trials, unless it is told not to.
    every = [*CONTENDERS, Contender.of("hilt", "hilt that never stops", stop_at=2.0)]
    there, lines = known(each for each in every if bench.settings.full or each.tuner != _SLOW)
    for line in lines:
        bench.report(line)
    rows: list[dict[str, Any]] = []
    few = ["deepbench.78", "deepbench.8", "deepbench.92", "resnet18.C2"]
    for name in bench.workloads(few, EVIDENCE):
        for contender in there:
            cell = Cell(subject(name), contender, PROTOCOL)
            run = run_once(cell, dataset_of(cell.subject), SharedTuningProblem.of_subject(cell.subject), 0)
            total = sum(run.seconds[part] for part in ("make", "ask", "tell"))
            rows += [
                {"workload": name, "tuner": contender.label, "part": part, "seconds": round(spent, 4)}
                for part, spent in {**run.seconds, "total": total}.items()
            ]
            bench.report(f"{contender.label} on {name}: {total:.2f} s for {len(run.indices)} trials")
    bench.table("seconds", rows)
    for contender in there:
        totals = [row["seconds"] for row in rows if row["tuner"] == contender.label and row["part"] == "total"]
        paper = "presampling 375-417 s, context features 657-1140 s" if contender.tuner == "hw-aware" else "-"
        worst = f"{np.mean(totals):.2f} s a run, at most {max(totals):.2f} s"
        bench.compare(f"overhead of {contender.label}", paper, worst, f"target under {_TARGET_SECONDS:.0f} s")
