"""Processes of this machine that compute a piece each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from types import FrameType


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """A signal that ends us ends them and their children, and Ctrl-C, which a terminal sends to all, is ours.

    To be called in the main thread.
    """

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    # Ignored signals stay ignored, as with nohup. A handler that Python did not set cannot be restored.
    handled = [
        number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) not in (signal.SIG_IGN, None)
    ]
    before = {number: signal.signal(number, end) for number in handled}
    try:
        with ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), os.setpgrp) as pool:
            pressed = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                for _ in range(count):
                    pool.submit(os.getpid)  # starts a process, which ignores its result
            finally:
                signal.signal(signal.SIGINT, pressed)
            try:
                yield pool
            except BaseException:
                for child in multiprocessing.active_children():
                    _end_with_its_own(child)
                pool.shutdown(cancel_futures=True)  # waits for the pool's thread, which waits for them
                raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_with_its_own(child: BaseProcess) -> None:
    """End a child with the processes that it started, a compiler's among them."""
    assert child.pid is not None
    with suppress(ProcessLookupError):  # it leads no group yet, so has started nothing, or has ended
        os.killpg(child.pid, signal.SIGTERM)
    child.terminate()


@contextmanager
def ctrl_c_later() -> Iterator[None]:
    """Let a Ctrl-C take effect at the end of the block, where a process that it starts has a name.

    Outside of the main thread, which alone gets signals, and where Ctrl-C is ignored, nothing changes.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    pressed: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _, frame: pressed.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            before(signal.SIGINT, pressed[0])
