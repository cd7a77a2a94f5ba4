"""Phases of a known number, each told with its number and the time that all of them still take."""

from __future__ import annotations

import time
from collections.abc import Callable

from hilt.engine.command_progress import Phases
from hilt.engine.durations import seconds_text


class NumberedPhases:
    """Puts the number of each phase, of `count`, in front of its text. Takes parts of a phase as Phases."""

    def __init__(self, phases: Phases, count: int) -> None:
        self._phases = phases
        self._count = count
        self._ordinal = 0
        self._began = time.monotonic()
        self._head = ""

    def next(self, text: str) -> None:
        """Begin the next of the phases."""
        done, self._ordinal = self._ordinal, self._ordinal + 1
        left = (time.monotonic() - self._began) * (self._count - done) / done if done else 0.0
        about = f", about {seconds_text(left)} left in all" if left >= 1 else ""
        self._head = f"{self._ordinal}/{self._count} {text}{about}"
        self._phases.begin(self._head)

    def begin(self, phase: str) -> None:
        """Begin a part that is not counted."""
        self._phases.begin(f"{self._head}: {phase}")

    def counter(self, phase: str, units: str) -> Callable[[int, int], None]:
        """Return a function of the work done and of all in a part; its first call begins the part."""
        return self._phases.counter(f"{self._head}: {phase}", units)
