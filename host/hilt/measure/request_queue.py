"""The source of requests for boards: one batch for one board, or a pool that several share."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hilt.measure.interfaces import Report, Request
from hilt.trial import Outcome, Result


class Work(Protocol):
    """Requests for a board that pulls. A request that was taken is either answered or put back."""

    def take(self, board: str, *, idle: bool) -> Request | None:
        """Return the next request; None if there is none for this board.

        `idle`: the board has nothing else to do, and waits.
        """

    def answer(self, request: Request, result: Result) -> None:
        """Record a result; when this returns, the result is safe. Raises the errors of the report."""

    def put_back(self, requests: Sequence[Request], reason: str) -> None:
        """Put back requests that the board was lost with."""


class RequestBatch:
    """The requests of one `measure` for one board, reported from the thread that works on it."""

    def __init__(self, requests: Sequence[Request], report: Report) -> None:
        self._waiting = deque(requests)
        self._report = report

    def take(self, board: str, *, idle: bool) -> Request | None:
        return self._waiting.popleft() if self._waiting else None

    def answer(self, request: Request, result: Result) -> None:
        self._report(request.ordinal, result)

    def put_back(self, requests: Sequence[Request], reason: str) -> None:
        self._waiting.extendleft(reversed(requests))

    def rest(self) -> list[Request]:
        """Return the requests that no board will answer any more."""
        left = list(self._waiting)
        self._waiting.clear()
        return left


class PoolClosedError(Exception):
    """Nobody waits for the result any more: it is not safe, and the board must not forget it."""


@dataclass
class _Answer:
    request: Request
    result: Result
    reported: threading.Event = field(default_factory=threading.Event)
    safe: bool = False


class Pool:
    """Requests that several boards answer, each as fast as it can; one `measure` at a time."""

    def __init__(self, losses_allowed: int) -> None:
        """A request that boards were lost with more often than that is answered `board_lost`."""
        self._changed = threading.Condition()
        self._waiting: deque[Request] = deque()
        self._answers: deque[_Answer] = deque()
        self._open: dict[int, Request] = {}
        """The requests of this `measure` without a reported answer, by number."""
        self._losses: dict[int, int] = {}
        self._losses_allowed = losses_allowed
        self._boards: list[str] = []
        self._deserted = "no board is left"
        self._error: BaseException | None = None
        self._closed = False

    # --- for boards ---

    def join(self, board: str) -> None:
        with self._changed:
            self._boards.append(board)

    def leave(self, board: str, reason: str) -> None:
        """Remove a board that gives up.

        The requests that only it may answer get `board_lost`; if it was the last board, all get it.
        """
        with self._changed:
            self._boards.remove(board)
            self._deserted = reason
            self._fail_deserted()
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Pass on an error that a board's thread cannot handle to the waiting thread."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def take(self, board: str, *, idle: bool) -> Request | None:
        """Return the next request for a board, or None.

        A busy board takes one more only while every other board could have one too. So the last requests of a batch
        go to the first board that is free.
        """
        with self._changed:
            if idle:
                self._changed.wait_for(lambda: self._for(board) is not None or self._closed)
            elif len(self._waiting) < len(self._boards):
                return None
            request = None if self._closed else self._for(board)
            if request is not None:
                self._waiting.remove(request)
            return request

    def answer(self, request: Request, result: Result) -> None:
        answer = _Answer(request, result)
        with self._changed:
            if self._closed or self._open.get(request.ordinal) is not request:
                raise PoolClosedError
            self._answers.append(answer)
            self._changed.notify_all()
        answer.reported.wait()
        if not answer.safe:
            raise PoolClosedError

    def put_back(self, requests: Sequence[Request], reason: str) -> None:
        with self._changed:
            for request in reversed(requests):
                if self._open.get(request.ordinal) is not request:
                    continue  # of a `measure` that was given up
                losses = self._losses[request.ordinal] = self._losses.get(request.ordinal, 0) + 1
                if losses > self._losses_allowed or self._closed:
                    self._answers.append(_Answer(request, Result(Outcome.BOARD_LOST, reason)))
                else:
                    self._waiting.appendleft(request)
            self._fail_deserted()
            self._changed.notify_all()

    # --- for who waits ---

    def run(self, requests: Sequence[Request], report: Report) -> None:
        """Report every request from this thread; return when all are. Raises the errors of `report` or `fail`."""
        with self._changed:
            self._waiting.extend(requests)
            self._open = {request.ordinal: request for request in requests}
            self._losses.clear()
            self._fail_deserted()
            self._changed.notify_all()
        try:
            while self._open:
                answer = self._next()
                try:
                    report(answer.request.ordinal, answer.result)
                    answer.safe = True
                    del self._open[answer.request.ordinal]
                finally:
                    answer.reported.set()
        finally:
            self._drop()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._fail_deserted()
            self._changed.notify_all()

    def _next(self) -> _Answer:
        with self._changed:
            self._changed.wait_for(lambda: self._answers or self._error is not None)
            if self._error is not None:
                raise self._error
            return self._answers.popleft()

    def _drop(self) -> None:
        """Drop the open requests: the report failed, so later answers are for nobody."""
        with self._changed:
            self._waiting.clear()
            self._open = {}
            for answer in self._answers:
                answer.reported.set()
            self._answers.clear()

    def _for(self, board: str) -> Request | None:
        return next((request for request in self._waiting if request.board in (None, board)), None)

    def _fail_deserted(self) -> None:
        """Answer the requests that no board is left for, or all once closed."""
        reason = "measurer was closed" if self._closed else self._deserted
        for request in list(self._waiting):
            here = request.board in self._boards if request.board else bool(self._boards)
            if self._closed or not here:
                self._waiting.remove(request)
                self._answers.append(_Answer(request, Result(Outcome.BOARD_LOST, reason)))
