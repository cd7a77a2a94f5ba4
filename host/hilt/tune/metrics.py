"""Measures of a model's ranking of configurations, and of the trials that a search needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


def average_recall(predicted: npt.NDArray[np.floating], labels: npt.NDArray[np.floating], count: int) -> float:
    """Return the mean over i = 1..count of the share of the i largest labels that are among the i largest predictions.

    Both arrays have shape (n,), larger is better; ties go to the earlier element; count is cut to n. Between 0 and 1.
    Source: AutoTVM's stopping measure "a-recall", TVM_FACTS section 4.
    """
    return AverageRecall(labels, count)(predicted)


class AverageRecall:
    """The average recall of many predictions for the same labels, which are sorted once."""

    def __init__(self, labels: npt.NDArray[np.floating], count: int) -> None:
        self._count = min(count, len(labels))
        self._true_rank = np.empty(len(labels), dtype=np.int64)
        self._true_rank[np.argsort(-labels, kind="stable")] = np.arange(len(labels))
        self._places = np.arange(self._count)

    def __call__(self, predicted: npt.NDArray[np.floating]) -> float:
        if self._count == 0:
            return 0.0
        predicted_best = np.argsort(-predicted, kind="stable")[: self._count]
        # An element is found at i once it is among the first i of both orders.
        found_at = np.maximum(self._true_rank[predicted_best], self._places)
        found = np.cumsum(np.bincount(found_at[found_at < self._count], minlength=self._count))
        return float(np.mean(found / (self._places + 1)))


def best_so_far(microseconds: Sequence[float | None]) -> npt.NDArray[np.float64]:
    """Return the least latency up to and with each trial, shape (n,).

    It is infinity before the first valid trial (None: not valid).
    """
    latencies = np.array([np.inf if latency is None else latency for latency in microseconds], dtype=np.float64)
    return np.minimum.accumulate(latencies)


def trials_to_within(microseconds: Sequence[float | None], optimum: float, share: float) -> int | None:
    """Return the trials, from 1, until the best latency is at most `optimum * (1 + share)`; None if it never is."""
    reached = np.flatnonzero(best_so_far(microseconds) <= optimum * (1 + share))
    return int(reached[0]) + 1 if len(reached) else None


@dataclass(frozen=True)
class PairwiseAccuracy:
    """Shares of pairs that a model orders as they were measured, each between 0 and 1; NaN without such pairs.

    `all` counts both kinds. Two invalid configurations have no order and are no pair.
    """

    all: float
    valid_invalid: float
    valid_valid: float


def pairwise_accuracy(predicted: npt.NDArray[np.floating], measured: npt.NDArray[np.floating]) -> PairwiseAccuracy:
    """Return the pairwise accuracy of predictions (n,) for performances (n,), larger is better, 0 is invalid.

    A pair is right if the sign of the difference is the same. Source: HW-Aware Initialization, equation 1.
    """
    valid = measured > 0
    best = predicted[valid], measured[valid]
    right_valid = sum(
        int(np.count_nonzero(np.sign(best[1][row] - best[1][:row]) == np.sign(best[0][row] - best[0][:row])))
        for row in range(len(best[0]))
    )
    # A valid one is better than an invalid one: the pair is right if the valid one is predicted larger.
    invalid = np.sort(predicted[~valid])
    right_mixed = int(np.searchsorted(invalid, best[0], side="left").sum())
    pairs_valid, pairs_mixed = len(best[0]) * (len(best[0]) - 1) // 2, len(best[0]) * len(invalid)
    return PairwiseAccuracy(
        _share(right_valid + right_mixed, pairs_valid + pairs_mixed),
        _share(right_mixed, pairs_mixed),
        _share(right_valid, pairs_valid),
    )


def precision_at(predicted: npt.NDArray[np.floating], valid: npt.NDArray[np.bool_], count: int) -> float:
    """Return the share of valid ones among the `count` largest predictions (n,).

    Ties go to the earlier element; `count` is cut to n. Source: HW-Aware Initialization, equation 2.
    """
    return _share(int(np.count_nonzero(valid[_order(predicted)[:count]])), min(count, len(valid)))


def ndcg_at(predicted: npt.NDArray[np.floating], scores: npt.NDArray[np.floating], count: int) -> float:
    """Return the normalised discounted cumulative gain (NDCG).

    It is the gain of the `count` largest predictions (n,) over that of the largest scores (n,), none of them negative.
    The gain is the sum of score / log2(place + 1), places from 1. NaN if every score is 0.
    Source: HW-Aware Initialization, equations 3 to 5.
    """
    discounts = 1 / np.log2(np.arange(2, min(count, len(scores)) + 2))
    gained = float(scores[_order(predicted)[: len(discounts)]] @ discounts)
    ideal = float(np.sort(scores)[::-1][: len(discounts)] @ discounts)
    return gained / ideal if ideal > 0 else float("nan")


def rmse(predicted: npt.NDArray[np.floating], measured: npt.NDArray[np.floating]) -> float:
    """Return the root of the mean squared error of predictions (n,)."""
    return float(np.sqrt(np.mean((np.asarray(predicted, dtype=np.float64) - measured) ** 2)))


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of runs, by linear interpolation."""

    median: float
    lower: float
    upper: float

    @property
    def iqr(self) -> float:
        """The interquartile range."""
        return self.upper - self.lower


def spread_of_trials(trials: Sequence[int | None], budget: int) -> Spread:
    """Return median and quartiles of the trials that runs took.

    A run that did not reach its goal (None) counts as its whole budget, as in the papers: the figures are then too
    small, not too large.
    """
    counted = [budget if spent is None else spent for spent in trials]
    lower, median, upper = np.percentile(counted, [25, 50, 75])
    return Spread(float(median), float(lower), float(upper))


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean of positive ratios: that of a to b is the inverse of that of b to a."""
    return float(np.exp(np.mean(np.log(ratios))))


def _order(predicted: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    return np.argsort(-predicted, kind="stable")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
