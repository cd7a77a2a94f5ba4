"""Predicts a layer's latency before any trial: the fallback schedule's, by the twin."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from hilt.simulator.build import BuildError
from hilt.simulator.device import SimulatorError
from hilt.simulator.toolchain import MissingToolError
from hilt.tune import TuningProblem
from hilt.tune.model_guided.memories import memory_at, prior_mean


def predicted_microseconds(problem: TuningProblem, candidates: Sequence[int], clock_hz: int) -> float | None:
    """Return the latency of the first candidate that ends, by the twin with an assumed memory.

    Args:
        problem: The layer on its accelerator.
        candidates: Indices of the fallback's candidates, in their order.
        clock_hz: The board's clock.

    Returns:
        Microseconds of one instance, or None where the twin cannot be built or no candidate ends.
    """
    memory = memory_at(prior_mean(problem.accelerator), problem.accelerator)
    with suppress(BuildError, MissingToolError, SimulatorError):
        for index in candidates:
            cycles = float(problem.predicted_cycles(np.array([index]), [memory])[0, 0])
            if np.isfinite(cycles):
                return cycles / clock_hz * 1e6
    return None
