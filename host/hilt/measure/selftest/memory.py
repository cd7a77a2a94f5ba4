"""The memory behind a board's ports, out of the cycles of load and store programs of growing size.

The bandwidth is the slope between two large sizes. The latencies are those with which the timing model predicts the
cycles of the small programs best: they rise with each latency, so a bisection finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hilt.measure.interfaces import Request
from hilt.measure.selftest import programs
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

SIZES = (1, 2, 4, 8, 16, 64, 256, 1024)
"""Elements of a block; at most as many as the buffer holds."""
TIMES = 16
_SMALL = 8
_HIGHEST_LATENCY = 1 << 12
_DENOMINATOR = 1000
_FULL = 0.995
"""The share of the bus width that is as good as a beat each cycle."""


@dataclass(frozen=True)
class Sample:
    """One program with its measured cycles."""

    elements: int
    program: Program
    cycles: float


@dataclass(frozen=True)
class MemoryFit:
    """The memory that explains the samples best, and how well.

    `error` is the largest relative difference between a measured and a predicted count.
    """

    read_latency: int
    write_latency: int
    bytes_per_cycle: float
    error: float

    def values(self) -> dict[str, float]:
        """Return it as the entry of a board in boards.toml has it."""
        return {
            "read_latency": self.read_latency,
            "write_latency": self.write_latency,
            "bytes_per_cycle": self.bytes_per_cycle,
        }

    def model(self, accelerator: Accelerator) -> MemoryModel:
        """Return it as the timing model and the simulators take it."""
        return MemoryModel(
            read_latency=self.read_latency,
            write_latency=self.write_latency,
            bandwidth=_bandwidth(self.bytes_per_cycle, accelerator),
        )


def sizes(accelerator: Accelerator, depth: int) -> list[int]:
    """Return the block sizes that a buffer of so many elements can hold."""
    return [size for size in SIZES if size <= depth]


def load_requests(accelerator: Accelerator) -> list[Request]:
    """Return the load programs, by size."""
    return [programs.loads(accelerator, size, TIMES) for size in sizes(accelerator, accelerator.parameters.inp_depth)]


def store_requests(accelerator: Accelerator) -> list[Request]:
    """Return the store programs, by size."""
    return [programs.stores(accelerator, size, TIMES) for size in sizes(accelerator, accelerator.parameters.acc_depth)]


def fit_memory(accelerator: Accelerator, loads: Sequence[float], stores: Sequence[float]) -> MemoryFit:
    """Return the memory that explains the cycles of `load_requests` and `store_requests`, in their order."""
    read = _samples(load_requests(accelerator), loads, accelerator.parameters.inp_depth, accelerator)
    written = _samples(store_requests(accelerator), stores, accelerator.parameters.acc_depth, accelerator)
    bytes_per_cycle = _slope(read, accelerator.parameters.inp_element_bytes, accelerator)
    twin = Twin(accelerator)
    model = MemoryModel(bandwidth=_bandwidth(bytes_per_cycle, accelerator))

    def reading(latency: int) -> MemoryModel:
        return replace(model, read_latency=latency, write_latency=0)

    model = replace(model, read_latency=_latency(twin, read, reading))

    def writing(latency: int) -> MemoryModel:
        return replace(model, write_latency=latency)

    model = replace(model, write_latency=_latency(twin, written, writing))
    # A STORE of one element ends each load program: its write latency counts in the read latency's fit.
    model = replace(model, read_latency=_latency(twin, read, lambda latency: replace(model, read_latency=latency)))
    predicted = twin.predict([sample.program for sample in (*read, *written)], model)["cycles"]
    measured = [sample.cycles for sample in (*read, *written)]
    error = max(abs(float(cycles) - other) / other for cycles, other in zip(predicted, measured, strict=True))
    return MemoryFit(model.read_latency, model.write_latency, bytes_per_cycle, error)


def _samples(
    requests: Sequence[Request], cycles: Sequence[float], depth: int, accelerator: Accelerator
) -> list[Sample]:
    return [
        Sample(size, request.program, count)
        for size, request, count in zip(sizes(accelerator, depth), requests, cycles, strict=True)
    ]


def _slope(samples: Sequence[Sample], element_bytes: int, accelerator: Accelerator) -> float:
    """Return bytes a cycle between the two largest programs; the bus width where it is as good as that."""
    small, large = samples[-2], samples[-1]
    moved = (large.elements - small.elements) * element_bytes * TIMES
    width = accelerator.bus_bits / 8
    rate = moved / max(large.cycles - small.cycles, 1.0)
    return width if rate >= _FULL * width else rate


def _bandwidth(bytes_per_cycle: float, accelerator: Accelerator) -> tuple[int, int]:
    """Return it as a fraction; (0, 1) for the bus width each cycle."""
    if bytes_per_cycle >= accelerator.bus_bits / 8:
        return 0, 1
    return max(1, round(bytes_per_cycle * _DENOMINATOR)), _DENOMINATOR


def _latency(twin: Twin, samples: Sequence[Sample], model_at: Callable[[int], MemoryModel]) -> int:
    """Return the latency in cycles at which the twin predicts the measured total of the small programs."""
    small = [sample for sample in samples if sample.elements <= _SMALL]
    measured = sum(sample.cycles for sample in small)

    def predicted(latency: int) -> float:
        return float(twin.predict([sample.program for sample in small], model_at(latency))["cycles"].sum())

    low, high = 0, _HIGHEST_LATENCY
    while low < high:
        middle = (low + high) // 2
        if predicted(middle) < measured:
            low = middle + 1
        else:
            high = middle
    closer = low > 0 and abs(predicted(low - 1) - measured) <= abs(predicted(low) - measured)
    return low - 1 if closer else low
