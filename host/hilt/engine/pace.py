"""The pace of a run or campaign, and from it the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import ceil, log

_RECENT = 64
"""Measured trials that the pace is taken over."""
_FEWEST = 4
"""Measured trials before a pace is stated."""

_BATCHES_AHEAD = 2
"""Batches that the engine has asked for before the tuner hears the results of the one on the board."""


class Pace:
    """Seconds a measured trial, and the trials that are still to be measured.

    The time before the first measured trial (opening the board, building, the tuner's start) is no part of the pace.
    Rejected trials cost nothing. They are recorded before the board has answered the others of their batch, so the
    share of measured trials is taken over all that were asked for. Not for several threads at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._marks: deque[float] = deque(maxlen=_RECENT)
        self._asked: dict[str, int] = {}
        self._recorded = 0
        self._rejected = 0

    def add(self, ordinal: int, *, measured: bool, of: str = "") -> None:
        """Count a trial of a layer that was recorded now; its ordinal says how many were asked for at least."""
        self._asked[of] = max(self._asked.get(of, 0), ordinal + 1)
        self._recorded += 1
        if measured:
            self._marks.append(self._clock())
        else:
            self._rejected += 1

    def add_earlier(self, recorded: int, rejected: int, of: str = "") -> None:
        """Count the trials of earlier sessions."""
        self._asked[of] = max(self._asked.get(of, 0), recorded)
        self._recorded += recorded
        self._rejected += rejected

    def pause_ended(self) -> None:
        """Forget the times until now: they include a pause."""
        self._marks.clear()

    @property
    def asked(self) -> int:
        """Return the trials that were asked for, as far as their ordinals tell."""
        return sum(self._asked.values())

    @property
    def seconds_per_trial(self) -> float | None:
        """Wall-clock seconds a trial, rejected ones included; None until enough trials were measured."""
        seconds = self._seconds_per_measured
        return None if seconds is None else seconds * self._measured_share

    def seconds_for(self, trials: float) -> float | None:
        """Return the seconds until so many trials of all sessions are recorded; None while the pace is not known."""
        seconds = self._seconds_per_measured
        if seconds is None:
            return None
        unanswered = self.asked - self._recorded
        return seconds * (unanswered + max(0.0, trials - self.asked) * self._measured_share)

    @property
    def _measured_share(self) -> float:
        return 1 - self._rejected / self.asked

    @property
    def _seconds_per_measured(self) -> float | None:
        if len(self._marks) < _FEWEST:
            return None
        spent = self._marks[-1] - self._marks[0]
        return spent / (len(self._marks) - 1) if spent > 0 else None


class StopForecast:
    """The trial at which a tuner that knows its confidence will stop by itself.

    The doubt, one minus the confidence, is taken to fall by a constant factor a trial. Before the tuner has stated
    any confidence, the run is taken to end midway between the earliest stop and the budget.
    """

    def __init__(self, stop_at: float | None) -> None:
        """`stop_at` is the confidence at which the tuner stops, from 0 to 1; None if it does not stop by itself."""
        self._target = None if stop_at is None or not 0 < stop_at < 1 else 1 - stop_at
        self._first: tuple[int, float] | None = None
        self._last: tuple[int, float] | None = None

    def end(self, asked: int, batch: int, budget: int) -> float:
        """Return the trials that the run will have, from those asked for, the batch and the budget."""
        if self._target is None:
            return budget
        if self._last is None:
            earliest = (ceil(asked / batch) + _BATCHES_AHEAD) * batch
            return (min(earliest, budget) + budget) / 2
        return min(budget, max(asked, self.trials or budget))

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
