"""The errors that keep a run from starting or going on. Each is one line: object, fact, next step."""

from __future__ import annotations

import errno

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
    if isinstance(error, EngineStartError):
        return error.failure
    if isinstance(error, StoreError) or (isinstance(error, OSError) and error.errno in _DISK):
        return FailureCause.STORE
    if isinstance(error, BoardLostError):
        return FailureCause.BOARD
    if type(error).__module__.startswith("hilt_runtime."):
        return FailureCause.BOARD if type(error).__name__ in _OF_THE_RUNTIMES_BOARD else FailureCause.INPUT
    if type(error).__module__.startswith("hilt_experiments."):
        return FailureCause.INPUT
    kinds = [kind for kind in type(error).__mro__ if kind.__module__.startswith(("hilt.", "hilt_board."))]
    if any(kind.__name__ == "NoEngineError" for kind in kinds):  # of hilt.engine.client, which imports us
        return FailureCause.BOARD
    if isinstance(error, _MISTAKEN) or any(kind.__name__ in _MISTAKEN_BELOW for kind in kinds):
        return FailureCause.INPUT
    for kind in kinds:
        if (room := kind.__module__.split(".")[1]) in _ROOMS:
            return _ROOMS[room]
    return FailureCause.INTERNAL
