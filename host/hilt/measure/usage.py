"""The share of its time in which a board was measuring.

Either the board is the bottleneck, or something else is wrong.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Usage:
    """Busy while a trial is on its way to the board or on it. Told from the board's thread, read from any."""

    def __init__(self, board: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.board = board
        self.trials = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._began: float | None = None
        self._busy_seconds = 0.0
        self._busy_since: float | None = None

    def busy(self) -> None:
        with self._lock:
            if self._busy_since is None:
                self._busy_since = self._clock()
            if self._began is None:
                self._began = self._busy_since

    def idle(self) -> None:
        with self._lock:
            if self._busy_since is not None:
                self._busy_seconds += self._clock() - self._busy_since
                self._busy_since = None

    @property
    def seconds(self) -> tuple[float, float]:
        """(idle, all) since its first trial, recovering included in idle."""
        with self._lock:
            now = self._clock()
            began = now if self._began is None else self._began
            busy = self._busy_seconds + (now - self._busy_since if self._busy_since is not None else 0.0)
            return now - began - busy, now - began

    def __str__(self) -> str:
        idle, whole = self.seconds
        share = 100 * idle / whole if whole else 0.0
        return f"{self.trials} trials answered; idle {idle:.1f} s of {whole:.1f} s ({share:.0f} %)"
