"""The probability that a configuration is valid on a board.

It covers failures that compilers cannot predict: first by published facts about such machines, then by learning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit

from hilt.run_choices import CheckLevel
from hilt.schedule import convolution, verdicts
from hilt.schedule.features import Features
from hilt.schedule.loops import HAZARD_DISTANCE
from hilt.tune.model_guided.gaussian_process import root_of
from hilt.tune.model_guided.knobs import Knobs
from hilt.tune.problem import Indices, TuningProblem

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_NEWTON_STEPS = 30
_MOST_OUTCOMES = 240
"""Number of trials that are learnt from: the last."""
_UNSUSPICIOUS = 2.0
"""Prior log odds above which a failure is a surprise."""
_DOUBTING = np.array([2.0, 2.0])
"""Weight and deviation of the constant after a surprise."""
_RULES = 4.0
"""Deviation of the log odds by rules over knobs, after a surprise."""
_REWEIGHTINGS = 4
"""Rounds in which the variance of the rules moves to the knobs that explain the outcomes."""


@dataclass(frozen=True)
class FailurePrior:
    """A feature of configurations (n,), and its weight (in log odds of being valid) before any trial."""

    name: str
    values: Floats
    weight: float
    deviation: float


def failure_priors(
    problem: TuningProblem, indices: Indices, hidden: Features, published: bool = True
) -> list[FailurePrior]:
    """Return the features that may predict failure of configurations that compile, the constant first.

    At `tvm`, two faults of TVM's runtime are known: it has never been seen to run four threads, and it refuses updates
    of an accumulator that come back at once. Both are of public software (TVM_FACTS.md sections 1 and 2). At other
    levels, such updates lose sums if the accelerator has no interlock (HARDWARE.md section 3); a machine that should
    have one may lack it. At `off`, a further feature is the refusal by our own compiler.

    Args:
        problem: the problem.
        indices: configurations that compile (n,).
        hidden: their hidden features.
        published: use the published faults of TVM's runtime; else they are left to be learnt.
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
        distance_close = (_least_distance(problem, indices) < HAZARD_DISTANCE).astype(np.float64)
        found.append(
            FailurePrior("the same in the loop nest of TVM", distance_close, *((-20.0, 2.0) if known else (0.0, 4.0)))
        )
    if problem.checks == "off":
        columns = problem.columns(indices)
        refused = verdicts(problem.workload, problem.accelerator, columns, CheckLevel.COMPILER) != 0
        found.append(FailurePrior("refused by our compiler", refused.astype(np.float64), -10.0, 4.0))
    for name in ("inp", "wgt", "acc", "uop"):
        full = hidden.column(f"occupancy.{name}").astype(np.float64)
        found.append(FailurePrior(f"{name} buffer over half full", (full > 0.5).astype(np.float64), 0.0, 1.0))
    return found


def _least_distance(problem: TuningProblem, indices: Indices) -> npt.NDArray[np.int64]:
    """Return the micro-ops (n,) from one update of an accumulator to the next in TVM's nest (TVM_FACTS.md section 2).

    The loops are ci, w, KW, KH, co, h. The instruction counts the two outermost ones with more than one turn; the
    others are unrolled into micro-ops. The distance is large if no unrolled loop reduces.
    """
    columns = problem.columns(indices)
    kernel = convolution(problem.workload).kernel
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
        extents = np.where(counted >= 2, extent, 1)
        counted = counted + (extent > 1)
        reduces |= reduction & (extents > 1)
        distance = distance * (1 if reduction else extents)
    return np.where(reduces, distance, 1 << 30)


