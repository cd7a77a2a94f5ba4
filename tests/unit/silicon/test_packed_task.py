"""Packed tasks: their sizes by hand, and the shapes that make none."""

from __future__ import annotations

from typing import Any

import pytest

from hilt.silicon.packed_task import CONV2D, CONV2D_TRANSPOSE, DENSE, GROUP_CONV2D, TaskError, packed_task
from hilt.vta.parameters import VTAParameters

SHAPES: dict[str, Any] = {
    "kind": CONV2D, "data": (1, 4, 14, 12, 1, 16), "kernel": (8, 4, 3, 5, 16, 16), "strides": (1, 2), "padding": (1, 2)
}  # fmt: skip


def task_of(**changed: Any) -> Any:
    return packed_task(**{**SHAPES, **changed})


def test_a_convolution_by_hand() -> None:
    task = task_of()
    assert (task.groups, task.input_size, task.slide, task.pads) == (1, (14, 12), (1, 2), (1, 2))
    assert task.output_size == (14, (12 + 4 - 5) // 2 + 1) == (14, 6)
    assert task.micro_ops == 8 * 14 * 6 * 4 * 15
    assert task.name == "conv2d_4x14x12_8_3x5_s1p1b1x16"


def test_a_transposed_convolution_slides_by_one_over_spread_rows() -> None:
    task = task_of(kind=CONV2D_TRANSPOSE, kernel=(8, 4, 4, 2, 16, 16), strides=(2, 3), padding=(1, 0))
    assert (task.input_size, task.slide, task.pads) == ((27, 34), (1, 1), (2, 1))
    assert task.output_size == (27 + 4 - 4 + 1, 34 + 2 - 2 + 1) == (28, 35)
    assert task.name == "conv2d_transpose_4x14x12_8_4x2_s2p1b1x16"


def test_groups_and_dense_layers() -> None:
    grouped = task_of(kind=GROUP_CONV2D, kernel=(8, 2, 3, 5, 16, 16))
    assert (grouped.groups, grouped.reduce_blocks) == (2, 2)
    assert grouped.micro_ops == task_of().micro_ops // 2 and grouped.name.startswith("group_conv2d_")
    dense = task_of(kind=DENSE, data=(3, 4, 1, 16), kernel=(8, 4, 16, 16), strides=(1, 1), padding=(0, 0))
    assert (dense.height, dense.width, dense.kernel, dense.output_size) == (1, 1, (1, 1), (1, 1))
    assert dense.micro_ops == 3 * 8 * 4 and dense.name == "dense_3x4x8b1x16"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "conv2d_nchw"}, "task 'conv2d_nchw': hilt knows conv2d_packed.vta, .*; leave the record out"),
        ({"kind": DENSE}, r"data \[1, 4, 14, 12, 1, 16\] and kernel .* are not packed shapes of it"),
        ({"data": (1, 4, 14, 1, 16)}, "are not packed shapes"),
        ({"kernel": (8, 4, 3, 16, 16)}, "are not packed shapes"),
        ({"data": (1, 4, 0, 12, 1, 16)}, "are not packed shapes"),
        ({"kernel": (8, 4, 3, 5, 16, 0)}, "are not packed shapes"),
        ({"data": (1, 4, 14, 12, 1, 8)}, "blocks of 8 in the data and 16x16 in the kernel differ"),
        ({"kernel": (8, 4, 3, 5, 8, 16)}, "blocks of 16 in the data and 8x16 in the kernel differ"),
        ({"kernel": (8, 3, 3, 5, 16, 16)}, "4 blocks of data are no multiple of the kernel's 3"),
        ({"kind": GROUP_CONV2D, "kernel": (7, 2, 3, 5, 16, 16)}, "4 blocks of data are no multiple of the kernel's 2"),
        ({"kernel": (8, 2, 3, 5, 16, 16)}, "4 blocks of data, 2 of the kernel; they must be the same"),
        ({"strides": (0, 2)}, r"strides \(0, 2\) and padding \(1, 2\) leave no output"),
        ({"padding": (-1, 2)}, "leave no output"),
        ({"kind": CONV2D_TRANSPOSE, "padding": (3, 2)}, "leave no output"),
        ({"data": (1, 4, 14, 1, 1, 16), "padding": (1, 1)}, "leave no output"),
        ({"data": (1, 4, 1, 12, 1, 16), "padding": (0, 2)}, "leave no output"),
    ],
)
def test_other_shapes_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        task_of(**changed)


def test_the_least_output_is_a_task() -> None:
    least = task_of(data=(1, 4, 1, 1, 1, 16), padding=(1, 2))
    assert least.output_size == (1, 1)
    assert task_of(kind=CONV2D_TRANSPOSE, padding=(2, 4)).pads == (0, 0)


def test_a_task_is_of_one_size_of_blocks() -> None:
    task = task_of()
    task.check_geometry(VTAParameters.from_name("1x16_i8w8a32_15_15_18_17"))
    for other in ("2x16_i8w8a32_15_15_18_17", "1x8_i8w8a32_12_13_14_15"):
        with pytest.raises(TaskError, match=rf"blocks of 1x16, but the board's are {other[:3].rstrip('_')}"):
            task.check_geometry(VTAParameters.from_name(other))
