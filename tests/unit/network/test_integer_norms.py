"""Normalizations of int8: both engines' bits, the real result, which nodes of a graph become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network.graph import Graph, Node, Tensor, check
from hilt.network.integer_norms import with_integer_norms
from hilt.network.reference import evaluate, evaluate_node
from hilt_runtime import operators
from hilt_runtime.integer_norm import normalization
from hilt_runtime.native.plans import plan_operator
from hilt_runtime.native.steps import Builder, NotNativeError
from tests.unit.network.engines import assert_native_equals_numpy

INT8 = [-128.0, 127.0]
ENDLESS = [-float(np.finfo(np.float32).max), float(np.finfo(np.float32).max)]


def random() -> np.random.Generator:
    return np.random.default_rng(7)


def int8(*shape: int) -> np.ndarray[Any, Any]:
    return random().integers(-128, 128, shape).astype(np.int8)


def factors_of(channels: int) -> np.ndarray[Any, Any]:
    return random().normal(0, [[20.0], [30.0]], (2, channels)).astype(np.float32)


def real(data: Any, factors: Any, axis: int, groups: int, epsilon: float) -> Any:
    """Return the normalization of the reals, whose variance is computed from distances."""
    images = np.moveaxis(data, axis, 1).astype(np.float64)
    if groups:
        shaped = images.reshape(len(images), groups, -1)
        over: int = 2
    else:
        shaped, over = images, 1
    centred = shaped - shaped.mean(axis=over, keepdims=True)
    normal = centred / np.sqrt(np.square(centred).mean(axis=over, keepdims=True) + epsilon)
    along = (1, -1, *[1] * (images.ndim - 2))
    made = normal.reshape(images.shape) * factors[0].reshape(along) + factors[1].reshape(along)
    return np.moveaxis(made, 1, axis)


@pytest.mark.parametrize(
    ("shape", "axis", "groups"),
    [
        ((2, 6, 9, 7), 1, 6), ((1, 16, 30, 31), 1, 2), ((1, 5, 40), 1, 1), ((3, 8), 1, 4), ((3, 5), 1, 0),
        ((40, 24), 1, 0), ((1, 24, 16, 16), 3, 0), ((2, 33, 7, 5), 1, 0), ((1, 1, 300, 300), 1, 1),
        ((2, 3, 70_000), 1, 3), ((1, 70_000, 3), 1, 0), ((2, 70_016), 1, 0), ((4, 1), 1, 0), ((1, 2, 1, 1), 1, 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("rounded", "clip"), [(1, INT8), (1, [0.0, 100.0]), (0, ENDLESS), (0, [0.0, 6.0])])
def test_both_engines_have_the_same_bits_and_the_real_result(
    shape: tuple[int, ...], axis: int, groups: int, rounded: int, clip: list[float]
) -> None:
    data, factors = int8(*shape), factors_of(shape[axis])
    attributes = {"axis": axis, "groups": groups, "epsilon": 0.37, "rounded": rounded, "clip": clip}
    assert assert_native_equals_numpy("normalization", [data, factors], attributes)
    (made,) = operators.run("normalization", [data, factors], attributes)
    node = Node("norm", "normalization", ("a", "b"), ("y",), attributes)
    np.testing.assert_array_equal(evaluate_node(node, [data, factors])[0], made)
    wanted = np.clip(real(data, factors, axis, groups, 0.37), *clip)
    assert made.dtype == (np.int8 if rounded else np.float32)
    assert np.abs(made - wanted).max() <= (0.5 if rounded else 0) + 1e-4


@pytest.mark.parametrize("groups", [0, 1, 5])
@pytest.mark.parametrize(
    ("batch", "lanes", "channels"), [(1, 16, 30), (1, 32, 50), (2, 16, 20), (1, 8, 10), (1, 4, 10)]
)
def test_a_packed_tensor_has_the_results_of_the_plain_one(groups: int, batch: int, lanes: int, channels: int) -> None:
    blocks = -(-channels // lanes)
    plain = int8(2 * batch, channels, 3, 7)
    whole = int8(2 * batch, blocks * lanes, 3, 7)  # lanes behind the last channel hold anything
    whole[:, :channels] = plain
    packed = whole.reshape(2, batch, blocks, lanes, 3, 7).transpose(0, 2, 4, 5, 1, 3).copy()
    attributes = {"axis": 1, "groups": groups, "epsilon": 0.37, "rounded": 1, "clip": INT8}
    inputs = [packed, factors_of(channels)]
    assert assert_native_equals_numpy("normalization", inputs, attributes) == (batch == 1 or not groups)
    found = operators.run("normalization", inputs, attributes)[0].transpose(0, 4, 1, 5, 2, 3)
    unpacked = found.reshape(whole.shape)
    np.testing.assert_array_equal(unpacked[:, :channels], normalization([plain, inputs[1]], attributes))
    assert not unpacked[:, channels:].any()


def test_data_of_one_value_have_the_added_number() -> None:
    for groups in (0, 3):
        attributes = {"axis": 1, "groups": groups, "epsilon": 2.0**-60, "rounded": 1, "clip": INT8}
        data, factors = np.full((2, 3, 50), -128, np.int8), np.array([[1, 2, 3], [5, -6, 300]], np.float32)
        assert assert_native_equals_numpy("normalization", [data, factors], attributes)
        (made,) = operators.run("normalization", [data, factors], attributes)
        np.testing.assert_array_equal(made[:, :, 0], [[5, -6, 127]] * 2)


@pytest.mark.parametrize(
    ("data", "factors", "changed", "why"),
    [
        (int8(2, 3, 5).astype(np.float32), factors_of(3), {}, "not int8"),
        (int8(2, 3, 5), factors_of(4), {}, "a channel"),
        (int8(2, 3, 5), factors_of(3).astype(np.float64), {}, "float32"),
        (int8(2, 3, 5), factors_of(3) * np.float32(2.0**-60), {}, "NEON"),
        (int8(2, 3, 5), factors_of(3), {"epsilon": 0.0}, "NEON"),
        (int8(2, 5, 3), factors_of(3), {"axis": 2}, "first"),
    ],
)
def test_the_engine_leaves_other_forms(data: Any, factors: Any, changed: dict[str, Any], why: str) -> None:
    builder = Builder()
    builder.constant(factors)
    attributes = {"axis": 1, "groups": 3, "epsilon": 0.37, "rounded": 1, "clip": INT8} | changed
    with pytest.raises(NotNativeError, match=why):
        plan_operator(builder, "normalization", [data, factors], attributes)


@pytest.mark.parametrize(
    ("data", "groups"), [(int8(2, 3, 5).astype(np.int16), 3), (int8(2, 2, 5), 3), (int8(2, 3, 5), 2)]
)
def test_factors_that_do_not_fit_are_refused(data: Any, groups: int) -> None:
    attributes = {"axis": 1, "groups": groups, "epsilon": 0.37, "rounded": 1, "clip": INT8}
    with pytest.raises(ValueError, match="needs int8 and two factors a channel"):
        operators.run("normalization", [data, factors_of(3)], attributes)


# --- which normalizations of a graph are ---

SHAPE = (2, 6, 5, 4)
ROWS = (2, 5, 6)


def graph_of(nodes: Sequence[Node], shapes: dict[str, tuple[int, ...]], **constants: Any) -> Graph:
    """Return a graph of the int8 inputs q (2, 6, 5, 4) and r (2, 5, 6); tensors whose names begin with i are int8."""
    tensors = {"q": Tensor("q", SHAPE, "int8", 0.5), "r": Tensor("r", ROWS, "int8", 0.5)}
    tensors |= {
        name: Tensor(name, shape, *(("int8", 2.0**-5) if name.startswith("i") else ("float32",)))
        for name, shape in shapes.items()
    }
    constants = {name: np.asarray(value) for name, value in constants.items()}
    outputs = [name for name in shapes if not any(name in node.inputs for node in nodes)]
    return Graph("g", ("q", "r"), tuple(outputs), tuple(nodes), tensors, constants)


def rewritten(graph: Graph) -> list[Node]:
    """Return the nodes with integer normalizations, whose outputs differ from the graph's by rounding alone."""
    made = with_integer_norms(graph)
    check(made)
    given = {"q": int8(*SHAPE), "r": int8(*ROWS)}
    wanted, found = evaluate(graph, given), evaluate(made, given)
    for name in graph.outputs:
        assert found[name].shape == wanted[name].shape and found[name].dtype == wanted[name].dtype
        near = 1 if wanted[name].dtype == np.int8 else 1e-4
        difference = np.abs(found[name].astype(np.float64) - wanted[name])
        assert difference.max() <= near and (difference > 1e-4).mean() < 0.01
    return list(made.nodes)


