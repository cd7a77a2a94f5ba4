"""The score of Willemsen et al., *A methodology for comparing optimization algorithms for auto-tuning* (FGCS 2024).

It is the definition of the package autotuning_methodology 1.1 with one unit of time for each trial, and without its
random bagging: the isotonic mean itself. A score of 0 is random search among the valid configurations, without
replacement, and 1 is the optimum from the first trial on. The package takes random search's expected place for one
better than it is, so random search itself scores below 0 in a space of some hundred configurations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.interpolate import PchipInterpolator
from scipy.optimize import isotonic_regression

Floats = npt.NDArray[np.float64]
START, END = 0.01, 0.95
"""The way from the median to the optimum that random search has gone at the first and the last trial that count."""
RESOLUTION = 1000


class Methodology:
    """The range of trials and the random search of one space; `latencies` (n,) are those of its valid configurations.

    Raises ValueError for a space in which random search is at the optimum at once.
    """

    def __init__(self, latencies: npt.ArrayLike) -> None:
        self.ascending: Floats = np.sort(np.asarray(latencies, dtype=np.float64))
        first, last = self._trials_to(START), self._trials_to(END)
        if last - first < 2:  # as the package leaves some room
            first, last = (first, last + 2) if first == 0 else (first - 1, last + 1)
        self.range: Floats = np.linspace(first, last, RESOLUTION)

    @property
    def last_trial(self) -> int:
        """The trials after which nothing counts."""
        return int(self.range[-1])

    def _trials_to(self, share: float) -> int:
        descending, optimum = self.ascending[::-1], self.ascending[0]
        target = optimum + (np.median(self.ascending) - optimum) * (1 - share)
        place = int(np.argmax(descending <= target))
        if descending[place] == optimum:
            place -= 1
        if place < 0:
            raise ValueError("random search is at the optimum at once")
        return math.ceil(place / (len(descending) + 1 - place))

    @cached_property
    def random_search(self) -> Floats:
        """The expected best latency of random search over `range`."""
        count = len(self.ascending)
        trials = np.round(np.maximum(self.range, 1))
        places = np.minimum(np.round(trials * (count + 1) / (trials + 1)), count - 1).astype(np.int64)
        drawn = self.ascending[::-1][places]
        new = np.concatenate([[True], np.diff(trials) > 0])
        if new.sum() < 2:
            return np.asarray(drawn)
        even = np.linspace(trials[0], trials[-1], len(trials))
        return np.asarray(PchipInterpolator(trials[new], drawn[new])(even))

    def curve(self, best: Sequence[npt.ArrayLike]) -> Floats:
        """Return the mean best latency over `range` of runs, the best so far after each trial; NaN is none yet.

        The mean is of places among the valid configurations, made monotonic. A run that ends keeps its best.
        """
        margin = 0.1 + 0.25 / max(np.size(run) for run in best)
        first, last = self.range[0] * (1 - margin), self.range[-1] * (1 + margin)
        trials = np.arange(max(math.ceil(first), 1), max(math.floor(last), 1) + 1)
        kept = [np.asarray(run, dtype=np.float64) for run in best]
        runs = np.stack([run[np.minimum(trials, len(run)) - 1] for run in kept])
        places = np.where(np.isnan(runs), np.nan, np.searchsorted(self.ascending, runs))
        known = (~np.isnan(places)).sum(axis=0)
        some = known > 0
        if not some.any():
            return np.full(len(self.range), self.ascending[-1])
        mean = np.nansum(places, axis=0)[some] / known[some]
        fitted = isotonic_regression(mean, weights=known[some], increasing=False).x
        at = np.round(np.interp(self.range, trials[some], fitted)).astype(np.int64)
        return np.asarray(self.ascending[np.clip(at, 0, len(self.ascending) - 1)])

    def score(self, best: Sequence[npt.ArrayLike]) -> float:
        """Return the mean over `range` of the way from random search to the optimum."""
        random = self.random_search
        way = self.ascending[0] - random
        if not way.all():
            raise ValueError("random search is at the optimum within the range")
        return float(np.mean((self.curve(best) - random) / way))
