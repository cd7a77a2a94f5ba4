"""How well a model ranks configurations, and how soon a search gets where it is going."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def average_recall(predicted: npt.NDArray[np.floating], labels: npt.NDArray[np.floating], count: int) -> float:
    """Mean over i = 1..count of the share of the i largest labels that are among the i largest predictions.

    Both arrays have shape (n,), larger is better; ties go to the earlier element; count is cut to n. Between 0 and 1.
    Source: AutoTVM's stopping measure "a-recall", TVM_FACTS section 4.
    """
    count = min(count, len(labels))
    if count == 0:
        return 0.0
    predicted_best = np.argsort(-predicted, kind="stable")[:count]
    true_rank = np.empty(len(labels), dtype=np.int64)
    true_rank[np.argsort(-labels, kind="stable")] = np.arange(len(labels))
    # An element is found at i once it is among the first i of both orders.
    found_at = np.maximum(true_rank[predicted_best], np.arange(count))
    found = np.cumsum(np.bincount(found_at[found_at < count], minlength=count))
    return float(np.mean(found / np.arange(1, count + 1)))


def best_so_far(microseconds: Sequence[float | None]) -> npt.NDArray[np.float64]:
    """Least latency up to and with each trial, shape (n,); infinity before the first valid one (None: not valid)."""
    latencies = np.array([np.inf if latency is None else latency for latency in microseconds], dtype=np.float64)
    return np.minimum.accumulate(latencies)


def trials_to_within(microseconds: Sequence[float | None], optimum: float, share: float) -> int | None:
    """Trials, counted from 1, until the best latency is at most `optimum * (1 + share)`; None when it never is."""
    reached = np.flatnonzero(best_so_far(microseconds) <= optimum * (1 + share))
    return int(reached[0]) + 1 if len(reached) else None
