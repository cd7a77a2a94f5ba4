"""What may be the memory behind a board whose memory nobody knows: coordinates, a prior over them, and draws of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hilt.simulator.device import MemoryModel
from hilt.vta.accelerator import Accelerator

Floats = npt.NDArray[np.float64]

COORDINATES = ("log read latency", "log write latency", "log slowdown of bandwidth")
"""The last is the bus width over the bytes a cycle that the memory moves: 0 or more."""

_READ_SECONDS = 0.32e-6
"""From an accelerator in programmable logic to DRAM and back; writes are acknowledged in half of it."""
PRIOR_DEVIATION = np.array([0.7, 0.7, 0.5])
"""Latencies are off by a factor of two, as like as not less; the bus is at its width, or down to a third of it."""
_BANDWIDTH_STEPS = 64
_IRRATIONAL = 1.2207440846057596 ** -np.arange(1.0, 4.0)
_LOWEST = np.array([0.0, 0.0, 0.0])
_HIGHEST = np.log([4096.0, 4096.0, 32.0])


def prior_mean(accelerator: Accelerator) -> Floats:
    """Coordinates (3,) of the memory that is assumed before anything is measured."""
    read = max(_READ_SECONDS * accelerator.clock_hz, 2.0)
    return np.array([np.log(read), np.log(read / 2), 0.0])


def hypotheses(accelerator: Accelerator, count: int) -> Floats:
    """Coordinates (count, 3) spread as the prior is: the assumed memory first, the others by a sequence of low
    discrepancy (the multiples of three irrational numbers; Roberts, 2018)."""
    spread = (0.5 + np.arange(1, count)[:, None] * _IRRATIONAL) % 1.0
    deviations = ndtri(spread)
    deviations[:, 2] = ndtri(0.5 + spread[:, 2] / 2)
    drawn = prior_mean(accelerator) + deviations * PRIOR_DEVIATION
    return np.concatenate((prior_mean(accelerator)[None], clipped(drawn)))


def clipped(coordinates: Floats) -> Floats:
    """The nearest coordinates that a memory can have."""
    return np.clip(coordinates, _LOWEST, _HIGHEST)


def memory_at(coordinates: Floats, accelerator: Accelerator) -> MemoryModel:
    """The memory with these coordinates (3,), latencies in whole cycles."""
    read, write, slowdown = np.exp(clipped(coordinates)).tolist()
    bytes_per_cycle = accelerator.bus_bits / 8 / slowdown
    return MemoryModel(
        read_latency=round(read),
        write_latency=round(write),
        bandwidth=(max(round(bytes_per_cycle * _BANDWIDTH_STEPS), 1), _BANDWIDTH_STEPS),
    )
