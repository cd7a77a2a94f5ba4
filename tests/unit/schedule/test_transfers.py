"""Folded boxes move what the box holds: a box is filled by its moves and compared with a slice of the padded tensor."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.schedule.transfers import Moves, fold


def performed(moves: Moves, memory: np.ndarray, start: int, size: int) -> np.ndarray:
    """What the moves put on chip, by LOAD's definition (HARDWARE.md section 3); -1 where they put nothing."""
    chip = np.full(size, -1)
    for sram, dram in zip(moves.sram_offset, moves.dram_offset, strict=True):
        block = np.zeros((moves.y_size + sum(moves.y_pads), moves.x_size + sum(moves.x_pads)), dtype=np.int64)
        for y in range(moves.y_size):
            row = memory[start + dram + y * moves.x_stride :][: moves.x_size]
            block[moves.y_pads[0] + y, moves.x_pads[0] : moves.x_pads[0] + moves.x_size] = row
        chip[sram : sram + block.size] = block.ravel()
    return chip


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_box_is_moved_whole(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(*(st.integers(1, 5) for _ in range(4))), label="shape")
    box = tuple(data.draw(st.integers(1, extent)) for extent in shape)
    corner = tuple(data.draw(st.integers(0, extent - taken)) for extent, taken in zip(shape, box, strict=True))
    y_pads, x_pads = (data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(2))
    largest = data.draw(st.sampled_from([5, 30, 65535]), label="largest stride")
    memory = np.arange(1, np.prod(shape) + 1)
    strides = np.array([shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1])
    moves = fold(tuple(zip(box, strides.tolist(), strict=True)), largest, y_pads, x_pads)

    where = tuple(slice(first, first + taken) for first, taken in zip(corner, box, strict=True))
    expected = np.pad(memory.reshape(shape)[where], ((0, 0), (0, 0), y_pads, x_pads))
    start = int(np.dot(corner, strides))
    assert np.array_equal(performed(moves, memory, start, expected.size), expected.ravel())
    assert moves.x_stride <= largest or moves.y_size == 1


def test_folding_takes_the_fewest_moves() -> None:
    plane = 14 * 14
    assert len(fold(((1, 0), (4, plane), (14, 14), (14, 1)), 65535).dram_offset) == 1  # whole channels: one row
    assert len(fold(((1, 0), (4, plane), (7, 14), (14, 1)), 65535).dram_offset) == 1  # whole rows: a row a channel
    assert len(fold(((1, 0), (4, plane), (14, 14), (7, 1)), 65535).dram_offset) == 1  # whole columns: channels follow
    assert len(fold(((1, 0), (4, plane), (7, 14), (7, 1)), 65535).dram_offset) == 4  # a box in each channel
    assert len(fold(((1, 0), (4, plane), (14, 14), (14, 1)), 65535, y_pads=(1, 0)).dram_offset) == 4
    assert len(fold(((1, 0), (4, plane), (14, 14), (14, 1)), 65535, x_pads=(1, 1)).dram_offset) == 1