FLOATS = Node("floats", "dequantize", ("q",), ("f",), {"scale": 0.5})
STEPS = Node("steps", "quantize", ("relu",), ("i8",), {"scale": 2.0**-5})
NORM = Node("norm", "InstanceNormalization", ("f", "g", "b"), ("n",), {"epsilon": 1e-5})
RELU = Node("relu", "Relu", ("n",), ("relu",))
IMAGE = {"f": SHAPE, "n": SHAPE, "relu": SHAPE, "i8": SHAPE}
SIX = {"g": np.linspace(0.5, 2, 6, dtype=np.float32), "b": np.linspace(-1, 1, 6, dtype=np.float32)}


def test_a_relu_and_the_quantisation_are_done_by_the_normalization() -> None:
    (node,) = rewritten(graph_of([FLOATS, NORM, RELU, STEPS], IMAGE, **SIX))
    assert (node.op, node.inputs[0], node.outputs) == ("normalization", "q", ("i8",))
    assert node.attributes == {
        "axis": 1, "groups": 6, "epsilon": pytest.approx(4e-5), "rounded": 1, "clip": [0.0, 127.0],
    }  # fmt: skip


def test_a_linear_table_is_as_good_as_a_scale_whatever_is_added() -> None:
    entries = (np.arange(-128, 128) * np.float32(-0.3) + np.float32(17)).astype(np.float32)
    table = Node("floats", "table", ("q", "entries"), ("f",))
    (node,) = rewritten(graph_of([table, NORM, RELU, STEPS], IMAGE, entries=entries, **SIX))
    assert node.attributes["epsilon"] == pytest.approx(1e-5 / 0.09, rel=1e-5)
    bent = np.where(np.arange(256) < 128, entries, entries / 2).astype(np.float32)
    nodes = rewritten(graph_of([table, NORM, RELU, STEPS], IMAGE, entries=bent, **SIX))
    assert [node.op for node in nodes] == ["table", "InstanceNormalization", "Relu", "quantize"]


