"""Block RAM of an accelerator, by the aspect ratios of a 36 Kb block (UG473, UG573).

RAMs are those of hls/rtl: buffers with one write and one read port, which a block can be 72 bits wide for, and the
banks of the micro-op buffer, with two reading ports. Each lane of the accumulator is a RAM of its own, as synthesis
here maps it: a tool that joins lanes saves a few blocks.

UltraRAM is not used: a weight buffer of blocks of 32 takes 114 of its 72-bit columns, and a ZU7EV has 96.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from hilt.vta.accelerator import Accelerator

_WIDTHS = {512: 72, 1024: 36, 2048: 18, 4096: 9, 8192: 4, 16384: 2, 32768: 1}
"""Width of a 36 Kb block by its depth. One of 18 Kb has half of it; 72 and its half need a port for each direction."""
_DEEPEST = max(_WIDTHS)


@dataclass(frozen=True)
class Ram:
    """A RAM: bits of a word, words, how many there are of it, whether both ports read."""

    width: int
    depth: int
    count: int = 1
    dual_port: bool = False

    @property
    def blocks(self) -> float:
        """Return the 36 Kb blocks of all of them; a half is a block of 18 Kb."""
        return self.count * blocks(self.width, self.depth, dual_port=self.dual_port)


def blocks(width: int, depth: int, *, dual_port: bool = False) -> float:
    """Return the 36 Kb blocks of one RAM; a half is a block of 18 Kb."""
    if depth > _DEEPEST:
        return blocks(width, _DEEPEST, dual_port=dual_port) * ceil(depth / _DEEPEST)
    most = next(bits for words, bits in _WIDTHS.items() if depth <= words and not (dual_port and words == 512))
    whole, rest = divmod(width, most)
    # Half a block has half the width at this depth; a block of one bit has no half.
    return whole + (0 if rest == 0 else 0.5 if rest <= most // 2 else 1)


def accelerator_rams(accelerator: Accelerator) -> list[Ram]:
    """Return the RAMs of hilt's RTL for an accelerator."""
    parameters = accelerator.parameters
    lanes = parameters.batch * parameters.block
    rows = parameters.acc_depth // 2  # of each of two banks
    uop_bits = 8 * accelerator.uop_element_bytes
    uop_lanes = accelerator.bus_bits // uop_bits
    return [
        Ram(8 * parameters.wgt_element_bytes, parameters.wgt_depth),
        Ram(8 * parameters.inp_element_bytes, parameters.inp_depth),
        Ram(32, rows, count=2 * lanes),
        Ram(8 * lanes, rows, count=2),
        Ram(uop_bits, accelerator.uop_depth // uop_lanes, count=uop_lanes, dual_port=True),
    ]


def accelerator_blocks(accelerator: Accelerator) -> float:
    """Return the 36 Kb blocks of hilt's RTL for an accelerator."""
    return sum(ram.blocks for ram in accelerator_rams(accelerator))
