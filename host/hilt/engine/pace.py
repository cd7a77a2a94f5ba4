"""The pace of a run or campaign, and from it the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import log

_RECENT = 64
"""Measured trials that the pace is taken over."""
_FEWEST = 3
"""Measured trials before a pace is stated."""


class Pace:
    """Seconds a trial, from the times at which measured trials are recorded.

    The time before the first measured trial (opening the board, building, the tuner's start) is no part of it, and
    rejected trials cost nothing: their share of all trials counts. Not for several threads at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._marks: deque[float] = deque(maxlen=_RECENT)
        self._trials = 0
        self._measured = 0

    def add(self, *, measured: bool) -> None:
        """Count a trial that was recorded now."""
        self._trials += 1
        if measured:
            self._measured += 1
            self._marks.append(self._clock())

    def pause_ended(self) -> None:
        """Forget the times until now: they include a pause."""
        self._marks.clear()

    @property
    def seconds_per_trial(self) -> float | None:
        """Wall-clock seconds a trial, rejected ones included; None until enough trials were measured."""
        if len(self._marks) < _FEWEST:
            return None
        spent = self._marks[-1] - self._marks[0]
        return spent / (len(self._marks) - 1) * self._measured / self._trials if spent > 0 else None


class StopForecast:
    """The trial at which a tuner that knows its confidence will stop by itself.

    The doubt, one minus the confidence, is taken to fall by a constant factor a trial.
    """

    def __init__(self, stop_at: float | None) -> None:
        """`stop_at` is the confidence at which the tuner stops, from 0 to 1; None if it does not stop by itself."""
        self._target = None if stop_at is None or not 0 < stop_at < 1 else 1 - stop_at
        self._first: tuple[int, float] | None = None
        self._last: tuple[int, float] | None = None

    def add(self, trials: int, confidence: float | None) -> None:
        """Note the tuner's confidence after so many trials."""
        if confidence is None or not 0 <= confidence < 1:
            return
        self._last = (trials, 1 - confidence)
        self._first = self._first or self._last

    @property
    def trials(self) -> float | None:
        """Trials of the whole run; None if the confidence has not grown yet."""
        if self._target is None or self._first is None or self._last is None:
            return None
        (first, doubt), (last, least) = self._first, self._last
        if least <= self._target:
            return last
        if last <= first or least >= doubt:
            return None
        return last + (last - first) * log(least / self._target) / log(doubt / least)
