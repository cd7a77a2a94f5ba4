"""One watched run: the messages of its feed, put together. The screens show it; it knows nothing of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from textual.message import Message

from hilt.engine.event_log import is_kept, read_event_log
from hilt.engine.events import BoardChanged, Event, Finished, Logged, StateChanged, TrialRecorded, TunerUpdated
from hilt.engine.run_files import RunFiles
from hilt.store import Store
from hilt.tui.feed import RunFeed
from hilt.tui.messages import EngineGone, EventsArrived, RunLoaded
from hilt.tui.run_view import Link, RunView
from hilt.tui.trial_list import TrialList

_MOST_EVENTS = 5000
SHORTEST_TIMER = 0.05
"""Seconds. Textual drops a timer that is due before it was begun, and divides by one of zero."""


class WatchedRun:
    """`view` is None until the store was read.

    `history` are states, boards and log lines, oldest first; `arrived` counts all of them, those that were dropped
    too. `configuration` is the one that is looked at in depth.
    """

    def __init__(self, home: Path, store: Store, uuid: str, post: Callable[[Message], object]) -> None:
        self.home = home
        self.store = store
        self.uuid = uuid
        self.files = RunFiles(home, uuid)
        self.feed = RunFeed(home, store, uuid, post)
        self.view: RunView | None = None
        self.trials = TrialList(store, uuid)
        self.history: deque[Event] = deque(maxlen=_MOST_EVENTS)
        self.arrived = 0
        self._latest: dict[str, Event] = {}
        self.index: int | None = None
        campaign = store.run(uuid).campaign
        self.engine_files = RunFiles(home, campaign) if campaign else self.files
        """Those of the engine: a campaign's layers have one together."""
        before = read_event_log(self.files.event_log_path)
        if campaign:
            before = _merged(before, read_event_log(self.engine_files.event_log_path))
        self.tuner: TunerUpdated | None = next(
            (event for event in reversed(before) if isinstance(event, TunerUpdated)), None
        )
        self._add_history(before)

    @property
    def short_id(self) -> str:
        return self.uuid[:8]

    def take(self, message: RunLoaded | EventsArrived | EngineGone) -> None:
        """Take one message of the feed."""
        match message:
            case RunLoaded(view=view):
                if self.view is not None and view.link in (Link.GONE, Link.SILENT):
                    view.boards = self.view.boards  # the store knows nothing of them, and nobody tells anew
                self.view = view
                self.trials.forget()
                self.trials.add(view.trials)
            case EventsArrived(events=events) if self.view is not None:
                if events:
                    self.view.last_event_at = time.monotonic()
                for event in events:
                    self.view.apply(event)
                    if isinstance(event, TunerUpdated):
                        self.tuner = event
                    if isinstance(event, Finished):  # the best trials were measured again, which no event says
                        self.view.best = self.store.best(self.uuid)
                self.trials.add(event.trial for event in events if isinstance(event, TrialRecorded))
                self._add_history(events)
            case EngineGone() if self.view is not None:
                self.view.engine_gone()
            case _:
                pass

    def explained_configuration(self) -> int | None:
        """Return the configuration that was chosen, else the best, else that of the latest trial."""
        if self.index is not None or self.view is None:
            return self.index
        if self.view.best is not None:
            return self.view.best.index
        return self.view.trials[-1].index if self.view.trials else None

    def _add_history(self, events: Sequence[Event]) -> None:
        for event in events:
            if not isinstance(event, StateChanged | BoardChanged | Logged | Finished) or not is_kept(event):
                continue
            if not isinstance(event, Logged):  # attaching gives the latest state, and that of each board, once more
                of = event.board if isinstance(event, BoardChanged) else ""
                if event == self._latest.get(of):
                    continue
                self._latest[of] = event
            self.history.append(event)
            self.arrived += 1


def _merged(own: Sequence[Event], campaigns: Sequence[Event]) -> list[Event]:
    """Return a layer's events with boards and log lines of its campaign, oldest first."""
    known = set(own)
    shared = [event for event in campaigns if isinstance(event, BoardChanged | Logged) and event not in known]
    return sorted([*own, *shared], key=lambda event: getattr(event, "at", 0.0))
