"""How sure a run is, why it asks for no more, and how far the board lies from the timing model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stop(StrEnum):
    """Why a tuner asks for no more trials."""

    SEARCHING = "searching"
    """It would ask for more."""
    SURE = "sure"
    """Its confidence has reached the one that was asked for."""
    EXHAUSTED = "exhausted"
    """Every configuration that it knows of was tried."""


@dataclass(frozen=True)
class Assessment:
    """The tuner's view of its own run."""

    confidence: float | None
    """Probability that no configuration is faster than the best measured by 1 % or more; None before any latency."""
    stop: Stop
    machine: str
    """The machine model that explains the measurements best."""
    board_over_twin: float | None
    """Median of measured over predicted latency, the timing model's memory being fitted; None before any fit."""
    scatter: float | None
    """Standard deviation of the logarithm of that ratio."""

    @property
    def text(self) -> str:
        """One line for people."""
        if self.confidence is None:
            return "nothing valid was measured yet"
        reason = {
            Stop.SEARCHING: "more trials may help",
            Stop.SURE: "it asked for no more because it is sure",
            Stop.EXHAUSTED: "it asked for no more because everything was tried",
        }[self.stop]
        line = f"{100 * self.confidence:.1f}% sure that nothing is 1% faster; {reason}"
        if self.board_over_twin is None or self.scatter is None:
            return line
        return (
            f"{line}; the board takes {self.board_over_twin:.2f} times what the timing model says, "
            f"+-{100 * self.scatter:.1f}%; it behaves most like: {self.machine}"
        )
