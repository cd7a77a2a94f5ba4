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


@pytest.mark.parametrize(
    ("start", "end", "kept"), [(1, 9, (2, 3, 3)), (2, 5, (1, 2)), (0, 7, (3, 3, 1)), (-4, -1, (1, 2))]
)
@pytest.mark.parametrize("every", [False, True])
def test_operands_are_cut_before_they_are_joined(start: int, end: int, kept: tuple[int, ...], every: bool) -> None:
    """`every`: bounds of all axes, as TensorFlow writes them."""
    nodes = [helper.make_node(op, ["x"], [op]) for op in ("Abs", "Relu", "Neg")]
    nodes.append(helper.make_node("Concat", ["Abs", "Relu", "Neg"], ["j"], axis=-2))
    bounds = {"s": [start], "e": [end], "a": [2], "t": [1]}
    if every:
        bounds = {"s": [0, 0, start, 0], "e": [1 << 40, 1 << 40, end, 1 << 40], "a": [0, 1, 2, 3], "t": [1] * 4}
    nodes += [helper.make_node("Slice", ["j", *bounds], ["y"])]
    model = model_of(nodes, {"x": (2, 2, 3, 4)}, {name: np.array(value, np.int64) for name, value in bounds.items()})
    assert operators(model)["Slice"] == sum(size < 3 for size in kept)
    graph = canonical(model)
    joined = next(node for node in graph.nodes if node.op == "Concat" and node.outputs == ["y"])
    assert tuple(graph.shape(name)[2] for name in joined.inputs) == kept


def test_a_part_of_one_operand_is_cut_from_it() -> None:
    nodes = [helper.make_node(op, ["x"], [op]) for op in ("Abs", "Neg")]
    nodes.append(helper.make_node("Concat", ["Abs", "Neg"], ["j"], axis=2))
    node, bounds = cut("y", "j", 4, 6, 2)
    found = operators(model_of([*nodes, node], {"x": (2, 2, 3, 4)}, bounds))
    assert found == {"Neg": 1, "Slice": 1}


@pytest.mark.parametrize("change", ["another axis", "steps", "two readers", "whole blocks", "an output"])
def test_other_slices_are_taken_of_the_joined_tensor(change: str) -> None:
    axis, size = (1, 24) if change == "whole blocks" else (2, 5)
    given = (1, 24, 2) if change == "whole blocks" else (1, 2, size)
    start, end = (16, 48) if change == "whole blocks" else (1, 8)
    nodes = [helper.make_node(op, ["x"], [op]) for op in ("Abs", "Neg")]
    nodes.append(helper.make_node("Concat", ["Abs", "Neg"], ["j"], axis=axis))
    constants = {"s": np.array([start]), "e": np.array([end]), "a": np.array([1 if change == "another axis" else axis])}
    if change == "steps":
        constants["t"] = np.array([2])
    nodes.append(helper.make_node("Slice", ["j", *constants], ["c"]))
    nodes.append(helper.make_node("ReduceSum", ["j" if change == "two readers" else "c"], ["r"], keepdims=0))
    nodes.append(helper.make_node("Add", ["c", "r"], ["y"]))
    if change == "another axis":
        constants["e"] = np.array([2])
    model = model_of(nodes, {"x": given}, constants, ("y", "j") if change == "an output" else ("y",))
    graph = canonical(model)
    (cut_node,) = (node for node in graph.nodes if node.op == "Slice")
    assert cut_node.inputs[0] == "j"


@pytest.mark.parametrize("change", ["", "the same axis", "two readers", "an output", "whole blocks", "steps"])
def test_a_slice_of_a_slice_cuts_both_axes(change: str) -> None:
    first, one = cut("part", "n", 16 if change == "whole blocks" else 15, 32, 1)
    second, other = cut("last", "part", 1, -1, 1 if change == "the same axis" else 3)
    if change == "steps":
        second.input.append("two")
        other |= {"two": np.array([2], np.int64)}
    nodes = [helper.make_node("Neg", ["x"], ["n"]), first, second, helper.make_node("Abs", ["last"], ["y"])]
    if change == "two readers":
        nodes.append(helper.make_node("Exp", ["part"], ["e"]))
    outputs = {"two readers": ("y", "e"), "an output": ("y", "part")}.get(change, ("y",))
    found = operators(model_of(nodes, {"x": (1, 40, 2, 5)}, one | other, outputs))
    assert found["Slice"] == (1 if change in ("", "the same axis") else 2)
