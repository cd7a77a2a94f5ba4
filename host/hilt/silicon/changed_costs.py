"""The mean costs of a machine over every choice of costs that differ from those of a known relative.

Twenty measurements do not tell fourteen costs. With one broad prior for each, a difference in one cost spreads over
several, and layers that stress these are predicted wrongly. But a design differs from its relative in some costs only.
Every choice of them is weighed by its evidence, as many changed costs being as likely as few (Scott and Berger, 2010),
and the costs are the mean over the choices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

Floats = NDArray[np.float64]
Differentiate = Callable[[Floats], tuple[Floats, Floats]]
"""A function that returns errors (n,) at logarithms of costs (d,), and their derivatives (n, d)."""

_STEPS, _SETTLED = 20, 0.003
_FARTHEST_STEP = 0.7
"""Longest step of a cost's logarithm: the errors are taken as linear around the last costs."""
_ALL_COMPARED, _HOPELESS = 2, 12.0
"""Steps that weigh all choices; later ones weigh those at most so far behind the best, in logarithms of evidence."""
_FAR = 3.0
"""Deviations from which an error counts by its distance, not by its square."""
_TRUSTED = 4.0
"""Measurements that the assumed error counts for, beside those at hand."""
_LEAST_ERROR, _LARGEST_ERROR = 0.002, 0.2


@dataclass(frozen=True, eq=False)
class PriorCosts:
    """Normal priors of logarithms of costs, arrays (d,)."""

    means: Floats
    changed: Floats
    """Deviations of costs that differ from the relative's."""
    kept: Floats
    """Deviations of costs that do not."""
    unknown: NDArray[np.bool_]
    """Costs that the relative does not tell: they always differ."""


def robust_weights(scaled: Floats) -> Floats:
    """Return the weights (n,) of errors in deviations, by a pseudo-Huber loss."""
    return np.asarray(1 / np.sqrt(1 + (scaled / _FAR) ** 2))


def mean_costs(differentiate: Differentiate, prior: PriorCosts, start: Floats, error: float) -> tuple[float, Floats]:
    """Return the logarithm of the evidence and the mean logarithms of costs (d,).

    Errors at the mean beyond those of the linear model lower the evidence: a search that never settles has none.

    Args:
        differentiate: Gives the errors of measurements; 0 is none.
        prior: The distribution of the costs before any measurement.
        start: Logarithms (d,) near the result.
        error: Usual deviation of a measurement; the measurements correct it.
    """
    choices = _choices(prior.unknown)
    likelihood = _log_probability(choices, prior.unknown)
    here, deviation, evidence = start, error, -np.inf
    for step in range(_STEPS):
        errors, slope = differentiate(here)
        weights = robust_weights(errors / deviation)
        variances = np.where(choices, prior.changed, prior.kept) ** 2
        means, evidences = _posteriors(errors, slope, weights / deviation**2, here - prior.means, variances)
        evidences += likelihood - len(errors) * np.log(deviation)
        evidence = float(logsumexp(evidences))
        shares = np.exp(evidences - evidence)
        moved = np.clip(prior.means + shares @ means - here, -_FARTHEST_STEP, _FARTHEST_STEP)
        here = here + moved
        if float(np.abs(moved).max()) < _SETTLED:
            break
        deviation = _deviation(errors + slope @ moved, slope, weights, shares @ variances, deviation, error)
        if step + 1 >= _ALL_COMPARED:
            near = evidences > evidences.max() - _HOPELESS
            choices, likelihood = choices[near], likelihood[near]
    linear = errors + slope @ moved
    unforeseen = weights * (differentiate(here)[0] ** 2 - linear**2) / deviation**2
    return evidence - float(unforeseen.sum()) / 2, here


def _choices(unknown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return every choice (c, d) of changed costs."""
    return np.array(list(product(*((True,) if each else (False, True) for each in unknown))))


def _log_probability(choices: NDArray[np.bool_], unknown: NDArray[np.bool_]) -> Floats:
    """Return the logarithm (c,) of each choice's probability: each number of changed costs is equally likely."""
    count, changed = int((~unknown).sum()), choices[:, ~unknown].sum(axis=1)
    ways = gammaln(count + 1) - gammaln(changed + 1) - gammaln(count - changed + 1)
    return np.asarray(-np.log(count + 1) - ways)


def _posteriors(
    errors: Floats, slope: Floats, precision: Floats, away: Floats, variances: Floats
) -> tuple[Floats, Floats]:
    """Return each choice's mean (c, d), as a distance from the prior's, and the logarithm of its evidence (c,).

    The errors (n,) with their `slope` (n, d) and `precision` (n,) are at the distance `away` (d,); `variances` (c, d)
    are the prior's.
    """
    weighted = slope * precision[:, None]
    observed = slope @ away - errors
    curvature, towards = weighted.T @ slope, weighted.T @ observed
    inverse = curvature + np.eye(len(away)) * (1 / variances)[:, None, :]
    means = np.linalg.solve(inverse, np.broadcast_to(towards[:, None], (*variances.shape, 1)))[..., 0]
    spread = np.linalg.slogdet(inverse)[1] + np.log(variances).sum(axis=1)
    fit = means @ towards - float((precision * observed**2).sum())
    return np.asarray(means), np.asarray((fit - spread) / 2)


def _deviation(
    errors: Floats, slope: Floats, weights: Floats, variances: Floats, deviation: float, usual: float
) -> float:
    """Return the deviation of a measurement, by the errors (n,) that are left and the costs that they paid for."""
    curvature = (slope * (weights / deviation**2)[:, None]).T @ slope
    used = float(np.trace(np.linalg.solve(curvature + np.diag(1 / variances), curvature)))
    free = _TRUSTED + max(len(errors) - used, 1.0)
    found = np.sqrt((_TRUSTED * usual**2 + (weights * errors**2).sum()) / free)
    return float(np.clip(found, _LEAST_ERROR, _LARGEST_ERROR))