def group_norm(*behind: Node) -> tuple[list[Node], dict[str, tuple[int, ...]]]:
    """Return two groups of three channels, as exporters write them; the last tensor is `grouped`."""
    nodes = [
        Node("groups", "reshape", ("q",), ("iq",), {"shape": [2, 2, -1]}),
        Node("floats", "dequantize", ("iq",), ("f",), {"scale": 0.5}),
        NORM,
        Node("shaped", "Reshape", ("n", "shape"), ("shaped",)),
        Node("mul", "Mul", ("shaped", "gamma"), ("scaled",)),
        Node("add", "Add", ("beta", "scaled"), ("grouped",)),
    ]
    shapes = {"iq": (2, 2, 60), "f": (2, 2, 60), "n": (2, 2, 60), "shaped": SHAPE, "scaled": SHAPE, "grouped": SHAPE}
    return [*nodes, *behind], shapes


GROUPS = {
    "g": np.float32([1, 2]), "b": np.float32([0.5, -0.5]), "shape": np.array(SHAPE),
    "gamma": SIX["g"].reshape(6, 1, 1), "beta": SIX["b"].reshape(1, 6, 1, 1),
}  # fmt: skip


def test_factors_of_channels_behind_groups_are_taken_in() -> None:
    nodes, shapes = group_norm(Node("steps", "quantize", ("grouped",), ("i8",), {"scale": 2.0**-5}))
    (node,) = rewritten(graph_of(nodes, {**shapes, "i8": SHAPE}, **GROUPS))
    assert (node.inputs[0], node.attributes["groups"], node.attributes["clip"]) == ("q", 2, INT8)


