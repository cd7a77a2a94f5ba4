"""A layer whose STOREs go by way of the table, which the accelerator applies to each byte on its way to memory."""

from __future__ import annotations

import numpy as np

from hilt.schedule.code import Code
from hilt.vta.isa import MemoryType, Opcode

OUT, TABLED = "out", "tabled"


def by_table(code: Code, alone: bool) -> Code:
    """Return `code` with STOREs of `out` that go by way of the table, to a buffer `tabled` of the same layout.

    The output itself is stored as well, unless the table's is stored `alone`. The table is written before.
    """
    stores = (code.records["opcode"] == Opcode.STORE) & (code.buffers == code.names.index(OUT))
    kept = np.ones(len(stores), dtype=np.int64) if alone else 1 + stores
    records, buffers = np.repeat(code.records, kept), np.repeat(code.buffers, kept)
    last = np.cumsum(kept) - 1
    records["memory_type"][last[stores]] = MemoryType.OUT_BY_TABLE
    if alone:
        names = tuple(TABLED if name == OUT else name for name in code.names)
    else:
        names = (*code.names, TABLED)
        buffers[last[stores]] = len(code.names)
    return Code(records, buffers, names, code.uops)
