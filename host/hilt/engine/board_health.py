"""The boards of a run: who holds one that is in use, and a monitor that stops the run when they all fail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import time

from hilt.engine.events import BoardChanged, Event, Logged, TrialRecorded
from hilt.engine.run_files import RunFiles
from hilt.measure import BoardState, board_names_of
from hilt.store import RunState, Store
from hilt.trial import Outcome

_GOING = (RunState.CREATED, RunState.RUNNING, RunState.PAUSED)


def holder_of(store: Store, home: Path, board: str, waiting: str) -> str | None:
    """Return the holder of a board and the time it began, as in `campaign 1234abcd (resnet18) since 21:04:11`.

    Args:
        store: The database of `home`.
        home: The directory of runs; holders of other homes are not found.
        board: One board, or several with commas between.
        waiting: The uuid of the run or campaign that wants the board.

    Returns:
        None if no other engine of this home works on any of these boards.
    """
    names = set(board_names_of(board))
    for run in store.runs():
        owner = run.campaign or run.uuid
        if owner == waiting or run.state not in _GOING or not names & set(board_names_of(run.board)):
            continue
        files = RunFiles(home, owner)
        if files.is_running():
            campaign = store.campaign(run.campaign) if run.campaign else None
            title = f"campaign {owner[:8]} ({campaign.name})" if campaign else f"run {owner[:8]} ({run.workload})"
            since = datetime.fromtimestamp(files.lock_path.stat().st_mtime).astimezone()
            return f"{title} since {since:%H:%M:%S}"
    return None


MOST_IN_A_ROW = 10
"""Trials of a board, one after another, that each needed it recovered."""

_GONE = (BoardState.LOST, BoardState.QUARANTINED)
"""A board that is given up fares no better than those that are left."""


class Infrastructure:
    """Hears a run's events, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recovering: dict[str, str] = {}
        """The reason of the recovery since a board's last trial, by board."""
        self._in_a_row: dict[str, int] = {}

    def hear(self, event: Event) -> str | None:
        """Return the fault once every board fails all the time, at each further trial; else None."""
        with self._lock:
            if isinstance(event, BoardChanged):
                if event.state in _GONE:
                    self._in_a_row.pop(event.board, None)
                elif event.state == BoardState.READY:
                    self._in_a_row.setdefault(event.board, 0)
                elif event.state == BoardState.RECOVERING:
                    self._recovering[event.board] = event.detail
            elif isinstance(event, TrialRecorded) and event.trial.outcome is not Outcome.REJECTED:
                return self._count(event.trial.board)
            return None

    def _count(self, board: str) -> str | None:
        reason = self._recovering.pop(board, None)
        self._in_a_row[board] = 0 if reason is None else self._in_a_row.get(board, 0) + 1
        if min(self._in_a_row.values()) < MOST_IN_A_ROW:
            return None
        boards = ", ".join(self._in_a_row)
        return (
            f"STOPPED: {boards} had to be recovered for each of the last {MOST_IN_A_ROW} trials ({reason}); "
            f"see to board, cable and power"
        )


class BoardHealthMonitor:
    """Stops a run or a campaign once its boards fail all the time, and says why."""

    def __init__(self, uuid: str, stop: Callable[[], None], publish: Callable[[Event], None]) -> None:
        self.failing: str | None = None
        """The fault that stopped it, once there is one."""
        self._uuid = uuid
        self._stop = stop
        self._publish = publish
        self._infrastructure = Infrastructure()

    def hear(self, event: Event) -> None:
        wrong = self._infrastructure.hear(event)
        if wrong is not None and self.failing is None:
            self.failing = f"{wrong}, then `hilt resume {self._uuid[:8]}`"
            self._stop()
            self._publish(Logged("error", self.failing, time()))
