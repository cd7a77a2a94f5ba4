"""Steps in a board's latencies: one factor for a whole side of the space, of unknown place and size.

A step is one more linear direction of the regression, 1 on its side and 0 elsewhere. Steps are chosen one by one, each
by the evidence that it adds beside the measurements' usual errors. Other sides may explain the measurements as well as
a chosen one: all cuts between two measured values do. Rivals are those of them after which another configuration is
the best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from hilt.tune.model_guided.gaussian_process import Inputs, Kernel

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Steps = tuple[int, ...]
"""Sides of the space that one factor each belongs to."""

DEVIATION = 0.5
"""Prior deviation of a step's logarithm."""
_MOST = 3
_LESS_LIKELY = 3.0
"""Log evidence by which a rival may lie behind the chosen step."""
_MOST_SIDES = 256
"""Sides that are compared for rivals, the most evident ones."""
_MOST_RIVALS = 4
"""Rivals of one step; they stand for all others too."""


def with_steps(inputs: Inputs, sides: Bools) -> Inputs:
    """Return inputs whose linear directions have a step for each of the `sides` (n, s) besides."""
    return replace(inputs, linear=np.concatenate((inputs.linear, DEVIATION * sides), axis=1)) if sides.size else inputs


@dataclass(frozen=True)
class StepEvidence:
    """The evidence for one more step beside other ones, given measurements."""

    gain: Floats
    """Logarithm of evidence that a step on each side adds, (sides,)."""
    size: Floats
    """Most probable logarithm of the step on each side, (sides,)."""
    directions: Floats
    """Most probable weights of the inputs' linear directions beside a step on each side, (directions, sides)."""

    @classmethod
    def of(cls, inputs: Inputs, residual: Floats, sides: Bools, kernel: Kernel) -> StepEvidence:
        """Weigh a step on each of the `sides` (n, sides); `inputs` and `residual` (n,) are the measurements'."""
        columns = sides.astype(np.float64)
        covariance = kernel.between(inputs, inputs)
        covariance[np.diag_indices_from(covariance)] += kernel.noise**2 + inputs.own_variance
        factor = cho_factor(covariance, lower=True, check_finite=False)
        solved, whole = (cho_solve(factor, values, check_finite=False) for values in (columns, residual))
        within = DEVIATION**2 * (columns * solved).sum(axis=0)
        along = columns.T @ whole
        gain = ((DEVIATION * along) ** 2 / (1 + within) - np.log1p(within)) / 2
        size = DEVIATION**2 * along / (1 + within)
        return cls(gain, size, inputs.linear.T @ (whole[:, None] - solved * size))


def find_steps(inputs: Inputs, residual: Floats, sides: Bools, kernel: Kernel) -> tuple[list[int], float]:
    """Return the sides with a step, most evident first, and the cost of the choice as a logarithm of evidence.

    `inputs` and `residual` (n,) are those of the measurements, `sides` (n, p) says which lie on each side. Sides that
    hold the same measurements are one choice.
    """
    patterns = np.unique(np.packbits(sides, axis=0), axis=1).shape[1]
    penalty = float(np.log(max(patterns, 1)))
    chosen: list[int] = []
    while len(chosen) < _MOST and sides.shape[1]:
        best, gain = _most_evident(inputs, residual, sides, kernel, chosen)
        if gain <= penalty:
            break
        chosen.append(best)
        if len(chosen) > 1:
            chosen = _exchanged(inputs, residual, sides, kernel, chosen)
    return chosen, penalty * len(chosen)


def _exchanged(inputs: Inputs, residual: Floats, sides: Bools, kernel: Kernel, chosen: list[int]) -> list[int]:
    """Return the steps after each had its turn to be exchanged for a more evident one beside the others.

    The first step was chosen as if it were alone; beside a second one, another side may explain more.
    """
    chosen = chosen.copy()
    for _ in range(_MOST):
        before = chosen.copy()
        for at in range(len(chosen)):
            chosen[at], _ = _most_evident(inputs, residual, sides, kernel, chosen[:at] + chosen[at + 1 :])
        if chosen == before:
            break
    return chosen


def _most_evident(
    inputs: Inputs, residual: Floats, sides: Bools, kernel: Kernel, others: list[int]
) -> tuple[int, float]:
    """Return the side that explains the most beside the `others`, and its gain."""
    evidence = StepEvidence.of(with_steps(inputs, sides[:, others]), residual, sides, kernel)
    best = int(np.argmax(evidence.gain))
    return best, float(evidence.gain[best])


@dataclass(frozen=True)
class MeasuredCandidates:
    """All candidates, and those that were measured."""

    mean: Floats
    """Predicted logarithms (n,) before any measurement."""
    inputs: Inputs
    sides: Bools
    """Whether each candidate is on each side, (n, sides)."""
    tried: Rows
    rows: Rows
    """The measured candidates that are weighed, (m,)."""
    observed: Floats
    seen: Inputs
    """The inputs of `rows`, with the errors of measurements."""


def rivals(space: MeasuredCandidates, kernel: Kernel, steps: Steps, at: int) -> list[tuple[Steps, float]]:
    """Return steps with another side in place of `steps[at]`, and the share of the evidence for each, below 1 in all.

    The sides explain the measurements about as well, and each makes another untried candidate the best. A candidate
    that is not predicted exactly counts as faster by the deviation of its prediction.
    """
    others = steps[:at] + steps[at + 1 :]
    seen = with_steps(space.seen, space.sides[space.rows][:, others])
    residual = space.observed - space.mean[space.rows]
    evidence = StepEvidence.of(seen, residual, space.sides[space.rows], kernel)
    order = np.argsort(-evidence.gain, kind="stable")[:_MOST_SIDES]
    order = order[evidence.gain[order] >= evidence.gain[steps[at]] - _LESS_LIKELY]
    order = np.concatenate(([steps[at]], order[order != steps[at]])).astype(np.int64)
    share = np.exp(evidence.gain[order] - evidence.gain[steps[at]])
    share /= share.sum()

    linear = with_steps(space.inputs, space.sides[:, others]).linear
    values = space.mean[:, None] + linear @ evidence.directions[:, order]
    values += space.sides[:, order] * evidence.size[order]
    if space.inputs.own is not None:
        values -= space.inputs.own[:, None]
    values[space.tried] = np.inf
    best = values.argmin(axis=0)
    hopeful = (values.min(axis=0) < space.observed.min()) & (best != best[0])
    weights = {int(row): float(share[hopeful & (best == row)].sum()) for row in np.unique(best[hopeful])}
    likely = sorted(weights, key=lambda row: -weights[row])[:_MOST_RIVALS]
    scale = sum(weights.values()) / sum(weights[row] for row in likely) if likely else 0.0
    found = []
    for row in likely:
        side = int(order[np.flatnonzero(hopeful & (best == row))[0]])
        found.append(((*steps[:at], side, *steps[at + 1 :]), weights[row] * scale))
    return found
