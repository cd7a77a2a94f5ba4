"""The posterior of every candidate's latency: a mixture over machine models, each with a model of its error.

Let y be the logarithm of a latency in cycles of the nominal clock. With the machine model m, y = log cycles_m(x) + s +
e(z) + v. Here x are the model's coordinates, and s is the clock's deviation from the nominal one. The error e is alike
for alike configurations, and v is an error of each configuration's own. Measurements find x by Gauss-Newton steps;
around it all is linear, so y is a Gaussian process (Kennedy and O'Hagan, 2001). Models and kernels are weighed by
evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from hilt.tune.model_guided.calibration import CLOCK_DEVIATION, find_coordinates
from hilt.tune.model_guided.candidates import Candidates
from hilt.tune.model_guided.gaussian_process import Distances, GaussianProcess, Inputs, Kernel, distances_between, weigh
from hilt.tune.model_guided.initial_design import Hypotheses
from hilt.tune.model_guided.machines import Machine
from hilt.tune.model_guided.parts import Parts
from hilt.tune.model_guided.shortlist import RowPrediction
from hilt.tune.model_guided.steps import MeasuredCandidates, Steps, find_steps, rivals, with_steps

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Entry = tuple["MachineFit", Steps, Kernel, float]
"""A machine model with steps and a kernel, and the logarithm of its weight."""

_FASTEST_FITTED, _OTHERS_FITTED = 20, 12
"""Numbers of latencies for the fit of the coordinates: the fastest, and others from fast to slow.

The fastest may all be bound by one cost; the others tell the rest.
"""
USUAL = Kernel(amplitude=0.02, length=1.0, noise=0.002)
_AMPLITUDES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_LENGTHS = (0.5, 1.0, 2.0, None)
_NOISES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_MOST_OBSERVED = 144
"""Number of measurements that the posterior is conditioned on: the fastest, and others from fast to slow."""
_MOST_WEIGHED = 72
"""Number of measurements by which models and kernels are weighed, chosen alike."""
_SLOWER = 3
"""One of as many of these measurements is from the others: without them a step between both would be forgotten."""
_REFUTED = 30.0
"""Log evidence by which a model must lie behind the best to be dropped."""
_MANY = 32
"""Number of measurements from which only the _MOST_STANDING best models are fitted: each costs processor time."""
_MOST_STANDING = 2
_SAME = 0.05
"""Least difference of coordinates that is worth predicting everything again."""
_COMPONENTS = 6
_RIVALS = 6
"""Largest number of rivals of steps in the mixture."""
_NEGLIGIBLE = 0.01
"""Share of the best component's weight below which a component is left out."""

_LITTLE = 0.0228
"""Probability of a normal variable two deviations below its mean or farther."""

FAR_ERROR = 0.02
"""Largest error of a model far from the best, as a share of the distance from it in logarithms."""
_LEAST_FAR_ERROR = 0.002
_FAR, _MOST_OFF, _FEWEST_FAR = 0.05, 3.0, 6
"""From this distance on, so many times the median error of so many rows is the model's."""
_TIGHT = (Kernel(amplitude=0.003, length=1.0, noise=0.001), Kernel(amplitude=0.03, length=1.0, noise=0.01))
"""Errors beside which steps are looked for."""
_STEPS, _FEWER_STEPS = 6, 3
"""Gauss-Newton steps of a fit: at first, and from the last coordinates once there are many latencies."""


