"""What is believed of the latencies of the rows that matter, before and after measurements."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilt.tune.model_guided.calibration import USUAL, Calibration, find_memory, slopes
from hilt.tune.model_guided.gaussian_process import GaussianProcess, Inputs
from hilt.tune.model_guided.initial_design import InitialDesign

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_RELEVANT = 0.1
"""A row slower than the best by more than this (as a logarithm) with every memory is not followed."""
_MOST_FOLLOWED, _LEAST_FOLLOWED = 96, 24
_CYCLES_FOLLOWED = 2.5e8
"""Cycles of all followed rows together, about: the twin takes about a nanosecond for each, with each memory."""
_MOST_OBSERVED = 160
"""Measurements that the posterior is made of: the fastest."""
_SAME_MEMORY = 0.05
"""Coordinates that differ by less are not worth predicting everything again."""
_FIRST_FIT = 3
"""Measurements from which on the memory is looked for."""


class Posterior:
    """Over the candidates' rows that are followed, which grow as memories turn out differently."""

    def __init__(self, opening: InitialDesign) -> None:
        self._candidates = opening.candidates
        self._predictor = opening.predictor
        self._prior = opening.prior
        self._shortlist = opening.shortlist.copy()
        self.rows = self._shortlist.rows[_relevant(opening.extremes)]
        """Rows of the candidates that are followed; all other arrays are over these."""
        self._ensemble = self._predictor.log_cycles(self.rows.tolist(), opening.hypotheses)
        self._calibration: Calibration | None = None
        self._fitted_on = 0
        self.overlooked = 1.0
        """Expected number of candidates that are better than all followed by 1% or more, and were never lowered."""

    def learn(self, measured: dict[int, float]) -> None:
        """Of all measurements so far: logarithms of latencies in nominal cycles, by candidate's row."""
        if len(measured) < _FIRST_FIT:
            return
        refit = self._calibration is None or len(measured) >= 2 * self._fitted_on
        if refit:
            self._fit(measured)
            self._fitted_on = len(measured)
        position = {row: place for place, row in enumerate(self.rows.tolist())}
        known = sorted((latency, position[row]) for row, latency in measured.items() if row in position)
        known = known[:_MOST_OBSERVED]
        places = np.array([place for _, place in known], dtype=np.int64)
        observed = np.array([latency for latency, _ in known])
        assert self._calibration is not None, "fitted above"
        self._calibration.learn(places, observed, None if refit else self._calibration.process.kernel)

    def predict(self) -> tuple[Floats, Floats]:
        """Mean and deviation (n,) of the rows' logarithms."""
        if self._calibration is not None:
            return self._calibration.predict()
        relative = self._ensemble - self._ensemble.min(axis=0)
        return relative.mean(axis=1), relative.std(axis=1)

    def sample(self, places: Rows, count: int, generator: np.random.Generator) -> Floats:
        """Joint draws (count, n) of the logarithms of rows at these places."""
        if self._calibration is not None:
            return self._calibration.sample(places, count, generator)
        smooth = self._candidates.smooth[self.rows[places]]
        inputs = Inputs(smooth, np.zeros((len(places), 1)))
        errors = GaussianProcess(USUAL, inputs[np.zeros(0, dtype=np.int64)], np.zeros(0)).sample(
            inputs, count, generator
        )
        memories = generator.integers(0, self._ensemble.shape[1], count)
        return errors + self._ensemble[places][:, memories].T

    def _fit(self, measured: dict[int, float]) -> None:
        rows = self._shortlist.include(np.array(list(measured), dtype=np.int64))
        observed = np.array([measured[row] for row in rows.tolist()])
        found = find_memory(self._predictor, rows, observed, self.coordinates, self._prior)
        moved = float(np.abs(found - self.coordinates).max())
        if self._calibration is not None and moved < _SAME_MEMORY and np.isin(rows, self.rows).all():
            return
        self.overlooked, cycles = self._shortlist.extend(found)
        near = self._shortlist.rows[_relevant(cycles[:, None])]
        self.rows = np.unique(np.concatenate((near, rows)))
        base, slope = slopes(self._predictor, self.rows, found)
        self._calibration = Calibration(found, self._prior, base, slope, self._candidates.smooth[self.rows])

    @property
    def coordinates(self) -> Floats:
        """Of the memory that is thought most probable (hilt.tune.model_guided.memories)."""
        return self._prior if self._calibration is None else self._calibration.coordinates


def _relevant(cycles: Floats) -> Rows:
    """Places of the rows (n, memories) that are close to the best with some memory: the closest."""
    pad_end = (cycles - cycles.min(axis=0)).min(axis=1)
    count = int(np.clip(_CYCLES_FOLLOWED / np.exp(cycles.min()), _LEAST_FOLLOWED, _MOST_FOLLOWED))
    order = np.argsort(pad_end, kind="stable")[:count]
    return np.sort(order[pad_end[order] < _RELEVANT])
