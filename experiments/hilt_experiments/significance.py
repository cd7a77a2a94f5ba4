"""The certainty of a difference between two tuners: ratio of trials with its interval, and a rank test.

A run that never reaches the target is charged its whole budget plus one, so it ranks behind every run that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt_experiments.runs import Runs

_LEAST_DATASETS = 6
"""The least number of datasets from which the signed-rank test over datasets can give a p-value below 0.05."""
_RESAMPLES = 2000
_INTERVAL = (2.5, 97.5)

Trials = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TunerComparison:
    """One tuner beside the baseline, over the same datasets."""

    ratio: float
    """Geometric mean over datasets of the ratio of median trials; below 1 is better than the baseline."""
    low: float
    high: float
    """The 95 % interval of the ratio, by a bootstrap over the runs of each dataset."""
    p_value: float
    """Two-sided; of equal tuners. 1 where nothing differs."""
    test: str
    """`signed-rank over datasets` (Wilcoxon), or `rank-sum over runs` (Mann-Whitney) where there are few datasets."""


def compare_tuners(cells: Sequence[Runs], baseline: Sequence[Runs], share: float) -> TunerComparison:
    """Return the comparison of trials to within `share` of the optimum, dataset by dataset."""
    return compare_trials([_charged(runs, share) for runs in cells], [_charged(runs, share) for runs in baseline])


def compare_trials(ours: Sequence[Trials], theirs: Sequence[Trials]) -> TunerComparison:
    """Return the comparison of trials (runs,) of each dataset; a run that never came has its budget plus one."""
    low, high = _interval(ours, theirs)
    p_value, test = _p_value(ours, theirs)
    return TunerComparison(_ratio(ours, theirs), low, high, p_value, test)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for how many tuners are compared (Holm's step-down method)."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, p_values[place] * (len(p_values) - rank)))
        corrected[place] = largest
    return corrected


def _charged(runs: Runs, share: float) -> Trials:
    charge = runs.cell.protocol.trials + 1
    return np.array([charge if trials is None else trials for trials in runs.trials_to(share)], dtype=np.float64)


def _ratio(ours: Sequence[Trials], theirs: Sequence[Trials]) -> float:
    logs = [np.log(np.median(one) / np.median(other)) for one, other in zip(ours, theirs, strict=True)]
    return float(np.exp(np.mean(logs)))


def _interval(ours: Sequence[Trials], theirs: Sequence[Trials]) -> tuple[float, float]:
    generator = np.random.default_rng(0)

    def medians(trials: Trials) -> Trials:
        draws = generator.integers(0, len(trials), (_RESAMPLES, len(trials)))
        return np.asarray(np.median(trials[draws], axis=1))

    logs = [np.log(medians(one) / medians(other)) for one, other in zip(ours, theirs, strict=True)]
    low, high = np.percentile(np.exp(np.mean(logs, axis=0)), _INTERVAL)
    return float(low), float(high)


def _p_value(ours: Sequence[Trials], theirs: Sequence[Trials]) -> tuple[float, str]:
    from scipy import stats

    if len(ours) >= _LEAST_DATASETS:
        logs = [np.log(np.median(one) / np.median(other)) for one, other in zip(ours, theirs, strict=True)]
        p_value = 1.0 if not np.any(logs) else float(stats.wilcoxon(logs, zero_method="pratt").pvalue)
        return p_value, "signed-rank over datasets"
    # Each dataset's runs, in units of the baseline's median there, so that datasets can be pooled.
    one = np.concatenate([trials / np.median(base) for trials, base in zip(ours, theirs, strict=True)])
    other = np.concatenate([base / np.median(base) for base in theirs])
    if np.ptp(np.concatenate((one, other))) == 0:
        return 1.0, "rank-sum over runs"
    return float(stats.mannwhitneyu(one, other).pvalue), "rank-sum over runs"
