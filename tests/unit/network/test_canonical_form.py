"""Rewriting a float model leaves its results as they are."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.defs import onnx_opset_version

from hilt.network.calibration import Runner
from hilt.network.onnx_graph import OnnxError
from hilt.network.onnx_simplify import fixed_model, read_fixed

from .models import Array, assert_same, canonical, model_of, normal, run_float, saved


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_one_dimensional_layers_become_two_dimensional(op: str) -> None:
    node = helper.make_node(op, ["x", "w"], ["y"], strides=[2], pads=[1, 0], dilations=[2])
    operators = assert_same(model_of([node], {"x": (1, 4, 15)}, {"w": normal(4, 4, 3)}), {"x": normal(1, 4, 15)})
    assert operators["Reshape"] == {"Conv": 2, "ConvTranspose": 4}[op]  # its phases are put beside each other


@pytest.mark.parametrize(
    ("shape", "weights"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (1, 4, 5)), ((1, 2, 3, 4), (1, 1, 4, 5))]
)
def test_a_product_with_constant_weights_becomes_dense(shape: tuple[int, ...], weights: tuple[int, ...]) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Add", ["s", "b"], ["y"])]
    model = model_of(nodes, {"x": shape}, {"w": normal(*weights), "b": normal(5)})
    operators = assert_same(model, {"x": normal(*shape)})
    assert operators["Gemm"] == 1 and operators["MatMul"] == 0


def test_gemm_takes_its_factors_into_its_weights() -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=0.5, beta=3.0)
    model = model_of([node], {"x": (2, 4)}, {"w": normal(4, 5), "b": normal(1, 5)})
    assert_same(model, {"x": normal(2, 4)})


@pytest.mark.parametrize(
    ("term", "attributes"),
    [
        ((5,), {"transA": 1, "alpha": 0.5}),
        ((1, 5), {"transB": 1, "beta": 3.0}),
        ((5, 1), {"beta": 3.0}),
        ((5, 5), {"transB": 1, "alpha": 2.0}),
        ((1,), {"transA": 1, "transB": 1}),
        ((5,), {"beta": 0.0}),
    ],
)
def test_each_form_of_gemm_computes_the_same_in_front_of_a_factor(
    term: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    nodes = [helper.make_node("Gemm", ["x", "w", "c"], ["s"], **attributes), helper.make_node("Mul", ["s", "f"], ["y"])]
    model = model_of(nodes, {"x": (5, 5)}, {"w": normal(5, 5), "c": normal(*term), "f": normal(5)})
    operators = assert_same(model, {"x": normal(5, 5)})
    assert operators["Gemm"] == 1


def test_a_term_of_gemm_that_is_computed_is_added() -> None:
    node = helper.make_node("Gemm", ["x", "w", "c"], ["y"], beta=0.5)
    model = model_of([node], {"x": (2, 4), "c": (2, 5)}, {"w": normal(4, 5)})
    operators = assert_same(model, {"x": normal(2, 4), "c": normal(2, 5)})
    assert operators == {"Gemm": 1, "Mul": 1, "Add": 1}


@pytest.mark.parametrize("opset", [11, 22])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]])
@pytest.mark.parametrize("attributes", [{}, {"count_include_pad": 0}, {"count_include_pad": 1}])
def test_the_last_windows_of_a_pool_are_onnx_runtimes(opset: int, pads: list[int], attributes: dict[str, Any]) -> None:
    op = "AveragePool" if attributes else "MaxPool"
    attributes = {**attributes, "kernel_shape": [3, 2], "strides": [2, 2], "pads": pads, "ceil_mode": 1}
    nodes = [helper.make_node(op, ["x"], ["p"], **attributes), helper.make_node("Relu", ["p"], ["y"])]
    assert_same(model_of(nodes, {"x": (1, 2, 8, 7)}, opset=opset), {"x": normal(1, 2, 8, 7)})


def test_a_pad_of_named_axes_pads_these() -> None:
    nodes = [helper.make_node("Pad", ["x", "p", "", "a"], ["s"]), helper.make_node("Conv", ["s", "w"], ["y"])]
    constants = {"p": np.array([1, 2, 2, 1]), "a": np.array([-1, 2]), "w": normal(3, 2, 1, 1)}
    assert_same(model_of(nodes, {"x": (1, 2, 4, 4)}, constants, opset=18), {"x": normal(1, 2, 4, 4)})


@pytest.mark.parametrize(("scales", "sizes"), [([2.0, 1.5], []), ([], [9, 7])])
def test_a_resize_of_named_axes_resizes_these(scales: list[float], sizes: list[int]) -> None:
    names = ["x", "", "f" if scales else "", "n" if sizes else ""]
    node = helper.make_node("Resize", names, ["y"], mode="linear", axes=[2, -1])
    constants: dict[str, Array] = {"f": np.array(scales, np.float32)} if scales else {"n": np.array(sizes)}
    assert_same(model_of([node], {"x": (1, 2, 4, 4)}, constants, opset=18), {"x": normal(1, 2, 4, 4)})


def test_sparse_constants_are_read_in_full() -> None:
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": (1, 3, 4, 4)})
    values = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    places = numpy_helper.from_array(np.array([0, 5]), "places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 3, 1, 1]))
    assert_same(model, {"x": normal(1, 3, 4, 4)})


def test_nodes_of_one_name_are_told_apart() -> None:
    nodes = [
        helper.make_node(op, [first], [last], name="n") for op, first, last in (("Relu", "x", "s"), ("Abs", "s", "y"))
    ]
    assert [node.name for node in canonical(model_of(nodes, {"x": (1, 2)})).nodes] == ["n", "n_2"]


@pytest.mark.parametrize("is_output", [False, True])
def test_a_turn_of_joined_results_that_is_an_output_is_taken_of_each(is_output: bool) -> None:
    """A Transpose that makes an output turns floats where the scales differ; of each result it turns bytes."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["a", "u"], ["b"], strides=[2, 2]),
        helper.make_node("Reshape", ["a", "flat"], ["c"]),
        helper.make_node("Reshape", ["b", "flat"], ["d"]),
        helper.make_node("Concat", ["c", "d"], ["j"], axis=2),
        helper.make_node("Sigmoid", ["j"], ["s"]),
        helper.make_node("Transpose", ["s"], ["y" if is_output else "t"], perm=[0, 2, 1]),
        *([] if is_output else [helper.make_node("ReduceMax", ["t"], ["y"], axes=[2])]),
    ]
    constants = {"w": normal(6, 3, 1, 1), "u": normal(6, 6, 2, 2), "flat": np.array([1, 6, -1])}
    operators = assert_same(model_of(nodes, {"x": (1, 3, 6, 6)}, constants), {"x": normal(1, 3, 6, 6)})
    assert operators["Transpose"] == (2 if is_output else 1) and operators["Concat"] == 1


