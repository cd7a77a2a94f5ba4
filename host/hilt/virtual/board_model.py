"""The parameters of a virtual board: its VTA, its clock and its memory. The table of those that hilt ships."""

from __future__ import annotations

import difflib
import re
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from hilt.simulator.build import Form
from hilt.simulator.builds import CHISEL, NEWER, OLDER, shipped_builds
from hilt.simulator.device import MemoryModel
from hilt.virtual import own_models
from hilt.virtual.errors import UnknownBoardModelError
from hilt.vta.accelerator import Accelerator, Hazards, IsaRevision, load_parameters

_QUANTUM_CYCLES = 50_000
"""Simulated in one poll of `done`: long enough to be efficient, short enough to notice a deadline."""
_SLOWEST_CYCLES_PER_SECOND = 100_000
"""Lowest speed of a simulation, in cycles a second, on a machine that is busy with others; the usual speed is a
million and more."""
_COMPUTER_QUANTUM_CYCLES = 5_000
_COMPUTER_SLOWEST_CYCLES_PER_SECOND = 10_000
"""The same on an emulated processor, which simulates a tenth as fast."""
_PUBLIC_TIME_SCALE = 1.0
"""A public board's clock is the model's own."""


@dataclass(frozen=True)
class BoardModel:
    """The parameters of a virtual board. Latencies, jitter, bandwidth: in accelerator cycles (hls/sim/vta_sim.h)."""

    name: str
    parameters: str
    """A file of bitstreams/parameters."""
    part: str
    """The FPGA as Xilinx writes it (HARDWARE.md section 1)."""
    bus_bits: int
    clock_hz: int
    register_base: int
    memory_base: int
    memory_bytes: int
    """Bytes that the driver can allocate, as CMA on a board."""
    read_latency: int
    write_latency: int
    bandwidth_numerator: int = 0
    """Bytes = cycles * numerator / denominator, over all ports; 0: the bus width of each read port every cycle."""
    bandwidth_denominator: int = 1
    jitter: int = 0
    seed: int = 1
    hazards: Hazards = "interlock"
    run_seconds: float = 0.0
    """The least that a run of a program takes on the wall, whatever the simulation needs: the board's own pace."""
    machine: str = ""
    """The machine model (hilt.simulator.builds) that says how long a program runs, on a board with a public bitstream:
    no identity and no counters, the wall clock decides. Without, it is hilt's own RTL."""
    isa: IsaRevision | None = None
    read_ports: int = 1
    bands: bool = False
    """Whether LOADs of INP move batch lanes."""
    computer: str = ""
    """Debian's name of the architecture that QEMU emulates (hilt.virtual.linux); empty: processes of this machine."""

    @property
    def accelerator(self) -> Accelerator:
        """ISA A where the parameters fit it, as the public bitstreams have, else the wide one."""
        return Accelerator.for_parameters(
            load_parameters(self.parameters),
            self.isa,
            bus_bits=self.bus_bits,
            hazards=self.hazards,
            clock_hz=self.clock_hz,
            table=not self.machine,  # a public bitstream has none, and no window
            read_ports=self.read_ports,
            window=not self.machine,
            bands=self.bands,
        )

    @property
    def form(self) -> Form:
        """Return which executable form its bitstream holds."""
        return "public" if self.machine else "rtl"

    @property
    def label(self) -> str:
        """Return the name as a manifest can hold it: a file's is its stem."""
        return re.sub(r"[^A-Za-z0-9_.:+-]", "_", PurePath(self.name).stem)[:48] if "/" in self.name else self.name

    @property
    def deterministic(self) -> bool:
        return self.jitter == 0 and not self.machine

    @property
    def bit_part(self) -> str:
        """The part as the header of a .bit file has it: 7-series without xc, package's hyphen and speed grade."""
        family = self.part.removeprefix("xc")
        return family.split("-")[0] if family.startswith("7") else self.part

    @property
    def memory_model(self) -> MemoryModel:
        """Its memory, for a simulator or the twin in this process."""
        return MemoryModel(
            base=self.memory_base,
            bytes=self.memory_bytes,
            read_latency=self.read_latency,
            write_latency=self.write_latency,
            bandwidth=(self.bandwidth_numerator, self.bandwidth_denominator),
            jitter=self.jitter,
            seed=self.seed,
        )

    def device_settings(self) -> dict[str, Any]:
        """Return the settings that the board's pynq Device needs, as hilt_virtual_board.verilated documents them."""
        machine = {"machine": asdict(shipped_builds().machines[self.machine])} if self.machine else {}
        slowest = _COMPUTER_SLOWEST_CYCLES_PER_SECOND if self.computer else _SLOWEST_CYCLES_PER_SECOND
        return {
            "name": f"virtual:{self.label}",
            "part": self.bit_part,
            "clock_hz": self.clock_hz,
            "register_base": self.register_base,
            "memory": {
                "base": self.memory_base,
                "bytes": self.memory_bytes,
                "read_latency": self.read_latency,
                "write_latency": self.write_latency,
                "bandwidth_numerator": self.bandwidth_numerator,
                "bandwidth_denominator": self.bandwidth_denominator,
                "jitter": self.jitter,
                "seed": self.seed,
            },
            "quantum_cycles": _COMPUTER_QUANTUM_CYCLES if self.computer else _QUANTUM_CYCLES,
            "time_scale": _PUBLIC_TIME_SCALE if self.machine else self.clock_hz / slowest,
            "run_seconds": self.run_seconds,
            **machine,
            **({"computer": self.computer} if self.computer else {}),
        }


