"""Exit codes, and errors as one line."""

from __future__ import annotations

import os
import traceback
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hilt.engine.events import FailureCause


class Exit(IntEnum):
    """The status that a command ends with."""

    OK = 0
    NOTHING_VERIFIED = 1
    BAD_INPUT = 2
    BOARD = 3
    STORE = 4
    INTERRUPTED = 130


HELP = (
    "Exit codes: 0 ok; 1 no verified configuration was found; 2 bad input (unknown workload, board, tuner or run, or "
    "one that does not match); 3 the board or its link failed; 4 the database or its disk cannot be used "
    "(corrupt, full, not yours to write); 130 interrupted. HILT_DEBUG=1 shows tracebacks. HILT_HOME is where runs, "
    "keys and boards are kept."
)

_CODES = {"input": Exit.BAD_INPUT, "board": Exit.BOARD, "store": Exit.STORE, "internal": Exit.BOARD}
"""Exit codes by FailureCause's values, so that help needs no engine."""


def exit_of(failure: FailureCause) -> Exit:
    """Return the exit code of a failure."""
    return _CODES[failure.value]


def report_error(error: BaseException) -> Exit:
    """Print the error as one line on standard error, and return the exit code."""
    from hilt.engine.errors import failure_of
    from hilt.engine.events import FailureCause

    failure = failure_of(error)
    if os.environ.get("HILT_DEBUG") == "1":
        traceback.print_exception(error)
    message = " ".join(_message(error).split()) or type(error).__name__
    if failure is FailureCause.INTERNAL:
        message = f"{type(error).__name__}: {message}; this is a fault of hilt's: HILT_DEBUG=1 shows where"
    say(message)
    return exit_of(failure)


def _message(error: BaseException) -> str:
    """Return the error's text; a system error's without its number, as in `/home/me/.local: Permission denied`."""
    from hilt.engine.errors import holds_bytes

    if holds_bytes(error):
        return f"{error.object!r} has bytes that are no text: take another name"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    named = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{named}{error.strerror}"


def say(message: str) -> None:
    """Print a sentence on standard error, without control characters; on a terminal it wraps between words."""
    from hilt.cli.prose import say_text

    say_text(f"hilt: {message}", err=True)
