"""Operators between int8 tensors: which become integer operators, with ONNX Runtime's results to half a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.graph import Graph
from hilt.network.onnx_import import import_proto
from hilt.network.reference import evaluate

from .models import Array, model_of, run_float

IMAGE = (1, 4, 8, 8)


@dataclass
class Case:
    """A float operator on dequantised tensors, whose result is quantised.

    Attributes:
        op: ONNX's.
        attributes: Its own.
        data: Shapes and exponents of its activations.
        constants: Arrays in place of its later inputs: int8 and int32 ones are dequantised; None is left out.
        exponents: Those of dequantised constants, by place; several are one for each output channel.
        result: The exponent of the result.
        behind: Operators between it and the quantisation.
        added: A number that is added to the first activation.
        axis: Of constants with several exponents.
    """

    op: str
    attributes: dict[str, Any] = field(default_factory=dict)
    data: tuple[tuple[tuple[int, ...], int], ...] = ((IMAGE, 4),)
    constants: tuple[Array | None, ...] = ()
    exponents: dict[int, int | tuple[int, ...]] = field(default_factory=dict)
    result: int = 2
    behind: tuple[tuple[str, tuple[float, ...]], ...] = ()
    added: float = 0.0
    axis: int = 0
    opset: int = 17


def int8(*shape: int) -> Array:
    return np.random.default_rng(1).integers(-90, 91, shape).astype(np.int8)


def model(case: Case) -> Any:
    nodes: list[Any] = []
    constants: dict[str, Array] = {"z8": np.array(0, np.int8), "z32": np.array(0, np.int32)}

    def scale(exponents: int | tuple[int, ...]) -> str:
        name = f"s{len(constants)}"
        constants[name] = (2.0 ** -np.array(exponents, np.float64)).astype(np.float32)
        return name

    def quantised(source: str, target: str, exponent: int) -> None:
        step = scale(exponent)
        nodes.append(helper.make_node("QuantizeLinear", [source, step, "z8"], [f"{target}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{target}_q", step, "z8"], [target]))

    inputs: list[str] = []
    for place, (_, exponent) in enumerate(case.data):
        quantised(f"x{place}", f"d{place}", exponent)
        inputs.append(f"d{place}")
    if case.added:
        constants["number"], inputs[0] = np.array(case.added, np.float32), "a0"
        nodes.append(helper.make_node("Add", ["number", "d0"], ["a0"], name="added"))
    for place, value in enumerate(case.constants, start=len(inputs)):
        name = f"c{place}" if value is not None else ""
        if value is not None:
            constants[name] = value
        if place in case.exponents:
            exponents = case.exponents[place]
            steps, attributes = scale(exponents), {"axis": case.axis} if isinstance(exponents, tuple) else {}
            parts = [
                name,
                steps,
                *([] if attributes else ["z8" if value is not None and value.dtype == np.int8 else "z32"]),
            ]
            name = f"w{place}"
            nodes.append(helper.make_node("DequantizeLinear", parts, [name], **attributes))
        inputs.append(name)
    nodes.append(helper.make_node(case.op, inputs, ["o0"], name="operator", **case.attributes))
    for number, (op, bounds) in enumerate(case.behind):
        names = []
        for bound in bounds:
            names.append("" if np.isnan(bound) else f"bound{len(constants)}")
            if names[-1]:
                constants[names[-1]] = np.array(bound, np.float32)
        nodes.append(helper.make_node(op, [f"o{number}", *names], [f"o{number + 1}"], name=f"behind{number}"))
    quantised(f"o{len(case.behind)}", "y", case.result)
    shapes = {f"x{place}": shape for place, (shape, _) in enumerate(case.data)}
    return model_of(nodes, shapes, constants, opset=case.opset)


def imported(case: Case, limit: int = 100) -> tuple[Graph, float]:
    """Return the integer graph, and its largest difference from ONNX Runtime in steps of the result."""
    proto = model(case)
    graph = import_proto(proto, "test")
    random = np.random.default_rng(2)
    feeds = {
        f"x{place}": (random.integers(-limit, limit + 1, shape) * 2.0**-exponent).astype(np.float32)
        for place, (shape, exponent) in enumerate(case.data)
    }
    (wanted,) = run_float(proto, feeds)
    found = evaluate(graph, feeds)[graph.outputs[0]]
    assert found.shape == wanted.shape and np.unique(wanted).size > 3, "the result is more than its bounds"
    return graph, float(np.abs(found - wanted).max() * 2.0**case.result)


def operators(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes if node.op not in ("quantize", "dequantize")]


W, BIAS = int8(6, 4, 3, 3), np.random.default_rng(0).integers(-3000, 3000, 6).astype(np.int32)
CONV: dict[str, Any] = {"constants": (W,), "exponents": {1: 7}}
GATED = ((IMAGE, 4), ((1, 4, 1, 1), 6))
INTEGER: dict[str, tuple[str, Case]] = {
    "conv": ("conv2d", Case("Conv", **CONV)),
    "conv, all attributes": (
        "conv2d",
        Case(
            "Conv",
            {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2], "group": 2},
            constants=(int8(6, 2, 3, 3),),
            exponents={1: 6},
        ),
    ),
    "conv, same": ("conv2d", Case("Conv", {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, **CONV)),
    "conv, int32 bias": ("conv2d", Case("Conv", constants=(W, BIAS), exponents={1: 7, 2: 11})),
    "conv, int32 bias of other steps": ("conv2d", Case("Conv", constants=(W, BIAS), exponents={1: 7, 2: 9})),
    "conv, float bias": ("conv2d", Case("Conv", constants=(W, (BIAS / 2**10).astype(np.float32)), exponents={1: 7})),
    "conv, a scale a channel": ("conv2d", Case("Conv", constants=(W,), exponents={1: (5, 6, 7, 6, 8, 7)})),
    "conv, a scale a channel, bias": (
        "conv2d",
        Case("Conv", constants=(W, BIAS), exponents={1: (5, 6, 7, 6, 8, 7), 2: (9, 10, 11, 10, 12, 11)}),
    ),
    "conv, relu": ("conv2d", Case("Conv", behind=(("Relu", ()),), **CONV)),
    "conv, clips": ("conv2d", Case("Conv", behind=(("Clip", (-9.0, 20.0)), ("Clip", (-30.0, 11.0))), **CONV)),
    "conv, half a clip": ("conv2d", Case("Conv", behind=(("Clip", (np.nan, 3.5)),), **CONV)),
    "transposed": (
        "conv2d",
        Case(
            "ConvTranspose", {"strides": [2, 2], "pads": [1, 1, 1, 1]}, constants=(int8(4, 6, 3, 3),), exponents={1: 7}
        ),
    ),
    "transposed, all attributes": (
        "conv2d",
        Case(
            "ConvTranspose",
            {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2], "group": 2, "dilations": [1, 2]},
            constants=(int8(4, 3, 3, 2), (BIAS / 2**10).astype(np.float32)),
            exponents={1: 7},
        ),
    ),
    "dense": (
        "dense",
        Case("Gemm", {"transB": 1}, data=(((2, 40), 4),), constants=(int8(6, 40), BIAS), exponents={1: 7, 2: 11}),
    ),
    "add": ("add", Case("Add", data=((IMAGE, 4), (IMAGE, 2)), result=3)),
    "add, broadcast": ("add", Case("Add", data=((IMAGE, 4), ((1, 4, 1, 1), 6)), behind=(("Relu", ()),))),
    "multiply": ("multiply", Case("Mul", data=((IMAGE, 4), ((1, 4, 1, 1), 6)), behind=(("Relu", ()),), result=4)),
    "multiply, with a number added": ("multiply", Case("Mul", data=GATED, result=3, added=7.5)),
    "multiply, with a number added behind": ("multiply", Case("Mul", data=GATED, result=4, behind=(("Add", (-3.0,)),))),
    "multiply, with both": (
        "multiply",
        Case("Mul", data=GATED, result=2, added=7.875, behind=(("Add", (-6.25,)), ("Relu", ()))),
    ),
    "mean": ("global_average_pool", Case("GlobalAveragePool", result=5)),
    "mean of fewer steps": ("global_average_pool", Case("GlobalAveragePool", data=(((3, 4, 5, 7), 4),), result=3)),
    "windows": ("average_pool", Case("AveragePool", {"kernel_shape": [3, 2], "strides": [2, 1]}, result=4)),
    "windows with padding": (
        "average_pool",
        Case("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, result=4),
    ),
    "windows that count no padding": (
        "average_pool",
        Case("AveragePool", {"kernel_shape": [3, 2], "pads": [1, 1, 1, 0], "strides": [2, 1]}, result=4),
    ),
    "one window that counts no padding": (
        "global_average_pool",
        Case("AveragePool", {"kernel_shape": [9, 10], "pads": [1, 1, 0, 1]}, result=5),
    ),
    "mean, with a number added behind": (
        "global_average_pool",
        Case("GlobalAveragePool", result=6, behind=(("Add", (0.515625,)), ("Relu", ()))),
    ),
    "windows, with a number added behind": (
        "average_pool",
        Case("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}, result=4, behind=(("Add", (1.5,)),)),
    ),
    "one window": ("global_average_pool", Case("AveragePool", {"kernel_shape": [8, 8]}, result=5)),
}


@pytest.mark.parametrize("name", INTEGER)
def test_an_operator_of_integers_has_onnx_runtimes_results(name: str) -> None:
    """Both round to the nearest step; in the middle, ONNX Runtime to even, and VTA up."""
    op, case = INTEGER[name]
    graph, steps = imported(case)
    assert operators(graph) == [op] and steps <= 1.0
    assert [part for node in graph.nodes if node.op == op for part in node.source] == [
        *(["added"] if case.added else []),
        "operator",
        *(f"behind{number}" for number in range(len(case.behind))),
    ]


FLOAT: dict[str, Case] = {
    "conv of results with too fine steps": Case("Conv", result=12, **CONV),
    "gemm by rows": Case("Gemm", data=(((2, 40), 4),), constants=(int8(40, 6),), exponents={1: 7}),
    "gemm with a factor": Case(
        "Gemm", {"transB": 1, "alpha": 0.3}, data=(((2, 40), 4),), constants=(int8(6, 40),), exponents={1: 7}
    ),
    "gemm with half a bias": Case(
        "Gemm", {"transB": 1, "beta": 0.5}, data=(((2, 40), 4),), constants=(int8(6, 40), BIAS), exponents={1: 7, 2: 11}
    ),
    "transposed with scales by channel": Case(
        "ConvTranspose", constants=(int8(4, 6, 3, 3),), exponents={1: (5, 6, 7, 6, 8, 7)}, axis=1
    ),
    "transposed with more padding than taps": Case(
        "ConvTranspose", {"pads": [2, 3, 2, 3]}, constants=(int8(4, 6, 3, 3),), exponents={1: 7}
    ),
    "conv of one axis": Case("Conv", data=(((1, 4, 8), 4),), constants=(int8(6, 4, 3),), exponents={1: 7}),
    "product of too fine steps": Case("Mul", data=((IMAGE, 2), (IMAGE, 2)), result=5),
    "product with a part of a step added": Case("Mul", data=GATED, added=0.03125),
    "product with too many steps added": Case("Mul", data=GATED, added=17.0),
    "product with a part of a step added behind": Case("Mul", data=GATED, behind=(("Add", (0.125,)),)),
    "mean with a part of a step added behind": Case("GlobalAveragePool", result=7, behind=(("Add", (2.0**-8,)),)),
    "windows with gaps": Case("AveragePool", {"kernel_shape": [2, 2], "dilations": [2, 2]}, opset=19),
    "windows of one axis": Case("GlobalAveragePool", data=(((1, 9, 8), 4),)),
}


@pytest.mark.parametrize("name", FLOAT)
def test_another_form_stays_in_float_with_onnx_runtimes_results(name: str) -> None:
    graph, steps = imported(FLOAT[name], 100 if "fine" not in name else 3)
    assert FLOAT[name].op in operators(graph) and steps <= 1.0


def test_a_clip_lies_in_the_steps_of_the_result() -> None:
    for bounds, clip in (((-2.0, 6.0), [-8, 24]), ((-1000.0, 1000.0), [-128, 127]), ((np.nan, 0.3), [-128, 1])):
        graph, _ = imported(Case("Conv", behind=(("Clip", bounds),), **CONV))
        (node,) = (node for node in graph.nodes if node.op == "conv2d")
        assert node.attributes["clip"] == clip and node.attributes["shift"] == [9]


MOVES: dict[str, tuple[str, Case]] = {
    "concat": ("concat", Case("Concat", {"axis": -3}, data=((IMAGE, 2), ((1, 2, 8, 8), 2)))),
    "depth to space": ("depth_to_space", Case("DepthToSpace", {"blocksize": 2}, data=(((1, 8, 3, 2), 2),))),
    "column of rows": (
        "depth_to_space",
        Case("DepthToSpace", {"blocksize": 2, "mode": "CRD"}, data=(((1, 8, 3, 2), 2),)),
    ),
    "flatten": ("reshape", Case("Flatten", data=((IMAGE, 2),))),
    "reshape": ("reshape", Case("Reshape", data=((IMAGE, 2),), constants=(np.array([2, -1]),))),
    "unsqueeze": ("reshape", Case("Unsqueeze", data=((IMAGE, 2),), constants=(np.array([0]),))),
    "transpose": ("transpose", Case("Transpose", data=((IMAGE, 2),))),
    "transpose by axes": ("transpose", Case("Transpose", {"perm": [0, 2, 3, 1]}, data=((IMAGE, 2),))),
    "largest": ("max_pool", Case("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 1]}, data=((IMAGE, 2),))),
    "largest, padded": (
        "max_pool",
        Case("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 2]}, data=((IMAGE, 2),)),
    ),
    "slice": ("slice", Case("Slice", data=((IMAGE, 2),), constants=(np.array([0, 1, 2]), np.array([1, 3, 7])))),
    "slice of axes": (
        "slice",
        Case(
            "Slice",
            data=((IMAGE, 2),),
            constants=(np.array([-1, 1]), np.array([-(1 << 62), 1 << 62]), np.array([-1, 2]), np.array([-2, 3])),
        ),
    ),
    "pad": ("pad", Case("Pad", data=((IMAGE, 2),), constants=(np.array([0, 0, 1, 2, 0, 1, 0, 3]),))),
    "pad with zeros": (
        "pad",
        Case("Pad", data=((IMAGE, 2),), constants=(np.array([0, 0, 1, 2, 0, 1, 0, 3]), np.array(0.0, np.float32))),
    ),
    "pad of axes": (
        "pad",
        Case("Pad", data=((IMAGE, 2),), constants=(np.array([1, 2, 0, 3]), None, np.array([-1, 1])), opset=18),
    ),
    "pad with reflections": (
        "pad",
        Case("Pad", {"mode": "reflect"}, data=((IMAGE, 2),), constants=(np.array([0, 0, 1, 2, 0, 0, 0, 3]),)),
    ),
    "expand": ("Expand", Case("Expand", data=(((1, 4, 1, 3), 2),), constants=(np.array([2, 4, 5, 3]),))),
    "twice as high": (
        "upsample",
        Case(
            "Resize",
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            data=((IMAGE, 2),),
            constants=(None, np.array([1, 1, 2, 3], np.float32)),
        ),
    ),
    "half as high again": (
        "Resize",
        Case("Resize", {"mode": "nearest"}, data=((IMAGE, 2),), constants=(None, np.array([1, 1, 1.5, 2], np.float32))),
    ),
    "to sizes": (
        "Resize",
        Case("Resize", {"mode": "nearest"}, data=((IMAGE, 2),), constants=(None, None, np.array([1, 4, 11, 5]))),
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_data_are_moved_as_they_are(name: str) -> None:
    op, case = MOVES[name]
    graph, steps = imported(case)
    assert operators(graph) == [op] and steps == 0.0
    (node,) = (node for node in graph.nodes if node.op == op)
    assert graph.tensors[node.outputs[0]].dtype == "int8" and node.source == ("operator",)


@pytest.mark.parametrize(
    ("op", "attributes", "constants", "made"),
    [
        ("Pad", {"mode": "reflect"}, [np.array([0, 0, 1, 1, 0, 0, 2, 1])], "pad"),
        ("Resize", {"mode": "nearest"}, [None, np.array([1, 1, 2, 2], np.float32)], "upsample"),
        ("Resize", {"mode": "nearest"}, [None, np.array([1, 1, 1.5, 2], np.float32)], "Resize"),
        ("Expand", {}, [np.array([3, 4, 8, 8])], "Expand"),
    ],
)
def test_floats_become_int8_before_they_are_repeated(
    op: str, attributes: dict[str, Any], constants: list[Any], made: str
) -> None:
    names = [f"c{place}" if each is not None else "" for place, each in enumerate(constants)]
    nodes = [
        helper.make_node("InstanceNormalization", ["x", "g", "g"], ["n"]),
        helper.make_node(op, ["n", *names], ["m"], **attributes),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    known = {name: each for name, each in zip(names, constants, strict=True) if name}
    known |= {"g": np.ones(4, np.float32), "s": np.array(0.0625, np.float32), "z": np.array(0, np.int8)}
    proto = model_of(nodes, {"x": (1, 4, 8, 8)}, known)
    graph = import_proto(proto, "test")
    assert [node.op for node in graph.nodes] == ["InstanceNormalization", "quantize", made, "dequantize"]
    feeds = {"x": np.random.default_rng(1).normal(size=(1, 4, 8, 8)).astype(np.float32)}
    (wanted,) = run_float(proto, feeds)
    assert np.abs(evaluate(graph, feeds)[graph.outputs[0]] - wanted).max() <= 0.0625


def test_a_function_of_int8_stays_int8_behind_a_reshape() -> None:
    """A layer's result in another scale, reshaped and joined: a look-up, and no floats."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("Tanh", ["xd"], ["t"]),
        helper.make_node("Reshape", ["t", "shape"], ["r"]),
        helper.make_node("InstanceNormalization", ["w", "g", "g"], ["n"]),
        helper.make_node("Concat", ["r", "n"], ["c"], axis=1),
        helper.make_node("QuantizeLinear", ["c", "f", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "f", "z"], ["y"]),
    ]
    constants = {
        "s": np.array(0.0625, np.float32), "f": np.array(0.03125, np.float32), "z": np.array(0, np.int8),
        "g": np.ones(2, np.float32), "shape": np.array([1, 4, 64]),
    }  # fmt: skip
    proto = model_of(nodes, {"x": IMAGE, "w": (1, 2, 64)}, constants)
    graph = import_proto(proto, "test")
    kinds = {node.op: graph.tensors[node.outputs[0]].dtype for node in graph.nodes}
    assert kinds["table"] == kinds["reshape"] == kinds["concat"] == "int8" and "dequantize" in kinds
    random = np.random.default_rng(1)
    feeds = {name: random.normal(size=shape).astype(np.float32) for name, shape in (("x", IMAGE), ("w", (1, 2, 64)))}
    (wanted,) = run_float(proto, feeds)
    assert np.abs(evaluate(graph, feeds)[graph.outputs[0]] - wanted).max() <= 0.03125


