# SPDX-License-Identifier: Apache-2.0
"""Resources of the accelerator on each board's part, by Yosys (`synth_xilinx`), beside those that the part has.

    python hls/yosys/resources.py [BITSTREAM ...]

BITSTREAM is a name of `hilt bitstream list` that hls/vivado builds. The design is mapped in parts (synthesis.py), and
block RAM follows from the sizes of its RAMs (block_ram.py). Ends with status 1 where a design does not fit its part,
and 2 for a name that is not among them. The interconnect around the accelerator is not counted: the table names it,
and its size is Vivado's to say. Registers of DSP slices are packed on all families (synthesis.py).
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import block_ram
from synthesis import TOP, UnknownBitstreamError, buildable, netlist

from hilt.explore.area import PARTS


@dataclass(frozen=True)
class Resources:
    """Counts: look-up tables, flip-flops, DSP slices, and block RAM in units of 36 Kb."""

    lut: int
    ff: int
    dsp: int
    bram36: float


NOT_COUNTED = (
    "not counted: the block design's SmartConnects, one for each memory port and one for the registers, and its"
    " proc_sys_reset; public designs show several thousand LUTs for a 4:1 SmartConnect"
)


def count(design: dict[str, Any]) -> Resources:
    """Return the resources of a mapped netlist."""
    cells = Counter(cell["type"] for cell in design["modules"][TOP]["cells"].values())

    def total(*prefixes: str) -> int:
        return sum(number for name, number in cells.items() if name.startswith(prefixes))

    # A RAM64M8 is eight look-up tables, a RAM64M or RAM32M four, a shift register one.
    wide = total("RAM64M8", "RAM32M16")
    lut = total("LUT", "SRL") + 8 * wide + 4 * (total("RAM64M", "RAM32M") - wide) + total("RAM64X", "RAM32X")
    return Resources(lut, total("FD"), total("DSP48"), block_ram.used(design, TOP))


def main(names: list[str]) -> int:
    """Print the table; return the exit status."""
    try:
        entries = buildable(names)
    except UnknownBitstreamError as error:
        print(error)
        return 2
    fits = True
    print(f"{'bitstream':20}{'part':22}{'LUT':>16}{'FF':>16}{'DSP':>14}{'BRAM36':>14}")
    for entry in entries:
        used = count(netlist(entry))
        part = next(limits for prefix, limits in PARTS.items() if entry.part.startswith(prefix))
        pairs = list(zip((used.lut, used.ff, used.dsp, used.bram36), part, strict=True))
        columns = [f"{number:g}/{limit:g}" for number, limit in pairs]
        over = any(number > limit for number, limit in pairs)
        fits &= not over
        print(f"{entry.name:20}{entry.part:22}{columns[0]:>16}{columns[1]:>16}{columns[2]:>14}{columns[3]:>14}"
              + ("  does not fit" if over else ""), flush=True)  # fmt: skip
    print(NOT_COUNTED)
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
