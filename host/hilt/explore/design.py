"""One design: the parameters of a VTA, its bus, its clock, and the memory behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.network.core_speed import CORES, Core
from hilt.simulator.device import MemoryModel
from hilt.tune.model_guided.memories import memory_at
from hilt.vta.accelerator import Accelerator
from hilt.vta.parameters import VTAParameters

_FASTEST_ZYNQ_HZ = 200_000_000
_MEMORY_NS = {"cortex-a9": (320.0, 160.0), "cortex-a53": (1000 / 3, 500 / 3)}
"""Nanoseconds from a read request to its data, and from a write to its acknowledgement: a Zynq's, an UltraScale+'s."""
_DDR4_GB_S = 16.8
"""Bandwidth of an UltraScale+ board's DDR4-2400 of 64 bits: seven eighths of its peak of 19.2 GB/s, assumed."""


@dataclass(frozen=True)
class Design:
    """A parameter set with its surroundings. Times are the memory's, so they stay when the clock changes."""

    parameters: VTAParameters
    bus_bits: int = 64
    read_ports: int = 1
    clock_hz: int = 100_000_000
    read_ns: float = 0.0
    """Nanoseconds from a read request to its first data; 0: those of hilt's virtual boards with this core."""
    write_ns: float = 0.0
    """Nanoseconds from a write to its acknowledgement; 0: the same."""
    memory_gb_s: float = 0.0
    """Most that the memory moves, 10^9 bytes a second over all ports; 0: as much as they ask for, and at most
    `_DDR4_GB_S` beside a Cortex-A53."""
    processor: str = ""
    """cortex-a9 or cortex-a53; empty: a Cortex-A53 beside a bus of 128 bits or a clock over 200 MHz."""
    name: str = ""
    bands: bool = False
    """Whether LOADs of INP move batch lanes, which then hold bands of one image."""

    def __post_init__(self) -> None:
        """Refuse values that no design has. Raises ParameterError or FieldOverflowError, naming the field."""
        self.accelerator.require_rtl()

    @property
    def accelerator(self) -> Accelerator:
        """Return the accelerator of these parameters, ISA A where it holds them, else the wide one."""
        return Accelerator.for_parameters(
            self.parameters,
            bus_bits=self.bus_bits,
            clock_hz=self.clock_hz,
            read_ports=self.read_ports,
            bands=self.bands,
        )

    @property
    def coordinates(self) -> npt.NDArray[np.float64]:
        """Return the memory as hilt.tune.model_guided.memories has it: logarithms, shape (3,)."""
        usual = _MEMORY_NS["cortex-a53" if self._is_large else "cortex-a9"]
        times = (given or default for given, default in zip((self.read_ns, self.write_ns), usual, strict=True))
        read, write = (max(time * 1e-9 * self.clock_hz, 2.0) for time in times)
        wanted = self.accelerator.bytes_per_cycle * self.clock_hz
        most = self.memory_gb_s or (_DDR4_GB_S if self._is_large else np.inf)
        slowdown = max(1.0, wanted / (most * 1e9))
        return np.log([read, write, slowdown])

    @property
    def memory(self) -> MemoryModel:
        """Return the memory in cycles of this clock."""
        return memory_at(self.coordinates, self.accelerator)

    @property
    def core(self) -> Core:
        """Return the processor's core: the boards with a Cortex-A9 have a bus of 64 bits and up to 200 MHz."""
        return CORES[self.processor or ("cortex-a53" if self._is_large else "cortex-a9")]

    @property
    def _is_large(self) -> bool:
        return self.bus_bits > 64 or self.clock_hz > _FASTEST_ZYNQ_HZ

    @property
    def title(self) -> str:
        """Return the user's name of it, or its parameters' with bus and clock."""
        bands = " bands" if self.bands else ""
        return self.name or f"{self.parameters.name}{bands} {self.accelerator.bus} {self.clock_hz / 1e6:g} MHz"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_dict` makes the same design of them."""
        return asdict(self) | {"parameters": self.parameters.to_mapping()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Design:
        """Return the design that `to_dict` described."""
        return cls(**(values | {"parameters": VTAParameters.from_mapping(values["parameters"])}))


def compiling_apart(designs: Sequence[Design]) -> list[int]:
    """Return the places of designs in an order in which parallel processes do not wait for the same compilation.

    Clock and memory are no part of a compiled model, so designs that differ in nothing else come one round apart.
    """
    seen: Counter[Accelerator] = Counter()
    rounds = []
    for place, design in enumerate(designs):
        model = replace(design.accelerator, clock_hz=1)
        rounds.append((seen[model], place))
        seen[model] += 1
    return [place for _, place in sorted(rounds)]
