"""Steps in a board's latencies: one factor for a whole part of the space, of unknown place and size.

A step is one more linear direction of the regression, 1 in its part and 0 outside. Steps are chosen one by one, each
by the evidence that it adds beside the measurements' usual errors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from hilt.tune.model_guided.gaussian_process import Inputs, Kernel

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

DEVIATION = 0.5
"""Prior deviation of a step's logarithm."""
_MOST = 3


def find_steps(inputs: Inputs, residual: Floats, parts: Bools, kernel: Kernel) -> tuple[list[int], float]:
    """Return the parts with a step, most evident first, and the cost of the choice as a logarithm of evidence.

    `inputs` and `residual` (n,) are those of the measurements, `parts` (n, p) says which lie in each part.
    """
    columns = parts.astype(np.float64)
    covariance = kernel.between(inputs, inputs)
    covariance[np.diag_indices_from(covariance)] += kernel.noise**2 + inputs.own_variance
    penalty = float(np.log(max(parts.shape[1], 1)))
    chosen: list[int] = []
    while len(chosen) < _MOST:
        factor = cho_factor(covariance, lower=True, check_finite=False)
        within = DEVIATION**2 * (columns * cho_solve(factor, columns, check_finite=False)).sum(axis=0)
        along = (DEVIATION * (columns.T @ cho_solve(factor, residual, check_finite=False))) ** 2
        gain = (along / (1 + within) - np.log1p(within)) / 2
        best = int(np.argmax(gain)) if len(gain) else 0
        if not len(gain) or gain[best] <= penalty:
            break
        chosen.append(best)
        covariance += DEVIATION**2 * np.outer(columns[:, best], columns[:, best])
    return chosen, penalty * len(chosen)
