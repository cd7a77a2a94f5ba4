"""The model of a board's core: facts that hold whatever its constants are."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.network.core_speed import (
    CORTEX_A9,
    CORTEX_A53,
    StepWork,
    core_of,
    node_work,
    pack_work,
    step_seconds,
    unpack_work,
)
from hilt.network.graph import Graph, Node, Tensor


def test_a_boards_name_gives_its_core() -> None:
    assert core_of("virtual:pynq") is CORTEX_A9
    assert core_of("virtual:zcu104") is CORTEX_A53
    assert core_of("ultra96@10.0.0.7") is CORTEX_A53
    assert core_of("desk") is CORTEX_A9


@pytest.mark.parametrize("work", [StepWork("quantize", 150528, 752640), pack_work((1, 64, 56, 56), 200704)])
def test_native_is_faster_than_numpy_and_a_faster_core_is_faster(work: StepWork) -> None:
    assert step_seconds(CORTEX_A9, "native", work) < step_seconds(CORTEX_A9, "numpy", work) / 3
    assert step_seconds(CORTEX_A53, "native", work) < step_seconds(CORTEX_A9, "native", work)


def test_a_view_costs_nothing_in_the_native_engine() -> None:
    assert step_seconds(CORTEX_A9, "native", StepWork("Reshape", 1 << 20, 1 << 22)) == 0


def test_memory_beside_the_cache_is_slower() -> None:
    small, large = unpack_work((1, 16, 32, 32), 16384), unpack_work((1, 16, 320, 320), 1638400)
    assert step_seconds(CORTEX_A9, "native", large) > 100 * step_seconds(CORTEX_A9, "native", small) / 2


def test_a_nodes_work_is_its_elements_bytes_and_products() -> None:
    tensors = {name: Tensor(name, shape, "int8", 1.0) for name, shape in (("x", (1, 8, 4, 4)), ("y", (1, 16, 4, 4)))}
    tensors["z"] = Tensor("z", (1, 16, 2, 2), "int8", 1.0)
    nodes = (
        Node("c", "conv2d", ("x", "w"), ("y",), {}),
        Node("p", "max_pool", ("y",), ("z",), {"kernel": [2, 2], "strides": [2, 2], "pads": [0] * 4}),
    )
    graph = Graph("g", ("x",), ("z",), nodes, tensors, {"w": np.zeros((16, 8, 3, 3), np.int8)})
    assert node_work(graph, nodes[0]) == StepWork("conv2d", 256, 128 + 256 + 1152, 256 * 72)
    assert node_work(graph, nodes[1]) == StepWork("max_pool", 256, 256 + 64)


def test_the_last_states_of_a_recurrence_are_no_further_elements() -> None:
    tensors = {name: Tensor(name, shape, "float32") for name, shape in (("x", (3, 1, 8)), ("y", (3, 2, 1, 16)))}
    tensors |= {name: Tensor(name, (2, 1, 16), "float32") for name in ("h", "c")}
    constants = {"w": np.zeros((2, 64, 8), np.float32), "r": np.zeros((2, 64, 16), np.float32)}
    for outputs in (("y",), ("y", "h", "c"), ("", "h", "c")):
        node = Node("n", "LSTM", ("x", "w", "r"), outputs, {"direction": "bidirectional"})
        work = node_work(Graph("g", ("x",), outputs[-1:], (node,), tensors, constants), node)
        assert (work.elements, work.macs) == (3 * 2 * 16, 3 * 2 * 64 * (8 + 16))
