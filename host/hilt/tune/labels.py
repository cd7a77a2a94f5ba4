"""The labels that cost models learn from: results as numbers, larger is better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilt.tune.feedback import Feedback


def relative_throughput(history: Sequence[Feedback]) -> npt.NDArray[np.float32]:
    """Return throughput over the best throughput, shape (n,): 1 for the fastest, 0 for every failure.

    All results belong to one workload, so the ratio is the best latency over a latency (TVM_FACTS section 4).
    """
    latencies = np.array([np.inf if item.microseconds is None else item.microseconds for item in history])
    best = latencies.min(initial=np.inf)
    if not np.isfinite(best):
        return np.zeros(len(latencies), dtype=np.float32)
    return np.asarray(best / latencies, dtype=np.float32)