def test_dilation_is_written_as_zeros_or_dropped() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"], dilations=[2, 2]),
        helper.make_node("Conv", ["s", "v"], ["y"], dilations=[3, 3]),
    ]
    model = model_of(nodes, {"x": (1, 2, 9, 9)}, {"w": normal(3, 2, 3, 3), "v": normal(2, 3, 1, 1)})
    assert_same(model, {"x": normal(1, 2, 9, 9)})
    assert all(node.attributes["dilations"] == [1, 1] for node in canonical(model).nodes)


def test_split_mean_and_shape_chains_follow() -> None:
    nodes = [
        helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=1),
        helper.make_node("ReduceMean", ["a"], ["m"], axes=[-1, 2], keepdims=0),
        helper.make_node("Shape", ["b"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Concat", ["batch", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["m", "target"], ["y"]),
    ]
    constants = {"sizes": np.array([3, 1]), "zero": np.array([0]), "rest": np.array([-1])}
    operators = assert_same(model_of(nodes, {"x": (1, 4, 4, 4)}, constants), {"x": normal(1, 4, 4, 4)})
    assert operators == {"Slice": 1, "GlobalAveragePool": 1, "Reshape": 1}


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("place", [np.array(2), np.array(-1), np.array([0]), np.array([[-2]])])
def test_a_gather_of_one_place_is_a_slice(axis: int, place: Array) -> None:
    model = model_of([helper.make_node("Gather", ["x", "place"], ["y"], axis=axis)], {"x": (2, 3, 4)}, {"place": place})
    assert assert_same(model, {"x": normal(2, 3, 4)}) == {"Slice": 1, "Reshape": 1}


def test_a_gather_of_more_places_or_of_a_constant_stays() -> None:
    for given, places in (("x", np.array([1, 1])), ("x", "i"), ("table", "i")):
        computed = isinstance(places, str)
        shapes: dict[str, Any] = {"x": (3, 4)} | ({"i": (1,)} if computed else {})
        model = model_of(
            [helper.make_node("Gather", [given, "i" if computed else "p"], ["z"], axis=0),
             helper.make_node("Add", ["z", "x"] if given == "table" else ["z", "z"], ["y"])],
            shapes, {"table": normal(3, 4)} | ({} if computed else {"p": places}),
            types={"i": TensorProto.INT64},
        )  # fmt: skip
        feeds = {"x": normal(3, 4)} | ({"i": np.array([2])} if computed else {})
        assert assert_same(model, feeds)["Gather"] == 1


def test_a_branch_with_a_constant_condition_is_inlined() -> None:
    def branch(op: str) -> Any:
        inner = [helper.make_node(op, ["x"], ["t"]), helper.make_node("Neg", ["t"], ["r"])]
        return helper.make_graph(inner, op, [], [helper.make_tensor_value_info("r", TensorProto.FLOAT, (1, 4))])

    nodes = [
        helper.make_node("Equal", ["rate", "wanted"], ["condition"]),
        helper.make_node("If", ["condition"], ["y"], then_branch=branch("Relu"), else_branch=branch("Tanh")),
    ]
    model = model_of(nodes, {"x": (1, 4), "rate": ()}, {"wanted": np.array(16000)}, types={"rate": TensorProto.INT64})
    for rate, op in ((16000, "Relu"), (8000, "Tanh")):
        from hilt.network.onnx_graph import graph_of
        from hilt.network.onnx_simplify import fix

        graph = graph_of(model, "branches")
        fix(graph, {}, {"rate": rate})
        assert [node.op for node in graph.nodes] == [op, "Neg"]
        assert graph.inputs == ["x"]


def test_old_forms_are_read() -> None:
    nodes = [
        helper.make_node("Pad", ["x"], ["p"], pads=[0, 0, 1, 1, 0, 0, 0, 0], value=0.5),
        helper.make_node("Slice", ["p"], ["s"], starts=[0, 1], ends=[2, 5], axes=[1, 2]),
        helper.make_node("Clip", ["s"], ["c"], min=-0.5),
        helper.make_node("Upsample", ["c", "scales"], ["u"], mode="nearest"),
        helper.make_node("Unsqueeze", ["u"], ["q"], axes=[0]),
        helper.make_node("Squeeze", ["q"], ["r"], axes=[0]),
        helper.make_node("Softmax", ["r"], ["y"], axis=1),
    ]
    model = model_of(nodes, {"x": (1, 3, 4, 4)}, {"scales": np.array([1, 1, 2, 2], np.float32)}, opset=9)
    assert_same(model, {"x": normal(1, 3, 4, 4)})


def test_open_shapes_ask_for_the_option(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["image", "w"], ["y"])
    model = model_of([node], {"image": ("batch", 3, "height", None)}, {"w": normal(4, 3, 3, 3)})
    path = saved(model, tmp_path / "open.onnx")
    with pytest.raises(
        OnnxError, match=r"input image of open has the open shape \?x3x\?x\?; give it with --shape image="
    ):
        read_fixed(path)
    assert read_fixed(path, {"image": (1, 3, 8, 8)}).shape("y") == (1, 4, 6, 6)
    with pytest.raises(OnnxError, match=r"input image is \?x3x\?x\? in open, not 1x4x8x8"):
        read_fixed(path, {"image": (1, 4, 8, 8)})
    with pytest.raises(OnnxError, match="open has no input x; its inputs are image"):
        read_fixed(path, {"x": (1, 3, 8, 8)})


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OnnxError, match="cannot read"):
        read_fixed(tmp_path / "absent.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"\x00\x01 no model")
    with pytest.raises(OnnxError, match="no ONNX model"):
        read_fixed(tmp_path / "broken.onnx")
    newest = onnx_opset_version()
    node = helper.make_node("Relu", ["x"], ["y"])
    assert fixed_model(model_of([node], {"x": (1,)}, opset=newest), "new").opset == newest
    with pytest.raises(OnnxError, match=f"has opset {newest + 1}; onnx here knows {newest}: update it"):
        fixed_model(model_of([node], {"x": (1,)}, opset=newest + 1), "newer")


@pytest.mark.parametrize(("kind", "dtype"), [(TensorProto.FLOAT16, np.float16), (TensorProto.DOUBLE, np.float64)])
def test_other_floats_become_float32(kind: int, dtype: type) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["s"]), helper.make_node("Cast", ["s"], ["y"], to=kind)]
    kinds = {"x": kind, "y": kind}
    model = model_of(nodes, {"x": (1, 2, 4, 4)}, {"w": normal(3, 2, 1, 1).astype(dtype)}, types=kinds)
    graph = canonical(model)
    assert [node.op for node in graph.nodes] == ["Conv"]
    assert graph.dtypes["x"] == "float32" and graph.constants[graph.nodes[0].inputs[1]].dtype == np.float32


