"""Ctrl-C while a C extension is imported waits for the end of that.

Libraries made with pybind11 answer an interrupt of their initialisation with an ImportError or crash. Who imports them
takes the first for a library that is missing, and goes on without it. In the importer's own code an interrupt may fall
into a callback, which loses it.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

_AGAIN_SECONDS = 0.05
_IMPORTER = "<frozen importlib._bootstrap>"


def interrupt_between_extensions() -> None:
    """Let SIGINT raise KeyboardInterrupt, but not inside the import of a C extension. An ignored SIGINT stays ignored.

    To be called in the main thread.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _pressed)


def _pressed(number: int, frame: FrameType | None) -> None:
    if not _would_be_lost(frame):
        raise KeyboardInterrupt
    again = threading.Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _would_be_lost(frame: FrameType | None) -> bool:
    """Return whether a frame is the importer's own, or inside the import of a C extension."""
    if frame is not None and frame.f_code.co_filename == _IMPORTER:
        return True
    while frame is not None:
        if frame.f_code.co_qualname.startswith("ExtensionFileLoader."):
            return True
        frame = frame.f_back
    return False
