"""Reuse of data on chip: nothing that is already there is loaded again."""

import numpy as np

from hilt.schedule import load_workload, lower
from hilt.vta.isa import MemoryType, Opcode, decode
from tests.unit.schedule.cases import PYNQ

KNOBS = ("tile_b", "tile_h", "tile_w", "tile_ci", "tile_co", "oc_nthread", "h_nthread")


def loaded(name: str, *knobs: int) -> dict[MemoryType, int]:
    """Elements read from memory, by memory type."""
    records = decode(lower(load_workload(name), dict(zip(KNOBS, knobs, strict=True)), PYNQ).instructions, PYNQ)
    loads = records[records["opcode"] == Opcode.LOAD]
    sizes = loads["y_size"].astype(np.int64) * loads["x_size"]
    return {memory: int(sizes[loads["memory_type"] == memory].sum()) for memory in MemoryType}


def test_weights_that_fit_are_loaded_once() -> None:
    """resnet18.C2 has 4 x 4 x 9 weight elements, and 8 row tiles that all need them."""
    assert loaded("resnet18.C2", 1, 7, 56, 1, 2, 1, 2)[MemoryType.WGT] == 144


def test_weights_that_do_not_fit_are_loaded_for_each_row_tile() -> None:
    """resnet18.C8 has 16 x 16 x 9, more than the buffer's 1024."""
    assert loaded("resnet18.C8", 1, 7, 14, 1, 4, 2, 1)[MemoryType.WGT] == 2 * 2304


def test_threads_over_rows_share_weights() -> None:
    assert loaded("resnet18.C8", 1, 7, 14, 1, 4, 1, 2)[MemoryType.WGT] == 2304


def test_threads_over_channels_share_inputs() -> None:
    """resnet18.C9: the whole input for each group of two channel tiles; alone, for each channel tile."""
    image = 16 * 14 * 14
    assert loaded("resnet18.C9", 1, 7, 7, 1, 8, 2, 1)[MemoryType.INP] == image * 2
    assert loaded("resnet18.C9", 1, 7, 7, 1, 8, 1, 1)[MemoryType.INP] == image * 4


def test_an_input_box_stays_while_only_the_channels_change() -> None:
    """resnet18.C2 with all input channels and whole rows in a tile: each box is loaded once for four channel tiles."""
    rows = 14 * 6 - 2  # of fourteen tiles of four rows, with one above and below but for the edges
    assert loaded("resnet18.C2", 1, 4, 56, 4, 1, 1, 1)[MemoryType.INP] == 4 * rows * 56


def test_a_kernel_of_one_row_loads_only_the_rows_it_meets() -> None:
    """resnet18.C10: 1 x 1 with stride 2: 7 of 14 rows, of each 13 of 14 columns."""
    assert loaded("resnet18.C10", 1, 7, 7, 16, 2, 1, 1)[MemoryType.INP] == 16 * 7 * 13