def test_a_result_of_another_shape_is_shaped_as_int8() -> None:
    nodes, shapes = group_norm(
        Node("flat", "Reshape", ("grouped", "all"), ("rows",)),
        Node("steps", "quantize", ("rows",), ("i8",), {"scale": 2.0**-5}),
    )
    made = rewritten(graph_of(nodes, {**shapes, "rows": (2, 120), "i8": (2, 120)}, all=np.array([2, 120]), **GROUPS))
    assert [(node.op, node.outputs) for node in made] == [("normalization", made[0].outputs), ("reshape", ("i8",))]


def test_data_that_lie_by_groups_alone_are_shaped_by_channels() -> None:
    nodes, shapes = group_norm(Node("steps", "quantize", ("grouped",), ("i8",), {"scale": 2.0**-5}))
    flat = [Node("flat", "reshape", ("q",), ("iflat",), {"shape": [2, 120]}),
            Node("groups", "reshape", ("iflat",), ("iq",), {"shape": [2, 2, -1]}), *nodes[1:]]  # fmt: skip
    made = rewritten(graph_of(flat, {"iflat": (2, 120), **shapes, "i8": SHAPE}, **GROUPS))
    assert [node.op for node in made] == ["reshape", "reshape", "reshape", "normalization", "reshape"]


def test_floats_that_several_read_are_made_from_integers_too() -> None:
    nodes = [FLOATS, NORM, RELU, STEPS, Node("more", "Neg", ("relu",), ("z",))]
    made = rewritten(graph_of(nodes, {**IMAGE, "z": SHAPE}, **SIX))
    assert [node.op for node in made] == ["normalization", "quantize", "Neg"]
    assert made[0].outputs == ("relu",) and made[0].attributes["rounded"] == 0
    assert made[0].attributes["clip"] == [0.0, ENDLESS[1]]


def test_factors_of_another_axis_are_not_taken_in() -> None:
    """Two images of six channels, seen as ten of six others: factors are of other elements."""
    nodes = [FLOATS, NORM, Node("other", "Reshape", ("n", "shape"), ("o",)), Node("mul", "Mul", ("o", "four"), ("z",))]
    shapes = {"f": SHAPE, "n": SHAPE, "o": (10, 6, 4), "z": (10, 6, 4)}
    constants = {"shape": np.array([10, 6, 4]), "four": np.linspace(1, 2, 6, dtype=np.float32).reshape(6, 1)}
    made = rewritten(graph_of(nodes, shapes, **constants, **SIX))
    assert [node.op for node in made] == ["normalization", "reshape", "Mul"]


@pytest.mark.parametrize(
    ("factor", "taken"), [(2.0, True), (-2.0, False), (0.0, False), (np.linspace(1, 2, 6).reshape(6, 1, 1), False)]
)
def test_one_positive_factor_behind_a_relu_is_taken_in(factor: Any, taken: bool) -> None:
    nodes = [FLOATS, NORM, RELU, Node("more", "Mul", ("relu", "factor"), ("t",))]
    shapes = {"f": SHAPE, "n": SHAPE, "relu": SHAPE, "t": SHAPE}
    made = rewritten(graph_of(nodes, shapes, factor=np.asarray(factor, np.float32), **SIX))
    assert [node.op for node in made] == (["normalization"] if taken else ["normalization", "Mul"])


def test_a_clip_s_ends_have_the_factor_behind_it() -> None:
    clip = Node("relu", "Clip", ("n", "low", "high"), ("relu",))
    more, steps = Node("more", "Mul", ("relu", "half"), ("t",)), replace(STEPS, inputs=("t",))
    constants = {"low": np.float32(-0.25), "high": np.float32(2), "half": np.float32(0.5)}
    (node,) = rewritten(graph_of([FLOATS, NORM, clip, more, steps], {**IMAGE, "t": SHAPE}, **constants, **SIX))
    assert node.attributes["clip"] == [-4.0, 32.0]


@pytest.mark.parametrize(
    ("added", "taken"), [(-1.5, True), (0.25, False), (np.linspace(-2, -1, 6).reshape(6, 1, 1), False)]
)
def test_a_constant_behind_a_relu_is_taken_in_where_0_stays_within(added: Any, taken: bool) -> None:
    """Quantised models take one off a Relu's results."""
    more, steps = Node("more", "Add", ("relu", "added"), ("t",)), replace(STEPS, inputs=("t",))
    nodes = [FLOATS, NORM, RELU, more, steps]
    shapes = {**IMAGE, "relu": SHAPE, "t": SHAPE}
    made = rewritten(graph_of(nodes, shapes, added=np.asarray(added, np.float32), **SIX))
    assert [node.op for node in made] == (["normalization"] if taken else ["normalization", "Add", "quantize"])
    if taken:
        plain = rewritten(graph_of([FLOATS, NORM, RELU, STEPS], {**IMAGE, "relu": SHAPE}, **SIX))
        assert made[0].attributes["clip"][0] == round(-1.5 / STEPS.attributes["scale"])
        assert plain[0].attributes["clip"][0] == 0


def test_a_clip_is_taken_in_where_0_is_within() -> None:
    clipped = ["normalization"]
    for low, high, wanted in ((-0.25, 2.0, clipped), (0.5, 2.0, [*clipped, "Clip", "quantize"])):
        clip = Node("relu", "Clip", ("n", "low", "high"), ("relu",))
        bounds = {"low": np.float32(low), "high": np.float32(high)}
        made = rewritten(graph_of([FLOATS, NORM, clip, STEPS], IMAGE, **bounds, **SIX))
        assert [node.op for node in made] == wanted
    assert made[0].attributes["clip"] == ENDLESS


def test_rows_have_a_mean_each() -> None:
    nodes = [
        Node("floats", "dequantize", ("r",), ("f",), {"scale": 0.5}),
        Node("norm", "LayerNormalization", ("f", "g", "b"), ("n",), {"axis": -1, "epsilon": 1e-5}),
        Node("flat", "Reshape", ("n", "shape"), ("rows",)),
        Node("steps", "quantize", ("rows",), ("i8",), {"scale": 2.0**-5}),
    ]
    shapes = {"f": ROWS, "n": ROWS, "rows": (10, 6), "i8": (10, 6)}
    made = rewritten(graph_of(nodes, shapes, shape=np.array([10, 6]), **SIX))
    assert [node.op for node in made] == ["normalization", "reshape"]
    assert (made[0].attributes["axis"], made[0].attributes["groups"]) == (2, 0)
    other = [nodes[0], Node("norm", "LayerNormalization", ("f", "g", "b"), ("n",), {"axis": 1}), *nodes[2:]]
    constants = {"shape": np.array([10, 6]), "g": np.ones((5, 6), np.float32), "b": np.zeros((5, 6), np.float32)}
    assert [node.op for node in rewritten(graph_of(other, shapes, **constants))] == [
        "dequantize", "LayerNormalization", "Reshape", "quantize",
    ]  # fmt: skip


@pytest.mark.parametrize("changed", [{"epsilon": 0.0}, {"g": np.full(6, 2.0**-100, np.float32)}])
def test_extreme_numbers_stay_floats(changed: dict[str, Any]) -> None:
    norm = Node(*("norm", "InstanceNormalization", ("f", "g", "b"), ("n",)), {"epsilon": changed.get("epsilon", 1e-5)})
    constants = SIX | {name: value for name, value in changed.items() if name == "g"}
    nodes = with_integer_norms(graph_of([FLOATS, norm, RELU, STEPS], IMAGE, **constants)).nodes
    assert [node.op for node in nodes] == ["dequantize", "InstanceNormalization", "Relu", "quantize"]
