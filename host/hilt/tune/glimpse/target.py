"""A generation of hardware by its data sheet: the accelerator and the memory behind it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from hilt.simulator.device import MemoryModel
from hilt.vta.accelerator import Accelerator

ASSUMED_READ_LATENCY_NS = 300.0
ASSUMED_WRITE_LATENCY_NS = 150.0
"""Latencies from an AXI port of a Zynq to its DDR memory and back, unless given."""

FIGURES = (
    "log2 batch",
    "log2 block",
    "log2 MACs a cycle",
    "log2 micro-op buffer bytes",
    "log2 input buffer bytes",
    "log2 weight buffer bytes",
    "log2 accumulator bytes",
    "log2 micro-op buffer depth",
    "log2 input buffer depth",
    "log2 weight buffer depth",
    "log2 accumulator depth",
    "log2 instruction bytes",
    "waits for accumulator updates",
    "log2 bus bytes",
    "log2 clock MHz",
    "log2 peak MACs a microsecond",
    "log2 read latency ns",
    "log2 write latency ns",
    "log2 read latency cycles",
    "log2 write latency cycles",
    "log2 memory bytes a cycle",
    "log2 memory bytes a microsecond",
    "log2 MACs a byte",
)
"""The names of the entries of `figures`, in order."""


@dataclass(frozen=True)
class HardwareTarget:
    """An accelerator with its memory. Latencies in nanoseconds; bandwidth in bytes per accelerator cycle."""

    accelerator: Accelerator
    read_latency_ns: float
    write_latency_ns: float
    bytes_per_cycle: float

    @classmethod
    def assumed(cls, accelerator: Accelerator) -> HardwareTarget:
        """Return a target with the memory assumed for every Zynq and Zynq UltraScale+.

        It has 300 and 150 ns, and the whole bus.
        """
        return cls(accelerator, ASSUMED_READ_LATENCY_NS, ASSUMED_WRITE_LATENCY_NS, accelerator.bytes_per_cycle)

    @property
    def memory(self) -> MemoryModel:
        """The memory for the twin."""
        whole = self.bytes_per_cycle >= self.accelerator.bytes_per_cycle
        bandwidth = Fraction(0) if whole else Fraction(self.bytes_per_cycle).limit_denominator(16)
        return MemoryModel(
            read_latency=round(self.read_latency_ns * self.accelerator.clock_hz / 1e9),
            write_latency=round(self.write_latency_ns * self.accelerator.clock_hz / 1e9),
            bandwidth=(bandwidth.numerator, bandwidth.denominator),
        )

    def figures(self) -> npt.NDArray[np.float64]:
        """Return the public figures, float64 (len(FIGURES),)."""
        accelerator, parameters = self.accelerator, self.accelerator.parameters
        megahertz = accelerator.clock_hz / 1e6
        logarithms = {
            "batch": parameters.batch,
            "block": parameters.block,
            "MACs a cycle": accelerator.macs_per_cycle,
            "micro-op buffer bytes": 1 << parameters.log_uop_buff_size,
            "input buffer bytes": 1 << parameters.log_inp_buff_size,
            "weight buffer bytes": 1 << parameters.log_wgt_buff_size,
            "accumulator bytes": 1 << parameters.log_acc_buff_size,
            "micro-op buffer depth": accelerator.uop_depth,
            "input buffer depth": parameters.inp_depth,
            "weight buffer depth": parameters.wgt_depth,
            "accumulator depth": parameters.acc_depth,
            "instruction bytes": accelerator.instruction_bytes,
            "bus bytes": accelerator.bytes_per_cycle,
            "clock MHz": megahertz,
            "peak MACs a microsecond": accelerator.macs_per_cycle * megahertz,
            "read latency ns": self.read_latency_ns,
            "write latency ns": self.write_latency_ns,
            "read latency cycles": self.read_latency_ns * megahertz / 1e3,
            "write latency cycles": self.write_latency_ns * megahertz / 1e3,
            "memory bytes a cycle": self.bytes_per_cycle,
            "memory bytes a microsecond": self.bytes_per_cycle * megahertz,
            "MACs a byte": accelerator.macs_per_cycle / self.bytes_per_cycle,
        }
        flags = {"waits for accumulator updates": float(accelerator.hazards == "interlock")}
        return np.array([flags[figure] if figure in flags else np.log2(logarithms[figure[5:]]) for figure in FIGURES])
