"""Exit codes, and errors as one line."""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum

from hilt.cli.plain_text import plain
from hilt.engine.errors import failure_of
from hilt.engine.events import FailureCause


class Exit(IntEnum):
    OK = 0
    NOTHING_VERIFIED = 1
    BAD_INPUT = 2
    BOARD = 3
    STORE = 4
    INTERRUPTED = 130


HELP = (
    "Exit codes: 0 ok; 1 no verified configuration was found; 2 bad input (unknown workload, board, tuner or run, or "
    "one that does not match); 3 the board or what it needs failed; 4 the database or its disk cannot be used "
    "(corrupt, full, not yours to write); 130 interrupted. HILT_DEBUG=1 shows tracebacks. HILT_HOME is where runs, "
    "keys and boards are kept."
)

_CODES = {
    FailureCause.INPUT: Exit.BAD_INPUT,
    FailureCause.BOARD: Exit.BOARD,
    FailureCause.STORE: Exit.STORE,
    FailureCause.INTERNAL: Exit.BOARD,
}


def exit_of(failure: FailureCause) -> Exit:
    return _CODES[failure]


def report_error(error: BaseException) -> Exit:
    """Prints the error as one line to standard error; returns what to exit with."""
    failure = failure_of(error)
    if os.environ.get("HILT_DEBUG") == "1":
        traceback.print_exception(error)
    words = " ".join(_words_of(error).split()) or type(error).__name__
    if failure is FailureCause.INTERNAL:
        words = f"{type(error).__name__}: {words}; this is a fault of hilt's: HILT_DEBUG=1 shows where"
    say(words)
    return exit_of(failure)


def _words_of(error: BaseException) -> str:
    """Of the system's errors without their numbers, as in `/home/me/.local: Permission denied`."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    named = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{named}{error.strerror}"


def say(words: str) -> None:
    print(f"hilt: {plain(words)}", file=sys.stderr)  # noqa: T201
