"""The board that a network is compiled for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hilt.network.graph import Graph
from hilt.network.images_at_once import without_single_image
from hilt.network.packed_layout import PackedLayout, packable
from hilt.network.processor import ASSUMED, ProcessorSpeed
from hilt.run_choices import Aim
from hilt.simulator.device import MemoryModel
from hilt.simulator.machine import MachineParameters
from hilt.vta.accelerator import Accelerator


class NoBandsError(ValueError):
    """An accelerator whose batch lanes cannot hold bands of one image."""


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
        bands: Whether the batch lanes hold bands of one image, for its latency; else they hold images.
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
    bands: bool = False

    @property
    def layout(self) -> PackedLayout:
        """Return how tensors lie in VTA's memory."""
        return PackedLayout(self.accelerator.parameters, self.bands)

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


def aimed(target: CompileTarget, graph: Graph, aim: Aim | None) -> CompileTarget:
    """Return the target with bands of one image in its batch lanes, for latency, or with the network's images.

    Without an aim it has bands if the accelerator can and the network has one image.

    Raises:
        NoBandsError: The aim is latency, and the accelerator has batch lanes, but no bands.
    """
    parameters = target.accelerator.parameters
    if aim is Aim.LATENCY and parameters.batch > 1 and not target.accelerator.bands:
        raise NoBandsError(
            f"the batch lanes of {target.board} ({parameters.name}) cannot hold bands of one image; "
            "compile for throughput, or for a board whose bitstream has bands"
        )
    return replace(target, bands=holds_bands(target.accelerator, graph, aim))


def holds_bands(accelerator: Accelerator, graph: Graph, aim: Aim | None = None) -> bool:
    """Return whether the batch lanes hold bands of one image when a network is compiled with this aim."""
    wanted = aim is Aim.LATENCY or (aim is None and not without_single_image(packable(graph)))
    return accelerator.bands and wanted