@pytest.mark.parametrize("name", ["concat", "transpose", "largest", "pad"])
def test_data_that_change_their_steps_pass_through_floats(name: str) -> None:
    op, case = MOVES[name]
    graph, steps = imported(Case(case.op, case.attributes, tuple((shape, 3) for shape, _ in case.data), case.constants))
    assert steps == pytest.approx(0.5, abs=0.5)
    kinds = {graph.tensors[node.outputs[0]].dtype for node in graph.nodes if node.op in (op, case.op)}
    assert kinds <= {"int8", "float32"} and len([node for node in graph.nodes if node.op == "dequantize"]) >= 1


@pytest.mark.parametrize(("value", "integer"), [(1.5, 6), (-2.0, -8), (1e9, 127), (-np.inf, -128)])
def test_a_pads_value_is_one_of_int8(value: float, integer: int) -> None:
    pads = np.array([0, 0, 1, 2, 0, 1, 0, 3])
    graph, steps = imported(Case("Pad", data=((IMAGE, 2),), constants=(pads, np.array(value, np.float32))))
    (pad,) = (node for node in graph.nodes if node.op == "pad")
    assert pad.attributes["value"] == integer and steps == 0


FLOAT_MOVES: dict[str, Case] = {
    "largest of every other": Case("MaxPool", {"kernel_shape": [3, 2], "dilations": [2, 1]}, data=((IMAGE, 2),)),
    "between corners": Case(
        "Resize",
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        data=((IMAGE, 2),),
        constants=(None, np.array([1, 1, 2, 2], np.float32)),
    ),
    "three between pixels": Case(
        "Resize", {"mode": "linear"}, data=((IMAGE, 2),), constants=(None, np.array([1, 1, 3, 2], np.float32))
    ),
    "a constant part": Case(
        "Concat", {"axis": 1}, data=((IMAGE, 2),), constants=(np.full((1, 1, 8, 8), 2.25, np.float32),)
    ),
}


