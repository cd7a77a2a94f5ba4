"""The processor seconds of a tuner by named part. They never influence its decisions."""

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
        """Count the processor time inside the context as `name`; the times of several entries add up."""
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
        """Processor seconds by part, in the order of first entry; a part that still runs is counted up to now."""
        self._charge()
        return dict(self._seconds)

    def _charge(self) -> None:
        """Add the time since the last call to the innermost part."""
        now = time.process_time()
        if self._running:
            self._seconds[self._running[-1]] += now - self._since
        self._since = now
