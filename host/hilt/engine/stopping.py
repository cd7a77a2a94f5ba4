"""A stop is heard within two seconds: the board has a moment to finish, then nobody waits for it any longer.

The results that a board still owes are in its journal, and a resumed run reads them there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hilt.engine.run_control import Control
from hilt.measure import Measurer

GRACE_SECONDS = 1.0
"""Seconds for the trials that are on the board."""


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
