"""The assessment of a run: its confidence, its reason to stop, and the distance of the board from the timing model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stop(StrEnum):
    """The reason why a tuner proposes no more trials."""

    SEARCHING = "searching"
    """The tuner would propose more trials."""
    SURE = "sure"
    """The confidence has reached the requested one."""
    EXHAUSTED = "exhausted"
    """Every configuration that the tuner knows was tried."""


@dataclass(frozen=True)
class Assessment:
    """The tuner's view of its own run."""

    confidence: float | None
    """Probability that no configuration is faster than the best measured by 1 % or more; None before any latency."""
    stop: Stop
    machine: str
    """The machine model that explains the measurements best."""
    board_over_twin: float | None
    """Median of measured over predicted latency, after the timing model's memory was fitted; None before any fit."""
    scatter: float | None
    """Standard deviation of the logarithm of that ratio."""

    @property
    def text(self) -> str:
        """Return one line for people."""
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
            f"{line}; the board takes {self.board_over_twin:.2f} times the prediction of the timing model, "
            f"+-{100 * self.scatter:.1f}%; it behaves most like: {self.machine}"
        )
