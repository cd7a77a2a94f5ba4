"""The posterior of latencies, from the first guess to the last measurement, and the errors of its predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilt.tune.model_guided.gaussian_process import GaussianProcess, Inputs, Kernel
from hilt.tune.model_guided.initial_design import InitialDesign
from hilt.tune.model_guided.machines import TwinMachine
from hilt.tune.model_guided.posterior import FAR_ERROR, MachineFit, Mixture, Posterior, UnmovedFit

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

_FIRST_FIT = 3
"""Number of latencies at which machine models are first fitted."""
_GROWTH, _LATE_GROWTH = 1.5, 2.0
"""Factors of growth in latencies after which machine models are fitted anew: up to _LATE latencies, and after."""
_LATE = 64
_WEIGHED = 1.2
"""Factor of growth in latencies after which kernels are weighed anew."""
_MOST_FOLLOWED = 800
"""Candidates that are considered at every choice."""
_BEFORE = Kernel(amplitude=0.02, length=1.0, noise=0.004)
"""Error of every model before the first fit."""
_REMEMBERED = 32
"""Number of latest predictions by which the stated deviations are judged."""
_TRUSTED = 6.0
"""Number of correct predictions that are assumed before the first."""


class Latencies:
    """The latencies of the followed rows; all arrays are over these rows."""

    def __init__(self, design: InitialDesign) -> None:
        self._initial_design = design
        kinds = (MachineFit, UnmovedFit)
        self._fits = [kind(entry, design.candidates) for kind in kinds for entry in design.hypotheses]
        self._posterior = Posterior(self._fits, design.candidates, design.parts)
        self._fitted = self._weighed = 0
        self._expected: dict[int, tuple[float, float]] = {}
        self._errors: list[float] = []
        self._guess: Mixture | None = None
        self.rows: Rows = design.rows

    @property
    def machine(self) -> str:
        """The machine model that explains the latencies best."""
        shares: dict[str, float] = {}
        for component in self._posterior.components:
            shares[component.machine.name] = shares.get(component.machine.name, 0.0) + component.weight
        return max(shares, key=lambda name: shares[name]) if shares else self._fits[0].machine.name

    @property
    def widening(self) -> float:
        """Factor of the true over the stated deviations, judged by earlier predictions; at least 1."""
        errors = np.array(self._errors[-_REMEMBERED:])
        return float(np.sqrt(max((_TRUSTED + errors.sum()) / (_TRUSTED + len(errors)), 1.0)))

    def expect(self, rows: Sequence[int]) -> None:
        """Keep the predictions of rows that are about to be measured.

        They are exact ones, so that the errors are the models' and not the surrogates'.
        """
        if not self._posterior.components or not rows:
            return
        self.sharpen(np.array(rows, dtype=np.int64))
        found = self._posterior.predict(np.array(rows, dtype=np.int64))
        self._expected.update(zip(rows, zip(found.mean.tolist(), found.deviation.tolist(), strict=True), strict=True))

    def learn(self, new: dict[int, float], measured: dict[int, float], tried: Rows) -> None:
        """Learn `new` logarithms of latencies in nominal cycles by row; `measured` are all so far.

        `tried` are the rows of all trials that ended, failures among them.
        """
        best = min(measured.values(), default=0.0)
        for row, latency in new.items():
            if row in self._expected:
                mean, deviation = self._expected.pop(row)
                deviation = np.hypot(max(deviation, 1e-4), FAR_ERROR * (latency - best))
                self._errors.append(min(((latency - mean) / deviation) ** 2, 25.0))
        self._guess = None
        if len(measured) < _FIRST_FIT or not new:
            return
        if len(measured) >= self._fitted * (_GROWTH if self._fitted < _LATE else _LATE_GROWTH):
            self._posterior.refit(measured, tried)
            self._fitted = self._weighed = len(measured)
            self._follow(measured)
        elif len(measured) >= _WEIGHED * self._weighed:
            self._posterior.reweigh(measured, tried)
            self._weighed = len(measured)
            self._follow(measured)
        else:
            self._posterior.condition(measured)

    def predict(self) -> Mixture:
        """Return the distributions (n,) of the rows' logarithms."""
        if self._guess is None:
            if self._posterior.components:
                self._guess = self._posterior.predict(self.rows).widened(self.widening)
            else:
                drawn = self._first_draws(np.arange(len(self.rows)), 256, np.random.default_rng(0))
                self._guess = Mixture(np.ones(1), drawn.mean(axis=0)[None], drawn.std(axis=0)[None])
        return self._guess

    def estimated(self) -> Bools:
        """Return a mask (n,) of the rows that are not predicted exactly; before the first fit, none."""
        return self._posterior.estimated(self.rows)

    def sharpen(self, rows: Rows) -> None:
        """Predict these distinct rows, not measured yet, exactly."""
        self._posterior.sharpen(rows)
        self._guess = None

    def sample(self, places: Rows, count: int, generator: np.random.Generator) -> Floats:
        """Return joint draws (count, n) of the logarithms of rows at these places."""
        if self._posterior.components:
            return self._posterior.sample(self.rows[places], count, self.widening, generator)
        return self._first_draws(places, count, generator)

    def estimate(self) -> Floats:
        """Return rough logarithms of cycles of all candidates."""
        name = self.machine
        fit = next(fit for fit in self._fits if fit.machine.name == name)
        return fit.machine.estimate(fit.coordinates)

    def mismatch(self, measured: dict[int, float]) -> tuple[float | None, float | None]:
        """Return the median of measured over the twin's latency, and its logarithm's deviation; None without any."""
        if not self._posterior.components or not isinstance(self._fits[0].machine, TwinMachine):
            return None, None
        rows = np.array(list(measured), dtype=np.int64)
        off = np.array(list(measured.values())) - self._fits[0].prediction.base[rows]
        return float(np.exp(np.median(off))), float(off.std())

    def _follow(self, measured: dict[int, float]) -> None:
        """Choose the rows that may be among the best, and those that were measured."""
        count = len(self._initial_design.candidates)
        hope = self._posterior.predict(np.arange(count)).hope
        best = np.argsort(hope, kind="stable")[:_MOST_FOLLOWED]
        self.rows = np.union1d(best, np.array(list(measured), dtype=np.int64))
        self._guess = None

    def _first_draws(self, places: Rows, count: int, generator: np.random.Generator) -> Floats:
        """Return draws (count, n) before the first fit: each takes a machine of the families, and a small error."""
        rows = self.rows[places]
        inputs = Inputs(self._initial_design.candidates.smooth[rows], np.zeros((len(rows), 1)))
        nothing = inputs[np.zeros(0, dtype=np.int64)]
        _, errors = GaussianProcess(_BEFORE, nothing, np.zeros(0)).sample(inputs, count, generator)
        errors += _BEFORE.noise * generator.standard_normal(errors.shape)
        weights = np.array([entry.machine.weight for entry in self._initial_design.hypotheses])
        chosen = generator.choice(len(weights), size=count, p=weights / weights.sum())
        drawn = np.empty_like(errors)
        for number in range(len(weights)):
            ensemble = self._ensemble(number, rows)
            machines = generator.integers(0, ensemble.shape[1], count)
            drawn = np.where((chosen == number)[:, None], ensemble[:, machines].T, drawn)
        return np.asarray(errors + drawn)

    def _ensemble(self, number: int, rows: Rows) -> Floats:
        """Return one machine model's predictions (n, m), relative to the best of each of its machines."""
        entry = self._initial_design.hypotheses[number]
        order = np.argsort(entry.rows, kind="stable")
        at = order[np.minimum(np.searchsorted(entry.rows, rows, sorter=order), len(order) - 1)]
        known = entry.rows[at] == rows
        relative = entry.ensemble - entry.ensemble.min(axis=0)
        pad_end = np.full((len(rows), relative.shape[1]), 0.3)
        pad_end[known] = np.minimum(relative[at[known]], 5.0)
        return pad_end
