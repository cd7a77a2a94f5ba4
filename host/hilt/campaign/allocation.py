"""Chooses the layer for the next trials: the one where a trial is expected to save the network most time.

The expected saving is the gradient of Ansor's task scheduler (Zheng et al. 2020, section 6.2) for the network's
latency, the sum of w b over its layers of w instances and best latency b. A trial of a layer of n trials saves

    w (1 - c) (alpha (b before its last WINDOW trials - b) / WINDOW + (1 - alpha) (b - bound) / n)

The first term is the gain of its latest trials. The second is optimism: as many trials again would bring it to its
bound. Ansor takes 0 and the rates of similar layers there; here the roofline bound is known. c is the tuner's
confidence that nothing better remains, 0 for a tuner without one. Ansor's random choice now and then is left out:
optimism falls as 1 / n, so no layer is forgotten. A layer without a verified result counts as UNSOLVED bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALPHA = 0.2
"""Ansor's: how much of the gradient is history."""
WINDOW = 8
"""Trials that history looks back."""
MINIMUM_TRIALS = 4
"""Trials of every layer before gains are compared, the search for its fallback included."""
UNSOLVED = 10.0


@dataclass(frozen=True)
class LayerStatus:
    """The state of a layer after the results its tuner knows. Latencies are in microseconds of one instance."""

    instances: int
    asked: int
    """Trials so far, those on the board included."""
    bests: Sequence[float | None]
    """The best latency after each told trial; None before the first verified one."""
    bound: float
    """The roofline bound."""
    confidence: float = 0.0

    @property
    def expected_gain(self) -> float:
        """Microseconds of the whole network that a trial is expected to save."""
        best = self.bests[-1] if self.bests else None
        if best is None:
            return self.instances * (UNSOLVED - 1) * self.bound / max(self.asked, 1)
        window = min(WINDOW, len(self.bests) - 1)
        before = self.bests[-1 - window]
        lately = (before - best) / window if window and before is not None else 0.0
        optimism = max(best - self.bound, 0.0) / max(self.asked, 1)
        return self.instances * (1 - self.confidence) * (ALPHA * lately + (1 - ALPHA) * optimism)


def choose(standings: Sequence[LayerStatus | None]) -> tuple[int, float] | None:
    """Return the place of the next layer and the expected saving of a trial there, or None where no layer takes more.

    The saving is 0 where it is the layer's turn. A None among the layers takes no more trials. Equals go in order.
    """
    open_ones = [(place, standing) for place, standing in enumerate(standings) if standing is not None]
    if not open_ones:
        return None
    place, fewest = min(open_ones, key=lambda item: item[1].asked)
    if fewest.asked < MINIMUM_TRIALS:
        return place, 0.0
    place, standing = max(open_ones, key=lambda item: item[1].expected_gain)
    return place, standing.expected_gain
