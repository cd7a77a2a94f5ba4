"""LOADs, and parts of LOADs of weights, at earlier places of a chain."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.schedule.chain_ahead import Ahead, stage_loads, with_loads_ahead
from hilt.vta.isa import INSTRUCTION, MemoryType, Opcode

_FIELDS = ("sram_base", "dram_base", "y_size", "x_size")


def instruction(opcode: Opcode, **fields: int) -> NDArray[np.void]:
    made = np.zeros(1, dtype=INSTRUCTION)
    made["opcode"] = opcode
    for name, value in fields.items():
        made[name] = value
    return made


def weights(**fields: int) -> NDArray[np.void]:
    return instruction(Opcode.LOAD, **{"memory_type": MemoryType.WGT, "y_size": 1, **fields})


INPUTS = instruction(Opcode.LOAD, memory_type=MemoryType.INP, y_size=2, x_size=3, x_stride=9, sram_base=4)
GEMM = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=1)
STORE, FINISH = instruction(Opcode.STORE, y_size=1, x_size=1), instruction(Opcode.FINISH)
ROW = weights(sram_base=10, dram_base=100, x_size=8)
ROWS = weights(sram_base=30, dram_base=200, y_size=4, x_size=3, x_stride=50)
STREAM = np.concatenate([INPUTS, GEMM, INPUTS, GEMM, STORE, ROW, ROWS, INPUTS, GEMM, STORE, FINISH])
LENGTHS = np.array([5, 5])
"""Two layers; the LOADs are 0 and 1 of the first, 2, 3 and 4 of the second."""


def moved(*ahead: Ahead) -> tuple[NDArray[np.void], NDArray[np.int64], list[int]]:
    records, sources, lengths = with_loads_ahead(STREAM, ahead, LENGTHS)
    return records, sources, lengths.tolist()


def test_loads_of_the_load_stage_are_those_of_inputs_and_weights() -> None:
    others = [instruction(Opcode.LOAD, memory_type=kind) for kind in (MemoryType.UOP, MemoryType.ACC)]
    assert stage_loads(STREAM).tolist() == [0, 2, 5, 6, 7]
    assert not len(stage_loads(np.concatenate(others)))


def test_a_whole_load_comes_in_front_of_an_earlier_one_and_counts_as_its_layer() -> None:
    records, sources, lengths = moved(Ahead(2, 0, 8, 1))
    assert sources.tolist() == [0, 1, 5, 2, 3, 4, 6, 7, 8, 9, 10]
    assert np.array_equal(records, STREAM[sources])
    assert lengths == [6, 4]


def test_parts_of_a_row_bring_what_the_whole_would() -> None:
    records, sources, lengths = moved(Ahead(2, 2, 3, 0), Ahead(2, 6, 2, 1))
    own = records[sources == 5]
    assert [tuple(int(part[name]) for name in _FIELDS) for part in own] == [
        (12, 102, 1, 3),
        (16, 106, 1, 2),
        (10, 100, 1, 2),
        (15, 105, 1, 1),
    ]
    assert sources.tolist() == [5, 0, 1, 5, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10]
    assert lengths == [7, 6]


def test_parts_of_several_rows_are_rows() -> None:
    records, sources, _ = moved(Ahead(3, 1, 2, 0))
    own = records[sources == 6]
    assert [tuple(int(part[name]) for name in _FIELDS) for part in own] == [
        (33, 250, 2, 3),
        (30, 200, 1, 3),
        (39, 350, 1, 3),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_loads_with_one_place_keep_their_order(order: int) -> None:
    ahead = [Ahead(4, 0, 1, 1), Ahead(2, 0, 8, 1), Ahead(3, 0, 4, 1)][::order]
    _, sources, lengths = moved(*ahead)
    assert sources.tolist() == [0, 1, 5, 6, 7, 2, 3, 4, 8, 9, 10]
    assert lengths == [8, 2]
