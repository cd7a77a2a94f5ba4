"""Counts of a run as it goes, so that each event need not ask the database."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from hilt.engine.events import RunProgress
from hilt.store import Run, RunSummary, Trial
from hilt.trial import Outcome

_RATE_TRIALS = 64
"""The rate is of so many last trials."""


class RunStatistics:
    """Begins with what the store holds; trials are added from any thread."""

    def __init__(
        self, summary: RunSummary, counts: dict[Outcome, int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run: Run = summary.run
        self._trials = summary.trials
        self._valid = summary.valid
        self._best = summary.best
        self._counts = {str(outcome): count for outcome, count in counts.items()}
        self._clock = clock
        self._began = clock()
        self._recent: deque[float] = deque([self._began], maxlen=_RATE_TRIALS + 1)
        self._lock = threading.Lock()

    def add(self, trial: Trial) -> None:
        with self._lock:
            self._trials += 1
            self._counts[trial.outcome] = self._counts.get(trial.outcome, 0) + 1
            self._recent.append(self._clock())
            if not trial.verified:
                return
            self._valid += 1
            if self._best is None or _order(trial) < _order(self._best):
                self._best = trial

    @property
    def trials(self) -> int:
        """Recorded in all sessions of the run."""
        with self._lock:
            return self._trials

    def pause_ended(self) -> None:
        """The time until now was a pause: the rate begins anew."""
        with self._lock:
            self._recent.clear()
            self._recent.append(self._clock())

    def progress(self) -> RunProgress:
        with self._lock:
            run, best = self._run, self._best
            spent = self._recent[-1] - self._recent[0]
            rate = (len(self._recent) - 1) / spent if spent > 0 else None
            latency = best.microseconds if best else None
            return RunProgress(
                trials=self._trials,
                budget=run.budget,
                counts=dict(self._counts),
                valid=self._valid,
                elapsed_seconds=self._clock() - self._began,
                trials_per_second=rate,
                seconds_left=(run.budget - self._trials) / rate if rate else None,
                best_number=best.ordinal if best else None,
                best_index=best.index if best else None,
                best_cycles=best.cycles if best else None,
                best_microseconds=latency,
                best_gops=run.gops(latency) if latency else None,
                best_percent_of_bound=run.percent_of_bound(latency) if latency else None,
            )


def _order(trial: Trial) -> tuple[float, int]:
    """As the store's: the fastest, and the earlier of two equals."""
    assert trial.microseconds is not None
    return trial.microseconds, trial.ordinal