class MachineFit:
    """One machine model with the coordinates that explain the measurements best."""

    def __init__(self, hypotheses: Hypotheses, candidates: Candidates) -> None:
        self.machine: Machine = hypotheses.machine
        self._hypotheses = hypotheses
        self._candidates = candidates
        self._shortlist = hypotheses.shortlist.copy()
        self._coordinates: Floats | None = None
        self._prediction: RowPrediction | None = None

    @property
    def coordinates(self) -> Floats:
        """The most probable coordinates (d,)."""
        return self.machine.prior if self._coordinates is None else self._coordinates

    def fit(self, rows: Rows, observed: Floats) -> None:
        """Find the coordinates, given logarithms of latencies in nominal cycles `observed` (n,) of `rows`."""
        latency = dict(zip(rows.tolist(), observed.tolist(), strict=True))
        exact = _telling(self._shortlist.include(rows[np.argsort(observed, kind="stable")]))
        values = np.array([latency[row] for row in exact.tolist()])
        found = self._find(exact, values) if len(exact) else self.coordinates
        known = self._coordinates
        if known is None or float(np.abs(found - known).max()) >= _SAME or self._prediction is None:
            self._coordinates = found
            self._shortlist.extend(found, 8 if known is None else 2)
        self._prediction = self._shortlist.predict(self.coordinates)

    def _find(self, rows: Rows, observed: Floats) -> Floats:
        starts, steps = np.concatenate((self.coordinates[None], self._hypotheses.starts)), _STEPS
        if len(rows) == _FASTEST_FITTED + _OTHERS_FITTED:
            starts, steps = starts[:1], _FEWER_STEPS
        return find_coordinates(
            self.machine,
            lambda points: self._shortlist.exact(rows, points),
            lambda point: self._shortlist.derivatives(rows, point),
            observed,
            starts,
            steps,
        )

    def sharpen(self, rows: Rows) -> Floats:
        """Predict these rows exactly, around unchanged coordinates; return the change (n,) of each."""
        before = self.prediction.base[rows]
        self._shortlist.sharpen(self.prediction, rows, self.coordinates)
        return np.asarray(self.prediction.base[rows] - before)

    @property
    def prediction(self) -> RowPrediction:
        """Predictions around the coordinates; `fit` comes first."""
        assert self._prediction is not None, "fit comes first"
        return self._prediction

    def inputs(self) -> tuple[Floats, Inputs]:
        """Return the mean (n,) of all candidates before any measurement, and the process's inputs."""
        prediction = self.prediction
        mean = prediction.base + prediction.slope @ (self.machine.prior - self.coordinates)
        clock = np.full((len(mean), 1), CLOCK_DEVIATION)
        linear = np.concatenate((prediction.slope * self.machine.deviation, clock), axis=1)
        return mean, Inputs(self._candidates.smooth, linear, prediction.own, self._candidates.knobs.indicators)


class UnmovedFit(MachineFit):
    """The machine model at its prior coordinates.

    Coordinates that are fitted to both sides of a step explain neither, and what they leave hides the step.
    """

    def _find(self, rows: Rows, observed: Floats) -> Floats:
        return self.machine.prior


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of normal distributions for each of n rows: a component for each of the `weights` (c,), 1 in all.

    A step's rivals put a row far apart: with the mixture's own mean and deviation, the fast one would not count.
    """

    weights: Floats
    means: Floats
    """Means (c, n) of the components."""
    deviations: Floats

    @property
    def mean(self) -> Floats:
        """The mixture's mean (n,)."""
        return np.asarray(self.weights @ self.means)

    @property
    def deviation(self) -> Floats:
        """The mixture's deviation (n,)."""
        spread = self.weights @ (self.deviations**2 + self.means**2) - self.mean**2
        return np.asarray(np.sqrt(np.maximum(spread, 0)))

    @property
    def hope(self) -> Floats:
        """A value (n,) that each row is below with little probability: two deviations below a lone component's mean."""
        below = ndtri(np.minimum(_LITTLE / self.weights, 0.5))[:, None]
        return np.asarray((self.means + below * self.deviations).min(axis=0))

    def below(self, threshold: float) -> Floats:
        """Return the probability (n,) that each row is below the threshold."""
        return np.asarray(self.weights @ ndtr((threshold - self.means) / np.maximum(self.deviations, 1e-9)))

    def widened(self, factor: float) -> Mixture:
        """Return the same with deviations `factor` times as large."""
        return replace(self, deviations=self.deviations * factor)


@dataclass(frozen=True, eq=False)
class Component:
    """One machine model with one kernel, and its share of the mixture."""

    weight: float
    mean_before: Floats
    inputs: Inputs
    process: GaussianProcess
    fit: MachineFit

    @property
    def machine(self) -> Machine:
        """The machine model."""
        return self.fit.machine

    def predict(self, rows: Rows, distances: Distances) -> tuple[Floats, Floats]:
        """Return mean and deviation (n,) of a board's latencies on rows that were not measured.

        `distances` (n, observed) are those to the observed rows.
        """
        inputs = self.inputs[rows]
        mean, deviation = self.process.predict(inputs, distances)
        own = inputs.own_variance + self.process.kernel.noise**2
        return self.mean_before[rows] + mean, np.sqrt(deviation**2 + own)

    def sample(
        self, rows: Rows, count: int, widening: float, generator: np.random.Generator, distances: Distances
    ) -> Floats:
        """Return joint draws (count, n) of the same, with deviations `widening` times as large."""
        inputs = self.inputs[rows]
        mean, drawn = self.process.sample(inputs, count, generator, distances)
        own = np.sqrt(inputs.own_variance + self.process.kernel.noise**2)
        drawn += own * generator.standard_normal(drawn.shape)
        return np.asarray(self.mean_before[rows] + mean + widening * drawn)


