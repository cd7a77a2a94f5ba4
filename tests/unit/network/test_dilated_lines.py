"""Dilated convolutions along a line run down columns: the same results, no dilation, and no pads beyond VTA's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from hilt.network import onnx_dilated_lines
from hilt.network.calibration import Runner
from hilt.network.onnx_graph import OnnxGraph

from .models import canonical, model_of, quantised, run_float


def line(
    length: int, taps: int, dilation: int, pads: tuple[int, int], *, down: bool = False, group: int = 1, after: str = ""
) -> Any:
    """Return a dilated convolution of a line of four channels, across or `down` an image, and a function behind it."""
    random = np.random.default_rng(4)
    sides, kernel = ((length, 1), (taps, 1)) if down else ((1, length), (1, taps))
    before, behind = ((pads[0], 0), (pads[1], 0)) if down else ((0, pads[0]), (0, pads[1]))
    conv = helper.make_node(
        "Conv", ["x", "w", "b"], ["c" if after else "y"], group=group, pads=[*before, *behind],
        dilations=[dilation, 1] if down else [1, dilation],
    )  # fmt: skip
    nodes = [conv, helper.make_node(after, ["c"], ["y"])] if after else [conv]
    constants = {
        "w": random.normal(0, 1, (8, 4 // group, *kernel)).astype(np.float32),
        "b": random.normal(0, 1, 8).astype(np.float32),
    }
    return model_of(nodes, {"x": (2, 4, *sides)}, constants)


def assert_same(model: Any) -> OnnxGraph:
    graph = canonical(model)
    feeds = {name: np.random.default_rng(6).normal(0, 1, graph.shape(name)).astype(np.float32) for name in graph.inputs}
    (made,), (wanted,) = Runner(graph, ["y"]).run(feeds).values(), run_float(model, feeds)
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made, wanted, atol=1e-5)
    for node in graph.nodes:
        if node.op == "Conv":
            assert node.attributes.get("dilations", [1, 1]) == [1, 1]
            assert max(node.attributes.get("pads", [0])) <= 15
    return graph


ROWS = ["Reshape", "Conv", "Reshape"]
PADDED = ["Pad", *ROWS, "Slice"]


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize(
    ("length", "taps", "dilation", "pads", "operators"),
    [
        (64, 3, 8, (8, 8), ROWS),
        (64, 3, 8, (16, 0), ROWS),  # causal
        (64, 5, 4, (0, 0), ROWS),
        (512, 3, 64, (64, 64), ROWS),
        (512, 2, 256, (256, 0), ROWS),
        (9000, 3, 2048, (2048, 2048), PADDED),
        (9216, 3, 2048, (30, 2048), PADDED),
        (10000, 17, 256, (2048, 2048), PADDED),
        (5000, 3, 2047, (2047, 2047), ["Pad", "Conv"]),  # its reach is short enough
        (66, 3, 8, (8, 8), ["Conv"]),  # no whole rows, and pads that VTA holds: a kernel with its zeros
        (64, 3, 1, (1, 1), ["Conv"]),
        (64, 1, 8, (0, 0), ["Conv"]),
    ],
)
def test_what_becomes_rows(
    length: int, taps: int, dilation: int, pads: tuple[int, int], operators: list[str], down: bool
) -> None:
    graph = canonical(line(length, taps, dilation, pads, down=down))
    assert [node.op for node in graph.nodes] == operators
    if "Reshape" in operators:
        assert_same(line(length, taps, dilation, pads, down=down))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 8), st.integers(2, 5), st.integers(2, 40), st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.integers(0, 5), st.booleans(), st.sampled_from([1, 2, 4]),
)  # fmt: skip
def test_the_result_is_the_same(
    rows: int, taps: int, dilation: int, pads: tuple[int, int], more: int, down: bool, group: int
) -> None:
    """Padded to whole rows wherever they are none."""
    length, around = rows * dilation + more, (pads[0] * dilation, pads[1] * dilation + more)
    if length + sum(around) < (taps - 1) * dilation + 1:
        return
    model = line(length, taps, dilation, around, down=down, group=group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_dilated_lines, "_LARGEST_REACH", 0)
        graph = canonical(model)
    feeds = {"x": np.random.default_rng(6).normal(0, 1, graph.shape("x")).astype(np.float32)}
    np.testing.assert_allclose(Runner(graph, ["y"]).run(feeds)["y"], run_float(model, feeds)[0], atol=1e-5)


def test_functions_and_norms_follow_the_convolution_and_rows_of_two_lengths_meet() -> None:
    random, node = np.random.default_rng(5), helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["a"], dilations=[8], pads=[8, 8]),
        node("BatchNormalization", ["a", "g", "b", "m", "v"], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("Conv", ["r", "w"], ["d"], dilations=[16], pads=[16, 16]),
        node("Tanh", ["d"], ["t"]),
        node("Conv", ["r", "w"], ["e"], dilations=[16], pads=[16, 16]),
        node("Sigmoid", ["e"], ["s"]),
        node("Mul", ["t", "s"], ["y"]),
    ]
    constants = {"w": random.normal(0, 0.5, (4, 4, 3))} | {name: random.uniform(0.5, 1, 4) for name in "gbmv"}
    typed = {name: values.astype(np.float32) for name, values in constants.items()}
    graph = assert_same(model_of(nodes, {"x": (1, 4, 128)}, typed))
    assert [each.op for each in graph.nodes] == [
        "Reshape", "Conv", "Relu", "Reshape", "Conv", "Tanh", "Reshape", "Conv", "Sigmoid", "Mul", "Reshape",
    ]  # fmt: skip


def test_a_tower_of_dilations_is_int8_and_moves_nothing() -> None:
    random, nodes, source = np.random.default_rng(5), [], "x"
    for place, dilation in enumerate((2, 8, 64)):
        pads = [dilation, dilation]
        nodes += [
            helper.make_node("Conv", [source, "w"], [f"c{place}"], dilations=[dilation], pads=pads),
            helper.make_node("Relu", [f"c{place}"], [f"r{place}"]),
        ]
        source = f"r{place}"
    nodes.append(helper.make_node("Conv", [source, "v"], ["y"]))
    constants = {"w": random.normal(0, 0.5, (4, 4, 3)), "v": random.normal(0, 0.5, (2, 4, 1))}
    typed = {name: values.astype(np.float32) for name, values in constants.items()}
    result = quantised(model_of(nodes, {"x": (1, 4, 256)}, typed))
    operators = {node.op for node in result.graph.nodes}
    assert operators <= {"quantize", "reshape", "conv2d", "dequantize", "table"}
    assert result.agreement.unexplained == 0 and result.costs.decibels > 25
