"""The words every layer shares about a trial: its outcome and its result. Imports nothing of hilt."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """How a trial ended. All but `BOARD_LOST` are facts about the configuration; that one is about the board."""

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
    """What is known of one trial. Latency (`cycles`, `microseconds`: medians over the repeats) exists only for `ok`."""

    outcome: Outcome
    reason: str = ""
    cycles: int | None = None
    microseconds: float | None = None
    repeats: tuple[float, ...] = ()
    verification: Verification | None = None
    board: str = ""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    """Wall-clock cost by step (lower, send, run, verify); never part of equality."""
