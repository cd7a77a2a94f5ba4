"""Predicts a layer's latency before any trial: the twin's fastest of a small sample of configurations."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from hilt.simulator.build import BuildError
from hilt.simulator.device import SimulatorError
from hilt.simulator.toolchain import MissingToolError
from hilt.tune import TuningProblem
from hilt.tune.model_guided.memories import memory_at, prior_mean

SAMPLE = 32
"""Configurations that are lowered for a prediction, about two milliseconds each."""


def predicted_microseconds(problem: TuningProblem, clock_hz: int, seed: int) -> float | None:
    """Return the least latency of SAMPLE random configurations that compile, by the twin with an assumed memory.

    A tuner finds a faster one as a rule, so it is a cautious prediction of the layer's best latency.

    Returns:
        Microseconds of one instance, or None where the twin cannot be built or no configuration of the sample ends.
    """
    compiled = np.flatnonzero(problem.compiles)
    if not len(compiled):
        return None
    sample = np.random.default_rng(seed).permutation(compiled)[:SAMPLE]
    memory = memory_at(prior_mean(problem.accelerator), problem.accelerator)
    with suppress(BuildError, MissingToolError, SimulatorError):
        cycles = problem.predicted_cycles(np.sort(sample), [memory])
        if np.isfinite(cycles).any():
            return float(np.nanmin(cycles)) / clock_hz * 1e6
    return None
