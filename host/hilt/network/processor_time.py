"""The processor's part of an inference, in the board's time.

A physical board's steps are measured there. A virtual board's steps run on this machine: their times count as many
times as the board's core is slower, and a start takes the seconds that hilt.network.core_speed states. Both are
assumed, and whoever shows them says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from hilt.network.core_speed import CORTEX_A9, START_SECONDS, core_of
from hilt.virtual.names import PREFIX


@dataclass(frozen=True)
class ProcessorTime:
    """Turns seconds of steps, as the agent's process counted them, into the board's.

    Attributes:
        factor: How many times as long a step takes on the board.
        start_seconds: One start of VTA on the board; None if it is measured.
        assumed: What was assumed, in words; empty if everything is measured.
    """

    factor: float = 1.0
    start_seconds: float | None = None
    assumed: str = ""

    def step(self, seconds: float) -> float:
        """Return the board's seconds of a step of the processor."""
        return max(seconds, 0.0) * self.factor

    def start(self, seconds: float) -> float:
        """Return the board's seconds of one start of VTA, without VTA's own time."""
        return max(seconds, 0.0) if self.start_seconds is None else self.start_seconds


MEASURED = ProcessorTime()


def processor_time(board: str) -> ProcessorTime:
    """Return how a board's times are read. Raises UnknownBoardModelError or BoardNameError of a virtual board."""
    if not board.startswith(PREFIX):
        return MEASURED
    core = core_of(board)
    start = START_SECONDS["numpy"] * core.python_call_seconds / CORTEX_A9.python_call_seconds
    words = (
        f"assumed of a {core.name}: {core.numpy_slower:g} times this machine's time, {start * 1e6:.0f} µs for a start"
    )
    return ProcessorTime(core.numpy_slower, start, words)
