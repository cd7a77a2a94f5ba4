"""Ctrl-C that no code can lose: a press is repeated until the command has heard it.

KeyboardInterrupt is lost in `__del__`, in callbacks of weak references and of C libraries, in a generator that is
thrown away, and in C code that clears any error. Libraries made with pybind11 answer an interrupt of their
initialisation with an ImportError or crash. Who imports them takes the first for a library that is missing, and goes on
without it.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

_AGAIN_SECONDS = 0.1
_IMPORTER = "<frozen importlib._bootstrap>"


class Interrupts:
    """SIGINT of this process: it raises KeyboardInterrupt in the main thread, again and again until that is handled."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._repeater: threading.Thread | None = None
        self._is_repeat = False

    def begin(self) -> None:
        """Hear SIGINT from now on, in the main thread. An ignored SIGINT stays ignored, another's handler in place."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            sys.unraisablehook = _without_interrupts
            signal.signal(signal.SIGINT, self._pressed)

    def end(self) -> None:
        """Repeat no more: the command has ended."""
        self._ended.set()

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, unless it would be lost here, or repeats one that is being handled, or is over."""
        is_repeat, self._is_repeat = self._is_repeat, False
        if self._repeater is None and not self._ended.is_set():
            self._repeater = threading.Thread(target=self._repeat, args=(number,), daemon=True)
            self._repeater.start()
        if is_repeat and (self._ended.is_set() or _is_being_handled()):
            return
        if not _would_be_lost(frame):
            raise KeyboardInterrupt

    def _repeat(self, number: int) -> None:
        """Signal the main thread until the end, or until a handler is in place that counts presses."""
        main = threading.main_thread().ident
        assert main is not None
        while not self._ended.wait(_AGAIN_SECONDS):
            handler = signal.getsignal(number)
            if handler is signal.SIG_IGN:
                continue
            is_ours = handler == self._pressed
            if not is_ours:
                self._repeater = None  # it may give the press back to us
            self._is_repeat = True
            signal.pthread_kill(main, number)
            if not is_ours:
                return


interrupts = Interrupts()
"""Those of this process."""


def _is_being_handled() -> bool:
    """Return whether a KeyboardInterrupt, or an error raised in place of one, is on its way out."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _would_be_lost(frame: FrameType | None) -> bool:
    """Return whether a frame is the importer's own, or inside the import of a C extension."""
    if frame is not None and frame.f_code.co_filename == _IMPORTER:
        return True
    while frame is not None:
        if frame.f_code.co_qualname.startswith("ExtensionFileLoader."):
            return True
        frame = frame.f_back
    return False


def _without_interrupts(lost: sys.UnraisableHookArgs) -> None:
    """Show an exception that nobody can handle, but no KeyboardInterrupt: it comes again."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