class Posterior:
    """The mixture over machine models and kernels, given measurements."""

    def __init__(self, fits: list[MachineFit], candidates: Candidates, parts: Parts) -> None:
        self._fits = fits
        self._parts = parts
        self._places = Inputs(candidates.smooth, np.zeros((len(candidates), 0)), None, candidates.knobs.indicators)
        """The candidates without linear directions: distances do not depend on them."""
        self.components: list[Component] = []
        self._kernels: list[Entry] = []
        self._observed: Rows = np.zeros(0, dtype=np.int64)
        self._evidence: dict[MachineFit, float] = {}
        """Log evidence of each fit's best kernel, at its last weighing."""

    def refit(self, measured: dict[int, float], tried: Rows) -> None:
        """Find every model's coordinates anew and weigh models and kernels; `tried` are all rows with an outcome."""
        rows, observed = _fastest(measured, len(measured))
        for fit in self._standing(len(measured)):
            fit.fit(rows, observed)
        self.reweigh(measured, tried)

    def reweigh(self, measured: dict[int, float], tried: Rows) -> None:
        """Weigh models and kernels anew, with unchanged coordinates."""
        rows, observed = _fastest(measured, _MOST_WEIGHED)
        scored = []
        for fit in self._standing(len(measured)):
            mean, inputs = fit.inputs()
            residual = observed - mean[rows]
            seen = _loosened(inputs[rows], observed, residual)
            parts = self._parts.sides[rows]
            choices = dict(_steps(seen, residual, parts))
            found = []
            for steps, cost in choices.items():
                grid = weigh(with_steps(seen, parts[:, steps]), residual, _AMPLITUDES, _LENGTHS, _NOISES, USUAL)
                found += [(fit, steps, kernel, score - cost + np.log(fit.machine.weight)) for kernel, score in grid]
            self._evidence[fit] = max(score for _, _, _, score in found) - np.log(fit.machine.weight)
            scored += found
        scored.sort(key=lambda entry: -entry[3])
        least = scored[0][3] + np.log(_NEGLIGIBLE)
        kept = [entry for entry in scored[:_COMPONENTS] if entry[3] >= least]
        self._kernels = kept + self._rivals(kept, rows, observed, tried)
        self.condition(measured)

    def _rivals(self, kept: list[Entry], rows: Rows, observed: Floats, tried: Rows) -> list[Entry]:
        """Return the rivals of the kept steps; each has its share of the weight of these steps, with all kernels."""
        found = []
        for fit, steps in dict.fromkeys((fit, steps) for fit, steps, _, _ in kept if steps):
            same = [(kernel, score) for other, those, kernel, score in kept if other is fit and those == steps]
            whole = float(np.logaddexp.reduce([score for _, score in same]))
            mean, inputs = fit.inputs()
            seen = _loosened(inputs[rows], observed, observed - mean[rows])
            space = MeasuredCandidates(mean, inputs, self._parts.sides, tried, rows, observed, seen)
            for at in range(len(steps)):
                for rival, share in rivals(space, same[0][0], steps, at):
                    found.append((fit, rival, same[0][0], whole + float(np.log(share / (1 - share)))))
        return sorted(found, key=lambda entry: -entry[3])[:_RIVALS]

    def _standing(self, measurements: int) -> list[MachineFit]:
        """Return the models that are not refuted; of many measurements the best ones, and the broadest."""
        least = max(self._evidence.values(), default=0.0) - _REFUTED
        evidence = {fit: self._evidence.get(fit, least) for fit in self._fits}
        standing = [fit for fit in self._fits if evidence[fit] >= least]
        if measurements < _MANY or not self._evidence:
            return standing
        best = sorted(standing, key=lambda fit: -evidence[fit])[:_MOST_STANDING]
        return [fit for fit in standing if fit in best or fit.machine.is_broadest]

    def condition(self, measured: dict[int, float]) -> None:
        """Condition on measurements (logarithms by row), with unchanged models, kernels and weights."""
        rows, observed = _fastest(measured, _MOST_OBSERVED)
        self._observed = rows
        distances = self._distances(rows)
        weights = np.exp([score - self._kernels[0][3] for _, _, _, score in self._kernels])
        weights /= weights.sum()
        self.components = []
        for (fit, steps, kernel, _), weight in zip(self._kernels, weights.tolist(), strict=True):
            mean, inputs = fit.inputs()
            inputs = with_steps(inputs, self._parts.sides[:, steps])
            residual = observed - mean[rows]
            process = GaussianProcess(kernel, _loosened(inputs[rows], observed, residual), residual, distances)
            self.components.append(Component(weight, mean, inputs, process, fit))

    def sharpen(self, rows: Rows) -> None:
        """Predict these distinct rows, not measured yet, exactly with each model of the mixture."""
        changes = {fit: fit.sharpen(rows) for fit in dict.fromkeys(component.fit for component in self.components)}
        for component in self.components:
            component.mean_before[rows] += changes[component.fit]

    def estimated(self, rows: Rows) -> Bools:
        """Return a mask (n,) of the rows that some model of the mixture has not predicted exactly."""
        own = [component.inputs.own_variance[rows] for component in self.components]
        return np.asarray(np.any(np.stack(own) > 0, axis=0)) if own else np.zeros(len(rows), dtype=np.bool_)

    def predict(self, rows: Rows) -> Mixture:
        """Return each component's prediction of rows (n,)."""
        distances = self._distances(rows)
        parts = [component.predict(rows, distances) for component in self.components]
        weights = np.array([component.weight for component in self.components])
        means, deviations = (np.stack(values) for values in zip(*parts, strict=True))
        return Mixture(weights, means, deviations)

    def sample(self, rows: Rows, count: int, widening: float, generator: np.random.Generator) -> Floats:
        """Return joint draws (count, n), with each component's share of the count."""
        ends = np.rint(np.cumsum([component.weight for component in self.components]) * count).astype(int)
        counts = np.diff(np.concatenate(([0], ends)))
        distances = self._distances(rows)
        parts = [
            component.sample(rows, number, widening, generator, distances)
            for component, number in zip(self.components, counts.tolist(), strict=True)
            if number
        ]
        return np.concatenate(parts)

    def _distances(self, rows: Rows) -> Distances:
        """Return distances (n, observed) from rows to the observed ones, which all components share."""
        return distances_between(self._places[rows], self._places[self._observed])


