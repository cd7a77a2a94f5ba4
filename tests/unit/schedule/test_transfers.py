"""Folded boxes: a box is filled by its moves and compared with a slice of the padded tensor."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.schedule.transfers import DmaTransfers, fold


def performed(moves: DmaTransfers, box: int, memory: np.ndarray, start: int, size: int) -> np.ndarray:
    """Return the content on chip after a box's moves, by LOAD's definition (HARDWARE.md section 3).

    The value is -1 if they put nothing there.
    """
    chip = np.full(size, -1)
    fields = {name: int(values[box]) for name, values in moves.fields.items()}
    first = int(moves.counts[:box].sum())
    mine = slice(first, first + int(moves.counts[box]))
    above, left = fields["y_pad_0"], fields["x_pad_0"]
    rows = above + fields["y_size"] + fields["y_pad_1"]
    for sram, dram in zip(moves.sram_offset[mine], moves.dram_offset[mine], strict=True):
        block = np.zeros((rows, left + fields["x_size"] + fields["x_pad_1"]), dtype=np.int64)
        for y in range(fields["y_size"]):
            row = memory[start + dram + y * fields["x_stride"] :][: fields["x_size"]]
            block[above + y, left : left + fields["x_size"]] = row
        chip[sram : sram + block.size] = block.ravel()
    return chip


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_boxes_are_moved_whole(data: st.DataObject) -> None:
    """Several boxes of one tensor, folded together."""
    shape = data.draw(st.tuples(*(st.integers(1, 5) for _ in range(4))), label="shape")
    box_and_pads = st.tuples(
        st.tuples(*(st.integers(1, extent) for extent in shape)), st.tuples(*(st.integers(0, 2) for _ in range(4)))
    )
    boxes, pads = zip(*data.draw(st.lists(box_and_pads, min_size=1, max_size=4), label="boxes and pads"), strict=True)
    largest = data.draw(st.sampled_from([5, 30, 65535]), label="largest stride")
    memory = np.arange(1, np.prod(shape) + 1)
    strides = [shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1]
    top, bottom, left, right = np.array(pads).T
    moves = fold(list(zip(np.array(boxes).T, strides, strict=True)), largest, (top, bottom), (left, right))

    for number, (box, pad) in enumerate(zip(boxes, pads, strict=True)):
        corner = [data.draw(st.integers(0, extent - taken)) for extent, taken in zip(shape, box, strict=True)]
        where = tuple(slice(first, first + taken) for first, taken in zip(corner, box, strict=True))
        expected = np.pad(memory.reshape(shape)[where], ((0, 0), (0, 0), pad[:2], pad[2:]))
        found = performed(moves, number, memory, int(np.dot(corner, strides)), expected.size)
        assert np.array_equal(found, expected.ravel())
    assert np.all((moves.x_stride <= largest) & ((moves.x_stride > 0) | (moves.y_size == 1)))


def count(box: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, int, int, int] = (0, 0, 0, 0)) -> int:
    dimensions = [(np.array([extent]), stride) for extent, stride in zip(box, strides, strict=True)]
    top, bottom, left, right = (np.array([pad]) for pad in pads)
    return int(fold(dimensions, 65535, (top, bottom), (left, right)).counts[0])


def test_folding_takes_the_fewest_moves() -> None:
    strides = (0, 14 * 14, 14, 1)
    assert count((1, 4, 14, 14), strides) == 1  # whole channels: one row
    assert count((1, 4, 7, 14), strides) == 1  # whole rows: a row a channel
    assert count((1, 4, 14, 7), strides) == 1  # whole columns: channels follow
    assert count((1, 4, 7, 7), strides) == 4  # a box in each channel
    assert count((1, 4, 14, 14), strides, pads=(1, 0, 0, 0)) == 4
    assert count((1, 4, 14, 14), strides, pads=(0, 0, 1, 1)) == 1


def test_nothing_but_padding_is_one_move() -> None:
    one = np.ones(1, dtype=np.int64)
    moves = fold([(one, 9), (one, 9), (0 * one, 3), (12 * one, 1)], 65535, (one, 0 * one), (0 * one, 0 * one))
    assert performed(moves, 0, np.arange(9), 0, 12).tolist() == [0] * 12
