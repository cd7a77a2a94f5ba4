"""The messages between a run and its tuner: indices out, outcomes in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hilt.trial import Outcome


@dataclass(frozen=True)
class Feedback:
    """The result of one trial. `microseconds` (latency) is a number exactly when the outcome is ok."""

    index: int
    outcome: Outcome
    microseconds: float | None = None

    def __post_init__(self) -> None:
        if (self.outcome is Outcome.OK) != (self.microseconds is not None):
            raise ValueError(f"configuration {self.index}: outcome {self.outcome} with latency {self.microseconds}")


class Tuner(Protocol):
    """A search method. Its answers depend on the seed and on the sequence of calls, and on nothing else."""

    def ask(self, count: int) -> list[int]:
        """Return up to `count` distinct indices into the space, none proposed before.

        Fewer are returned when the space is used up, or when the tuner finds no remaining one worth a trial.
        """

    def tell(self, feedback: Sequence[Feedback]) -> None:
        """Take the results of trials, in any order and any number of `ask`s late."""