@pytest.mark.parametrize(
    ("activation", "numbers"),
    [("Relu", []), ("Clip", [-0.5, 0.75]), ("LeakyRelu", [0.25]), ("HardSigmoid", [0.2, 0.5]), ("Tanh", [])],
)
@pytest.mark.parametrize("added", [False, True])
def test_a_fused_convolution_is_taken_apart(activation: str, numbers: list[float], added: bool) -> None:
    names = ["x", "w", "b", *(["z"] if added else [])]
    attributes: dict[str, Any] = {"activation": activation, "pads": [1, 1, 1, 1]}
    if numbers:
        attributes["activation_params"] = numbers
    node = helper.make_node("FusedConv", names, ["y"], domain="com.microsoft", **attributes)
    inputs = {"x": (1, 3, 5, 5), **({"z": (1, 4, 5, 5)} if added else {})}
    model = model_of([node], inputs, {"w": normal(4, 3, 3, 3), "b": normal(4)})
    operators = assert_same(model, {name: normal(*shape) for name, shape in inputs.items()})
    assert operators["Conv"] == 1 and operators["FusedConv"] == 0


_SCALARS = {"three": np.float32(3), "zero": np.float32(0), "six": np.float32(6), "sixth": np.float32(1 / 6)}


@pytest.mark.parametrize(
    "gate",
    [
        [("HardSigmoid", ["s"], "y", {})],
        [("HardSigmoid", ["s"], "y", {"alpha": 1 / 6, "beta": 0.4})],
        [("Add", ["s", "three"], "a", {}), ("Clip", ["a", "zero", "six"], "c", {}), ("Div", ["c", "six"], "y", {})],
        [("Add", ["three", "s"], "a", {}), ("Clip", ["a", "zero", "six"], "c", {}), ("Mul", ["sixth", "c"], "y", {})],
    ],
)
@pytest.mark.parametrize("layer", ["Conv", "Gemm"])
def test_a_gate_behind_a_layer_is_the_layers_clip(gate: list[Any], layer: str) -> None:
    shape = (2, 3, 5, 5) if layer == "Conv" else (2, 3)
    weights = {"w": normal(4, 3, 1, 1) if layer == "Conv" else normal(3, 4), "b": normal(4)}
    used = {name for _, inputs, _, _ in gate for name in inputs}
    weights |= {name: np.asarray(value) for name, value in _SCALARS.items() if name in used}
    nodes = [helper.make_node(layer, ["x", "w", "b"], ["s"])]
    nodes += [helper.make_node(op, inputs, [output], **attributes) for op, inputs, output, attributes in gate]
    assert assert_same(model_of(nodes, {"x": shape}, weights), {"x": 3 * normal(*shape)}) == {layer: 1, "Clip": 1}


