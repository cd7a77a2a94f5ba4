"""The pace of a run or campaign, and from it the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from math import ceil, log

_RECENT = 64
"""Measured trials that the pace is taken over."""
_FEWEST = 4
"""Measured trials before a pace is stated."""
_TRUSTED_SPREAD = 0.25
"""The relative deviation of programs' lengths from which their slope is trusted rather than their mean."""

_BATCHES_AHEAD = 2
"""Batches that the engine has asked for before the tuner hears the results of the one on the board."""


class Pace:
    """The time that trials take on the board and in the tuner, and the trials that are still to be measured.

    A trial takes a constant and a part that grows with its program's length; both are fitted to the recent trials. The
    time before the first program is on the board (opening, building) is no part of it. Rejected trials cost
    nothing. They are recorded before the board has answered the others of their batch, so the share of measured trials
    is taken over all that were asked for. The tuner works while the board measures, so the slower of the two counts.
    Not for several threads at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: float | None = None
        """When the board began with the trial that it answers next."""
        self._durations: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        """Length and seconds of each measured trial."""
        self._waiting: dict[tuple[str, int], float] = {}
        """The length of each program that the board has to answer, by layer and ordinal."""
        self._lengths = 0.0
        self._programs = 0
        self._asked: dict[str, int] = {}
        self._recorded = 0
        self._rejected = 0
        self._told = 0
        self._told_last = 0
        self._told_at = 0.0
        self._thought = 0.0

    def lowered(self, asked: int, lengths: Mapping[int, float], of: str = "") -> None:
        """Count the trials that were asked for in all, and take the lengths by ordinal of those to be measured.

        Lengths may be in any unit.
        """
        self._asked[of] = max(self._asked.get(of, 0), asked)
        self._waiting |= {(of, ordinal): length for ordinal, length in lengths.items()}
        self._lengths += sum(lengths.values())
        self._programs += len(lengths)

    def begin(self) -> None:
        """Note that the board begins with programs now; it waited until now, or was paused."""
        self._begun = self._clock()

    def add(self, ordinal: int, *, measured: bool, of: str = "") -> None:
        """Count a trial of a layer that was recorded now; its ordinal says how many were asked for at least."""
        self._asked[of] = max(self._asked.get(of, 0), ordinal + 1)
        self._recorded += 1
        length = self._waiting.pop((of, ordinal), self._mean_length)
        if not measured:
            self._rejected += 1
            return
        now = self._clock()
        if self._begun is not None:
            self._durations.append((length, now - self._begun))
        self._begun = now

    def add_earlier(self, recorded: int, rejected: int, of: str = "") -> None:
        """Count the trials of earlier sessions."""
        self._asked[of] = max(self._asked.get(of, 0), recorded)
        self._recorded += recorded
        self._rejected += rejected

    def told(self, trials: int, seconds: float) -> None:
        """Note that the tuner heard of so many trials in all, and the seconds that this and its last answer took."""
        self._thought += seconds
        self._told, self._told_last = trials, trials - self._told
        self._told_at = self._clock()

    def pause_ended(self) -> None:
        """Forget when the board began: the time until now includes a pause."""
        self._begun = None

    @property
    def asked(self) -> int:
        """Return the trials that were asked for, as far as their ordinals tell."""
        return sum(self._asked.values())

    @property
    def seconds_per_trial(self) -> float | None:
        """Wall-clock seconds a trial, rejected ones included; None until enough trials were measured."""
        if len(self._durations) < _FEWEST:
            return None
        board = sum(seconds for _, seconds in self._durations) / len(self._durations) * self._measured_share
        return max(board, self._tuner_seconds_per_trial) or None

    def seconds_for(self, trials: float) -> float | None:
        """Return the seconds until so many trials of all sessions are recorded; None while the pace is not known."""
        if len(self._durations) < _FEWEST:
            return None
        constant, slope = self._fitted()
        known = sum(constant + slope * length for length in self._waiting.values())
        to_ask = max(0.0, trials - self.asked) * self._measured_share
        unknown = self.asked - self._recorded - len(self._waiting) + to_ask
        board = known + max(0.0, unknown) * (constant + slope * self._mean_length)
        to_tell = trials - self._told - self._told_last  # after the last results there is nothing to choose
        tuner = to_tell * self._tuner_seconds_per_trial - (self._clock() - self._told_at)
        return max(board, tuner)

    @property
    def _measured_share(self) -> float:
        return 1 - self._rejected / self.asked

    @property
    def _mean_length(self) -> float:
        return self._lengths / self._programs if self._programs else 1.0

    @property
    def _tuner_seconds_per_trial(self) -> float:
        return self._thought / self._told if self._told else 0.0

    def _fitted(self) -> tuple[float, float]:
        """Return the constant and the slope of seconds over length, both at least 0.

        The slope is pulled to 0 where the lengths hardly differ.
        """
        count = len(self._durations)
        length = sum(each for each, _ in self._durations) / count
        seconds = sum(each for _, each in self._durations) / count
        if not length:
            return seconds, 0.0
        covariance = sum(each * (took - seconds) for each, took in self._durations) / count
        variance = sum((each - length) ** 2 for each, _ in self._durations) / count
        slope = max(0.0, covariance / (variance + (_TRUSTED_SPREAD * length) ** 2))
        slope = min(slope, seconds / length)
        return seconds - slope * length, slope


class StopForecast:
    """The trial at which a tuner that knows its confidence will stop by itself.

    The doubt, one minus the confidence, is taken to fall by a constant factor a trial. Before the tuner has stated
    any confidence, the run is taken to end midway between the earliest stop and the budget.
    """

    def __init__(self, stop_at: float | None) -> None:
        """`stop_at` is the confidence at which the tuner stops, from 0 to 1; None if it does not stop by itself."""
        self._target = None if stop_at is None or not 0 < stop_at < 1 else 1 - stop_at
        self._first = (0, 1.0)
        """The last figure before the doubt fell; without any trial nothing is sure."""
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
        if self._last[1] >= self._first[1]:
            self._first = self._last

    @property
    def trials(self) -> float | None:
        """Trials of the whole run; None if the confidence has not grown yet."""
        if self._target is None or self._last is None:
            return None
        (first, doubt), (last, least) = self._first, self._last
        if least <= self._target:
            return last
        if last <= first or least >= doubt:
            return None
        return last + (last - first) * log(least / self._target) / log(doubt / least)
