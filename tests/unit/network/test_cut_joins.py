"""A Slice of joined tensors is taken of its operands: any range gives numpy's values, and nothing is cut in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.network.onnx_cut_joins import cut_before_joining
from hilt.network.onnx_graph import OnnxGraph, OnnxNode

Bounds = dict[str, list[int]]


def graph(sizes: list[int], axis: int, bounds: Bounds, shape: tuple[int, int, int] = (1, 5, 2)) -> OnnxGraph:
    """Tensors t0, t1, ... joined along an axis, and a Slice of that."""
    names = [f"t{place}" for place in range(len(sizes))]
    shapes: dict[str, tuple[int | None, ...]] = {}
    for name, size in zip(names, sizes, strict=True):
        shapes[name] = (*shape[: axis % 3], size, *shape[axis % 3 + 1 :])
    shapes["joined"] = (*shape[: axis % 3], sum(sizes), *shape[axis % 3 + 1 :])
    constants = {name: np.array(values, np.int64) for name, values in bounds.items()}
    nodes = [
        OnnxNode("join", "Concat", names, ["joined"], {"axis": axis}),
        OnnxNode("part", "Slice", ["joined", *bounds], ["y"]),
    ]
    dtypes = dict.fromkeys([*names, "joined"], "float32")
    return OnnxGraph("model", 17, names, ["y"], nodes, dict(constants), shapes, dtypes)


def computed(made: OnnxGraph) -> Any:
    """Return the output, and check that the shapes that the graph states are those that numpy gives."""
    values = dict(made.constants)
    for place, name in enumerate(made.inputs):
        shape = made.shape(name)
        values[name] = 1000.0 * place + np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for node in made.nodes:
        data = [values[name] for name in node.inputs]
        if node.op == "Concat":
            (output,) = node.outputs
            values[output] = np.concatenate(data, axis=node.attributes["axis"])
        else:
            (output,) = node.outputs
            starts, ends, axes, *steps = data[1:] if len(data) > 3 else [*data[1:], np.arange(len(data[1]))]
            index = [slice(None)] * data[0].ndim
            for axis, start, end, step in zip(axes, starts, ends, steps[0] if steps else [1] * len(axes), strict=True):
                index[int(axis)] = slice(int(start), int(end) if end > -1000 else None, int(step))
            values[output] = data[0][tuple(index)]
        if output in made.shapes:
            assert values[output].shape == made.shape(output)
    return values["y"]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=2, max_size=4),
    st.integers(-3, 2),
    st.integers(-70, 70),
    st.integers(-70, 70),
    st.sampled_from([None, 1, 2, -1]),
)
def test_any_range_gives_what_it_gave(sizes: list[int], axis: int, start: int, end: int, step: int | None) -> None:
    bounds = {"start": [start], "end": [end], "axes": [axis], **({} if step is None else {"steps": [step]})}
    made = graph(sizes, axis, bounds)
    expected = computed(made)
    cut_before_joining(made)
    np.testing.assert_array_equal(computed(made), expected)
    slices = [node for node in made.nodes if node.op == "Slice"]
    if slices and slices[-1].inputs[0] != "joined":
        assert all(made.shape(node.inputs[0]) != made.shapes.get(node.outputs[0]) for node in slices), "cut in vain"


def ops(made: OnnxGraph) -> list[str]:
    cut_before_joining(made)
    return [node.op for node in made.nodes]


def test_operands_outside_the_range_are_not_read() -> None:
    made = graph([4, 4, 4], 1, {"start": [5], "end": [12], "axes": [1]})
    assert ops(made) == ["Slice", "Concat"]
    first, join = made.nodes
    assert (first.inputs[0], join.inputs, join.outputs) == ("t1", [first.outputs[0], "t2"], ["y"])
    assert [int(made.constants[name][0]) for name in first.inputs[1:]] == [1, 4, 1]


def test_a_range_in_one_operand_is_its_slice_alone() -> None:
    made = graph([4, 4], 1, {"start": [5], "end": [7], "axes": [1]})
    assert ops(made) == ["Slice"]
    assert (made.nodes[0].inputs[0], made.nodes[0].outputs) == ("t1", ["y"])


@pytest.mark.parametrize(
    ("axis", "bounds"),
    [
        (1, {"start": [16], "end": [32], "axes": [1]}),  # an address for VTA
        (1, {"start": [16], "end": [40], "axes": [1]}),  # to the end
        (1, {"start": [1, 2], "end": [2, 20], "axes": [2, 1]}),  # another axis too
        (1, {"start": [0], "end": [1], "axes": [2]}),  # another axis
        (1, {"start": [2], "end": [20], "axes": [1], "steps": [2]}),
        (1, {"start": [0], "end": [99], "axes": [1]}),  # all of it
        (1, {"start": [9], "end": [9], "axes": [1]}),  # none of it
    ],
)
def test_other_slices_stay(axis: int, bounds: Bounds) -> None:
    assert ops(graph([20, 20], axis, bounds)) == ["Concat", "Slice"]


def test_blocks_are_of_channels_only() -> None:
    assert ops(graph([20, 20], 2, {"start": [16], "end": [32], "axes": [2]})) == ["Slice", "Slice", "Concat"]


def test_a_joined_tensor_that_another_reads_stays() -> None:
    cut = {"start": [1], "end": [30], "axes": [1]}
    made = graph([20, 20], 1, cut)
    made.outputs.append("joined")
    assert ops(made) == ["Concat", "Slice"]
    made = graph([20, 20], 1, cut)
    made.nodes.append(OnnxNode("other", "Relu", ["joined"], ["z"]))
    made.outputs.append("z")
    assert ops(made) == ["Concat", "Slice", "Relu"]


@pytest.mark.parametrize("place", [0, 1])
def test_nodes_of_another_domain_stay(place: int) -> None:
    made = graph([20, 20], 1, {"start": [1], "end": [30], "axes": [1]})
    made.nodes[place].domain = "of others"
    assert ops(made) == ["Concat", "Slice"]


def test_bounds_that_are_computed_stay() -> None:
    made = graph([20, 20], 1, {"start": [1], "end": [30], "axes": [1]})
    del made.constants["end"]
    assert ops(made) == ["Concat", "Slice"]


def test_without_axes_the_first_ones_are_cut() -> None:
    made = graph([4, 4], 0, {"start": [2], "end": [6]})
    expected = computed(made)
    assert ops(made) == ["Slice", "Slice", "Concat"]
    np.testing.assert_array_equal(computed(made), expected)
