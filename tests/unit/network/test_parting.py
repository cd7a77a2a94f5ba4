"""Slices of joined tensors read the operands: with ONNX Runtime's results, and only where whole operands are cut."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Runner

from .models import Array, canonical, model_of, run_float

RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return RANDOM.normal(0, 1, shape).astype(np.float32)


def cut(name: str, source: str, start: int, end: int, axis: int) -> tuple[Any, dict[str, Array]]:
    """Return a Slice and its constants."""
    bounds = {f"{name}_{key}": np.array([value], np.int64) for key, value in (("s", start), ("e", end), ("a", axis))}
    return helper.make_node("Slice", [source, *bounds], [name]), bounds


def head(boxes: int, split: int) -> Any:
    """Return a head of two scales, 4 + 2 channels, that cuts its channels at `split`."""
    nodes, constants = [], {"flat": np.array([1, boxes + 2, -1], np.int64)}
    for scale in ("x", "z"):
        for part, channels in (("box", boxes), ("class", 2)):
            constants[f"{scale}{part}"] = normal(channels, 3, 1, 1)
            nodes.append(helper.make_node("Conv", [scale, f"{scale}{part}"], [f"{scale}_{part}"]))
        nodes.append(helper.make_node("Concat", [f"{scale}_box", f"{scale}_class"], [f"{scale}_both"], axis=1))
        nodes.append(helper.make_node("Reshape", [f"{scale}_both", "flat"], [f"{scale}_row"]))
    nodes.append(helper.make_node("Concat", ["x_row", "z_row"], ["all"], axis=2))
    for name, start, end in (("b", 0, split), ("c", split, 1 << 40)):
        node, bounds = cut(name, "all", start, end, 1)
        nodes.append(node)
        constants |= bounds
    nodes.append(helper.make_node("Sigmoid", ["c"], ["p"]))
    nodes.append(helper.make_node("Relu", ["b"], ["r"]))
    nodes.append(helper.make_node("Concat", ["r", "p"], ["y"], axis=1))
    return model_of(nodes, {"x": (1, 3, 4, 4), "z": (1, 3, 2, 2)}, constants)


def operators(model: Any) -> Counter[str]:
    """Return how often the canonical form, which must compute the same, has each operator."""
    graph = canonical(model)
    feeds = {name: normal(*graph.shape(name)) for name in graph.inputs}
    found = list(Runner(graph, graph.outputs).run(feeds).values())
    for first, second in zip(run_float(model, feeds), found, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)
    return Counter(node.op for node in graph.nodes)


def test_a_detection_heads_boxes_and_classes_stay_apart() -> None:
    found = operators(head(boxes=4, split=4))
    assert found["Slice"] == 0 and found["Concat"] == 3  # the scales of each, and the output


def test_a_cut_within_an_operand_stays() -> None:
    found = operators(head(boxes=4, split=3))
    assert found["Slice"] == 2 and found["Concat"] == 4


@pytest.mark.parametrize(("start", "end"), [(0, 5), (2, 5), (-3, 1 << 40), (0, 2)])
def test_the_operands_of_a_range_are_joined(start: int, end: int) -> None:
    node, constants = cut("part", "all", start, end, 1)
    nodes = [
        *(helper.make_node("Relu", [name], [f"{name}r"]) for name in ("x", "z", "w")),
        helper.make_node("Concat", ["xr", "zr", "wr"], ["all"], axis=1),
        node,
        helper.make_node("Neg", ["part"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 2, 5), "z": (1, 3, 5), "w": (1, 3, 5)}, constants)
    found = operators(model)
    assert found["Slice"] == 0 and found["Concat"] == (1 if (start, end) == (0, 5) else 0)


@pytest.mark.parametrize("other", ["output", "reader"])
def test_what_something_else_reads_stays_joined(other: str) -> None:
    node, constants = cut("part", "all", 0, 2, 1)
    nodes = [
        *(helper.make_node("Relu", [name], [f"{name}r"]) for name in ("x", "z")),
        helper.make_node("Concat", ["xr", "zr"], ["all"], axis=1),
        node,
        helper.make_node("Neg", ["part"], ["y"]),
        helper.make_node("Exp", ["all"], ["e"]),
    ]
    outputs = ("y", "all") if other == "output" else ("y", "e")
    nodes = nodes[:-1] if other == "output" else nodes
    found = operators(model_of(nodes, {"x": (1, 2, 5), "z": (1, 3, 5)}, constants, outputs))
    assert found["Concat"] == 1 and found["Slice"] == 1


def test_a_slice_in_steps_of_two_stays() -> None:
    node, constants = cut("part", "all", 0, 2, 1)
    constants["two"] = np.array([2], np.int64)
    node.input.append("two")
    nodes = [helper.make_node("Concat", ["x", "z"], ["all"], axis=1), node, helper.make_node("Neg", ["part"], ["y"])]
    assert operators(model_of(nodes, {"x": (1, 2, 5), "z": (1, 3, 5)}, constants))["Slice"] == 1
