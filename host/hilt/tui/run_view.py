"""The state of a run at this moment, from the store and the engine's events. It knows nothing of the screen."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hilt.engine.campaign_results import RunNames
from hilt.engine.events import BoardChanged, Event, Finished, RunProgress, StateChanged, TrialRecorded
from hilt.engine.run_statistics import RunStatistics
from hilt.store import Run, RunState, Store, Trial

PAGE_TRIALS = 128
"""Latest trials that are read with the run."""
RECENT_TRIALS = 64
"""Number of latest trials that the recent share of valid ones counts."""

"""A row of the table: from the store, or as the engine told of it."""


class Link(StrEnum):
    """The source of the view: an attached engine, a silent one, or the store alone."""

    ATTACHED = "attached to the engine"
    NONE = "no engine"
    GONE = "engine gone"
    SILENT = "the engine does not answer"


_ENDED = (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)


@dataclass
class RunView:
    """`trials` is the latest page of them, oldest first; `curve` is (number, microseconds) of each better trial."""

    run: Run
    name: str
    """Its short name: a layer's in its network, else the workload's."""
    link: Link
    state: RunState
    detail: str
    progress: RunProgress
    curve: list[tuple[int, float]]
    points: list[tuple[int, float]]
    """(ordinal, microseconds) of each verified trial; not always in order."""
    trials: Sequence[Trial]
    best: Trial | None = None
    boards: dict[str, BoardChanged] = field(default_factory=dict)
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT_TRIALS))
    """Validity of each of the latest trials, oldest first."""
    last_event_at: float = field(default_factory=time.monotonic)
    """Time of the engine's last event; time.monotonic."""

    @classmethod
    def load(cls, store: Store, uuid: str, link: Link) -> RunView:
        """Read all but the curve from the store; a tenth of a second at 100,000 trials.

        Raises StoreError, UnknownRunError.
        """
        summary = store.summary(uuid)
        latest = store.latest_trials(uuid, PAGE_TRIALS)[::-1]
        return cls(
            run=summary.run,
            name=RunNames(store)(summary.run),
            link=link,
            state=summary.run.state,
            detail=summary.run.detail,
            progress=RunStatistics(summary, store.counts(uuid)).progress(),
            curve=[],
            points=[],
            trials=latest,
            best=summary.best,
            recent=deque((trial.verified for trial in latest), maxlen=RECENT_TRIALS),
        )

    def apply(self, event: Event) -> None:
        """Apply one event. Events of trials that were loaded from the store already change nothing."""
        match event:
            case StateChanged(state=state, detail=detail) | Finished(state=state, detail=detail):
                self.state, self.detail = state, detail
            case RunProgress():
                self.progress = event
            case BoardChanged():
                self.boards[event.board] = event
            case TrialRecorded():
                self._take_trial(event.trial)

    def _take_trial(self, trial: Trial) -> None:
        """Take a trial. Trials come in the order of their answers, which is not always the order of their numbers."""
        if any(known.ordinal == trial.ordinal for known in self.trials):
            return  # it was loaded
        self.recent.append(trial.verified)
        ordinal, latency = trial.ordinal, trial.microseconds
        if not trial.verified or latency is None:
            return
        self.points.append((ordinal, latency))
        if self.best is None or (latency, ordinal) < (self.best.microseconds or 0.0, self.best.ordinal):
            self.best = trial
        place = bisect_left(self.curve, (ordinal, 0.0))
        if place == 0 or latency < self.curve[place - 1][1]:
            later = [step for step in self.curve[place:] if step[0] != ordinal and step[1] < latency]
            self.curve[place:] = [(ordinal, latency), *later]

    def engine_gone(self) -> None:
        """Note that the connection ended. After the run's end that is as it should be; else the engine died."""
        self.link = Link.NONE if self.over else Link.GONE

    @property
    def short_id(self) -> str:
        return self.run.uuid[:8]

    @property
    def over(self) -> bool:
        """The run ended: finished, stopped or failed."""
        return self.state in _ENDED

    @property
    def interrupted(self) -> bool:
        """It says that it goes on, and nobody runs it."""
        return self.link is not Link.ATTACHED and not self.over

    @property
    def text_without_events(self) -> str:
        """Return the state of a board that no event has named."""
        if self.link is Link.ATTACHED:
            return "no report yet"
        return "unknown (engine not answering)" if self.link is Link.SILENT else "unknown (engine not running)"

    @property
    def state_words(self) -> str:
        """Return the state for people: one word, and the next step where there is one."""
        resume = f"`hilt resume {self.short_id}` goes on with it"
        if self.link is Link.SILENT and not self.over:
            return f"NOT ANSWERING (was {self.state}): an engine holds the run; is its process stopped?"
        if self.link is Link.GONE:
            return f"ENGINE GONE (was {self.state}): {resume}"
        if self.interrupted:
            return f"INTERRUPTED (was {self.state}): {resume}"
        detail = self.detail or (resume if self.state is RunState.STOPPED else "")
        return f"{self.state.upper()}: {detail}" if detail else self.state.upper()
