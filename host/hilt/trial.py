"""A trial, as every layer from the board to the user sees it: outcome, result, record. Imports nothing of hilt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """The end of a trial. All but `BOARD_LOST` are facts about the configuration; that one is about the board."""

    OK = "ok"
    REJECTED = "rejected"
    WRONG_ANSWER = "wrong_answer"
    TIMEOUT = "timeout"
    CRASH = "crash"
    BUS_ERROR = "bus_error"
    BOARD_LOST = "board_lost"


@dataclass(frozen=True)
class Verification:
    """The comparison of the board's output with the expected tensor, in elements of the output."""

    compared: int
    mismatched: int
    first: int | None = None
    largest_error: int = 0


@dataclass(frozen=True)
class Result:
    """The answer of a measurer. Latency (`cycles`, `microseconds`: medians over the repeats) exists only for `ok`."""

    outcome: Outcome
    reason: str = ""
    cycles: int | None = None
    microseconds: float | None = None
    repeats: tuple[float, ...] = ()
    verification: Verification | None = None
    board: str = ""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    """Wall-clock cost by step (lower, send, run, verify); never part of equality."""


@dataclass(frozen=True)
class Trial:
    """One configuration of a run and its result, in the store, in events and on the screen.

    Equality compares the facts; board, attempt and times are left out.
    """

    ordinal: int
    """The number of the trial in its run, from 0."""
    index: int
    """The number of the configuration in its space."""
    knobs: Mapping[str, int]
    outcome: Outcome
    reason: str = ""
    cycles: int | None = None
    microseconds: float | None = None
    repeats: tuple[float, ...] = ()
    """Microseconds of each repeat."""
    verification: Verification | None = None
    output_elements: int = 0
    """Elements that must be compared for a verified result."""
    board: str = field(default="", compare=False)
    attempt: int = field(default=0, compare=False)
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Wall-clock cost by step."""
    recorded_at: float = field(default=0.0, compare=False)
    """Seconds since the epoch; 0.0 until it is in the store."""

    @classmethod
    def of(
        cls,
        ordinal: int,
        index: int,
        knobs: Mapping[str, int],
        result: Result,
        output_elements: int,
        attempt: int = 0,
    ) -> Trial:
        """Return the trial of a measurer's result."""
        return cls(
            ordinal=ordinal,
            index=index,
            knobs=knobs,
            outcome=result.outcome,
            reason=result.reason,
            cycles=result.cycles,
            microseconds=result.microseconds,
            repeats=result.repeats,
            verification=result.verification,
            output_elements=output_elements,
            board=result.board,
            attempt=attempt,
            seconds=result.seconds,
        )

    @property
    def verified(self) -> bool:
        """True where every element of the output was compared and none differed; only then can it be the best."""
        seen = self.verification
        return (
            self.outcome is Outcome.OK
            and seen is not None
            and seen.mismatched == 0
            and seen.compared == self.output_elements > 0
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; from_dict makes the same trial of them."""
        knobs = {name: int(value) for name, value in self.knobs.items()}
        return {**asdict(self), "knobs": knobs, "outcome": str(self.outcome), "seconds": dict(self.seconds)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Trial:
        """Return the trial of plain values. Raises KeyError, TypeError, ValueError for values that are none."""
        seen = values["verification"]
        return cls(
            **{
                **values,
                "outcome": Outcome(values["outcome"]),
                "repeats": tuple(values["repeats"]),
                "verification": None if seen is None else Verification(**seen),
            }
        )
