"""Calls of a tuner, which a stop need not wait for: a tuner may be anybody's code, and may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from hilt.engine.run_control import Control

Answer = TypeVar("Answer")

GRACE_SECONDS = 4.0
"""Seconds that a tuner has for its answer once a stop was asked for."""


class AbandonedError(Exception):
    """A stop was asked for and the tuner gives no answer: its results stay untold, and a resumed run replays them."""


class TunerCalls:
    """Runs a tuner's calls in order on one thread of its own, which ends with the process."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.abandoned = False
        """A call was given up; no other one is made."""

    def run(self, call: Callable[[], Answer]) -> Answer:
        """Return a call's result.

        Raises:
            AbandonedError: A stop was asked for, and its grace is over.
            Exception: The call's own.
        """
        if self.abandoned:
            raise AbandonedError
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True, name="tuner")
            self._thread.start()
        future: Future[Answer] = Future()
        self._calls.put((call, future))
        ended = threading.Event()
        future.add_done_callback(lambda _: ended.set())
        with self._control.at_stop(lambda: self._after_grace(ended)):
            ended.wait()
        if not future.done():
            self.abandoned = True
            raise AbandonedError
        return future.result()

    @staticmethod
    def _after_grace(ended: threading.Event) -> None:
        timer = threading.Timer(GRACE_SECONDS, ended.set)
        timer.daemon = True
        timer.start()

    def _serve(self) -> None:
        while True:
            call, future = self._calls.get()
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
