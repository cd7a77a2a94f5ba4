# SPDX-License-Identifier: Apache-2.0
"""Packs registers in front of a DSP slice into it: AREG, BREG, CREG.

Yosys packs B, M and P (`xilinx_dsp`), and leaves the others outside where a part of the operand is constant.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

Bit = int | str
_OPERANDS = (("A", "AREG", "CEA2", "RSTA"), ("B", "BREG", "CEB2", "RSTB"), ("C", "CREG", "CEC", "RSTC"))


def pack(module: dict[str, Any]) -> int:
    """Change a flat module in place, and return how many flip-flops it no longer has.

    An operand is packed where each of its bits is constant or a flip-flop without reset, all of one clock and enable.
    A flip-flop that others read as well stays for them, and the slice has a copy.
    """
    cells = module["cells"]
    drivers = {
        cell["connections"]["Q"][0]: (name, cell)
        for name, cell in cells.items()
        if cell["type"] == "FDRE" and cell["connections"]["R"] == ["0"]
    }
    packed: set[str] = set()
    for cell in cells.values():
        if cell["type"].startswith("DSP48"):
            for operand in _OPERANDS:
                packed |= _pack_operand(cell, drivers, *operand)
    loads = Counter(
        bit
        for cell in cells.values()
        for port, bits in cell["connections"].items()
        if cell["port_directions"][port] == "input"
        for bit in bits
    )
    ports = {bit for port in module.get("ports", {}).values() for bit in port["bits"]}
    unused = [name for name in packed if not loads[cells[name]["connections"]["Q"][0]]
              and cells[name]["connections"]["Q"][0] not in ports]  # fmt: skip
    for name in unused:
        del cells[name]
    return len(unused)


def _pack_operand(
    cell: dict[str, Any], drivers: dict[Bit, tuple[str, dict[str, Any]]], port: str, register: str, enable: str,
    reset: str,
) -> set[str]:  # fmt: skip
    """Pack one operand if it can be; return the names of its flip-flops."""
    bits = cell["connections"].get(port, [])
    nets = {bit for bit in bits if isinstance(bit, int)}
    if not nets or int(str(cell["parameters"].get(register, "0")), 2) or not nets <= drivers.keys():
        return set()
    sources = {bit: drivers[bit][1]["connections"] for bit in nets}
    controls = {(source["C"][0], source["CE"][0]) for source in sources.values()}
    if len(controls) != 1 or next(iter(controls))[0] != cell["connections"]["CLK"][0]:
        return set()
    cell["connections"] |= {
        port: [sources[bit]["D"][0] if bit in sources else bit for bit in bits],
        enable: [next(iter(controls))[1]],
        reset: ["0"],
    }
    cell["port_directions"] |= {enable: "input", reset: "input"}
    cell["parameters"][register] = "1"
    return {drivers[bit][0] for bit in nets}
