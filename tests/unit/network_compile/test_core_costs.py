"""The work of every kind of step, and its seconds on a core whose figures are round, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.network.core_speed import (
    CORES,
    CORTEX_A9,
    CORTEX_A53,
    START_SECONDS,
    Core,
    StepWork,
    chain_seconds,
    core_of,
    fold_of_floats_work,
    item_bytes,
    node_work,
    pack_work,
    packed_work,
    pieces_of,
    step_seconds,
    unpack_work,
)
from hilt.network.graph import Graph, Node, Tensor
from hilt_runtime.native.split import LEAST

KINDS = (
    *("quantize", "dequantize", "pack", "pack last", "unpack", "fold", "fold last", "fold floats", "fold floats last"),
    *("table", "pixel_table", "add", "multiply", "max_pool", "average_pool", "global_average_pool", "conv2d", "dense"),
    *("average_pool packed", "global_average_pool packed", "max_pool packed", "multiply packed", "upsample"),
    *("upsample of pairs", "upsample packed"),
    *("LayerNormalization", "InstanceNormalization"),
    *("normalization", "normalization packed", "normalization of pixels", "normalization of pixels packed"),
    *("pad of own elements", "pad of own elements packed"),
    *("prelu", "prelu packed", "concat of lanes", "depth_to_space of lanes", "pad of lanes"),
    *("softmax", "concat", "slice", "pad", "transpose", "depth_to_space", "reshape", "LSTM", "GRU", "RNN"),
    *("LSTM int8", "GRU int8", "RNN int8", "Add", "Sub", "Mul", "Div", "Relu", "Abs", "Neg", "ReduceSum", "ReduceMean"),
    *("ReduceSumSquare", "ReduceMax", "ReduceMin", "LeakyRelu", "Clip", "Where", "Where by one", "Exp", "Log"),
    *("Sigmoid", "Tanh", "Gelu", "Softmax", "LogSoftmax", "MatMul", "Gemm", "Conv", "counted_sum", "Erf", "Softplus"),
    *("Mish", "Elu", "Pow", "Selu", "Transpose", "DepthToSpace", "SpaceToDepth", "Concat", "Slice", "Split", "Pad"),
    *("Gather", "Expand", "Tile", "Resize", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Sqrt"),
    *("MatMul of a row", "Gemm of a row", "depth_to_space of pairs", "fixed_matmul"),
)
ROUND = Core("round", "armhf", 1e9, 2.0, 1000, 1e6, 1e5, 1e-3, 10.0, 4, 0.25, near_bytes_per_cycle=2.0)
CALL = 2e-6 * 0.65
"""Seconds of one step of the core beside its elements: 2 us on a Cortex-A9 of 650 MHz."""


def test_the_costs_of_each_kind_are_those_that_were_accepted(snapshot: SnapshotAssertion) -> None:
    """A million elements or products in cache: microseconds on each core, natively and in numpy."""
    lines = []
    for core in (CORTEX_A9, CORTEX_A53):
        lines.append(f"{core}; starts {START_SECONDS}")
        for kind in KINDS:
            works = [StepWork(kind, 10**6, 0, parts=1), StepWork(kind, 0, 0, 10**6, parts=1)]
            seconds = [step_seconds(core, engine, work) for engine in ("native", "numpy") for work in works]
            lines.append(f"{kind}: {', '.join(f'{1e6 * each:.2f}' for each in seconds)}")
    assert "\n".join(lines) == snapshot


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (StepWork("add", 1000, 0), 1000 * 2.01 / 2e9),
        (StepWork("conv2d", 0, 0, 1000), 1000 * 12.4 / 2e9),
        (StepWork("reshape", 1000, 1000), None),
        (StepWork("concat", 0, 1000), 1000 / 1e6),
        (StepWork("concat", 0, 1001), 1001 / 1e5),
        (StepWork("concat", 0, 1000, 0, 500), 1000 / 1e6 + 500 / 1e5),
        (StepWork("concat", 0, 1001, 0, 500), 1001 / 1e5),
    ],
)
def test_a_native_step_takes_a_call_its_instructions_and_its_bytes(work: StepWork, seconds: float | None) -> None:
    assert step_seconds(ROUND, "native", work) == pytest.approx(0.0 if seconds is None else CALL + seconds)


def test_a_step_whose_clock_is_not_read_takes_the_instructions_of_a_strip() -> None:
    work = StepWork("add", 1000, 0)
    assert step_seconds(ROUND, "native", work, quiet=True) == pytest.approx((172 + 2010) / 2e9)


def test_a_step_of_numpy_takes_its_call_its_products_and_its_bytes() -> None:
    """On a core that is half as slow in numpy as a Cortex-A9."""
    work = StepWork("Conv", 3_000_000, 1_000_000, 6_000_000)
    assert step_seconds(ROUND, "numpy", work) == pytest.approx(1e-3 + (0.1 + 0.04) / 2)
    assert step_seconds(ROUND, "numpy", StepWork("Flatten", 10**9, 10**9)) == pytest.approx(1e-3)


def test_a_large_step_is_cut_in_pieces_as_far_as_it_can_be() -> None:
    several = StepWork("conv2d", 0, 0, 10**6)
    assert pieces_of(ROUND, [several]) == 4
    assert pieces_of(ROUND, [StepWork("conv2d", 0, 0, 10**6, parts=3)]) == 3
    assert pieces_of(ROUND, [StepWork("conv2d", 0, 0, 10**6, parts=0)]) == 1
    assert pieces_of(CORTEX_A9, [several]) == 2
    one = StepWork("add", LEAST, 0)
    assert [pieces_of(ROUND, [one] * count) for count in (0, 1, 2)] == [1, 2, 4]
    assert pieces_of(ROUND, [StepWork("add", LEAST // 4, 0)]) == 1
    assert pieces_of(ROUND, [StepWork("add", LEAST, 0, parts=1), one]) == 4, "a chain is cut in strips"
    assert pieces_of(ROUND, [StepWork("add", LEAST, 0, parts=1), StepWork("Reshape", 10**9, 0)]) == 1
    turn = 2e-6 * 0.65
    assert step_seconds(ROUND, "native", several) == pytest.approx(CALL + 12.4e6 / 8e9 + 0.25)
    assert step_seconds(ROUND, "native", several, awake=True) == pytest.approx(CALL + 12.4e6 / 8e9 + turn)


def test_steps_of_a_chain_keep_the_tensors_between_them_near() -> None:
    works = [StepWork("add", 1000, 4000), StepWork("Reshape", 1000, 4000), StepWork("Gather", 0, 500)]
    first, view, last = chain_seconds(ROUND, works, 3, 900)
    strips = 3 * 172 / 2e9
    assert first == pytest.approx(900 / 1e6 + 1000 * 2.01 / 2e9 + strips + 4000 / 2e9 + CALL)
    assert view == 0
    assert last == pytest.approx(strips + 500 / 1e6 + CALL), "its table is in the cache"
    view, first, _ = chain_seconds(ROUND, [works[1], works[0], works[2]], 3, 1001)
    assert view == 0 and first == pytest.approx(1001 / 1e5 + 1000 * 2.01 / 2e9 + strips + 4000 / 2e9 + CALL)


def test_a_chain_in_pieces_wakes_the_other_cores_once() -> None:
    works = [StepWork("add", 10**6, 4000), StepWork("add", 10**6, 4000)]
    first, last = chain_seconds(ROUND, works, 0, 0)
    assert last == pytest.approx(2.01e6 / 8e9 + 4000 / 8e9 + CALL) and first == pytest.approx(last + 0.25)
    assert chain_seconds(ROUND, works, 0, 0, awake=True)[0] == pytest.approx(last + 2e-6 * 0.65)


def test_packing_moves_the_tensor_and_its_packed_form() -> None:
    assert pack_work((2, 3, 4), 64) == StepWork("pack", 64, 24 + 64, 0, 64)
    assert pack_work((2, 3, 4), 64, last=True) == StepWork("pack last", 64, 88, 0, 64, 1)
    assert pack_work((2, 3, 4), 64, fold=True) == StepWork("fold", 64, 88, 0, 64)
    assert pack_work((2, 3, 4), 64, fold=True, last=True, copied=16) == StepWork("fold last", 68, 120, 0, 64)
    assert fold_of_floats_work((2, 3, 4), 64) == StepWork("fold floats", 64, 4 * 24 + 64, 24, 64)
    assert fold_of_floats_work((2, 3, 4), 64, last=True) == StepWork("fold floats last", 64, 160, 24, 64)
    assert unpack_work((2, 3, 4), 64) == StepWork("unpack", 24, 88, 0, 64)


def test_a_step_on_packed_tensors_counts_empty_lanes_but_for_pools() -> None:
    assert packed_work(StepWork("max_pool", 9, 8, 7), 32, 64) == StepWork("max_pool packed", 9, 0, 7, 64)
    assert packed_work(StepWork("multiply", 9, 8), 32, 64) == StepWork("multiply packed", 32, 0, 0, 64)
    assert packed_work(StepWork("add", 9, 8, parts=2), 32, 64) == StepWork("add", 32, 0, 0, 64, 2)


def of_floats(**shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {name: Tensor(name, shape, "float32") for name, shape in shapes.items()}


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


X, Y = (2, 4, 6, 5), (2, 4, 3, 5)
NODES: dict[str, tuple[str, dict[str, Any], dict[str, Tensor], dict[str, np.ndarray[Any, Any]], StepWork]] = {
    "elements": ("Relu", {}, of_floats(x=X, y=X), {}, StepWork("Relu", 240, 1920)),
    "pool": ("MaxPool", {"kernel_shape": [2, 3]}, of_floats(x=X, y=Y), {}, StepWork("MaxPool", 120 * 6, 1440)),
    "whole images": ("GlobalMaxPool", {}, of_floats(x=X, y=(2, 4, 1, 1)), {}, StepWork("GlobalMaxPool", 240, 992)),
    "sum": ("ReduceSum", {}, of_floats(x=X, y=(2, 4, 6)), {}, StepWork("ReduceSum", 240, 1152)),
    "choice": ("Where", {}, of_floats(c=X, x=X, y=X), {}, StepWork("Where", 240, 2880, parts=1)),
    "choice by one": ("Where", {}, of_floats(c=(1,), x=X, y=X), {}, StepWork("Where by one", 240, 1924, parts=1)),
    "choice by a constant": (
        "Where", {}, of_floats(x=X, y=X), {"c": np.ones(1, np.bool_)}, StepWork("Where by one", 240, 1921, parts=1),
    ),
    "product": (
        "MatMul", {}, of_floats(x=(1, 3, 4), y=(1, 3, 5)), {"w": floats(4, 5)},
        StepWork("MatMul", 15, 188, 60, parts=3),
    ),
    "product of one row": (
        "Gemm", {}, of_floats(x=(1, 4), y=(1, 5)), {"w": floats(4, 5)}, StepWork("Gemm of a row", 5, 116, 20, parts=1),
    ),
    "product of many rows": (
        "Gemm", {}, of_floats(x=(9, 4), y=(9, 5)), {"w": floats(4, 5)}, StepWork("Gemm", 45, 404, 180),
    ),
    "product in fixed point": (
        "fixed_matmul", {}, of_floats(x=(2, 6, 4), w=(2, 5, 4), y=(2, 6, 5)), {},
        StepWork("fixed_matmul", 2 * 48 + 3 * 60, 592, 240),
    ),
    "product in fixed point, quantised": (
        "fixed_matmul", {"step": 0.5}, of_floats(x=(2, 6, 4), w=(2, 5, 4), y=(2, 6, 5)), {},
        StepWork("fixed_matmul", 2 * 48 + 4 * 60, 592, 240),
    ),
    "normalization of groups": (
        "normalization", {"groups": 2}, of_floats(x=X, y=X), {}, StepWork("normalization", 240, 1920),
    ),
    "normalization of pixels": (
        "normalization", {"groups": 0}, of_floats(x=X, y=X), {}, StepWork("normalization of pixels", 240, 1920),
    ),
    "pad of own elements": (
        "pad", {"pads": [0] * 8, "mode": "edge"}, of_floats(x=X, y=X), {}, StepWork("pad of own elements", 240, 1920),
    ),
    "convolution": (
        "Conv", {}, of_floats(x=X, y=X), {"w": floats(4, 4, 3, 3)}, StepWork("Conv", 240, 2496, 240 * 36),
    ),
    "convolution in groups": (
        "Conv", {"group": 2}, of_floats(x=X, y=X), {"w": floats(4, 2, 3, 3)},
        StepWork("Conv", 240, 2208, 240 * 18, parts=1),
    ),
    "computed weights": ("Conv", {}, of_floats(x=X, w=(4, 4, 1, 1), y=X), {}, StepWork("Conv", 240, 1984, 240)),
    "sum by counts": (
        "counted_sum", {}, of_floats(x=(3,), y=(1, 5)), {"w": floats(7, 5)}, StepWork("counted_sum", 5, 172, 35),
    ),
    "dense": (
        "dense", {}, of_floats(x=(1, 4), y=(1, 5)), {"w": np.zeros((5, 4), np.int8)},
        StepWork("dense", 5, 56, 20, parts=1),
    ),
    "table of each channel": (
        "pixel_table", {"axis": 1}, of_floats(x=(3, 4, 5), y=(3, 4, 5)), {},
        StepWork("pixel_table", 60, 480, parts=3),
    ),
    "table of the first axis": (
        "pixel_table", {"axis": 0}, of_floats(x=(3, 4, 5), y=(3, 4, 5)), {},
        StepWork("pixel_table", 60, 480, parts=1),
    ),
    "places": ("ArgMax", {}, of_floats(x=X, y=Y), {}, StepWork("ArgMax", 120, 1440, parts=1)),
    "from nothing": ("Range", {}, of_floats(y=(5,)), {}, StepWork("Range", 5, 20, parts=1)),
    "recurrence": (
        "GRU", {}, of_floats(x=(3, 2, 4), y=(3, 1, 2, 8)), {"w": floats(1, 24, 4), "r": floats(1, 24, 8)},
        StepWork("GRU", 3 * 2 * 8, 96 + 192 + 384 + 768, 6 * (96 + 192), parts=1, shared_macs=6 * 96),
    ),
    "recurrence both ways": (
        "RNN", {"direction": "bidirectional"}, of_floats(x=(3, 1, 4), y=(3, 2, 1, 8)),
        {"w": floats(2, 8, 4), "r": floats(2, 8, 8)},
        StepWork("RNN", 3 * 2 * 8, 48 + 192 + 256 + 512, 3 * (64 + 128), parts=2, shared_macs=3 * 64),
    ),
    "a step of a recurrence": (
        "GRU", {}, of_floats(x=(1, 1, 4), y=(1, 1, 1, 8)), {"w": floats(1, 24, 4), "r": floats(1, 24, 8)},
        StepWork("GRU", 8, 16 + 32 + 384 + 768, 96 + 192, parts=1),
    ),
    "a step of a recurrence in int8": (
        "LSTM", {}, of_floats(x=(1, 1, 4), y=(1, 1, 1, 8)),
        {"w": np.zeros((1, 32, 4), np.int8), "r": np.zeros((1, 32, 8), np.int8)},
        StepWork("LSTM int8", 8, 16 + 32 + 128 + 256, 128 + 256, shared_macs=128),
    ),
    "steps of a recurrence in int8": (
        "LSTM", {}, of_floats(x=(2, 1, 4), y=(2, 1, 1, 8)),
        {"w": np.zeros((1, 32, 4), np.int8), "r": np.zeros((1, 32, 8), np.int8)},
        StepWork("LSTM int8", 16, 32 + 64 + 128 + 256, 2 * (128 + 256), parts=1, shared_macs=2 * 128),
    ),
    "a recurrence whose weights no cache holds": (
        "RNN", {}, of_floats(x=(3, 1, 4), y=(3, 1, 1, 400)), {"w": floats(1, 400, 4), "r": floats(1, 400, 400)},
        StepWork("RNN", 1200, 48 + 4800 + 6400 + 640_000 * 3, 3 * (1600 + 160_000), parts=1, shared_macs=3 * 1600),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_the_work_of_a_node(name: str) -> None:
    op, attributes, tensors, constants, wanted = NODES[name]
    inputs = [each for each in ("c", "x", "w", "r") if each in tensors or each in constants]
    node = Node("n", op, tuple(inputs), ("y",), attributes)
    assert node_work(Graph("g", ("x",), ("y",), (node,), tensors, constants), node) == wanted


def test_elements_have_the_bytes_of_their_type() -> None:
    names = ("int8", "uint8", "bool", "int16", "float16", "int32", "float32", "int64", "float64")
    assert [item_bytes(name) for name in names] == [np.dtype(name).itemsize for name in names]


@pytest.mark.parametrize(
    ("board", "core"),
    [
        ("virtual:pynq", "cortex-a9"), ("virtual:zcu104", "cortex-a53"), ("Ultra96@10.0.0.7", "cortex-a53"),
        ("my-zcu102", "cortex-a53"), ("kv260", "cortex-a53"), ("kria.lab", "cortex-a53"), ("desk", "cortex-a9"),
    ],
)  # fmt: skip
def test_the_core_of_a_board(board: str, core: str) -> None:
    assert core_of(board) is CORES[core]
