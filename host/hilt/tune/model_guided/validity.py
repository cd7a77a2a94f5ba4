"""How probably a board takes a configuration: what compilers cannot see, foreseen by what is known of such machines and
then learnt. Bayesian logistic regression (Laplace's approximation) on a few features with informed priors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from hilt.schedule import verdicts
from hilt.schedule.features import Features
from hilt.schedule.loops import HAZARD_DISTANCE
from hilt.tune.problem import Indices, TuningProblem

Floats = npt.NDArray[np.float64]

_NEWTON_STEPS = 25


@dataclass(frozen=True)
class FailurePrior:
    """A feature of configurations (n,), and the weight (in log odds of being valid) that it has before any trial."""

    name: str
    values: Floats
    weight: float
    deviation: float


def failure_priors(
    problem: TuningProblem, indices: Indices, hidden: Features, published: bool = True
) -> list[FailurePrior]:
    """What may speak against configurations that compile, the constant first. `hidden` are their hidden features.

    At `tvm`: its runtime has never been seen to run four threads, and updates of an accumulator that come back at once
    are refused (TVM_FACTS.md sections 1 and 2 name both, of public software). Elsewhere: where the accelerator has no
    interlock, such updates lose sums (HARDWARE.md section 3); and one that should have it may not have. At `off`:
    what our own compiler refuses. Not `published`: what is published of TVM's runtime is left to be learnt.
    """
    count = len(indices)
    distance = hidden.column("hazard_distance")
    close = ((distance > 0) & (distance < HAZARD_DISTANCE)).astype(np.float64)
    four = (hidden.column("nVT") >= 4).astype(np.float64)
    interlock = problem.accelerator.hazards == "interlock"
    known = problem.checks == "tvm" and published
    found = [
        FailurePrior("constant", np.ones(count), 7.0, 1.5),
        FailurePrior("updates of an accumulator close to each other", close, -2.0 if interlock else -9.0, 4.0),
        FailurePrior("four virtual threads", four, -20.0 if known else -0.5, 2.0),
    ]
    if problem.checks == "tvm":
        format_workload = (_spelled_distance(problem, indices) < HAZARD_DISTANCE).astype(np.float64)
        found.append(
            FailurePrior("the same in the loop nest of TVM", format_workload, *((-20.0, 2.0) if known else (0.0, 4.0)))
        )
    if problem.checks == "off":
        columns = problem.columns(indices)
        refused = verdicts(problem.workload, problem.accelerator, columns, "compiler") != 0
        found.append(FailurePrior("refused by our compiler", refused.astype(np.float64), -10.0, 4.0))
    for name in ("inp", "wgt", "acc", "uop"):
        full = hidden.column(f"occupancy.{name}").astype(np.float64)
        found.append(FailurePrior(f"{name} buffer over half full", (full > 0.5).astype(np.float64), 0.0, 1.0))
    return found


def _spelled_distance(problem: TuningProblem, indices: Indices) -> npt.NDArray[np.int64]:
    """Micro-ops (n,) from one update of an accumulator to the next in TVM's nest (TVM_FACTS.md section 2).

    The loops are ci, w, KW, KH, co, h, of which the two outermost that turn are counted in the instruction and the
    others spelled out. Large where nothing spelled out reduces."""
    columns = problem.columns(indices)
    kernel = problem.workload.kernel
    ones = np.ones(len(indices), dtype=np.int64)
    nest = [
        (columns["tile_ci"], True),
        (columns["tile_w"], False),
        (ones * kernel[1], True),
        (ones * kernel[0], True),
        (columns["tile_co"], False),
        (columns["tile_h"], False),
    ]
    counted, distance, reduces = np.zeros_like(ones), ones.copy(), np.zeros(len(indices), dtype=np.bool_)
    for extent, reduction in nest:
        format_workload = np.where(counted >= 2, extent, 1)
        counted = counted + (extent > 1)
        reduces |= reduction & (format_workload > 1)
        distance = distance * (1 if reduction else format_workload)
    return np.where(reduces, distance, 1 << 30)


class Validity:
    """Log odds that are linear in the clues; learns from outcomes."""

    def __init__(self, known: list[FailurePrior]) -> None:
        self._clues = np.stack([clue.values for clue in known], axis=1)
        self._prior = np.array([clue.weight for clue in known])
        self._precision = np.array([clue.deviation for clue in known]) ** -2.0
        self._weights = self._prior
        self._root = np.diag(self._precision**-0.5)

    def learn(self, rows: Indices, valid: npt.NDArray[np.bool_]) -> None:
        """Of all trials so far: rows (n,) of the clues, and whether each ended well."""
        seen, answers = self._clues[rows], valid.astype(np.float64)
        weights = self._prior.copy()
        information = np.diag(self._precision)
        for _ in range(_NEWTON_STEPS):
            probability = expit(seen @ weights)
            slope = seen.T @ (answers - probability) - self._precision * (weights - self._prior)
            spread = probability * (1 - probability)
            information = (seen * spread[:, None]).T @ seen + np.diag(self._precision)
            step = np.linalg.solve(information, slope)
            weights = weights + step * min(1.0, 4.0 / max(float(np.abs(step).max()), 1e-12))
            if np.abs(step).max() < 1e-8:
                break
        self._weights = weights
        self._root = np.linalg.cholesky(np.linalg.inv(information))

    def probability(self, rows: Indices) -> Floats:
        """(n,), the uncertainty of the weights averaged out (MacKay's approximation)."""
        seen = self._clues[rows]
        variance = ((seen @ self._root) ** 2).sum(axis=1)
        return np.asarray(expit(seen @ self._weights / np.sqrt(1 + np.pi / 8 * variance)))

    def sample(self, rows: Indices, count: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
        """Joint draws (count, n) of which configurations are valid: one set of weights a draw, so that what fails for a
        common reason fails together."""
        weights = self._weights + generator.standard_normal((count, len(self._weights))) @ self._root.T
        return np.asarray(generator.random((count, len(rows))) < expit(weights @ self._clues[rows].T))
