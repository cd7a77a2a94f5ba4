"""A convolution whose data has a constant around it, where VTA's LOADs bring zeros.

An output beside the border lacks the products of the constant with the taps that lie outside. Which taps these are
is the same along an edge, so all outputs there lack the same number for each channel. `with_border` adds these numbers
to the sums: one ALU instruction for each tile that reaches the border, over its outputs there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode
from hilt.vta.layout import blocks
from hilt.vta.parameters import VTAParameters

BORDER = "border"
_INSIDE = _NO_BUFFER = -1


@dataclass(frozen=True, eq=False)
class Border:
    """The parts of sums that outputs beside the border lack.

    Attributes:
        kinds: int64 (rows, columns) of an output plane of one lane: which part each output lacks, -1 for none.
        parts: int32 (kinds, lanes, CO); one lane where all batch lanes lack the same.
    """

    kinds: NDArray[np.int64]
    parts: NDArray[np.int32]

    def packed(self, parameters: VTAParameters) -> NDArray[np.int32]:
        """Return the parts as accumulator elements (CO / block, kinds, batch, block)."""
        kinds, lanes, channels = self.parts.shape
        whole = np.pad(self.parts, ((0, 0), (0, 0), (0, -channels % parameters.block)))
        made = whole.reshape(kinds, lanes, -1, parameters.block).transpose(2, 0, 1, 3)
        return np.ascontiguousarray(np.broadcast_to(made, (*made.shape[:2], parameters.batch, made.shape[3])))

    def blocks(self, parameters: VTAParameters) -> int:
        """Return the channel blocks of an output."""
        return blocks(self.parts.shape[2], parameters.block)


def border_of(workload: Conv2d, weights: NDArray[np.int8], value: int, lanes: int = 1) -> Border | None:
    """Return the border of a convolution of weights (CO, CI / groups, KH, KW); None if no tap lies outside.

    Args:
        workload: The convolution of the whole image.
        weights: Its weights.
        value: The constant around the data.
        lanes: How many bands of output rows lie in the batch lanes; 1 where these hold images.
    """
    rows, columns = (_outside(workload, axis) for axis in (0, 1))
    rows = np.pad(rows, ((0, -len(rows) % lanes), (0, 0))).reshape(lanes, -1, workload.kernel[0]).swapaxes(0, 1)
    high, row_kinds = np.unique(rows, axis=0, return_inverse=True)
    wide, column_kinds = np.unique(columns, axis=0, return_inverse=True)
    taps = weights.astype(np.int64).sum(axis=1)
    inside = np.einsum("chw,rlh,kw->rklc", taps, (~high).astype(np.int64), (~wide).astype(np.int64))
    parts = value * (taps.sum(axis=(1, 2)) - inside).reshape(-1, lanes, len(weights))
    kinds = row_kinds.reshape(-1, 1) * len(wide) + column_kinds.reshape(-1)
    used = np.flatnonzero(np.logical_or.outer(high.any(axis=(1, 2)), wide.any(axis=1)))
    if not len(used):
        return None
    numbers = np.full(len(parts), _INSIDE)
    numbers[used] = np.arange(len(used))
    return Border(numbers[kinds], parts[used].astype(np.int32))


def with_border(code: Code, border: Border, accelerator: Accelerator) -> Code:
    """Return `code`, a convolution's, with a buffer `border` that holds `Border.packed`.

    Raises:
        Rejected: Its tiles leave no room in the accumulators, or its micro-ops none for those of the border.
    """
    parameters = accelerator.parameters
    size = len(border.parts) * border.blocks(parameters)
    depth = min(parameters.acc_depth, parameters.inp_depth)  # the second operand of ISA A names as many as inputs
    if code.accumulators + size > depth:
        raise Rejected("acc_overflow", f"the tiles leave {depth - code.accumulators} elements for a border of {size}")
    held = code.used(MemoryType.ACC)
    records, uops = code.records.copy(), code.uops.copy()
    records["sram_base"][records["opcode"] == Opcode.STORE] += np.uint32(size)
    uops["dst"] += np.uint32(size)
    adder = _Adder(border, border.blocks(parameters), held, len(uops))
    places, added = [], []
    for place, stores in _tiles(records):
        made = adder.additions(records[stores])
        places += [place] * len(made)
        added += made
    uops = np.concatenate((uops, *adder.uops))
    if len(uops) > accelerator.uop_depth:
        raise Rejected("uop_overflow", f"{len(uops)} micro-ops with the border's, of {accelerator.uop_depth}")
    records["x_size"][(records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP)] = len(uops)
    first = int(np.argmax(records["opcode"] != Opcode.LOAD))
    joined = np.insert(records, [first, *places], [_load(held, size), *added])
    owners = np.insert(code.buffers, [first, *places], [len(code.names), *[_NO_BUFFER] * len(added)])
    return Code(joined, owners, (*code.names, BORDER), uops)


def _load(place: int, size: int) -> Any:
    """Return the LOAD of the parts, an INSTRUCTION record."""
    load = np.zeros(1, dtype=INSTRUCTION)
    load["opcode"], load["memory_type"], load["sram_base"] = Opcode.LOAD, MemoryType.ACC, place
    load["y_size"], load["x_size"], load["x_stride"] = 1, size, size
    return load[0]


def _tiles(records: NDArray[np.void]) -> Iterator[tuple[int, list[int]]]:
    """Yield for each tile the place of its first shift or clip, and its STOREs."""
    ends = (records["opcode"] == Opcode.ALU) & (records["use_imm"] == 1)
    begins = ends & ~np.append(False, ends[:-1])
    numbers = np.arange(len(records))
    latest = np.maximum.accumulate(np.where(begins, numbers, -1))
    stores = np.flatnonzero(records["opcode"] == Opcode.STORE)
    for place in np.unique(latest[stores]).tolist():
        yield place, stores[latest[stores] == place].tolist()


@dataclass(frozen=True)
class _Outputs:
    """Outputs of a tile beside the border in one plane: accumulators, and numbers of the parts that these lack."""

    block: int
    dst: NDArray[np.int64]
    kinds: NDArray[np.int64]

    def step_to(self, other: _Outputs) -> int | None:
        """Return how far the accumulators of the next block lie from these; None if its outputs are others."""
        alike = other.block == self.block + 1 and np.array_equal(self.kinds, other.kinds)
        steps = set((other.dst - self.dst).tolist()) if alike else set()
        return steps.pop() if len(steps) == 1 else None


class _Adder:
    """Makes the additions of tiles; tiles that are alike share micro-ops."""

    def __init__(self, border: Border, channel_blocks: int, first: int, uops: int) -> None:
        """Take the channel blocks of an output, the first part's accumulator, and how many micro-ops there are."""
        self._kinds, self._count = border.kinds.reshape(-1), len(border.parts)
        self._blocks, self._first, self._next = channel_blocks, first, uops
        self._known: dict[bytes, int] = {}
        self.uops: list[NDArray[np.void]] = []

    def additions(self, stores: NDArray[np.void]) -> list[Any]:
        """Return the INSTRUCTION records that add to the outputs of a tile; none if it does not reach the border."""
        made: list[Any] = []
        planes = self._planes(stores)
        steps = [one.step_to(other) for one, other in itertools.pairwise(planes)]
        first = 0
        while first < len(planes):
            last = first
            while last < len(steps) and steps[last] is not None and steps[last] == steps[first]:
                last += 1
            step = steps[first] if last > first else None
            made.append(self._addition(planes[first], 1 + last - first, step or 0))
            first = last + 1
        return made

    def _planes(self, stores: NDArray[np.void]) -> list[_Outputs]:
        """Return the outputs beside the border that STOREs take, plane by plane."""
        found: dict[int, list[NDArray[np.int64]]] = {}
        for store in stores:
            rows, columns = np.arange(int(store["y_size"]))[:, None], np.arange(int(store["x_size"]))
            elements = (int(store["dram_base"]) + rows * int(store["x_stride"]) + columns).reshape(-1)
            dst = int(store["sram_base"]) + np.arange(elements.size)
            kinds = self._kinds[elements % self._kinds.size]
            lacking = np.flatnonzero(kinds != _INSIDE)
            numbers = elements[lacking] // self._kinds.size
            for plane in np.unique(numbers).tolist():
                mine = lacking[numbers == plane]
                found.setdefault(plane, []).append(np.stack((dst[mine], kinds[mine])))
        return [
            _Outputs(plane % self._blocks, *np.concatenate(parts, axis=1)) for plane, parts in sorted(found.items())
        ]

    def _addition(self, outputs: _Outputs, planes: int, step: int) -> Any:
        """Return the addition to outputs of a plane, and of those behind it."""
        uops = np.zeros(len(outputs.dst), dtype=UOP)
        uops["dst"], uops["src"] = outputs.dst, self._first + outputs.block * self._count + outputs.kinds
        key = uops.tobytes()
        if key not in self._known:
            self._known[key] = self._next
            self._next += len(uops)
            self.uops.append(uops)
        add = np.zeros(1, dtype=INSTRUCTION)
        add["opcode"], add["alu_opcode"], add["iter_out"], add["iter_in"] = Opcode.ALU, AluOpcode.ADD, 1, planes
        add["uop_bgn"], add["uop_end"] = self._known[key], self._known[key] + len(uops)
        add["dst_factor_in"], add["src_factor_in"] = step, self._count
        return add[0]


def _outside(workload: Conv2d, axis: int) -> NDArray[np.bool_]:
    """Return which taps (outputs, kernel) of each output along an axis lie outside of the data."""
    size, made = ((workload.height, workload.out_height), (workload.width, workload.out_width))[axis]
    taps = np.arange(workload.kernel[axis]) * workload.dilation[axis] - workload.padding[axis]
    places = np.arange(made)[:, None] * workload.stride[axis] + taps
    return (places < 0) | (places >= size)
