"""Max pooling on VTA: an identity GEMM copies a tile's input to the accumulators, ALU MAX takes the window's positions.

The copy puts the columns of each residue of the stride side by side, so that the sources of successive micro-ops are
neighbours, which the ALU reads one a cycle. Padding is zeros, so where there is any the input must not be negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.schedule.residual import IDENTITY
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode

_NAMES = ("uop", IDENTITY, "inp", "out")
_UOP, _IDENTITY, _INP, _OUT = range(4)


@dataclass(frozen=True)
class PoolingLayer:
    """A max pooling over packed tensors.

    `planes` is blocks of images times blocks of channels; sizes are (height, width), `pads` are before the first
    row and column.
    """

    planes: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int]
    out: tuple[int, int]

    @property
    def micro_ops(self) -> int:
        """Micro-ops of the copy and of the window: a lower bound of the cycles."""
        taps = self.kernel[0] * self.kernel[1]
        return self.planes * (self.size[0] * self.size[1] + taps * self.out[0] * self.out[1])


def lower_max_pool(pool: PoolingLayer, rows: int, accelerator: Accelerator) -> Code:
    """Return the code of a max pooling whose tiles are `rows` output rows of one plane.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """
    return _Lowering(pool, rows, accelerator).code()


class _Lowering:
    def __init__(self, pool: PoolingLayer, rows: int, accelerator: Accelerator) -> None:
        self.pool, self.rows = pool, rows
        self.high = (rows - 1) * pool.stride[0] + pool.kernel[0]
        self.wide = (pool.out[1] - 1) * pool.stride[1] + pool.kernel[1]
        self.step = -(-self.wide // pool.stride[1])
        """Columns of one residue."""
        box, copied, made = self.high * self.wide, self.high * self.step * pool.stride[1], rows * pool.out[1]
        parameters = accelerator.parameters
        self.tiles = pool.planes * -(-pool.out[0] // rows)
        self.places = min(2, self.tiles, parameters.inp_depth // box)
        if not self.places or copied + 2 * made > parameters.acc_depth:
            raise Rejected(
                "acc_overflow", f"a tile of {rows} rows takes {box} input and {copied + 2 * made} accumulators"
            )
        if max(pool.pads) > 15 or max(box, copied, self.wide) >= 1 << 14:
            raise Rejected("field_overflow", f"a tile of {rows} rows has more elements than an instruction counts")
        self.box, self.copied, self.made = box, copied, made
        self.uops: list[tuple[int, int]] = []
        self.records: list[NDArray[np.void]] = []
        self.buffers: list[int] = []

    def code(self) -> Code:
        pool = self.pool
        self._micro_ops()
        self._add(_UOP, Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=len(self.uops))
        self._add(_IDENTITY, Opcode.LOAD, memory_type=MemoryType.WGT, y_size=1, x_size=1)
        tile = 0
        for plane in range(pool.planes):
            for row in range(0, pool.out[0], self.rows):
                self._tile(plane, row, min(self.rows, pool.out[0] - row), tile)
                tile += 1
        uops = np.zeros(len(self.uops), dtype=UOP)
        uops["dst"], uops["src"] = np.array(self.uops).T
        return Code(np.concatenate(self.records), np.array(self.buffers), _NAMES, uops)

    def _micro_ops(self) -> None:
        """The copies of each input place by residue; then for each output place its start and its window."""
        residues, (high, wide) = self.pool.stride[1], self.pool.kernel
        for place in range(self.places):
            self.uops += [(residue * self.high * self.step, place * self.box + residue) for residue in range(residues)]
        for place in range(min(2, self.tiles)):
            begin = self.copied + place * self.made
            for row in range(high):
                for column in range(wide):
                    plane = column % residues * self.high * self.step
                    self.uops.append((begin, plane + row * self.step + column // residues))

    def _tile(self, plane: int, row: int, rows: int, tile: int) -> None:
        pool = self.pool
        high = (rows - 1) * pool.stride[0] + pool.kernel[0]
        self._load(plane, row * pool.stride[0] - pool.pads[0], high, tile % self.places)
        residues = pool.stride[1]
        copies = tile % self.places * residues
        clear = {"reset": 1, "iter_out": 1, "dst_factor_in": 1}
        self._add(-1, Opcode.GEMM, uop_bgn=copies, uop_end=copies + 1, iter_in=self.copied, **clear)
        for residue in range(residues):
            columns = -(-(self.wide - residue) // residues)
            loops = {"iter_out": high, "iter_in": columns, "dst_factor_out": self.step, "dst_factor_in": 1}
            number = copies + residue
            loops |= {"src_factor_out": self.wide, "src_factor_in": residues}
            self._add(-1, Opcode.GEMM, uop_bgn=number, uop_end=number + 1, **loops)
        taps = pool.kernel[0] * pool.kernel[1]
        first = self.places * residues + tile % 2 * taps
        self._add(-1, Opcode.GEMM, uop_bgn=first, uop_end=first + 1, iter_in=rows * pool.out[1], **clear)
        loops = {"iter_out": rows, "iter_in": pool.out[1], "dst_factor_out": pool.out[1], "dst_factor_in": 1}
        loops |= {"src_factor_out": pool.stride[0] * self.step, "src_factor_in": 1}
        for tap in range(taps):
            operation = AluOpcode.MAX if tap else AluOpcode.ADD
            self._add(-1, Opcode.ALU, alu_opcode=operation, uop_bgn=first + tap, uop_end=first + tap + 1, **loops)
        self._add(
            _OUT,
            Opcode.STORE,
            memory_type=MemoryType.OUT,
            sram_base=self.copied + tile % 2 * self.made,
            dram_base=plane * pool.out[0] * pool.out[1] + row * pool.out[1],
            y_size=1,
            x_size=rows * pool.out[1],
            x_stride=rows * pool.out[1],
        )

    def _load(self, plane: int, top: int, high: int, place: int) -> None:
        """Load a tile's box: input rows from `top` on, zeros where it reaches past the input."""
        (height, width), left = self.pool.size, self.pool.pads[1]
        before = max(-top, 0)
        pad_end = max(top + high - height, 0)
        columns = min(width, self.wide - left)
        self._add(
            _INP,
            Opcode.LOAD,
            memory_type=MemoryType.INP,
            sram_base=place * self.box,
            dram_base=plane * height * width + max(top, 0) * width,
            y_size=high - before - pad_end,
            x_size=columns,
            x_stride=width,
            y_pad_0=before,
            y_pad_1=pad_end,
            x_pad_0=left,
            x_pad_1=self.wide - left - columns,
        )

    def _add(self, buffer: int, opcode: Opcode, **fields: int) -> None:
        record = np.zeros(1, dtype=INSTRUCTION)
        record["opcode"] = opcode
        for name, value in fields.items():
            record[name] = value
        self.records.append(record)
        self.buffers.append(buffer)
