"""The dependence tokens that random programs need, placed exactly where two stages touch the same thing.

Every instruction lists its reads and writes. It may conflict with an earlier instruction of another stage that is
not yet known to be complete. That stage's latest instruction then pushes a token, and the new one pops it. The
token carries the set of complete instructions (a vector clock), so nothing is ordered twice. Instructions that do
not conflict stay unordered and truly overlap on hardware. Program order satisfies every token, so no program
deadlocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

Fields = dict[str, int]


class Stage(IntEnum):
    LOAD = 0
    COMPUTE = 1
    STORE = 2


class Access(NamedTuple):
    """Elements (or bytes) [first, last] of a buffer or a memory region."""

    resource: str
    first: int
    last: int
    write: bool

    def conflicts(self, other: Access) -> bool:
        return (
            self.resource == other.resource
            and (self.write or other.write)
            and self.first <= other.last
            and other.first <= self.last
        )


@dataclass
class _StageHistory:
    accesses: list[tuple[int, tuple[Access, ...]]] = field(default_factory=list)
    latest: Fields | None = None
    latest_index: int = -1


class TokenOrder:
    """A collector of a program and its tokens.

    `bridge()` makes a compute instruction that does nothing. Load and store have no tokens between them, so their
    order goes through compute.
    """

    def __init__(self, bridge: Callable[[], Fields]) -> None:
        self.instructions: list[Fields] = []
        self._bridge = bridge
        self._stages = {stage: _StageHistory() for stage in Stage}
        self._complete = {stage: dict.fromkeys(Stage, -1) for stage in Stage}

    def add(self, stage: Stage, fields: Fields, accesses: Iterable[Access] = (), *, after_all: bool = False) -> None:
        """Append an instruction, after all that it conflicts with, or after all there is."""
        touched = tuple(accesses)
        far = [other for other in Stage if abs(other - stage) == 2]
        near = [other for other in Stage if abs(other - stage) == 1]
        for other in far:
            if self._must_wait(stage, other, touched, after_all):
                self._tell_compute(other)
                self._join(stage, fields, Stage.COMPUTE)
        for other in near:
            if self._must_wait(stage, other, touched, after_all):
                self._join(stage, fields, other)
        self._append(stage, fields, touched)

    def _tell_compute(self, other: Stage) -> None:
        """Compute is to know all of `other` complete."""
        if self._complete[Stage.COMPUTE][other] < self._stages[other].latest_index:
            bridge = self._bridge()
            self._join(Stage.COMPUTE, bridge, other)
            self._append(Stage.COMPUTE, bridge, ())

    def _must_wait(self, stage: Stage, other: Stage, touched: tuple[Access, ...], after_all: bool) -> bool:
        known = self._complete[stage][other]
        history = self._stages[other]
        if after_all:
            return history.latest_index > known
        return any(
            mine.conflicts(theirs)
            for index, accesses in reversed(history.accesses)
            if index > known
            for theirs in accesses
            for mine in touched
        )

    def _join(self, stage: Stage, fields: Fields, other: Stage) -> None:
        """`fields`, of `stage`, waits for the latest instruction of its neighbour `other`."""
        history = self._stages[other]
        assert history.latest is not None
        towards_next = other < stage
        history.latest["push_next" if towards_next else "push_prev"] = 1
        fields["pop_prev" if towards_next else "pop_next"] = 1
        mine, theirs = self._complete[stage], self._complete[other]
        for each in Stage:
            mine[each] = max(mine[each], theirs[each])
        mine[other] = history.latest_index

    def _append(self, stage: Stage, fields: Fields, touched: tuple[Access, ...]) -> None:
        history = self._stages[stage]
        history.latest, history.latest_index = fields, len(self.instructions)
        if touched:
            history.accesses.append((history.latest_index, touched))
        self.instructions.append(fields)