@pytest.mark.parametrize("name", FLOAT_MOVES)
def test_what_int8_cannot_move_is_floats(name: str) -> None:
    graph, steps = imported(FLOAT_MOVES[name])
    assert FLOAT_MOVES[name].op in operators(graph) and steps <= 1.0


def residual(first: int, second: tuple[int, ...], shape: tuple[int, ...] = (1, 6, 6, 6)) -> tuple[Graph, float]:
    """Import a convolution whose sums are added to an int8 tensor with this exponent; return as `imported`."""
    nodes, constants = [], {"z": np.array(0, np.int8), "w": W}
    for name, exponent in (("x", 4), ("r", first), ("y", 2), ("w", second if len(second) > 1 else second[0])):
        constants[f"s{name}"] = (2.0 ** -np.array(exponent, np.float64)).astype(np.float32)
        source = {"y": "a"}.get(name, name)
        if name != "w":
            nodes.append(helper.make_node("QuantizeLinear", [source, f"s{name}", "z"], [f"{name}q"]))
        parts = [f"{name}q" if name != "w" else "w", f"s{name}"]
        nodes.append(helper.make_node("DequantizeLinear", parts, [f"{name}d"], axis=0 if name == "w" else 1))
    layer = [
        helper.make_node("Conv", ["xd", "wd"], ["c"], name="layer"),
        helper.make_node("Add", ["rd", "c"], ["s"], name="sum"),
        helper.make_node("Relu", ["s"], ["a"], name="relu"),
    ]
    ends = [node for node in nodes if node.output[0] in ("yq", "yd")]
    starts = [node for node in nodes if node not in ends]
    ends[-1].output[0] = "y"
    proto = model_of([*starts, *layer, *ends], {"x": IMAGE, "r": shape}, constants)
    graph = import_proto(proto, "test")
    random = np.random.default_rng(3)
    feeds = {
        "x": (random.integers(-100, 101, IMAGE) * 2.0**-4).astype(np.float32),
        "r": (random.integers(-100, 101, shape) * 2.0**-first).astype(np.float32),
    }
    (wanted,) = run_float(proto, feeds)
    return graph, float(np.abs(evaluate(graph, feeds)[graph.outputs[0]] - wanted).max() * 4)


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("second", [(7,), (5, 6, 7, 6, 8, 7)])
def test_an_int8_tensor_is_added_to_the_sums_of_a_layer(first: int, second: tuple[int, ...]) -> None:
    graph, steps = residual(first, second)
    assert operators(graph) == ["conv2d"] and steps <= 1.0
    (node,) = (node for node in graph.nodes if node.op == "conv2d")
    assert node.source == ("layer", "sum", "relu")
    assert node.attributes["residual_shift"] == [4 + each - first for each in second]


def test_a_tensor_that_is_spread_over_the_sums_is_added_behind() -> None:
    graph, steps = residual(3, (7,), (1, 6, 1, 1))
    assert operators(graph) != ["conv2d"] and steps <= 2.0
