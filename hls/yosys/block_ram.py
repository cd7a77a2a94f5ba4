# SPDX-License-Identifier: Apache-2.0
"""Block RAM that the RAMs of a joined netlist take: the aspect ratios of a 36 Kb block (UG473, UG573)."""

from __future__ import annotations

import re
from collections import defaultdict
from math import ceil
from typing import Any

WIDEST = 36  # of a port; half as many bits in half a block
DEPTHS = {1024: 36, 2048: 18, 4096: 9, 8192: 4, 16384: 2, 32768: 1}
"""Width of a 36 Kb block by its depth."""


def blocks(width: int, depth: int) -> float:
    """Return the blocks of 36 Kb that a RAM takes; a half is one of 18 Kb."""
    if depth > max(DEPTHS):
        return blocks(width, max(DEPTHS)) * ceil(depth / max(DEPTHS))
    most = next(bits for words, bits in DEPTHS.items() if depth <= words)
    half = most // 2 if depth > 512 else WIDEST // 2
    whole, rest = divmod(width, most)
    return whole + (0 if rest == 0 else 0.5 if rest <= half else 1)


def used(design: dict[str, Any], top: str, kinds: tuple[str, ...]) -> float:
    """Return the blocks of all RAMs of these kinds; the RAMs of a bank's lanes are one."""
    width: dict[str, int] = defaultdict(int)
    depth: dict[str, int] = {}
    for name, cell in design["modules"][top]["cells"].items():
        if cell["type"] in kinds:
            ram = re.sub(r"\.lane\[\d+\]", "", name)
            data = "data_i" if "data_i" in cell["connections"] else "a_data_i"
            width[ram] += len(cell["connections"][data])
            index = "read_index_i" if "read_index_i" in cell["connections"] else "a_index_i"
            depth[ram] = 1 << len(cell["connections"][index])
    return sum(blocks(bits, depth[ram]) for ram, bits in width.items())
