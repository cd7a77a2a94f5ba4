"""The plots and tables of runs that most experiments share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilt.tune.metrics import geometric_mean, spread_of_trials
from hilt_experiments.runs import Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = (0.0, 0.01, 0.05)
"""Shares of the optimum's latency: a configuration within such a share counts as near enough."""


def relative_performance(runs: Runs) -> npt.NDArray[np.float64]:
    """Return the optimum's latency over the best so far, (s, trials).

    It is 0 before the first valid trial, 1 at the optimum.
    """
    return runs.dataset.optimum / runs.best_so_far


def convergence_rows(results: Mapping[str, Sequence[Runs]]) -> list[dict[str, Any]]:
    """Return a row for each workload and contender.

    A row has median and quartiles of trials to within 0, 1 and 5 %, the runs that never got there, and the share of
    invalid trials.
    """
    rows = []
    for label, cells in results.items():
        for runs in cells:
            row: dict[str, Any] = {"dataset": runs.cell.subject.name, "tuner": label, "runs": len(runs.seeds)}
            for share in SHARES:
                trials = runs.trials_to(share)
                spread = spread_of_trials(trials, runs.cell.protocol.trials)
                name = f"to_{share:.0%}"
                row |= {f"{name}_median": spread.median, f"{name}_lower": spread.lower, f"{name}_upper": spread.upper}
                row[f"{name}_never"] = sum(each is None for each in trials)
            to_one_percent = runs.trials_to(0.01)
            latencies = runs.dataset.microseconds
            row["valid"] = int(np.isfinite(latencies).sum())
            row["within_1%"] = int((latencies <= 1.01 * runs.dataset.optimum).sum())
            row["invalid_share"] = round(float(runs.invalid_share().mean()), 5)
            row["invalid_share_until_1%"] = round(float(runs.invalid_share(to_one_percent).mean()), 5)
            row["tuner_seconds"] = round(float(sum(runs.seconds[part].mean() for part in ("make", "ask", "tell"))), 4)
            rows.append(row)
    return rows


def median_trials(runs: Runs, share: float) -> float:
    """Return the median of trials; a run that never got there counts as its budget."""
    return spread_of_trials(runs.trials_to(share), runs.cell.protocol.trials).median


def ratio_of_medians(runs: Sequence[Runs], baseline: Sequence[Runs], share: float) -> float:
    """Return the geometric mean over datasets of median trials over the baseline's."""
    return geometric_mean(
        [median_trials(one, share) / median_trials(base, share) for one, base in zip(runs, baseline, strict=True)]
    )


def mean_ratio(runs: Sequence[Runs], baseline: Sequence[Runs], share: float) -> float:
    """Return the arithmetic mean over datasets of the same ratio, as HW-Aware Initialization averages."""
    ratios = [median_trials(one, share) / median_trials(base, share) for one, base in zip(runs, baseline, strict=True)]
    return float(np.mean(ratios))


def draw_curves(axes: Axes, results: Mapping[str, Runs], title: str) -> None:
    """Draw the median relative performance over trials, with the quartiles shaded."""
    for label, runs in results.items():
        lower, median, upper = np.percentile(relative_performance(runs), [25, 50, 75], axis=0)
        trials = np.arange(1, len(median) + 1)
        line = axes.step(trials, median, where="post", label=label, linewidth=1.2)[0]
        axes.fill_between(trials, lower, upper, step="post", color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set(title=title, xlabel="trials", ylabel="performance over the best", ylim=(0, 1.03))
    axes.legend(fontsize=6)


def draw_boxes(axes: Axes, results: Mapping[str, Sequence[Runs]], share: float, title: str) -> None:
    """Draw a box of trials for each workload and contender."""
    width = 0.8 / len(results)
    for place, (label, cells) in enumerate(results.items()):
        trials = [[runs.cell.protocol.trials if t is None else t for t in runs.trials_to(share)] for runs in cells]
        positions = np.arange(len(cells)) + (place - (len(results) - 1) / 2) * width
        colour = f"C{place}"
        boxes = axes.boxplot(
            trials,
            positions=positions.tolist(),
            widths=width * 0.9,
            patch_artist=True,
            flierprops={"markersize": 2},
            medianprops={"color": "black"},
        )
        for box in boxes["boxes"]:
            box.set_facecolor(colour)
        axes.plot([], [], color=colour, label=label)
    names = [runs.cell.subject.workload.name.split(".")[-1] for runs in next(iter(results.values()))]
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.set(title=title, ylabel="trials")
    axes.legend(fontsize=7)


def trials_to_reach(runs: Runs, latency: float) -> npt.NDArray[np.float64]:
    """Return, for each run, the trials until the best latency is at most `latency`.

    The value is infinity if the run never reaches it, or has no valid trial.
    """
    reached = (runs.best_so_far <= latency) & np.isfinite(runs.best_so_far)
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)
