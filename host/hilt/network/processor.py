"""The board's processor as the placement sees it: the stated model of its core, and how far the board is off it.

The factor is measured on the board (hilt.network.processor_speed) and kept. Until then it is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hilt.network.core_speed import CORTEX_A9, START_SECONDS, Core, StepWork, step_seconds


@dataclass(frozen=True)
class ProcessorSpeed:
    """A processor's speed.

    Attributes:
        core: Its core, by the model.
        slower: How many times as long as the model's native engine its steps take.
        source: Where the factor is from, in words.
    """

    core: Core
    slower: float
    source: str

    def seconds(self, work: StepWork) -> float:
        """Return the seconds of a step."""
        return self.slower * step_seconds(self.core, "native", work)

    @property
    def start_seconds(self) -> float:
        """Return the seconds of one start of VTA."""
        return self.slower * START_SECONDS["native"]

    def facts(self) -> dict[str, Any]:
        """Return the bundle manifest's entry for it."""
        return {"core": self.core.name, "slower": self.slower, "source": self.source}


def assumed_speed(core: Core) -> ProcessorSpeed:
    """Return the speed of a core that was not measured."""
    return ProcessorSpeed(core, 1.0, f"assumed of a {core.name.partition(',')[0]}")


ASSUMED = assumed_speed(CORTEX_A9)
