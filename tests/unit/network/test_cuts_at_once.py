"""Slices behind each other are one Slice, and a joined output that is turned is joined of turned operands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.network.onnx_cut_joins import cut_at_once, turn_before_joining
from hilt.network.onnx_graph import OnnxGraph, OnnxNode

SHAPE = (2, 40, 6)
Cut = tuple[int, int, int]
"""Axis, start and end."""


def cuts(*each: list[Cut], steps: int = 0) -> OnnxGraph:
    """Slices behind each other of x; with steps the last has them."""
    names = ["x", *(f"c{place}" for place in range(1, len(each))), "y"]
    made = OnnxGraph("model", 17, ["x"], ["y"], [], {}, {"x": SHAPE}, {"x": "float32"})
    for place, parts in enumerate(each):
        shape = list(made.shape(names[place]))
        bounds = {"axes": [axis for axis, _, _ in parts]}
        bounds = {"starts": [start for _, start, _ in parts], "ends": [end for _, _, end in parts], **bounds}
        if steps and place == len(each) - 1:
            bounds["steps"] = [steps] * len(parts)
        for axis, start, end in parts:
            shape[axis] = len(range(*slice(start, end, bounds.get("steps", [1])[0]).indices(shape[axis])))
        inputs = [f"{names[place]}.{key}" for key in bounds]
        made.constants.update({name: np.array(values) for name, values in zip(inputs, bounds.values(), strict=True)})
        made.nodes.append(OnnxNode(f"n{place}", "Slice", [names[place], *inputs], [names[place + 1]]))
        made.shapes[names[place + 1]], made.dtypes[names[place + 1]] = tuple(shape), "float32"
    return made


def values_of(made: OnnxGraph) -> np.ndarray:
    values = {"x": np.arange(np.prod(SHAPE)).reshape(SHAPE), **made.constants}
    for node in made.nodes:
        data, starts, ends, axes, *steps = (values[name] for name in node.inputs)
        index = [slice(None)] * data.ndim
        for axis, start, end, step in zip(axes, starts, ends, steps[0] if steps else [1] * len(axes), strict=True):
            index[int(axis)] = slice(int(start), int(end), int(step))
        values[node.outputs[0]] = data[tuple(index)]
    return values["y"]


@pytest.mark.parametrize(
    "each",
    [
        [[(1, 3, 30)], [(2, 1, 4)]],
        [[(1, 3, 30)], [(1, 2, -5)]],
        [[(2, 1, 5), (1, 3, 30)], [(1, 4, 9)]],
        [[(1, 3, 30)], [(2, 1, 4)], [(0, 1, 2), (1, 2, 12)]],
        [[(1, 16, 32), (2, 0, 3)], [(1, 1, 9)]],
        [[(1, 16, 31)], [(1, 1, 9)]],
        [[(1, 1, 40)], [(1, 1, 9)]],
        [[(0, 0, 1)], [(1, 1, 9)]],
    ],
)
def test_slices_behind_each_other_are_one(each: list[list[Cut]]) -> None:
    made = cuts(*each)
    expected = values_of(made)
    cut_at_once(made)
    assert [(node.op, node.inputs[0], node.outputs) for node in made.nodes] == [("Slice", "x", ["y"])]
    np.testing.assert_array_equal(values_of(made), expected)


part = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-9, 9), st.integers(-9, 45)),
    min_size=1,
    max_size=3,
    unique_by=lambda p: p[0],
)


@settings(max_examples=60, deadline=None)
@given(st.lists(part, min_size=2, max_size=3))
def test_any_slices_leave_what_they_left(each: list[list[Cut]]) -> None:
    made = cuts(*each)
    expected = values_of(made)
    cut_at_once(made)
    np.testing.assert_array_equal(values_of(made), expected)


@pytest.mark.parametrize(
    "each",
    [
        [[(1, 16, 32)], [(1, 1, 9)]],  # the first is an address for VTA
        [[(1, 16, 40)], [(2, 1, 4)]],  # to the end
        [[(1, 0, 40)], [(2, 1, 4)]],  # all of it
        [[(1, 3, 30)], [(2, 0, 6)]],
    ],
)
def test_slices_that_are_addresses_or_cut_nothing_stay(each: list[list[Cut]]) -> None:
    made = cuts(*each)
    cut_at_once(made)
    assert [node.outputs for node in made.nodes] == [["c1"], ["y"]]


def test_slices_with_steps_or_of_others_and_tensors_that_are_read_again_stay() -> None:
    whole = ([(1, 3, 30)], [(2, 1, 4)])
    graphs = [cuts(*whole) for _ in range(5)] + [cuts(*whole, steps=2)]
    graphs[0].nodes[0].domain = "of others"
    graphs[1].nodes[1].domain = "of others"
    graphs[2].outputs.append("c1")
    graphs[3].nodes.append(OnnxNode("other", "Relu", ["c1"], ["z"]))
    graphs[3].outputs.append("z")
    graphs[4].nodes[0].op = "Other"
    for made in graphs:
        cut_at_once(made)
        assert [(node.inputs[0], node.outputs[0]) for node in made.nodes][:2] == [("x", "c1"), ("c1", "y")]


def joined(perm: list[int] | None, axis: int = 2) -> OnnxGraph:
    """Two made tensors, joined and turned."""
    shapes: dict[str, tuple[int | None, ...]] = {"a": (1, 3, 4), "b": (1, 3, 5), "p": (1, 3, 4), "q": (1, 3, 5)}
    shapes["j"] = (1, 3, 9)
    shapes["y"] = tuple(shapes["j"][place] for place in perm or (2, 1, 0))
    nodes = [
        OnnxNode("p", "Relu", ["a"], ["p"]),
        OnnxNode("q", "Relu", ["b"], ["q"]),
        OnnxNode("join", "Concat", ["p", "q"], ["j"], {"axis": axis}),
        OnnxNode("turn", "Transpose", ["j"], ["y"], {} if perm is None else {"perm": perm}),
    ]
    return OnnxGraph("model", 17, ["a", "b"], ["y"], nodes, {}, shapes, dict.fromkeys(shapes, "float32"))


@pytest.mark.parametrize(
    ("perm", "axis", "place", "shapes"),
    [
        ([0, 2, 1], 2, 1, [(1, 4, 3), (1, 5, 3)]),
        ([0, 2, 1], -1, 1, [(1, 4, 3), (1, 5, 3)]),
        ([2, 0, 1], 2, 0, [(4, 1, 3), (5, 1, 3)]),
        (None, 2, 0, [(4, 3, 1), (5, 3, 1)]),
    ],
)
def test_operands_of_an_output_are_turned_before_they_are_joined(
    perm: list[int] | None, axis: int, place: int, shapes: list[tuple[int, ...]]
) -> None:
    made = joined(perm, axis)
    turn_before_joining(made)
    assert [node.op for node in made.nodes] == ["Relu", "Relu", "Transpose", "Transpose", "Concat"]
    *turned, join = made.nodes[2:]
    assert [node.inputs for node in turned] == [["p"], ["q"]] and join.inputs == [
        *turned[0].outputs,
        *turned[1].outputs,
    ]
    assert [made.shape(node.outputs[0]) for node in turned] == shapes
    assert [made.dtypes[name] for name in join.inputs] == ["float32"] * 2
    assert all(node.attributes["perm"] == (perm or [2, 1, 0]) for node in turned)
    assert join.outputs == ["y"] and join.attributes["axis"] == place


def test_a_joined_tensor_of_inputs_or_that_is_read_again_is_turned_at_once() -> None:
    whole = [joined([0, 2, 1]) for _ in range(4)]
    whole[0].nodes[2].inputs[0] = "a"
    whole[1].nodes.append(OnnxNode("other", "Relu", ["j"], ["z"]))
    whole[1].outputs.append("z")
    whole[2].nodes.append(OnnxNode("last", "Relu", ["y"], ["z"]))
    whole[2].outputs = ["z"]
    whole[3].nodes[3].domain = "of others"
    for made in whole:
        turn_before_joining(made)
        assert sum(node.op == "Transpose" for node in made.nodes) == 1
