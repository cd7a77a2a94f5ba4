"""What keeps a run from starting or going on. Each is one line: what is wrong; what to do."""

from __future__ import annotations

from hilt.engine.events import Failure


class RunMismatchError(Exception):
    """What is here is not what the run was made for; the line names each difference with both values."""


class RunOverError(Exception):
    """The run has spent its budget: there is nothing to resume."""


class BoardLostError(Exception):
    """The board did not come back. The run can be resumed when it does: what it did not answer is not recorded."""


class EngineStartError(Exception):
    """The engine's process ended before it served; its own line says why."""

    def __init__(self, message: str, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure
