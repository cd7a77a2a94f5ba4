"""The int8 part of a float graph: layers, nodes that fuse into them, and moves between them; the rest stays float."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hilt.network.onnx_simplify import fixed_model
from hilt.network.quantize.regions import Regions, find_regions

from .models import Array, model_of

CHANNELS = 4
IMAGE = (1, CHANNELS, 8, 8)
WEIGHTS = {
    "w": np.ones((CHANNELS, CHANNELS, 1, 1), np.float32),
    "b": np.ones(CHANNELS, np.float32),
    "m": np.ones((CHANNELS, CHANNELS), np.float32),
    "low": np.array(-1.0, np.float32),
    "high": np.array(6.0, np.float32),
    "one": np.ones((1, CHANNELS, 1, 1), np.float32),
}


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(","), outputs.split(","), name=outputs, **attributes)


def conv(source: str, target: str, weights: str = "w,b") -> Any:
    return node("Conv", f"{source},{weights}", target)


def regions(
    nodes: Sequence[Any],
    outputs: Sequence[str] = ("y",),
    kept: Collection[str] = (),
    constants: dict[str, Array] | None = None,
    inputs: dict[str, tuple[int, ...]] | None = None,
    types: dict[str, int] | None = None,
) -> Regions:
    read = {name for each in nodes for name in each.input}
    known = {name: value for name, value in {**WEIGHTS, **(constants or {})}.items() if name in read}
    model = model_of(nodes, inputs or {"x": IMAGE}, known, outputs, types=types)
    return find_regions(fixed_model(model, "test"), kept)


def test_a_layer_takes_the_activation_that_alone_reads_it() -> None:
    found = regions([conv("x", "c"), node("Relu", "c", "r"), node("Clip", "r,low,high", "k"), conv("k", "y")])
    assert [(layer.node.name, layer.data, layer.output) for layer in found.layers] == [("c", "x", "k"), ("y", "k", "y")]
    assert found.tensors == ["x", "k", "y"] and found.ends == ["y"]
    assert found.groups == {"x": "x", "k": "k", "y": "y"} and found.members("k") == ["k"]


@pytest.mark.parametrize("outputs", [("c", "y"), ("y",)])
def test_an_activation_beside_another_reader_stands_alone(outputs: tuple[str, ...]) -> None:
    nodes = [conv("x", "c"), node("Relu", "c", "r"), conv("r", "y")]
    nodes += [conv("c", "z")] if outputs == ("y",) else []
    found = regions(nodes, (*outputs, *(["z"] if len(nodes) == 4 else [])))
    assert found.layers[0].output == "c" and {"c", "r"} <= set(found.tensors)


def test_a_clip_with_computed_bounds_is_no_activation() -> None:
    nodes = [node("ReduceMax", "x", "top", keepdims=0), conv("x", "c"), node("Clip", "c,low,top", "k"), conv("k", "y")]
    assert regions(nodes).layers[0].output == "c"


def test_floats_that_are_moved_to_a_layer_do_not_leave_and_are_not_moved_in_int8() -> None:
    """A Resize between corners, joined with an int8 tensor, computes floats that the next layer quantises."""
    scales = {"twice": np.array([1, 1, 2, 2], np.float32), "wide": np.ones((CHANNELS, 2 * CHANNELS, 1, 1), np.float32)}
    pool = node("MaxPool", "c", "p", kernel_shape=[2, 2], strides=[2, 2])
    enlarged = node("Resize", "d,,twice", "z", mode="linear", coordinate_transformation_mode="align_corners")
    nodes = [conv("x", "c"), pool, conv("p", "d"), enlarged, node("Concat", "z,c", "t", axis=1)]
    found = regions([*nodes, node("Conv", "t,wide", "y")], constants=scales)
    assert found.tensors == ["x", "c", "p", "d", "t", "y"]
    assert found.ends == ["y"]
    assert found.moved == {"p"}
    summed = regions([*nodes, node("Conv", "t,wide", "y"), node("Exp", "z", "e")], ("y", "e"), constants=scales)
    assert summed.ends == ["d", "y"]


def test_what_lies_behind_the_last_layer_stays_in_float() -> None:
    found = regions([conv("x", "c"), node("Exp", "c", "e"), node("Sigmoid", "e", "y")])
    assert found.tensors == ["x", "c"] and found.ends == ["c"]


def test_the_maxima_of_a_layer_are_int8_before_floats_read_them() -> None:
    pool = node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2])
    found = regions([conv("x", "c"), node("Relu", "c", "r"), pool, node("Softmax", "p", "y")])
    assert found.tensors == ["x", "r", "p"] and found.ends == ["p"] and found.groups["p"] == found.groups["r"]
    assert found.moved == {"p"}
    uneven = node("MaxPool", "r", "p", kernel_shape=[2, 2], dilations=[2, 2])
    assert regions([conv("x", "c"), node("Relu", "c", "r"), uneven, node("Softmax", "p", "y")]).ends == ["r"]


def test_what_lies_between_layers_is_int8_where_operators_can() -> None:
    nodes = [
        conv("x", "c"),
        node("MaxPool", "c", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Transpose", "p", "t", perm=[0, 1, 3, 2]),
        conv("t", "y"),
    ]
    found = regions(nodes)
    assert found.tensors == ["x", "c", "p", "t", "y"]
    assert len({found.groups[name] for name in ("c", "p", "t")}) == 1, "moving keeps the scale"
    assert found.groups["x"] != found.groups["c"] != found.groups["y"] and found.ends == ["y"]
    assert found.members(found.groups["p"]) == ["c", "p", "t"]


def test_a_layer_behind_an_operator_of_floats_reads_it_as_int8() -> None:
    found = regions([conv("x", "c"), node("CumSum", "c,axis", "s"), conv("s", "y")], constants={"axis": np.array(1)})
    assert found.tensors == ["x", "c", "s", "y"]


@pytest.mark.parametrize(
    ("changed", "is_layer"),
    [
        ({"weights": "v"}, False),  # computed weights
        ({"weights": "w,v"}, False),  # a computed bias
        ({"weights": "w"}, True),
        ({"kept": ["y"]}, False),
        ({"kept": ["other"]}, True),
    ],
)
def test_a_layer_has_constant_weights_and_is_not_kept(changed: dict[str, Any], is_layer: bool) -> None:
    inputs = {"x": IMAGE, "v": (CHANNELS, CHANNELS, 1, 1) if changed.get("weights") == "v" else (CHANNELS,)}
    found = regions([conv("x", "y", changed.get("weights", "w,b"))], kept=changed.get("kept", ()), inputs=inputs)
    assert bool(found.layers) == is_layer and bool(found.tensors) == is_layer


@pytest.mark.parametrize(
    ("attributes", "is_layer"), [({"transB": 1}, True), ({}, False), ({"transA": 1, "transB": 1}, False)]
)
def test_a_dense_layer_has_its_weights_by_outputs(attributes: dict[str, int], is_layer: bool) -> None:
    shape = {"x": (CHANNELS, CHANNELS)}
    assert bool(regions([node("Gemm", "x,m", "y", **attributes)], inputs=shape).layers) == is_layer


def test_a_convolution_of_one_axis_is_no_layer() -> None:
    constants = {"w": np.ones((CHANNELS, CHANNELS, 1), np.float32)}
    assert regions([conv("x", "y", "w")], constants=constants, inputs={"x": (1, CHANNELS, 8)}).layers == []


def test_of_two_layers_that_are_added_the_later_takes_the_sum() -> None:
    nodes = [conv("x", "a"), conv("x", "b1"), node("Add", "a,b1", "s"), node("Relu", "s", "r"), conv("r", "y")]
    found = regions(nodes)
    first, second, _ = found.layers
    assert (first.output, first.residual) == ("a", "") and (second.output, second.residual) == ("r", "a")
    assert found.tensors == ["x", "a", "r", "y"] and found.adds == {}


@pytest.mark.parametrize("reader", ["output", "activated", "broadcast", "twice"])
def test_an_addition_that_no_layer_can_take_is_one_of_int8(reader: str) -> None:
    nodes = [conv("x", "a"), conv("x", "c"), node("Add", "a,c", "s"), conv("s", "y")]
    outputs, pairs = ["y"], {"s": ("a", "c")}
    if reader == "output":
        outputs += ["a", "c"]  # sums that others read are not taken
    elif reader == "activated":
        nodes[:3] = [conv("x", "p"), conv("x", "q"), node("Relu", "p", "a"), node("Relu", "q", "c"), nodes[2]]
    elif reader == "broadcast":
        nodes.insert(0, node("GlobalAveragePool", "x", "g"))
        nodes[1:3] = [conv("g", "a"), node("Relu", "x", "c")]
    else:
        nodes[2] = node("Add", "a,a", "s")
        pairs = {}
    found = regions(nodes, outputs)
    assert found.adds == pairs and all(not layer.residual for layer in found.layers)
    assert "s" in found.tensors


def test_a_sum_takes_what_is_moved_from_int8_and_not_what_floats_make() -> None:
    moved = [node("Transpose", "x", "t", perm=[0, 1, 3, 2]), conv("x", "c"), node("Add", "t,c", "s"), conv("s", "y")]
    found = regions(moved)
    assert found.layers[0].residual == "t" and found.tensors == ["x", "t", "s", "y"]
    assert found.groups["t"] == found.groups["x"]
    made = [node("CumSum", "x,axis", "t"), *moved[1:]]
    found = regions(made, constants={"axis": np.array(1)})
    assert found.layers[0].residual == "" and found.layers[0].output == "c"


def test_a_product_of_two_tensors_is_noted_and_one_with_a_constant_is_not() -> None:
    nodes = [conv("x", "a"), conv("x", "c"), node("Mul", "a,c", "s"), conv("s", "y")]
    found = regions(nodes)
    assert found.products == {"s": ("a", "c")} and found.adds == {} and "s" in found.tensors
    found = regions([*nodes[:3], node("Mul", "s,one", "n"), conv("n", "y")])
    assert found.products == {} and "s" not in found.tensors, "a factor for each channel is float's, and what it reads"


@pytest.mark.parametrize(
    ("slopes", "is_int8"),
    [
        (np.full((CHANNELS, 1, 1), 0.1), True),
        (np.full((1, CHANNELS, 1, 1), 0.1), True),
        (np.full((1, 1, 8, 1), 0.1), False),
        (np.full((CHANNELS, 8, 8), 0.1), False),
        (None, False),
    ],
)
def test_a_bend_by_channel_is_one_of_int8(slopes: Array | None, is_int8: bool) -> None:
    pool = node("MaxPool", "t", "p", kernel_shape=[2, 2], strides=[2, 2])
    nodes = [conv("x", "c"), node("PRelu", "c,s", "t"), pool, conv("p", "y")]
    given: dict[str, Any] = {"inputs": {"x": IMAGE, "s": (CHANNELS, 1, 1)}}
    if slopes is not None:
        given = {"constants": {"s": slopes.astype(np.float32)}}
    found = regions(nodes, **given)
    assert found.tensors == (["x", "c", "t", "p", "y"] if is_int8 else ["x", "c", "p", "y"])
    if is_int8:
        assert found.groups["c"] != found.groups["t"] == found.groups["p"]


def test_an_expression_of_one_tensor_is_one_step() -> None:
    """Sigmoid and the product with its own argument are a table: nothing between them is int8."""
    nodes = [conv("x", "c"), node("Sigmoid", "c", "g"), node("Mul", "c,g", "s"), conv("s", "y")]
    found = regions(nodes)
    assert found.tensors == ["x", "c", "s", "y"] and found.products == {} and found.ends == ["y"]
    assert "g" in regions([*nodes, conv("g", "z")], ("y", "z")).tensors, "a layer reads it"
    assert "g" in regions(nodes, ("y", "g")).tensors, "the caller reads it"


POOLED = (1, CHANNELS, 9, 9)


def is_int8_between_layers(operator: Any, constants: dict[str, Array] | None = None, **changed: Any) -> bool:
    """Tell whether the result p of an operator on a layer's c is int8 where a moving operator and a layer follow."""
    nodes = [conv("x", "c"), operator, node("Transpose", "p", "t", perm=[0, 1, 3, 2]), conv("t", "y")]
    found = regions(nodes, constants=constants, **changed)
    assert set(found.tensors) - {"p"} == {"x", "c", "t", "y"}, "a layer reads the results of floats as int8"
    return "p" in found.tensors


@pytest.mark.parametrize(
    ("op", "attributes", "is_int8"),
    [
        ("MaxPool", {}, True),
        ("MaxPool", {"pads": [1, 1, 1, 1]}, True),
        ("MaxPool", {"dilations": [2, 1]}, False),
        ("MaxPool", {"ceil_mode": 1}, True),
        ("AveragePool", {}, True),
        ("AveragePool", {"pads": [1, 1, 0, 0]}, True),
        ("AveragePool", {"pads": [1, 1, 0, 0], "count_include_pad": 1}, True),
        ("AveragePool", {"ceil_mode": 1}, True),
        ("AveragePool", {"dilations": [2, 1]}, False),
    ],
)
def test_a_pool_is_int8_if_its_windows_are_whole(op: str, attributes: dict[str, Any], is_int8: bool) -> None:
    pool = node(op, "c", "p", **{"kernel_shape": [2, 2], "strides": [2, 2], **attributes})
    assert is_int8_between_layers(pool, inputs={"x": POOLED}) == is_int8
    found = regions([conv("x", "c"), pool, conv("p", "y")], inputs={"x": POOLED})
    assert (found.groups["c"] == found.groups["p"]) == (op == "MaxPool"), "a mean has a scale of its own"


@pytest.mark.parametrize(
    ("op", "constant", "attributes"),
    [
        ("GlobalMaxPool", None, {}),
        ("Expand", np.array([2, CHANNELS, 8, 8]), {}),
        ("Gather", np.array([3, 0, 2, 1]), {"axis": 1}),
        ("Gather", np.array([7, 5, -1, 0]), {"axis": 2}),
    ],
)
def test_values_that_move_keep_their_scale(op: str, constant: Array | None, attributes: dict[str, Any]) -> None:
    constants = {} if constant is None else {"to": constant}
    moving = node(op, ",".join(("c", *constants)), "p", **attributes)
    assert is_int8_between_layers(moving, constants)
    found = regions([conv("x", "c"), moving, conv("p", "y")], constants=constants)
    assert found.groups["c"] == found.groups["p"] and found.moved == {"p"}


def test_a_gather_of_computed_places_is_one_of_floats() -> None:
    gather = node("Gather", "c,to", "p", axis=1)
    found = regions(
        [conv("x", "c"), gather, conv("p", "y")],
        inputs={"x": IMAGE, "to": (CHANNELS,)},
        types={"to": TensorProto.INT64},
    )
    assert not found.moved


PADS = np.array([0, 0, 1, 1, 0, 0, 1, 1])


@pytest.mark.parametrize(
    ("mode", "value", "is_int8"),
    [("constant", None, True), ("constant", 0.0, True), ("constant", 0.5, False), ("reflect", None, True)],
)
def test_zeros_and_a_tensors_own_elements_are_padded_in_int8(mode: str, value: float | None, is_int8: bool) -> None:
    constants = {"pads": PADS, **({} if value is None else {"v": np.array(value, np.float32)})}
    pad = node("Pad", "c,pads" + ("" if value is None else ",v"), "p", mode=mode)
    assert is_int8_between_layers(pad, constants) == is_int8


@pytest.mark.parametrize(
    ("mode", "place", "factor", "is_int8"),
    [
        *(("nearest", "half_pixel", 2, True), ("linear", "half_pixel", 2, True), ("linear", "asymmetric", 4, True)),
        *(("linear", "align_corners", 2, False), ("linear", "half_pixel", 3, False), ("cubic", "half_pixel", 2, False)),
    ],
)
def test_elements_and_sums_of_neighbours_are_taken_in_int8(mode: str, place: str, factor: int, is_int8: bool) -> None:
    constants = {"scales": np.array([1, 1, factor, factor], np.float32)}
    resize = node("Resize", "c,,scales", "p", mode=mode, coordinate_transformation_mode=place)
    assert is_int8_between_layers(resize, constants) == is_int8


def test_a_part_of_constant_floats_is_joined_in_float() -> None:
    join = node("Concat", "c,part", "p", axis=3)
    assert not is_int8_between_layers(join, {"part": np.ones((1, CHANNELS, 8, 2), np.float32)})


def test_joined_tensors_share_a_scale() -> None:
    constants = {"v": np.ones((4, 8, 1, 1), np.float32)}
    nodes = [conv("x", "a"), conv("x", "c"), node("Concat", "a,c", "j", axis=1), conv("j", "y", "v")]
    found = regions(nodes, constants=constants)
    assert len({found.groups[name] for name in ("a", "c", "j")}) == 1 and found.groups["x"] not in {found.groups["j"]}


def test_a_kept_operator_between_layers_stays_in_float() -> None:
    pool = node("MaxPool", "c", "p", kernel_shape=[2, 2])
    assert is_int8_between_layers(pool) and not is_int8_between_layers(pool, kept=["p"])


def test_a_vector_or_integers_at_the_input_stay_as_they_are() -> None:
    nodes = [node("Cast", "n", "f", to=TensorProto.FLOAT), conv("f", "y")]
    found = regions(nodes, inputs={"n": IMAGE}, types={"n": TensorProto.INT64})
    assert found.tensors == ["f", "y"]
    nodes = [node("Neg", "v", "g"), node("Reshape", "g,shape", "f"), node("Gemm", "f,m", "y", transB=1)]
    found = regions(nodes, inputs={"v": (CHANNELS,)}, constants={"shape": np.array([1, CHANNELS])})
    assert found.tensors == ["f", "y"]


