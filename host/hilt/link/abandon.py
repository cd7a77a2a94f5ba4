"""Waiting for a board that may never answer, until it does or the wait is given up."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from hilt.link.errors import LinkLostError

_POLL_SECONDS = 0.05
T = TypeVar("T")


def unless_closed(closing: threading.Event, work: Callable[[], T], discard: Callable[[T], object]) -> T:
    """Return the value of `work`, which runs in a thread of its own, unless `closing` is set first.

    A blocked system call or library cannot be interrupted, so its thread is left behind: a value that it still brings
    is given to `discard`, an error is dropped.

    Raises:
        LinkLostError: `closing` was set.
        Exception: Whatever `work` raises.
    """
    values: list[T] = []
    errors: list[BaseException] = []
    handing_over = threading.Lock()
    ended = threading.Event()
    abandoned = False

    def run() -> None:
        try:
            value = work()
        except BaseException as error:
            errors.append(error)
            ended.set()
            return
        with handing_over:
            values.append(value)
            ended.set()
            if not abandoned:
                return
        with contextlib.suppress(Exception):
            discard(value)

    threading.Thread(target=run, daemon=True, name="board").start()
    while not ended.wait(_POLL_SECONDS):
        with handing_over:
            if closing.is_set() and not ended.is_set():
                abandoned = True
                raise LinkLostError("connection was closed while the board was waited for")
    if errors:
        raise errors[0]
    return values[0]


def within(seconds: float, work: Callable[[], object]) -> None:
    """Run `work` in a thread of its own and wait for at most so many seconds; its errors are dropped."""

    def run() -> None:
        with contextlib.suppress(Exception):
            work()

    thread = threading.Thread(target=run, daemon=True, name="end")
    thread.start()
    thread.join(seconds)
