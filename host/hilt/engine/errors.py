"""The errors that keep a run from starting or going on. Each is one line: object, fact, next step."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TypeGuard

from hilt.engine.events import FailureCause
from hilt.store import StoreError, UnknownRunError
from hilt.store.autotvm_log import LogFormatError
from hilt.store.labels import LabelError


class SettingsError(ValueError):
    """A number that no run can have."""


class RunBusyError(Exception):
    """Another engine is running this run."""


class RunMismatchError(Exception):
    """The board, space or settings are not those of the run; the line names each difference with both values."""


class RunOverError(Exception):
    """The run has spent its budget: there is nothing to resume."""


class MixedBitstreamsError(ValueError):
    """Measurements of several bitstreams, or of one that needs no fit."""


class BoardLostError(Exception):
    """The board did not come back. The run can be resumed when it does: unanswered trials are not recorded."""


class EngineStartError(Exception):
    """The engine's process ended before it served; its own line says why."""

    def __init__(self, message: str, failure: FailureCause) -> None:
        super().__init__(message)
        self.failure = failure


_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
_MISTAKEN = (
    *(SettingsError, RunBusyError, RunMismatchError, RunOverError, UnknownRunError),
    *(LogFormatError, LabelError, MixedBitstreamsError),
)
_MISTAKEN_BELOW = {
    *("UnknownBoardError", "BoardFileError", "UnknownBoardModelError", "BoardNameError", "BitstreamRefusedError"),
    *("DatasetError", "FleetError", "UnknownTargetError"),
}
"""Errors of the layers below, which are not loaded to classify an error."""
_OF_THE_RUNTIMES_BOARD = {"MemoryNeededError", "DeviceError", "InferenceError"}
_ROOMS = {
    **dict.fromkeys(
        ("schedule", "tune", "vta", "bitstreams", "bitfile", "atomic_write", "explore"),
        FailureCause.INPUT,
    ),
    **dict.fromkeys(("cli", "report", "silicon"), FailureCause.INPUT),
    "network": FailureCause.INPUT,
    "paths": FailureCause.STORE,
    **dict.fromkeys(("link", "virtual", "measure", "simulator"), FailureCause.BOARD),
}


def failure_of(error: BaseException) -> FailureCause:
    """Return the cause of an error."""
    found = _stated(error) or _by_package(error) or _by_name(_kinds(error))
    return found or FailureCause.INTERNAL


def holds_bytes(error: BaseException) -> TypeGuard[UnicodeEncodeError]:
    """Return whether an error is of a word of the command line that has bytes which are no text."""
    return isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed"


def _stated(error: BaseException) -> FailureCause | None:
    """Return the cause of an error of the layers that are loaded anyway."""
    if isinstance(error, EngineStartError):
        return error.failure
    if isinstance(error, StoreError) or (isinstance(error, OSError) and error.errno in _DISK):
        return FailureCause.STORE
    if isinstance(error, BoardLostError):
        return FailureCause.BOARD
    if holds_bytes(error):
        return FailureCause.INPUT
    return FailureCause.INPUT if isinstance(error, _MISTAKEN) else None


def _by_package(error: BaseException) -> FailureCause | None:
    """Return the cause of an error of another package than hilt."""
    package = type(error).__module__.partition(".")[0]
    if package == "hilt_runtime":
        return FailureCause.BOARD if type(error).__name__ in _OF_THE_RUNTIMES_BOARD else FailureCause.INPUT
    return FailureCause.INPUT if package == "hilt_experiments" else None


def _kinds(error: BaseException) -> list[type]:
    """Return the classes of an error that hilt or the board's agent defines, the nearest first."""
    return [kind for kind in type(error).__mro__ if kind.__module__.startswith(("hilt.", "hilt_board."))]


def _by_name(kinds: Sequence[type]) -> FailureCause | None:
    """Return the cause of an error by the names of its classes, or else by the folder that defines the nearest."""
    names = {kind.__name__ for kind in kinds}
    if "NoEngineError" in names:  # of hilt.engine.client, which imports us
        return FailureCause.BOARD
    if names & _MISTAKEN_BELOW:
        return FailureCause.INPUT
    rooms = (kind.__module__.split(".")[1] for kind in kinds)
    return next((_ROOMS[room] for room in rooms if room in _ROOMS), None)
