"""The board that a network is compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hilt.network.processor import ASSUMED, ProcessorSpeed
from hilt.simulator.device import MemoryModel
from hilt.simulator.machine import MachineParameters
from hilt.vta.accelerator import Accelerator


@dataclass(frozen=True)
class CompileTarget:
    """An accelerator on a board.

    Attributes:
        board: The board's name, as `--board` takes it.
        accelerator: Parameters, ISA revision, bus and clock.
        memory: The memory behind it, for the twin.
        bitstream: The name of its bitstream on this board; empty if any of these parameters will do.
        bitstream_file: SHA-256 of the .bit file, if that is known.
        register_base: The address of its registers.
        processor: The speed of its processor.
        machine: The bitstream's machine, where measurements gave one; None is hilt's RTL.
        identity: The identity registers (0x48, 0x4C, 0x50) of hilt's RTL; empty for a public bitstream.
    """

    board: str
    accelerator: Accelerator
    memory: MemoryModel
    bitstream: str = ""
    bitstream_file: str = ""
    register_base: int = 0
    identity: tuple[int, ...] = ()
    processor: ProcessorSpeed = ASSUMED
    machine: MachineParameters | None = None

    def facts(self) -> dict[str, Any]:
        """Return the bundle manifest's entry for it."""
        accelerator = self.accelerator
        return {
            "board": self.board,
            "parameters": accelerator.parameters.name,
            "isa": str(accelerator.isa),
            "clock_hz": accelerator.clock_hz,
            "hazards": accelerator.hazards,
            "macs_per_cycle": accelerator.macs_per_cycle,
            "bitstream": self.bitstream,
            "bitstream_file": self.bitstream_file,
            "register_base": self.register_base,
            "identity": list(self.identity),
            "processor": self.processor.facts(),
            "dram_base_bit": accelerator.formats.memory.by_name["dram_base"].bit,
        }
