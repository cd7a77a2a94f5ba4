"""The commands of the clients, for the run to see between trials."""

from __future__ import annotations

import threading

from hilt.engine.events import EngineCommand


class Control:
    """A pause and a stop, set from any thread. Stopping is final; resuming while stopping changes nothing."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._paused = False
        self._stopping = False

    def obey(self, command: EngineCommand) -> None:
        with self._changed:
            self._paused = command is EngineCommand.PAUSE
            self._stopping = self._stopping or command is EngineCommand.STOP
            self._changed.notify_all()

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
