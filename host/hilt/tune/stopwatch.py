"""Where a tuner's own time goes: processor seconds by named part, never part of what it decides."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Processor time of this process by part. A part within a part counts for itself and not for the outer one."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Counts what is done inside as `name`; entered again, its times add up."""
        self._charge()
        self._seconds.setdefault(name, 0.0)
        self._running.append(name)
        try:
            yield
        finally:
            self._charge()
            self._running.pop()

    @property
    def seconds(self) -> dict[str, float]:
        """By part, in the order in which they were first entered; a part that still runs is counted up to now."""
        self._charge()
        return dict(self._seconds)

    def _charge(self) -> None:
        """Gives the time since the last call to the innermost part."""
        now = time.process_time()
        if self._running:
            self._seconds[self._running[-1]] += now - self._since
        self._since = now
