"""The commands of the clients, for the run to see between trials.

A stop is heard within two seconds: the board has a moment to finish, then nobody waits for it any longer. The results
that a board still owes are in its journal, and a resumed run reads them there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hilt.engine.events import EngineCommand
from hilt.measure import Measurer

GRACE_SECONDS = 1.0
"""Seconds for the trials that are on the board."""


class Control:
    """A pause and a stop, set from any thread. Stopping is final; resuming while stopping changes nothing."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._paused = False
        self._stopping = False
        self._at_stop: list[Callable[[], None]] = []

    def obey(self, command: EngineCommand) -> None:
        with self._changed:
            self._paused = command is EngineCommand.PAUSE
            stops = command is EngineCommand.STOP and not self._stopping
            self._stopping = self._stopping or stops
            self._changed.notify_all()
            called = list(self._at_stop) if stops else []
        for callback in called:
            callback()

    @contextmanager
    def at_stop(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` at the first stop while the context is open, from the thread that asks for it.

        At once where it was asked for before. It must not block.
        """
        with self._changed:
            stopped = self._stopping
            self._at_stop.append(callback)
        if stopped:
            callback()
        try:
            yield
        finally:
            with self._changed:
                self._at_stop.remove(callback)

    @property
    def paused(self) -> bool:
        with self._changed:
            return self._paused and not self._stopping

    @property
    def stopping(self) -> bool:
        with self._changed:
            return self._stopping

    def wait_for_stop(self, seconds: float) -> bool:
        """Wait for so long at most; return whether a stop was asked for."""
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping, seconds)

    def wait_while_paused(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or not self._paused)


def opened_unless_stopped(control: Control, open_measurer: Callable[[], Measurer]) -> Measurer | None:
    """Return the opened measurer, or None if a stop came first; then one that opens later is closed at once."""
    opened: list[Measurer] = []
    errors: list[BaseException] = []
    changed = threading.Condition()
    abandoned = False

    def run() -> None:
        try:
            measurer = open_measurer()
        except BaseException as error:
            with changed:
                errors.append(error)
                changed.notify_all()
            return
        with changed:
            opened.append(measurer)
            changed.notify_all()
            if not abandoned:
                return
        with suppress(Exception):
            measurer.close()

    def wake() -> None:
        with changed:
            changed.notify_all()

    threading.Thread(target=run, daemon=True, name="open").start()
    with control.at_stop(wake), changed:
        changed.wait_for(lambda: opened or errors or control.stopping)
        if errors:
            raise errors[0]
        if opened:
            return opened[0]
        abandoned = True
    return None


@contextmanager
def closed_at_stop(control: Control, measurer: Measurer) -> Iterator[None]:
    """Close the measurer a moment after a stop, which ends whatever waits for its boards."""
    timers: list[threading.Timer] = []

    def begin() -> None:
        timer = threading.Timer(GRACE_SECONDS, measurer.close)
        timer.daemon = True
        timers.append(timer)
        timer.start()

    with control.at_stop(begin):
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()
