"""The interface between the engine and a measurer. Loads neither a network library nor a simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from hilt.trial import Result

if TYPE_CHECKING:
    from hilt.schedule.tensors import Tensors
    from hilt.vta.accelerator import Accelerator
    from hilt.vta.program import Program


class FleetError(Exception):
    """Boards that cannot measure one run together; the message names the difference, with both values."""


@dataclass(frozen=True)
class BoardDescription:
    """The facts about its board that a run needs before it starts, and that a resumed run compares."""

    name: str
    accelerator: Accelerator
    bitstream: str
    """Identity of the bitstream: SHA-256 of a .bit file, or the key of the model that a virtual board is made of."""
    clock_hz: int
    deterministic: bool
    """The same program takes the same cycles every time, whatever ran before."""
    twin: str = ""
    """Digest of the twin and of the memory behind the board; empty for a board that is not hilt's RTL.

    Boards of one digest take the same cycles, whatever their bitstreams.
    """
    recorded: Mapping[str, object] | None = None
    """The identity of a dataset, which has one space only; None for a board.

    It holds `workload` (in the spelling of hilt.schedule.workload_syntax), `checks`, `space` and `orders`; a run on
    it must have the same.
    """


@dataclass(frozen=True)
class Request:
    """A program to be run, verified and timed."""

    ordinal: int
    """The trial's number in its run; the argument of `report`."""
    key: str
    """"RUN/NUMBER/ATTEMPT": a board that has run this key answers from its journal and does not run it again."""
    program: Program
    tensors: Tensors
    limit_seconds: float
    """The longest that one run of the program may take, in seconds of the board's own clock."""
    number: int = 1
    """Runs averaged in one figure (TVM's `number`)."""
    repeat: int = 1
    """Figures taken; the result is their median."""
    board: str | None = None
    """The only board that may answer it, where several measure together; None: any."""
    index: int | None = None
    """Its index in the run's space; only a dataset looks at it."""


Report = Callable[[int, Result], None]
"""A callback with a trial's number and its result, from the thread that called `measure`.

When it returns, the result counts as safe: the board may forget it.
"""


class Measurer(Protocol):
    """An object that answers a batch of programs."""

    @property
    def description(self) -> BoardDescription: ...

    def measure(self, requests: Sequence[Request], report: Report) -> None:
        """Answer each request exactly once, in any order, and return when all are answered.

        A fault of the board is recovered from within. If that fails, the remaining requests are reported
        `board_lost`. Only errors of `report` itself pass through; requests unanswered then can be measured again.
        """

    def close(self) -> None:
        """Leave the board idle and the link closed.

        A `measure` under way in another thread reports the rest `board_lost` and returns. May be called twice.
        """


class BoardState(StrEnum):
    """The state of a board on its way to measuring, for people to see."""

    UNKNOWN = "unknown"
    CONNECTING = "connecting"
    LOADED = "loaded"  # the agent answers
    READY = "ready"  # the bitstream is programmed and its registers are the manifest's
    RUNNING = "running"
    RECOVERING = "recovering"
    LOST = "lost"
    QUARANTINED = "quarantined"  # nothing helped: kept apart until somebody releases it
    RELEASED = "released"  # by this run, whose use of it the detail sums up


@dataclass(frozen=True)
class BoardEvent:
    """A change of a board's state, with a line for people. `at` is seconds since the epoch."""

    board: str
    state: BoardState
    detail: str
    at: float
    celsius: float | None = None
    """The chip's temperature, where the board told it with this change."""


Listen = Callable[[BoardEvent], None]
"""A callback for board events, from any thread; must not block."""