class Validity:
    """A probability that a configuration is valid, learnt from outcomes: a Gaussian process classifier (Laplace).

    Its log odds are linear in the failure priors. After a failure that they did not predict, the model allows for rules
    that no compiler knows: the log odds then also depend on the knobs, alone, in pairs, smoothly, and by the primes
    that divide them. A rule is about few knobs, so the variance of these parts moves to those that explain the outcomes
    (group lasso).
    """

    def __init__(self, known: list[FailurePrior], knobs: Knobs | None = None) -> None:
        """Take the failure priors, the constant first.

        `knobs` are those of the same configurations, and allow rules to be learnt.
        """
        self._clues = np.stack([clue.values for clue in known], axis=1)
        self._centre = np.array([clue.weight for clue in known])
        self._deviation = np.array([clue.deviation for clue in known])
        _, self._first, self._pattern = np.unique(self._clues, axis=0, return_index=True, return_inverse=True)
        """The first row with each pattern of failure priors, and each row's pattern."""
        self._knobs = knobs
        self._weights = knobs.even_weights if knobs is not None else np.zeros(0)
        self.surprised = False
        """True once a trial failed that no failure prior predicted."""
        self._rows = np.zeros(0, dtype=np.int64)
        self._slope = np.zeros(0)
        self._root = np.zeros(0)
        self._factor = np.zeros((0, 0))

    def learn(self, rows: Indices, valid: Bools) -> None:
        """Learn all trials so far: rows (n,), and whether each was valid."""
        if not self.surprised and self._knobs is not None:
            expected = self._clues[rows] @ self._centre
            self.surprised = bool((~valid & (expected > _UNSUSPICIOUS)).any())
            if self.surprised:
                self._centre = np.concatenate((_DOUBTING[:1], self._centre[1:]))
                self._deviation = np.concatenate((_DOUBTING[1:], self._deviation[1:]))
        rows, valid = rows[-_MOST_OUTCOMES:], valid[-_MOST_OUTCOMES:]
        answers = valid.astype(np.float64)
        linear = self._linear(rows, rows)
        if not self.surprised or self._knobs is None:
            self._fit(rows, linear, answers)
            return
        self._weights = self._knobs.even_weights  # not the last ones: outcomes decide, not the order of batches
        self._fit(rows, linear + _RULES**2 * self._knobs.alike(rows, rows, self._weights), answers)
        for _ in range(_REWEIGHTINGS):
            self._weights = self._knobs.reweighted(self._weights, rows, self._slope)
            self._fit(rows, linear + _RULES**2 * self._knobs.alike(rows, rows, self._weights), answers)

    def _fit(self, rows: Indices, covariance: Floats, answers: Floats) -> None:
        """Find the most probable log odds of rows (n,) with a prior covariance (n, n).

        `answers` are 1 where the row was valid, else 0.
        """
        mean = self._clues[rows] @ self._centre
        dual, worth = np.zeros(len(rows)), -np.inf
        log_odds = mean
        for _ in range(_NEWTON_STEPS):  # Rasmussen and Williams, algorithm 3.1, with steps that never lose
            target_dual = self._newton(covariance, mean, log_odds, answers)
            share = 1.0
            while share > 1e-4:
                tried = dual + share * (target_dual - dual)
                log_odds = mean + covariance @ tried
                gained = float(_log_likelihood(log_odds, answers) - tried @ (log_odds - mean) / 2)
                if gained >= worth:
                    break
                share /= 2
            dual, gain, worth = tried, gained - worth, max(gained, worth)
            if gain < 1e-9:
                break
        self._newton(covariance, mean, log_odds, answers)
        self._slope = answers - expit(log_odds)
        self._rows = rows

    def _newton(self, covariance: Floats, mean: Floats, log_odds: Floats, answers: Floats) -> Floats:
        """Return the target of a whole Newton step, K^-1 (log odds - mean) (n,), and keep the curvature's root."""
        probability = expit(log_odds)
        self._root = np.sqrt(np.maximum(probability * (1 - probability), 1e-10))
        inner = np.eye(len(log_odds)) + self._root[:, None] * covariance * self._root
        self._factor = cholesky(inner, lower=True, check_finite=False)
        target = self._root**2 * (log_odds - mean) + answers - probability
        solved = cho_solve((self._factor, True), self._root * (covariance @ target), check_finite=False)
        return np.asarray(target - self._root * solved)

    def probability(self, rows: Indices) -> Floats:
        """Return the probability (n,), averaged over the uncertainty of the log odds."""
        rows, place = self._distinct(rows)
        across = self._covariance(rows, self._rows)
        prior = (self._clues[rows] ** 2) @ self._deviation**2
        if self.surprised:
            prior = prior + _RULES**2
        variance = prior - self._explained(across, across, diagonal=True)
        mean = self._clues[rows] @ self._centre + across @ self._slope
        return _averaged(mean, variance)[place]

    def sample(self, rows: Indices, count: int, generator: np.random.Generator) -> Bools:
        """Return joint draws (count, n) of validity: configurations with a common reason to fail do so together.

        After a surprise, failures follow one rule in every other draw: rows as likely to fail fail together. In the
        others each configuration fails by itself.
        """
        distinct, place = self._distinct(rows)
        across = self._covariance(distinct, self._rows)
        mean = self._clues[distinct] @ self._centre + across @ self._slope
        covariance = self._covariance(distinct, distinct) - self._explained(across, across)
        log_odds = mean + generator.standard_normal((count, len(distinct))) @ root_of(covariance).T
        drawn = generator.random((count, len(rows))) < expit(log_odds)[:, place]
        if self.surprised:
            drawn[::2] = generator.random((len(drawn[::2]), 1)) < _averaged(mean, np.diag(covariance))[place]
        return np.asarray(drawn)

    def _distinct(self, rows: Indices) -> tuple[Indices, Indices]:
        """Return one row of each known kind, and the place (n,) of each given row among them.

        Before a surprise, rows with equal failure priors have one probability.
        """
        if self.surprised:
            return rows, np.arange(len(rows))
        patterns, place = np.unique(self._pattern[rows], return_inverse=True)
        return self._first[patterns], place

    def _explained(self, left: Floats, right: Floats, diagonal: bool = False) -> Floats:
        if not len(self._rows):
            return np.zeros(len(left)) if diagonal else np.zeros((len(left), len(right)))
        solved = solve_triangular(self._factor, self._root[:, None] * right.T, lower=True, check_finite=False)
        return np.asarray((solved**2).sum(axis=0) if diagonal else solved.T @ solved)

    def _covariance(self, left: Indices, right: Indices) -> Floats:
        linear = self._linear(left, right)
        if not self.surprised or self._knobs is None:
            return linear
        return np.asarray(linear + _RULES**2 * self._knobs.alike(left, right, self._weights))

    def _linear(self, left: Indices, right: Indices) -> Floats:
        """Return the covariance (n, m) by failure priors alone."""
        return np.asarray((self._clues[left] * self._deviation**2) @ self._clues[right].T)


def _averaged(mean: Floats, variance: Floats) -> Floats:
    """Return probabilities (n,), averaged over log odds of this mean and variance (MacKay's approximation)."""
    return np.asarray(expit(mean / np.sqrt(1 + np.pi / 8 * np.maximum(variance, 0))))


def _log_likelihood(log_odds: Floats, answers: Floats) -> float:
    return float(-np.logaddexp(0, np.where(answers > 0.5, -log_odds, log_odds)).sum())