@pytest.mark.parametrize(
    "nodes",
    [
        [("HardSigmoid", ["s"], "g", {}), ("Mul", ["s", "g"], "y", {})],
        [("Relu", ["s"], "r", {}), ("HardSigmoid", ["r"], "y", {})],
        [("Clip", ["s", "zero", "six"], "c", {}), ("Div", ["six", "c"], "y", {})],
        [("Clip", ["s", "zero", "six"], "c", {}), ("Mul", ["c", "c"], "y", {})],
        [("Clip", ["s", "", "six"], "c", {}), ("Mul", ["c", "six"], "y", {})],
    ],
)
def test_other_gates_stay_as_they_are(nodes: list[Any]) -> None:
    used = {name for _, inputs, _, _ in nodes for name in inputs}
    weights = {name: np.asarray(value) for name, value in _SCALARS.items() if name in used}
    made = [helper.make_node("Conv", ["x", "w", "b"], ["s"])]
    made += [helper.make_node(op, inputs, [output], **attributes) for op, inputs, output, attributes in nodes]
    model = model_of(made, {"x": (1, 3, 5, 5)}, {"w": normal(4, 3, 1, 1), "b": 9 + normal(4), **weights})
    assert assert_same(model, {"x": normal(1, 3, 5, 5)}) == Counter(node.op_type for node in made)