def _steps(seen: Inputs, residual: Floats, parts: Bools) -> list[tuple[Steps, float]]:
    """Return the choices of parts with steps, none among them, and the cost of each."""
    found = [find_steps(seen, residual, parts, kernel) for kernel in _TIGHT]
    return [((), 0.0), *((tuple(steps), cost) for steps, cost in found)]


def _loosened(inputs: Inputs, observed: Floats, residual: Floats) -> Inputs:
    """Return measured inputs with an error of their own that grows with the distance from the best."""
    far = observed - observed.min(initial=np.inf)
    own = np.sqrt(inputs.own_variance + (far_error(far, residual) * far) ** 2)
    return replace(inputs, own=own)


def far_error(far: Floats, residual: Floats) -> float:
    """Return a model's error as a share of the distance `far` (n,), by its `residual` (n,) on the rows far away."""
    away = far > _FAR
    if away.sum() < _FEWEST_FAR:
        return FAR_ERROR
    off = np.median(np.abs(residual - np.median(residual))[away] / far[away])
    return float(np.clip(_MOST_OFF * off, _LEAST_FAR_ERROR, FAR_ERROR))


def _telling(rows: Rows) -> Rows:
    """Return the rows (fastest first) that the coordinates are fitted to."""
    return _thinned(rows, _FASTEST_FITTED, _OTHERS_FITTED)


def _fastest(measured: dict[int, float], most: int) -> tuple[Rows, Floats]:
    """Return rows and latencies of at most `most` measurements: the fastest, and a share of the others."""
    order = np.array(sorted(measured, key=lambda row: (measured[row], row)), dtype=np.int64)
    rows = _thinned(order, most - most // _SLOWER, most // _SLOWER)
    return rows, np.array([measured[row] for row in rows.tolist()])


def _thinned(rows: Rows, first: int, others: int) -> Rows:
    """Return the first rows, and so many others from first to last."""
    rest = rows[first:]
    count = min(others, len(rest))
    spread = np.linspace(0, len(rest) - 1, count).astype(np.int64) if count else np.zeros(0, dtype=np.int64)
    return np.concatenate((rows[:first], rest[spread]))
