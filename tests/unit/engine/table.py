"""A board that is a table: the result of a program is a function of its bytes.

It answers the engine without any hardware.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hilt.link.errors import BoardBusyError, UnreachableError
from hilt.measure import BoardDescription, BoardEvent, BoardState, Listen, Report, Request
from hilt.trial import Outcome, Result, Verification
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters

CLOCK_HZ = 100_000_000
WORKLOAD = "conv2d:n=1,ci=32,h=14,w=14,co=32,k=3x3,s=1x1,p=1x1"
ELEMENTS = 32 * 14 * 14
GATE = "HILT_TEST_GATE"
"""The variable that names a gate file: a program runs only while nobody holds that file locked."""
FREE = "HILT_TEST_FREE"
"""The variable with the number of programs of an engine's process that run whether the gate is locked or not."""
BUSY = "HILT_TEST_BUSY"
"""The variable that names a file: while it exists, boards are in use."""
_ran = itertools.count()


def description(name: str = "table:plain", bitstream: str = "f" * 64, twin: str = "") -> BoardDescription:
    accelerator = Accelerator(load_parameters("pynq"), IsaRevision.A, clock_hz=CLOCK_HZ)
    return BoardDescription(name, accelerator, bitstream, CLOCK_HZ, True, twin=twin)


def answer(ordinal: int, elements: int = ELEMENTS) -> Result:
    """One in four fails, in three ways; the others differ in latency. `number` is anything that names the program."""
    kind = ordinal * 2654435761 % 2**32 / 2**32
    if kind < 0.1:
        return Result(Outcome.WRONG_ANSWER, "3 differ", verification=Verification(elements, 3, ordinal % elements, 7))
    if kind < 0.2:
        return Result(Outcome.TIMEOUT, "no FINISH within the limit")
    if kind < 0.25:
        return Result(Outcome.BUS_ERROR, "DECERR at 0x1000")
    cycles = 20_000 + ordinal * 40503 % 65536
    return Result(
        Outcome.OK, "", cycles, cycles / 100, (cycles / 100,), Verification(elements, 0), "table:plain", {"run": 0.001}
    )


class TableMeasurer:
    """Answers requests at once, in order; `before` is called with each first."""

    def __init__(
        self,
        answer_of: Callable[[Request], Result],
        before: Callable[[Request], None] = lambda request: None,
        described: BoardDescription | None = None,
    ) -> None:
        self.description = described or description()
        self.keys: list[str] = []
        self._answer_of = answer_of
        self.before = before

    def measure(self, requests: Sequence[Request], report: Report) -> None:
        for request in requests:
            self.before(request)
            self.keys.append(request.key)
            report(request.ordinal, self._answer_of(request))

    def close(self) -> None:
        pass


class TableBoards:
    """Instead of hilt.measure, for an engine's process. Boards `table:<bitstream>[~<twin>][@<which>]`.

    `@away` cannot be opened; `@shaky` needs to be recovered for every trial."""

    def describe_board(self, name: str) -> BoardDescription:
        bitstream, _, twin = name.removeprefix("table:").partition("@")[0].partition("~")
        return description(name, bitstream * 8, twin)

    def open_measurer(self, name: str, listen: Listen) -> TableMeasurer:
        if name.endswith("@away"):
            raise UnreachableError(f"{name} is not reachable; is it on?")
        if BUSY in os.environ and Path(os.environ[BUSY]).exists():
            raise BoardBusyError("board is in use by ann: wait, or stop that session")
        listen(BoardEvent(name, BoardState.READY, "", 0.0))
        recover = BoardEvent(name, BoardState.RECOVERING, "reconnect: link lost", 0.0)
        before = (lambda request: listen(recover)) if name.endswith("@shaky") else pass_gate
        answer_of = shaky if name.endswith("@shaky") else by_program
        return TableMeasurer(answer_of, before, self.describe_board(name))


def shaky(request: Request) -> Result:
    return replace(by_program(request), board="table:plain@shaky")


def by_program(request: Request) -> Result:
    return answer(int(request.program.sha256[:8], 16))


def pass_gate(request: Request) -> None:
    if GATE in os.environ and next(_ran) >= int(os.environ.get(FREE, 0)):
        with Path(os.environ[GATE]).open() as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