FEW = {"few": np.array(1.75, np.float32), "many": np.array(0.1, np.float32)}


def shifted(front: str, behind: str) -> list[Any]:
    """Return a product of two layers' results, with scalars added to its data and to its result, and a layer."""
    ends = [node("Add", f"c,{front}", "e"), node("Mul", "e,d", "p"), node("Add", f"p,{behind}", "q"), conv("q", "y")]
    return [conv("x", "c"), conv("x", "d"), *ends]


def test_a_product_takes_up_scalars_of_few_bits() -> None:
    found = regions(shifted("few", "few"), constants=FEW)
    assert found.products == {"q": ("c", "d")}
    assert found.offsets == {"c": 1.75, "q": 1.75}
    assert found.shifted.isdisjoint(found.tensors) and found.tensors == ["x", "c", "d", "q", "y"]
    assert found.ends == ["y"]


def test_scalars_of_many_bits_are_a_function_in_front_and_behind() -> None:
    found = regions(shifted("many", "many"), constants=FEW)
    assert found.products == {"p": ("e", "d")} and not found.offsets
    assert {"e", "p", "q"} <= set(found.tensors)


def test_a_product_takes_up_no_sum_that_others_read() -> None:
    found = regions([*shifted("few", "few"), conv("e", "z"), conv("p", "v")], ("y", "z", "v"), constants=FEW)
    assert found.products == {"p": ("e", "d")} and not found.offsets