def board_model(name: str) -> BoardModel:
    """Return the board model of that name. Raises UnknownBoardModelError."""
    if name in BOARD_MODELS:
        return BOARD_MODELS[name]
    own = own_models.find(name, BOARD_MODELS)
    if own is not None:
        return own
    close = difflib.get_close_matches(name, BOARD_MODELS, n=1)
    hint = f"did you mean virtual:{close[0]}? " if close else ""
    known = ", ".join(f"virtual:{name}" for name in BOARD_MODELS)
    raise UnknownBoardModelError(f"no virtual board {name!r}: {hint}there are {known}")


# Zynq-7000: an AXI port of 64 bit at 100 MHz, about 0.3 us to memory. UltraScale+: 128 bit at 300 MHz, 0.33 us.
_ZYNQ: dict[str, Any] = {
    "part": "xc7z020clg400-1",
    "bus_bits": 64,
    "clock_hz": 100_000_000,
    "register_base": 0x43C0_0000,
    "memory_base": 0x1000_0000,
    "memory_bytes": 128 << 20,
    "read_latency": 32,
    "write_latency": 16,
}
_ZYNQ_ULTRASCALE: dict[str, Any] = {
    "bus_bits": 128,
    "clock_hz": 300_000_000,
    "register_base": 0xA000_0000,
    "memory_base": 0x4000_0000,
    "memory_bytes": 256 << 20,
    "read_latency": 100,
    "write_latency": 50,
}

BOARD_MODELS: dict[str, BoardModel] = {
    model.name: model
    for model in (
        BoardModel("pynq", "pynq", **_ZYNQ),
        BoardModel("pynq_paced", "pynq", **_ZYNQ, run_seconds=0.05),
        BoardModel("pynq_linux", "pynq", **_ZYNQ, computer="armhf"),
        BoardModel("pynq_batched", "pynq_batched", **_ZYNQ),
        BoardModel("pynq_public", "pynq", **_ZYNQ, hazards="none", machine=NEWER),
        BoardModel("pynq_public_older", "pynq", **_ZYNQ, hazards="none", machine=OLDER),
        BoardModel("pynq_chisel", "pynq", **_ZYNQ, machine=CHISEL, isa=IsaRevision.B),
        BoardModel("pynq_143", "pynq", **(_ZYNQ | {"clock_hz": 142_857_143, "read_latency": 46, "write_latency": 23})),
        BoardModel("ultra96", "ultra96", "xczu3eg-sbva484-1-e", **_ZYNQ_ULTRASCALE),
        BoardModel("ultra96_2x16", "batch2", "xczu3eg-sbva484-1-e", **_ZYNQ_ULTRASCALE),
        BoardModel("zcu104", "zcu104", "xczu7ev-ffvc1156-2-e", **_ZYNQ_ULTRASCALE),
        BoardModel("zcu104_linux", "zcu104", "xczu7ev-ffvc1156-2-e", **_ZYNQ_ULTRASCALE, computer="arm64"),
        BoardModel("zcu104_wide", "block32", "xczu7ev-ffvc1156-2-e", **_ZYNQ_ULTRASCALE),
        BoardModel("zcu104_wide_2p", "block32", "xczu7ev-ffvc1156-2-e", **_ZYNQ_ULTRASCALE, read_ports=2),
        BoardModel("zcu104_bands", "batch2_block32", "xczu7ev-ffvc1156-2-e", **_ZYNQ_ULTRASCALE, bands=True),
        BoardModel(
            "zcu104_bands_2p", "batch2_block32", "xczu7ev-ffvc1156-2-e", **_ZYNQ_ULTRASCALE, read_ports=2, bands=True
        ),
        BoardModel(
            "zcu104_bands_4p",
            "batch2_block32",
            "xczu7ev-ffvc1156-2-e",
            **_ZYNQ_ULTRASCALE,
            read_ports=4,
            bandwidth_numerator=56,  # 16.8 GB/s: the most that DDR4-2400 of 64 bits moves
            bands=True,
        ),
        BoardModel("zcu102", "zcu102", "xczu9eg-ffvb1156-2-e", **_ZYNQ_ULTRASCALE),
        BoardModel("zcu102_wide", "block32", "xczu9eg-ffvb1156-2-e", **_ZYNQ_ULTRASCALE),
        BoardModel("zcu102_wide_2p", "block32", "xczu9eg-ffvb1156-2-e", **_ZYNQ_ULTRASCALE, read_ports=2),
    )
}
