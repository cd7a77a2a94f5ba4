# SPDX-License-Identifier: Apache-2.0
"""Block RAM that the RAMs of a joined netlist take; the aspect ratios are those of hilt.vta.block_ram."""

from __future__ import annotations

from math import ceil
from typing import Any

from hilt.vta.block_ram import blocks

RAMS = ("vta_ram", "vta_dual_port_ram")
"""The modules that stay cells of their own in a netlist."""


def of_cell(cell: dict[str, Any]) -> float:
    """Return the 36 Kb blocks of a RAM's cell."""
    ports, dual_port = cell["connections"], cell["type"] == "vta_dual_port_ram"
    prefix = "a_" if dual_port else ""
    index = ports["a_index_i" if dual_port else "read_index_i"]
    return blocks(len(ports[f"{prefix}data_i"]), 1 << len(index), dual_port=dual_port)


def primitives(cell: dict[str, Any]) -> int:
    """Return how many blocks, of 36 or 18 Kb, the address and the enables of a RAM's cell go to."""
    return ceil(of_cell(cell))


def used(design: dict[str, Any], top: str) -> float:
    """Return the blocks of all RAMs of a module."""
    return sum(of_cell(cell) for cell in design["modules"][top]["cells"].values() if cell["type"] in RAMS)
