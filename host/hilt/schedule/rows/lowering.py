"""Lower row programs.

For each step the stream has its LOADs, the reset of a new tile, the GEMMs, after the last step bias, shift and clip,
and the STOREs, as that of any other schedule (hilt.schedule.lowering). Operands take turns in their places, so loads
run two steps ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hilt.schedule.rows.choices import SLOTS, FoldedLoop, Keep
from hilt.schedule.rows.geometry import Span
from hilt.schedule.rows.kernels import StepTile, kernels
from hilt.schedule.rows.plans import RowPlans, input_moves, output_moves, weight_moves
from hilt.schedule.rows.stream import Moves, RowStream
from hilt.vta.isa import AluOpcode, MemoryType, Opcode
from hilt.vta.program import Program


def lower_rows(plans: RowPlans, row: int, wrap: bool) -> Program:
    """Return the program of one configuration, which the checks accept. With `wrap`, fields keep their low bits."""
    return _Lowering(plans.take(row), wrap).program()


@dataclass(frozen=True)
class _Place:
    """A tile's position, its group, and the place of its sums."""

    b: int
    rows: int
    columns: int
    co: int
    group: int
    slot: int


class _Lowering:
    def __init__(self, plans: RowPlans, wrap: bool) -> None:
        tiling, problem = plans.tiling, plans.tiling.problem
        self.problem, self.formats = problem, problem.accelerator.formats
        self.fold, self.keep = FoldedLoop(int(plans.fold[0])), Keep(int(plans.keep[0]))
        self.geometry = plans.geometries[int(plans.which[0])]
        self.tile = StepTile(*(int(size[0]) for size in (tiling.height, tiling.width, tiling.ci, tiling.co)))
        self.steps, self.co_tiles, self.tiles = (
            int(count[0]) for count in (tiling.ci_steps, tiling.co_tiles, tiling.tiles)
        )
        self.turns = int(plans.full_tiles[0]) * self.steps
        self.inp_box, self.wgt_box, self.acc_box, self.reset_uops = (
            int(size[0]) for size in (plans.inp_box, tiling.wgt_elements, tiling.acc_elements, plans.reset_uops)
        )
        self.stream = RowStream(problem, wrap)
        self.weights = self.stream.moves(MemoryType.WGT, weight_moves(problem, tiling.co, tiling.ci))
        self.outputs = self.stream.moves(MemoryType.OUT, output_moves(problem, tiling.co, tiling.height, tiling.width))
        self.inputs: dict[tuple[int, int], Moves] = {}
        self.gemms: dict[tuple[int, ...], list[int]] = {}
        resets = [self._reset(slot) for slot in range(int(plans.acc_slots[0]))]
        self.resets = [template for template, _ in resets]
        self.finishing = [self._finishing(uop) for _, uop in resets]
        self.additions: dict[tuple[int, int], int] = {}
        self.turn = 0
        self.kept = -1
        self.kept_key: tuple[int, ...] = ()

    def program(self) -> Program:
        stream, bias = self.stream, self.problem.bias_elements
        if bias:
            stream.load_whole("bias", MemoryType.ACC, bias)
        for number, place in enumerate(self._places()):
            self._write_tile(number, place)
        stream.add(stream.template(self.formats.gemm, {"opcode": int(Opcode.FINISH), "pop_next": 1}))
        return stream.program()

    def _places(self) -> Iterator[_Place]:
        """Yield the tiles in order (hilt.schedule.space.ALL_ORDERS)."""
        rows, columns = range(len(self.geometry.rows)), range(len(self.geometry.columns))
        tiles = [(b, h, w) for b in range(self.problem.batch) for h in rows for w in columns]
        channels = range(self.co_tiles)
        if self.keep <= Keep.INPUT:
            order = ((*tile, co) for tile in tiles for co in channels)
        else:
            order = ((*tile, co) for co in channels for tile in tiles)
        for number, (b, h, w, co) in enumerate(order):
            yield _Place(b, h, w, co, co * self.tile.co // self.problem.co, number % SLOTS)

    def _write_tile(self, number: int, place: _Place) -> None:
        """Reset, reduce, finish and store; each place of sums waits for its last store."""
        stream = self.stream
        stream.add(self.resets[place.slot], stream.pop_next if number >= SLOTS else 0)
        rows, columns = self.geometry.rows[place.rows], self.geometry.columns[place.columns]
        if rows.products and columns.products:
            fresh = self._is_fresh(place)
            for step in range(self.steps):
                self._multiply(place, *self._load(place, rows, columns, step, fresh))
        if self.problem.workload.bias:
            stream.add(self._addition(place))
        *others, last = self.finishing[place.slot]
        for each in others:
            stream.add(each)
        stream.add(last, stream.push_next)
        self._store(place, number + SLOTS < self.tiles or number == self.tiles - 1)

    def _is_fresh(self, place: _Place) -> bool:
        """Return whether the operand that is kept is another than the last tile's; then it changes its place."""
        block, tile = (place.co,), (place.b, place.rows, place.columns, place.group)
        key: tuple[int, ...] = block if self.keep is Keep.WEIGHTS else tile
        fresh = key != self.kept_key
        self.kept, self.kept_key = self.kept + fresh, key
        return fresh

    def _load(self, place: _Place, rows: Span, columns: Span, step: int, fresh: bool) -> tuple[int, int]:
        """Load a step's input and weights; return where they begin on chip."""
        problem, tile, stream = self.problem, self.tile, self.stream
        kept, streamed = self.kept % SLOTS * self.steps + step, self.turn % SLOTS
        inp = (kept if self.keep is Keep.INPUT else streamed) * self.inp_box
        wgt = (kept if self.keep is Keep.WEIGHTS else streamed) * self.wgt_box
        channel = place.b * problem.all_ci + place.group * problem.ci + step * tile.ci
        corner = (channel * problem.workload.height + rows.first) * problem.workload.width + columns.first
        block = (place.co * tile.co * problem.ci + step * tile.ci) * problem.taps
        boxes = []
        if fresh or self.keep is not Keep.INPUT:
            boxes.append(("inp", self._input(rows, columns), inp, corner))
        if fresh or self.keep is not Keep.WEIGHTS:
            boxes.append(("wgt", self.weights, wgt, block))
        waits = stream.pop_next if self.turn >= SLOTS else 0
        for box in boxes:
            stream.move(*box, waits if box is boxes[0] else 0, stream.push_next if box is boxes[-1] else 0)
        return inp, wgt

    def _input(self, rows: Span, columns: Span) -> Moves:
        size = rows.count, columns.count
        if size not in self.inputs:
            moves = input_moves(self.problem, np.array([self.tile.ci]), *size, self.geometry.row_axis.step)
            self.inputs[size] = self.stream.moves(MemoryType.INP, moves)
        return self.inputs[size]

    def _multiply(self, place: _Place, inp: int, wgt: int) -> None:
        stream = self.stream
        self.turn += 1
        gemms = self._gemms(place, inp, wgt)
        frees = stream.push_prev if self.turn + SLOTS <= self.turns else 0
        for number, gemm in enumerate(gemms):
            first, last = number == 0, number == len(gemms) - 1
            stream.add(gemm, (stream.pop_prev if first else 0) | (frees if last else 0))

    def _gemms(self, place: _Place, inp: int, wgt: int) -> list[int]:
        """Return the GEMMs of a step at these places; tiles that meet the padding alike share them."""
        geometry, sums = self.geometry, self._sums(place.slot)
        kinds = geometry.row_kinds[place.rows], geometry.column_kinds[place.columns]
        key = (*kinds, inp, wgt, place.slot)
        if key not in self.gemms:
            rows, columns = geometry.rows[place.rows], geometry.columns[place.columns]
            self.gemms[key] = [
                self.stream.template(
                    self.formats.gemm,
                    {
                        "opcode": int(Opcode.GEMM),
                        **self.stream.micro_ops(kernel.dst + sums, kernel.src + inp, kernel.wgt + wgt),
                        **{"iter_out": kernel.outer.extent, "iter_in": kernel.inner.extent},
                        **{"dst_factor_out": kernel.outer.dst, "dst_factor_in": kernel.inner.dst},
                        **{"src_factor_out": kernel.outer.src, "src_factor_in": kernel.inner.src},
                        **{"wgt_factor_out": kernel.outer.wgt, "wgt_factor_in": kernel.inner.wgt},
                    },
                )
                for kernel in kernels(self.geometry, self.tile, rows, columns, self.fold)
            ]
        return self.gemms[key]

    def _reset(self, slot: int) -> tuple[int, int]:
        """Return the reset of a tile, and the micro-op that names the tile's start."""
        places = self._sums(slot) + np.arange(self.reset_uops)
        none = np.zeros_like(places)
        named = self.stream.micro_ops(places, none, none)
        turns = self.acc_box // self.reset_uops
        loops = {"iter_out": 1, "iter_in": turns, "dst_factor_in": self.reset_uops if turns > 1 else 0}
        values = {"opcode": int(Opcode.GEMM), "reset": 1, **named, **loops}
        return self.stream.template(self.formats.gemm, values), named["uop_bgn"]

    def _addition(self, place: _Place) -> int:
        """Return the addition of the bias to a tile."""
        key = place.slot, place.co
        if key not in self.additions:
            dst, src = np.array([self._sums(place.slot)]), np.array([place.co * self.tile.co])
            uop = self.stream.micro_ops(dst, src, np.zeros_like(src))
            source = {"src_factor_out": 1 if self.tile.co > 1 else 0}
            values = {"opcode": int(Opcode.ALU), "alu_opcode": int(AluOpcode.ADD)}
            self.additions[key] = self.stream.template(self.formats.alu, {**values, **uop, **self._loops(), **source})
        return self.additions[key]

    def _finishing(self, uop: int) -> list[int]:
        """Return shift and clip of a tile that begins at a micro-op's accumulator."""
        workload = self.problem.workload
        operations = [(AluOpcode.SHR, workload.shift)] if workload.shift else []
        operations += [(AluOpcode.MAX, workload.clip[0]), (AluOpcode.MIN, workload.clip[1])]
        common = {"opcode": int(Opcode.ALU), "use_imm": 1, "uop_bgn": uop, "uop_end": uop + 1, **self._loops()}
        return [
            self.stream.template(self.formats.alu, {**common, "alu_opcode": int(operation), "imm": immediate})
            for operation, immediate in operations
        ]

    def _loops(self) -> dict[str, int]:
        """Return the loops over all accumulators of a tile, channel blocks outside."""
        pixels = self.tile.height * self.tile.width
        return {
            **{"iter_out": self.tile.co, "iter_in": pixels},
            **{"dst_factor_out": pixels if self.tile.co > 1 else 0, "dst_factor_in": 1 if pixels > 1 else 0},
        }

    def _store(self, place: _Place, tells: bool) -> None:
        problem, tile, stream = self.problem, self.tile, self.stream
        channel = place.b * problem.all_co + place.co * tile.co
        row = channel * problem.out_height + place.rows * tile.height
        corner = row * problem.out_width + place.columns * tile.width
        tokens = stream.pop_prev, stream.push_prev if tells else 0
        stream.move("out", self.outputs, self._sums(place.slot), corner, *tokens)

    def _sums(self, slot: int) -> int:
        """Return where a place of sums begins, behind the bias."""
        return self.problem.bias_elements + slot * self.acc_box
