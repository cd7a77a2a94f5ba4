"""Instructions that layers share: their fields, the memory that each moves, and the results of their immediates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network.tile_writer import DATA, OUT, ROWS, UNITS, TileWriter
from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.schedule.residual import IDENTITY
from hilt.vta.isa import AluOpcode, MemoryType, Opcode
from tests.unit.schedule.cases import PYNQ

Array = np.ndarray[Any, Any]


class Writer(TileWriter):
    """A layer of one tile, whose instructions a test gives."""

    def __init__(self, tile: Callable[[TileWriter], object], uops: tuple[tuple[int, ...], ...] = ((3, 5),)) -> None:
        super().__init__(replace(PYNQ))
        self._tile, self._given = tile, uops

    def write_micro_ops(self) -> None:
        self.numbers = [self.uop_number(*uop) for uop in self._given]

    def write_tiles(self) -> None:
        self._tile(self)


def code_of(tile: Callable[[TileWriter], object]) -> Code:
    return Writer(tile).code()


def tile_of(tile: Callable[[TileWriter], object]) -> Array:
    """Return the instructions of the tile: those behind the loads of micro-ops and weight blocks."""
    return np.asarray(code_of(tile).records[3:])


def fields(record: Any) -> dict[str, int]:
    return {name: int(record[name]) for name in record.dtype.names if record[name]}


def test_a_layer_begins_with_its_micro_ops_and_weight_blocks() -> None:
    code = code_of(lambda writer: None)
    first, uops, blocks = code.records
    assert (first["opcode"], first["uop_bgn"], first["uop_end"]) == (Opcode.GEMM, 0, 0), "it moves nothing"
    assert (uops["opcode"], uops["memory_type"], uops["y_size"], uops["x_size"]) == (Opcode.LOAD, MemoryType.UOP, 1, 1)
    assert (blocks["memory_type"], blocks["y_size"], blocks["x_size"]) == (MemoryType.WGT, 1, 1)
    assert code.names == ("uop", IDENTITY) and list(code.buffers) == [-1, 0, 1]


def test_each_instruction_knows_the_memory_that_it_moves() -> None:
    def tile(writer: TileWriter) -> None:
        writer.load(DATA, 7, 64, 16)
        writer.load(ROWS, 1, 2, 3)
        writer.clear(0, 16)
        writer.store(11, 32, 8, ROWS)
        writer.store(11, 32, 8)

    code = code_of(tile)
    assert code.names == ("uop", IDENTITY, DATA, ROWS, OUT)
    names = ["" if owner < 0 else code.names[owner] for owner in code.buffers]
    assert names == ["", "uop", IDENTITY, DATA, ROWS, "", ROWS, OUT]
    load, _, _, _, store = code.records[3:]
    consecutive = {"y_size": 1, "x_size": 16, "x_stride": 16, "sram_base": 7, "dram_base": 64}
    wanted = {"opcode": int(Opcode.LOAD), "memory_type": int(MemoryType.INP), **consecutive}
    assert fields(load) == {name: value for name, value in wanted.items() if value}
    consecutive = {"y_size": 1, "x_size": 8, "x_stride": 8, "sram_base": 11, "dram_base": 32}
    wanted = {"opcode": int(Opcode.STORE), "memory_type": int(MemoryType.OUT), **consecutive}
    assert fields(store) == {name: value for name, value in wanted.items() if value}


def test_a_layer_without_weight_blocks_loads_none() -> None:
    class Bare(Writer):
        constant, constant_blocks = UNITS, 0

    code = Bare(lambda writer: None).code()
    assert code.names == ("uop",) and len(code.records) == 2
    Bare.constant_blocks = 9
    code = Bare(lambda writer: None).code()
    assert code.names == ("uop", UNITS) and code.records[2]["x_size"] == 9


def test_a_micro_op_is_written_once_and_named_by_its_number() -> None:
    writer = Writer(lambda writer: None, ((3, 5), (3, 5, 2), (4, 5), (3, 5), (3, 5, 2), (0, 0, 0)))
    code = writer.code()
    assert writer.numbers == [0, 1, 2, 0, 1, 3]
    assert [tuple(map(int, uop)) for uop in code.uops[["dst", "src", "wgt"]]] == [
        *((3, 5, 0), (3, 5, 2)),
        *((4, 5, 0), (0, 0, 0)),
    ]
    assert code.records[1]["x_size"] == 4


@pytest.mark.parametrize("more", [0, 1])
def test_micro_ops_that_their_buffer_cannot_hold_are_refused(more: int) -> None:
    count = PYNQ.uop_depth + more
    writer = Writer(lambda writer: None, tuple((number, 0) for number in range(count)))
    if not more:
        assert len(writer.code().uops) == count
        return
    with pytest.raises(Rejected, match=f"{count} micro-ops of {PYNQ.uop_depth}"):
        writer.code()


def test_clearing_resets_consecutive_accumulators() -> None:
    (clear,) = tile_of(lambda writer: writer.clear(2, 24))
    turns = {"uop_bgn": 2, "uop_end": 3, "reset": 1, "iter_in": 24, "iter_out": 1, "dst_factor_in": 1}
    assert fields(clear) == {"opcode": int(Opcode.GEMM), **turns}


@pytest.mark.parametrize("loop", ["in", "out"])
@pytest.mark.parametrize("turns", [1, 2])
def test_a_factor_of_a_single_turn_is_left_out(loop: str, turns: int) -> None:
    """It may be larger than its field holds."""
    factors = {f"{part}_factor_{other}": 9 for part in ("dst", "src", "wgt") for other in ("in", "out")}
    iterations = {"iter_in": 2, "iter_out": 2, f"iter_{loop}": turns}
    (found,) = tile_of(lambda writer: writer.compute_with(Opcode.GEMM, 0, 1, **factors, **iterations))
    kept = {name for name in factors if turns > 1 or not name.endswith(loop)}
    assert {name for name in factors if found[name]} == kept
    assert (found["iter_in"], found["iter_out"]) == (iterations["iter_in"], iterations["iter_out"])


ALU: dict[int, Callable[[Array, int], Array]] = {
    int(AluOpcode.ADD): lambda data, immediate: data + immediate,
    int(AluOpcode.SHR): lambda data, immediate: data >> immediate,
    int(AluOpcode.MAX): lambda data, immediate: np.maximum(data, immediate),
    int(AluOpcode.MIN): lambda data, immediate: np.minimum(data, immediate),
}


@pytest.mark.parametrize("shift", [0, 1, 2, 7])
@pytest.mark.parametrize("clip", [(-128, 127), (0, 127), (-3, 96)])
def test_sums_are_rounded_half_up_and_clipped(shift: int, clip: tuple[int, int]) -> None:
    records = tile_of(lambda writer: writer.round_and_clip(4, 12, shift, clip))
    data = np.arange(-40000, 40000, 37)
    found = data
    for record in records:
        found = ALU[int(record["alu_opcode"])](found, int(record["imm"]))
        assert record["opcode"] == Opcode.ALU and record["use_imm"] == 1
        assert (record["uop_bgn"], record["uop_end"], record["iter_in"], record["iter_out"]) == (4, 5, 12, 1)
        assert (record["dst_factor_in"], record["src_factor_in"]) == (1, 1)
    np.testing.assert_array_equal(found, np.clip(np.floor(data / 2.0**shift + 0.5), *clip))
    assert len(records) == (4 if shift else 2)
