"""Check the board memory that a program reads and writes against the trial's own buffers, before anything runs.

An accelerator has no MMU: a STORE past its buffer overwrites whatever of the board lies there. A LOAD from an
address without memory can stop the whole bus. So every LOAD and STORE must stay within one of the trial's buffers.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, Tuple

import numpy as np

from .protocol import Manifest

_LOAD, _STORE = 0, 1
_OUT = 4
_MEMORY_NAMES = ("UOP", "WGT", "INP", "ACC", "OUT", "ACC_8BIT")
_MEMORY_TYPE = {"A": (7, 2), "B": (7, 3), "wide": (8, 3)}
"""Its first bit and its width (HARDWARE.md section 2, docs/architecture.md)."""
_PARAMETERS = re.compile(r"(\d+)x(\d+)_i(\d+)w(\d+)a(\d+)_")
_MASK = np.uint64(0xFFFFFFFF)


class BoundsError(Exception):
    """A LOAD or STORE that leaves the trial's buffers; says which instruction and where."""


def element_bytes(manifest: Manifest, uop_bytes: int) -> Dict[int, int]:
    """Return the bytes in memory of one element, by memory type.

    Raises BoundsError for a name that is no parameter set's.
    """
    match = _PARAMETERS.match(manifest.parameters)
    if match is None:
        raise BoundsError("{!r} names no VTA parameters".format(manifest.parameters))
    batch, block, inp, wgt, acc = (int(text) for text in match.groups())
    lanes = batch * block
    sizes = (uop_bytes, block * block * wgt // 8, lanes * inp // 8, lanes * acc // 8, lanes * inp // 8, lanes)
    return dict(enumerate(sizes))


def check_bounds(words: Any, dram_base_bit: int, manifest: Manifest, uop_bytes: int, buffers: Iterable[Any]) -> None:
    """Check the instructions' reads and writes.

    `words`: relocated instructions, uint64 (n, words). `buffers`: (name, first byte, bytes) of physical memory.
    Raises BoundsError.
    """
    first = words[:, 0]
    opcode = first & np.uint64(7)
    chosen = np.flatnonzero((opcode == _LOAD) | (opcode == _STORE))
    if not chosen.size:
        return
    bit, width = _MEMORY_TYPE[manifest.isa]
    kind = ((first[chosen] >> np.uint64(bit)) & np.uint64((1 << width) - 1)).astype(np.int64)
    kind[opcode[chosen] == _STORE] = _OUT  # the one buffer that it has; rev A has no bits to say so
    sizes = element_bytes(manifest, uop_bytes)
    if int(kind.max()) not in sizes:
        bad = int(chosen[int(np.argmax(kind))])
        raise BoundsError("instruction {} names memory type {}, which VTA has not".format(bad, int(kind.max())))
    size = np.array([sizes[memory] for memory in range(len(sizes))], dtype=np.int64)[kind]
    second = words[chosen, 1]
    rows, columns, stride = ((second >> np.uint64(shift)).astype(np.int64) & 0xFFFF for shift in (0, 16, 32))
    start = ((first[chosen] >> np.uint64(dram_base_bit)) & _MASK).astype(np.int64) * size
    end = start + ((rows - 1) * stride + columns) * size
    inside = (rows == 0) | (columns == 0)  # moves nothing
    named: List[Tuple[str, int, int]] = list(buffers)
    for _, lowest, count in named:
        inside |= (start >= lowest) & (end <= lowest + count)
    if inside.all():
        return
    wrong = int(np.argmin(inside))
    name = "STORE" if int(opcode[chosen[wrong]]) == _STORE else "LOAD"
    raise BoundsError(
        "instruction {} ({} of {}) covers bytes 0x{:x} to 0x{:x}, outside the trial's buffers ({})".format(
            int(chosen[wrong]),
            name,
            _MEMORY_NAMES[int(kind[wrong])],
            int(start[wrong]),
            int(end[wrong]),
            ", ".join(buffer[0] for buffer in named),
        )
    )
