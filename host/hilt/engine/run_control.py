"""The commands of the clients, for the run to see between trials."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hilt.engine.events import EngineCommand


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
