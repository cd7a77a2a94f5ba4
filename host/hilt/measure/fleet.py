"""Several boards measure one run: each takes trials as fast as it answers them; a lost trial goes to another board."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from hilt.link.quarantine import quarantined
from hilt.measure.board_description import BoardTarget
from hilt.measure.board_measurer import SETBACKS_ALLOWED, BoardMeasurer
from hilt.measure.interfaces import BoardDescription, FleetError, Listen, Report, Request
from hilt.measure.recovery import FAULTS
from hilt.measure.request_queue import Pool

RETRY_SECONDS = 60.0
"""A board that was lost, but not quarantined, is looked for again after so long."""
Open = Callable[[BoardTarget, Listen], BoardMeasurer]


def describe_fleet(boards: Sequence[BoardDescription]) -> BoardDescription:
    """Return one board's description for a run on several boards.

    Raises FleetError, with both values, if they are not alike: a latency must not depend on the board that measured
    it.
    """
    first = boards[0]
    names = [board.name for board in boards]
    for name in names:
        if names.count(name) > 1:
            raise FleetError(f"board {name} is named twice")
    for board in boards[1:]:
        for fact, wanted, found in _differences(first, board):
            raise FleetError(
                f"boards of one run must be alike: {fact} of {first.name} is {wanted}, of {board.name} {found}; "
                f"give each a run of its own"
            )
    return replace(first, name=",".join(names), deterministic=all(board.deterministic for board in boards))


def _differences(first: BoardDescription, other: BoardDescription) -> list[tuple[str, object, object]]:
    facts: list[tuple[str, Callable[[BoardDescription], object]]] = [
        ("parameters", lambda board: board.accelerator.parameters.name),
        ("ISA", lambda board: str(board.accelerator.isa)),
        ("bus", lambda board: board.accelerator.bus),
        ("hazards", lambda board: board.accelerator.hazards),
        ("instruction queue", lambda board: board.accelerator.instruction_queue_depth),
        ("clock", lambda board: f"{board.clock_hz / 1e6:g} MHz"),
        ("bitstream and memory", lambda board: board.bitstream[:12]),
    ]
    return [(fact, of(first), of(other)) for fact, of in facts if of(first) != of(other)]


class FleetMeasurer:
    """A Measurer on several boards that are alike. `measure` from one thread at a time; `close` from any."""

    def __init__(self, description: BoardDescription, boards: Sequence[BoardMeasurer]) -> None:
        self.description = description
        self.boards = list(boards)
        self._pool = Pool(SETBACKS_ALLOWED)
        self._closing = threading.Event()
        for board in self.boards:
            self._pool.join(board.description.name)
        self._threads = [threading.Thread(target=self._serve, args=(board,), daemon=True) for board in self.boards]
        for thread in self._threads:
            thread.start()

    @classmethod
    def open(cls, targets: Sequence[BoardTarget], listen: Listen, open_one: Open = BoardMeasurer.open) -> FleetMeasurer:
        """Open all boards at once and go on with those that open; `listen` hears of the others.

        Raises FleetError, and the first board's error if none can be opened.
        """
        description = describe_fleet([target.description for target in targets])
        errors: list[Exception] = []

        def attempt(target: BoardTarget) -> BoardMeasurer | None:
            try:
                return open_one(target, listen)
            except FAULTS as error:
                errors.append(error)
                return None

        with ThreadPoolExecutor(len(targets), "open") as pool:
            opened = [board for board in pool.map(attempt, targets) if board is not None]
        if not opened:
            raise errors[0]
        return cls(description, opened)

    def measure(self, requests: Sequence[Request], report: Report) -> None:
        """See Measurer."""
        self._pool.run(requests, report)

    def close(self) -> None:
        """See Measurer."""
        self._closing.set()
        self._pool.close()
        for board in self.boards:
            board.close()
        for thread in self._threads:
            thread.join()

    def _serve(self, board: BoardMeasurer) -> None:
        """Serve one board from its own thread."""
        while True:
            try:
                reason = board.serve(self._pool)
            except BaseException as error:
                self._pool.fail(error)
                return
            if reason is None:
                return
            self._pool.leave(board.description.name, reason)
            if board.description.name in quarantined() or self._closing.wait(RETRY_SECONDS):
                return
            self._pool.join(board.description.name)
