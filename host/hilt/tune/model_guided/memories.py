"""The possible memories behind a board with an unknown memory: coordinates, a prior over them, and draws of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilt.simulator.device import MemoryModel
from hilt.vta.accelerator import Accelerator

Floats = npt.NDArray[np.float64]

_READ_SECONDS = 0.32e-6
"""Latency from an accelerator in programmable logic to DRAM and back; writes are acknowledged in half of it."""
PRIOR_DEVIATION = np.array([0.7, 0.7, 0.5])
"""Prior deviations of the coordinates.

The deviation of a latency is a factor of two. The bandwidth is that of the read ports, down to a third of it.
"""
_BANDWIDTH_STEPS = 64
_IRRATIONAL = 1.2207440846057596 ** -np.arange(1.0, 4.0)
_LOWEST = np.array([0.0, 0.0, 0.0])
_HIGHEST = np.log([4096.0, 4096.0, 32.0])


def prior_mean(accelerator: Accelerator) -> Floats:
    """Return the coordinates (3,) of the memory that is assumed before any measurement."""
    read = max(_READ_SECONDS * accelerator.clock_hz, 2.0)
    return np.array([np.log(read), np.log(read / 2), 0.0])


def hypotheses(accelerator: Accelerator, count: int) -> Floats:
    """Return coordinates (count, 3) distributed as the prior, with the assumed memory first.

    The others are a sequence of low discrepancy (the multiples of three irrational numbers; Roberts, 2018).
    """
    from scipy.special import ndtri  # takes longer to import than a run to make, which needs prior_mean alone

    spread = (0.5 + np.arange(1, count)[:, None] * _IRRATIONAL) % 1.0
    deviations = ndtri(spread)
    deviations[:, 2] = ndtri(0.5 + spread[:, 2] / 2)
    drawn = prior_mean(accelerator) + deviations * PRIOR_DEVIATION
    return np.concatenate((prior_mean(accelerator)[None], clipped(drawn)))


def clipped(coordinates: Floats) -> Floats:
    """Return the nearest coordinates that a memory can have."""
    return np.clip(coordinates, _LOWEST, _HIGHEST)


def memory_at(coordinates: Floats, accelerator: Accelerator) -> MemoryModel:
    """Return the memory with these coordinates (3,), latencies in whole cycles."""
    read, write, slowdown = np.exp(clipped(coordinates)).tolist()
    bytes_per_cycle = accelerator.bytes_per_cycle / slowdown
    return MemoryModel(
        read_latency=round(read),
        write_latency=round(write),
        bandwidth=(max(round(bytes_per_cycle * _BANDWIDTH_STEPS), 1), _BANDWIDTH_STEPS),
    )
