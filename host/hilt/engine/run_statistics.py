"""Counts, best and time left of a run, updated with each trial so that no event asks the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from hilt.engine.events import RunProgress
from hilt.engine.pace import Pace, StopForecast
from hilt.store import Run, RunSummary, Trial
from hilt.trial import Outcome


class RunStatistics:
    """The statistics of a run, begun with the contents of the store; trials are added from any thread."""

    def __init__(
        self, summary: RunSummary, counts: dict[Outcome, int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run: Run = summary.run
        self._trials = summary.trials
        self._valid = summary.valid
        self._best = summary.best
        self._counts = {str(outcome): count for outcome, count in counts.items()}
        self._clock = clock
        self._told = False
        """The tuner has heard of results in this session: each phase of the loop was seen once."""
        self._began = clock()
        self._pace = Pace(clock)
        self._pace.add_earlier(summary.trials, counts.get(Outcome.REJECTED, 0))
        stop_at = self._run.tuner_options.get("stop_at")
        self._forecast = StopForecast(stop_at if isinstance(stop_at, int | float) else None)
        self._lock = threading.Lock()

    def add(self, trial: Trial) -> None:
        with self._lock:
            self._trials += 1
            self._counts[trial.outcome] = self._counts.get(trial.outcome, 0) + 1
            self._pace.add(trial.ordinal, measured=trial.outcome is not Outcome.REJECTED)
            if not trial.verified:
                return
            self._valid += 1
            if self._best is None or _order(trial) < _order(self._best):
                self._best = trial

    @property
    def trials(self) -> int:
        """Trials that all sessions of the run recorded."""
        with self._lock:
            return self._trials

    def pause_ended(self) -> None:
        """Begin the pace anew: the time until now was a pause."""
        with self._lock:
            self._pace.pause_ended()

    def lowered(self, asked: int, lengths: Mapping[int, float]) -> None:
        """Count the trials asked for in all; take the lengths by ordinal, in any unit, of those to be measured."""
        with self._lock:
            self._pace.lowered(asked, lengths)

    def measuring(self) -> None:
        """Note that the board begins with some programs now."""
        with self._lock:
            self._pace.begin()

    def told(self, trials: int, seconds: float) -> None:
        """Note that the tuner heard of so many trials in all, and the seconds that this and its last answer took."""
        with self._lock:
            self._pace.told(trials, seconds)
            self._told = True

    def confident(self, trials: int, confidence: float | None) -> None:
        """Note the tuner's confidence after so many trials: it tells when the tuner will stop by itself."""
        with self._lock:
            self._forecast.add(trials, confidence)

    def progress(self) -> RunProgress:
        with self._lock:
            run, best = self._run, self._best
            seconds = self._pace.seconds_per_trial
            expected = self._forecast.end(self._pace.asked, run.batch, run.budget)
            latency = best.microseconds if best else None
            return RunProgress(
                trials=self._trials,
                budget=run.budget,
                counts=dict(self._counts),
                valid=self._valid,
                elapsed_seconds=self._clock() - self._began,
                trials_per_second=1 / seconds if seconds else None,
                seconds_left=self._pace.seconds_for(expected) if self._told else None,
                best_number=best.ordinal if best else None,
                best_index=best.index if best else None,
                best_cycles=best.cycles if best else None,
                best_microseconds=latency,
                best_gops=run.gops(latency) if latency else None,
                best_percent_of_bound=run.percent_of_bound(latency) if latency else None,
            )


def _order(trial: Trial) -> tuple[float, int]:
    """Return the sort key of the best, the same as the store's: the fastest, and the earlier of two equals."""
    assert trial.microseconds is not None
    return trial.microseconds, trial.ordinal
