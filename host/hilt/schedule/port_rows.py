"""LOADs of inputs in rows, which several read ports bring in turns: a port brings whole rows."""

from __future__ import annotations

from functools import cache

import numpy as np

from hilt.schedule.chain_tokens import Records
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode

_MOST_ROWS = 64
_MORE = 1.125
"""Times the fewest elements of the port with most of them. Fewer rows are longer bursts."""
_PADS = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")


def in_port_rows(records: Records, accelerator: Accelerator) -> Records:
    """Return INSTRUCTION records (n,) whose LOADs of one row of inputs have as many rows as keep all ports at work.

    They bring the same elements to the same places.
    """
    ports = min(accelerator.read_ports, accelerator.parameters.inp_element_bytes * 8 // accelerator.bus_bits)
    if ports <= 1:
        return records
    chosen = (records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.INP) & (records["y_size"] == 1)
    chosen &= records["x_size"] > 0
    for name in _PADS:
        chosen &= records[name] == 0
    changed = records.copy()
    for place in np.flatnonzero(chosen).tolist():
        elements = int(records["x_size"][place])
        rows = _rows(elements, ports)
        changed["y_size"][place] = rows
        changed["x_size"][place] = changed["x_stride"][place] = elements // rows
    return changed


@cache
def _rows(elements: int, ports: int) -> int:
    """Return the fewest rows of one length with which no port brings many more elements than it must."""
    longest = {
        rows: -(-rows // ports) * (elements // rows)
        for rows in range(1, min(elements, _MOST_ROWS) + 1)
        if elements % rows == 0
    }
    return next(rows for rows, most in longest.items() if most <= _MORE * min(longest.values()))