@pytest.mark.parametrize(("equation", "shape"), [("abc,cd->abd", (6, 8)), ("abc,dc->abd", (8, 6))])
def test_einsum_with_constant_weights_is_a_product(equation: str, shape: tuple[int, ...]) -> None:
    node = helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)
    operators = assert_same(model_of([node], {"x": (2, 5, 6)}, {"w": normal(*shape)}), {"x": normal(2, 5, 6)})
    assert operators["Einsum"] == 0


def test_a_fused_product_keeps_its_factor_and_transposition() -> None:
    node = helper.make_node("FusedMatMul", ["x", "w"], ["y"], domain="com.microsoft", alpha=0.5, transB=1)
    operators = assert_same(model_of([node], {"x": (4, 6)}, {"w": normal(8, 6)}), {"x": normal(4, 6)})
    assert operators["FusedMatMul"] == 0


@pytest.mark.parametrize("turned", [False, True])
def test_images_of_one_channel_are_joined_channels_first(turned: bool) -> None:
    """A layer's result and images of one channel, joined with channels last: nothing is turned."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["f"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["f", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Transpose", ["c"], ["l"], perm=[0, 2, 3, 1]),
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Concat", ["a", "l" if turned else "x", "a"], ["j"], axis=-1),
        helper.make_node("Slice", ["j", "one", "many", "two"], ["s"]),
        helper.make_node("Transpose", ["s"], ["g"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["g", "v"], ["y"]),
    ]
    constants = {
        "w": normal(4, 1, 3, 3), "v": normal(2, 6 if turned else 3, 1, 1),
        "one": np.array([1]), "many": np.array([1 << 40]), "two": np.array([2]),
    }  # fmt: skip
    made = assert_same(model_of(nodes, {"x": (1, 5, 7, 1)}, constants), {"x": normal(1, 5, 7, 1)})
    assert made["Transpose"] == 0 and made["Concat"] == 1


@pytest.mark.parametrize("change", ["two channels", "never turned", "a constant"])
def test_other_joins_keep_channels_last(change: str) -> None:
    given = (1, 5, 7, 2 if change == "two channels" else 1)
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Concat", ["a", "k" if change == "a constant" else "x"], ["j"], axis=3),
        helper.make_node("Transpose", ["j"], ["y"], perm=[0, 2, 1, 3] if change == "never turned" else [0, 3, 1, 2]),
    ]
    made = assert_same(model_of(nodes, {"x": given}, {"k": normal(*given)}), {"x": normal(*given)})
    assert made["Transpose"] == 1 and made["Reshape"] == 0


def test_layouts_of_converters_cancel_behind_the_operators_between() -> None:
    """NHWC models: Transposes around each layer meet, and a dense layer behind a flatten takes its columns in order."""
    random = np.random.default_rng(3)
    nodes = [
        helper.make_node("Transpose", ["x"], ["f"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["f", "w"], ["a"], pads=[1] * 4),
        helper.make_node("Transpose", ["a"], ["l"], perm=[0, 2, 3, 1]),
        helper.make_node("Add", ["l", "bias"], ["b"]),
        helper.make_node("Relu", ["b"], ["r"]),
        helper.make_node("Pad", ["r", "pads"], ["p"]),
        helper.make_node("Slice", ["p", "start", "end", "axes"], ["c"]),
        helper.make_node("Concat", ["c", "c"], ["d"], axis=3),
        helper.make_node("Transpose", ["d"], ["g"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["g", "v"], ["h"]),
        helper.make_node("Transpose", ["h"], ["i"], perm=[0, 2, 3, 1]),
        helper.make_node("Flatten", ["i"], ["k"]),
        helper.make_node("MatMul", ["k", "m"], ["y"]),
        helper.make_node("ReduceMean", ["i"], ["z"], axes=[1, 2], keepdims=0),
    ]
    constants = {
        "w": random.normal(size=(4, 3, 3, 3)), "bias": random.normal(size=(4,)), "v": random.normal(size=(5, 8, 1, 1)),
        "m": random.normal(size=(5 * 7 * 5, 6)),
    }  # fmt: skip
    made = {name: value.astype(np.float32) for name, value in constants.items()} | {
        "pads": np.array([0, 1, 0, 0, 0, 0, 1, 0]), "start": np.array([1]), "end": np.array([6]), "axes": np.array([1]),
    }  # fmt: skip
    model = model_of(nodes, {"x": (1, 6, 6, 3)}, made, ("y", "z"))
    graph = canonical(model)
    ops = [node.op for node in graph.nodes]
    assert ops.count("Transpose") == 1 and ops[:3] == ["Transpose", "Conv", "Relu"] and "GlobalAveragePool" in ops
    data = random.normal(size=(1, 6, 6, 3)).astype(np.float32)
    given = Runner(graph, graph.outputs).run({"x": data})
    for wanted, name in zip(run_float(model, {"x": data}), graph.outputs, strict=True):
        np.testing.assert_allclose(given[name], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [(3, 3), (7, 5), (1, 12)])
@pytest.mark.parametrize("dense", [False, True])
def test_a_mean_that_weights_read_divides_by_a_power_of_two(size: tuple[int, int], dense: bool) -> None:
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["m"])]
    numbers: dict[str, Array] = {"w": normal(5, 4, 1, 1), "shape": np.array([1, 4])}
    if dense:
        numbers["w"] = normal(5, 4)
        nodes += [
            helper.make_node("Reshape", ["m", "shape"], ["f"]),
            helper.make_node("Gemm", ["f", "w"], ["y"], transB=1),
        ]
    else:
        numbers.pop("shape")
        nodes += [helper.make_node("Relu", ["m"], ["r"]), helper.make_node("Conv", ["r", "w"], ["y"])]
    model = model_of(nodes, {"x": (1, 4, *size)}, numbers)
    assert_same(model, {"x": normal(1, 4, *size)})
    graph = canonical(model)
    (pool,) = (node for node in graph.nodes if node.op.endswith("AveragePool"))
    taps = math.prod(pool.attributes["kernel_shape"])
    assert taps & (taps - 1) == 0 and pool.attributes["count_include_pad"] == 1


def test_a_mean_that_something_else_reads_too_keeps_its_divisor() -> None:
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["m"]),
        helper.make_node("Conv", ["m", "w"], ["c"]),
        helper.make_node("Add", ["c", "m"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 4, 3, 3)}, {"w": normal(4, 4, 1, 1)})
    assert "GlobalAveragePool" in assert_same(model, {"x": normal(1, 4, 3, 3)})


def test_a_square_is_a_product() -> None:
    nodes = [helper.make_node("Pow", ["x", "two"], ["y"])]
    model = model_of(nodes, {"x": (1, 4)}, {"two": np.array(2, np.float32)})
    assert list(assert_same(model, {"x": normal(1, 4)})) == ["Mul"]


@pytest.mark.parametrize("opset", [17, 18])  # the axes became an input between
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_sum_of_squares_is_one_operator(opset: int, keepdims: int) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["s"]),
        helper.make_node("ReduceSum", ["s", "axes"], ["y"], keepdims=keepdims),
    ]
    for axes in ([1], [0, 2]):
        model = model_of(nodes, {"x": (2, 3, 4)}, {"axes": np.array(axes)}, opset=opset)
        assert list(assert_same(model, {"x": normal(2, 3, 4)})) == ["ReduceSumSquare"]


@pytest.mark.parametrize(
    ("op", "parts"), [("ReduceL1", ["Abs", "ReduceSum"]), ("ReduceL2", ["ReduceSumSquare", "Sqrt"])]
)
@pytest.mark.parametrize("opset", [17, 18])
@pytest.mark.parametrize("axes", [[-1], [0, 2], None])
def test_norms_over_axes_are_sums(op: str, parts: list[str], opset: int, axes: list[int] | None) -> None:
    as_input = axes is not None and opset >= 18
    attributes: dict[str, Any] = {} if as_input or axes is None else {"axes": axes}
    node = helper.make_node(op, ["x", "axes"] if as_input else ["x"], ["y"], keepdims=0, **attributes)
    constants = {"axes": np.array(axes)} if as_input else {}
    model = model_of([node], {"x": (2, 3, 4)}, constants, opset=opset)
    assert list(assert_same(model, {"x": normal(2, 3, 4)})) == parts


@pytest.mark.parametrize("opset", [17, 18])
@pytest.mark.parametrize(
    ("shape", "axes", "keepdims", "made"),
    [
        ((2, 3, 7), [2], 0, ["GlobalMaxPool", "Reshape"]),
        ((2, 3, 7), [-1], 1, ["GlobalMaxPool"]),
        ((2, 3, 4, 5), [3, 2], 0, ["GlobalMaxPool", "Reshape"]),
        ((2, 3, 4, 5), [2], 0, ["ReduceMax"]),
        ((2, 3, 4, 5), [1, 2, 3], 1, ["ReduceMax"]),
        ((2, 3), [1], 1, ["ReduceMax"]),
    ],
)
def test_a_maximum_over_the_image_is_a_pool(
    shape: tuple[int, ...], axes: list[int], keepdims: int, made: list[str], opset: int
) -> None:
    as_input = opset >= 18
    attributes: dict[str, Any] = {} if as_input else {"axes": axes}
    node = helper.make_node("ReduceMax", ["x", "axes"] if as_input else ["x"], ["y"], keepdims=keepdims, **attributes)
    model = model_of([node], {"x": shape}, {"axes": np.array(axes)} if as_input else {}, opset=opset)
    assert list(assert_same(model, {"x": normal(*shape)})) == made


def test_squares_that_others_read_stay() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["s"]),
        helper.make_node("ReduceSum", ["s", "axes"], ["t"]),
        helper.make_node("Add", ["s", "t"], ["y"]),
    ]
    model = model_of(nodes, {"x": (2, 3, 4)}, {"axes": np.array([1])})
    assert assert_same(model, {"x": normal(2, 3, 4)}) == {"Mul": 1, "ReduceSumSquare": 1, "Add": 1}


def test_pads_that_no_load_holds_are_a_pad_in_front() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[0, 19, 0, 19])]
    model = model_of(nodes, {"x": (1, 4, 3, 40)}, {"w": normal(5, 4, 1, 39)})
    assert assert_same(model, {"x": normal(1, 4, 3, 40)}) == {"Pad": 1, "Conv": 1}
    (conv,) = (node for node in canonical(model).nodes if node.op == "Conv")
    assert conv.attributes["pads"] == [0, 0, 0, 0]


@pytest.mark.parametrize(("taps", "stride"), [(256, 2), (33, 1), (100, 16), (64, 4)])
@pytest.mark.parametrize(("length", "pads"), [(1000, [0, 0]), (333, [3, 70]), (517, [128, 127])])
def test_a_long_filter_is_a_convolution_of_blocks(taps: int, stride: int, length: int, pads: list[int]) -> None:
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], strides=[stride], pads=pads)
    model = model_of([node], {"x": (1, 1, length)}, {"w": normal(1, 1, taps), "b": normal(1)})
    assert_same(model, {"x": normal(1, 1, length)})
    graph = canonical(model)
    (conv,) = (each for each in graph.nodes if each.op == "Conv")
    phases, block, _, count = graph.constants[conv.inputs[1]].shape
    assert (phases, block, count) == (16 // stride, 16, -(-(taps + 16 - stride) // 16))


@pytest.mark.parametrize(
    ("weights", "attributes"),
    [((1, 1, 20), {}), ((2, 1, 64), {}), ((1, 1, 64), {"strides": [3]}), ((1, 1, 64), {"dilations": [2]})],
)
def test_other_filters_stay(weights: tuple[int, ...], attributes: dict[str, Any]) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    graph = canonical(model_of([node], {"x": (1, 1, 400)}, {"w": normal(*weights)}))
    assert graph.constants[next(each for each in graph.nodes if each.op == "Conv").inputs[1]].shape[1] == 1


def test_joins_of_joins_are_one() -> None:
    nodes = [
        helper.make_node("Concat", ["a", "b"], ["one"], axis=1),
        helper.make_node("Concat", ["b", "one"], ["two"], axis=-2),
        helper.make_node("Concat", ["two", "c"], ["three"], axis=1),
        helper.make_node("Concat", ["c", "c"], ["wide"], axis=2),
        helper.make_node("Relu", ["three"], ["y"]),
        helper.make_node("Relu", ["wide"], ["z"]),
    ]
    shapes = {name: (1, size, 6) for name, size in (("a", 2), ("b", 3), ("c", 4))}
    operators = assert_same(
        model_of(nodes, shapes, {}, ["y", "z"]), {name: normal(*shape) for name, shape in shapes.items()}
    )
    assert operators["Concat"] == 2
