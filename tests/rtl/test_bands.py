"""LOADs of INP that move lanes, by hand: lanes from their neighbours, zeros past the ends, and lanes that are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.simulator.build import Form, quick_build
from hilt.simulator.device import DeviceStatus
from hilt.vta.isa import MemoryType
from tests.rtl.assembly import DATA, RESULT, UOP_POOL, Fields, finish, gemm, load, micro_ops, run, store
from tests.rtl.variants import VARIANTS

FOUR = VARIANTS["4x8 B, 128-bit bus"]
LANES, BLOCK = 4, 8
ELEMENT = LANES * BLOCK
ONES = DATA + 0x1000
"""A weight block that copies an element."""
MEMORY = np.arange(2 * ELEMENT, dtype=np.int8).reshape(2, LANES, BLOCK) + 1
"""Two elements without zeros."""


def left_by(form: Form, loads: list[Fields]) -> NDArray[np.int8]:
    """Return the first two input elements after LOADs, whose data is MEMORY: shape (2, lanes, block)."""
    program = [
        load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 2),
        load(MemoryType.WGT, 0, ONES // BLOCK**2, 1, 1),
        *loads[:-1],
        loads[-1] | {"push_next": 1},
        gemm(0, 2, pop_prev=1, push_next=1),
        store(0, RESULT // ELEMENT, 1, 2, pop_prev=1, push_prev=1),
        finish(pop_next=1),
    ]
    pieces = {
        UOP_POOL: micro_ops(FOUR, (0, 0, 0), (1, 1, 0)),
        DATA: MEMORY.tobytes(),
        ONES: np.eye(BLOCK, dtype=np.int8).tobytes(),
    }
    library: Path = quick_build(FOUR, form)
    finished = run(library, FOUR, program, pieces)
    assert finished.execution.status is DeviceStatus.DONE, finished.execution
    return finished.read(RESULT, 2 * ELEMENT).view(np.int8).reshape(2, LANES, BLOCK)


def inputs(first: int, count: int, sram: int = 0, **more: int) -> Fields:
    return load(MemoryType.INP, sram, DATA // ELEMENT + first, 1, count, **more)


@pytest.mark.parametrize("form", ["golden", "rtl"])
@pytest.mark.parametrize(("field", "sources"), [(0, (0, 1, 2, 3)), (1, (1, 2, 3)), (2, (2, 3)), (3, (None, 0, 1, 2))])
def test_a_lane_comes_from_a_neighbour_and_is_zero_past_the_ends(
    form: Form, field: int, sources: tuple[int | None, ...]
) -> None:
    found = left_by(form, [inputs(0, 2, lane_shift=field)])
    expected = np.zeros_like(MEMORY)
    for lane, source in enumerate(sources):
        if source is not None:
            expected[:, lane] = MEMORY[:, source]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("form", ["golden", "rtl"])
def test_lanes_that_are_kept_are_not_written_by_data_or_pads(form: Form) -> None:
    found = left_by(form, [inputs(0, 2), inputs(1, 1, lane_shift=3, lanes_kept=0b1010, x_pad_1=1)])
    expected = MEMORY.copy()
    expected[0, 0], expected[0, 2] = 0, MEMORY[1, 1]
    expected[1, [0, 2]] = 0
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("form", ["golden", "rtl"])
def test_a_load_behind_one_that_moves_lanes_moves_none(form: Form) -> None:
    assert np.array_equal(left_by(form, [inputs(0, 2, lane_shift=2, lanes_kept=0b0110), inputs(0, 2)]), MEMORY)
