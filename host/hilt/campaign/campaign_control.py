"""The commands of the clients to a campaign and its layers."""

from __future__ import annotations

import threading
from time import monotonic

from hilt.engine.events import EngineCommand
from hilt.engine.run_control import Control


class CampaignControl(Control):
    """A Control that knows how long it was paused, and which layers are to be skipped."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._paused_seconds = 0.0
        self._paused_since: float | None = None
        self._skipped: set[str] = set()

    def obey(self, command: EngineCommand) -> None:
        super().obey(command)
        with self._lock:
            if self.paused and self._paused_since is None:
                self._paused_since = monotonic()
            elif not self.paused and self._paused_since is not None:
                self._paused_seconds += monotonic() - self._paused_since
                self._paused_since = None

    def skip(self, workload: str) -> None:
        with self._lock:
            self._skipped.add(workload)

    @property
    def skipped(self) -> frozenset[str]:
        """Workloads of layers that get no more trials."""
        with self._lock:
            return frozenset(self._skipped)

    @property
    def paused_seconds(self) -> float:
        """Seconds of all pauses until now."""
        with self._lock:
            since = self._paused_since
            return self._paused_seconds + (monotonic() - since if since is not None else 0.0)
