"""TFLite models, float and int8: the same results as TFLite's own interpreter, before and after quantising."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.cli.main import run
from hilt.network.calibration import Runner
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxError, OnnxGraph
from hilt.network.onnx_import import import_model
from hilt.network.onnx_simplify import fix
from hilt.network.quantize.statistics import signal_to_noise
from hilt.network.reference import evaluate
from hilt.network.tflite.convert import load_tflite

from .models import Array
from .tflite_models import TfliteBuilder, interpret, schema

RANDOM = np.random.default_rng(10)
_FIRST = RANDOM.bit_generator.state
RELU, RELU6 = schema.ActivationFunctionType.RELU, schema.ActivationFunctionType.RELU6


@pytest.fixture(autouse=True)
def _same_numbers_alone() -> None:
    """Give each test the same numbers whether or not others ran before it."""
    RANDOM.bit_generator.state = _FIRST


def normal(*shape: int, size: float = 0.4) -> Array:
    return RANDOM.normal(0, size, shape).astype(np.float32)


def loaded(path: Path) -> OnnxGraph:
    graph = load_tflite(path)
    fix(graph, {}, {})
    canonicalise(graph)
    return graph


def assert_same(path: Path, feeds: list[Array], tolerance: float = 1e-5) -> OnnxGraph:
    graph = loaded(path)
    given = Runner(graph, graph.outputs).run(dict(zip(graph.inputs, feeds, strict=True)))
    for wanted, name in zip(interpret(path, feeds), graph.outputs, strict=True):
        assert given[name].shape == wanted.shape
        np.testing.assert_allclose(given[name], wanted, atol=tolerance * max(float(np.abs(wanted).max()), 1))
    return graph


def residual_network(path: Path) -> Path:
    """Write a network as converters do: convolutions, a depthwise layer, a skip, a mean, a dense layer, a softmax."""
    b = TfliteBuilder()
    for name, shape in (("x", (1, 16, 16, 3)), ("a", (1, 8, 8, 8)), ("d", (1, 8, 8, 8)), ("p", (1, 8, 8, 8)),
                        ("s", (1, 8, 8, 8)), ("m", (1, 8)), ("l", (1, 5)), ("y", (1, 5))):  # fmt: skip
        b.tensor(name, shape)
    b.tensor("wa", (8, 3, 3, 3), value=normal(8, 3, 3, 3))
    b.tensor("wd", (1, 3, 3, 8), value=normal(1, 3, 3, 8))
    b.tensor("wp", (8, 1, 1, 8), value=normal(8, 1, 1, 8))
    b.tensor("wl", (5, 8), value=normal(5, 8))
    for name, size in (("ba", 8), ("bd", 8), ("bp", 8), ("bl", 5)):
        b.tensor(name, (size,), value=normal(size))
    b.tensor("axes", (2,), "int32", np.array([1, 2]))
    same = schema.Padding.SAME
    b.operator("CONV_2D", ["x", "wa", "ba"], ["a"], "Conv2DOptions", padding=same, strideH=2, strideW=2,
               fusedActivationFunction=RELU6)  # fmt: skip
    b.operator("DEPTHWISE_CONV_2D", ["a", "wd", "bd"], ["d"], "DepthwiseConv2DOptions", padding=same, strideH=1,
               strideW=1, depthMultiplier=1, fusedActivationFunction=RELU)  # fmt: skip
    b.operator("CONV_2D", ["d", "wp", "bp"], ["p"], "Conv2DOptions", padding=same, strideH=1, strideW=1)
    b.operator("ADD", ["a", "p"], ["s"], "AddOptions", fusedActivationFunction=RELU)
    b.operator("MEAN", ["s", "axes"], ["m"], "ReducerOptions", keepDims=False)
    b.operator("FULLY_CONNECTED", ["m", "wl", "bl"], ["l"], "FullyConnectedOptions")
    b.operator("SOFTMAX", ["l"], ["y"], "SoftmaxOptions", beta=1.0)
    return b.save(path, ["x"], ["y"])


def test_a_network_is_the_interpreters_without_transposes_within(tmp_path: Path) -> None:
    path = residual_network(tmp_path / "net.tflite")
    graph = assert_same(path, [normal(1, 16, 16, 3, size=1)])
    ops = [node.op for node in graph.nodes]
    assert ops.count("Transpose") == 1 and ops[0] == "Transpose"
    assert ops.count("GlobalAveragePool") == 1
    assert [node.attributes["group"] for node in graph.nodes if node.op == "Conv"] == [1, 8, 1]


def test_the_command_quantises_it(tmp_path: Path) -> None:
    path = residual_network(tmp_path / "net.tflite")
    images = normal(24, 16, 16, 3, size=1)
    np.savez(tmp_path / "data.npz", x=images[:16])
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(tmp_path / "q.onnx")]
    assert run(command) == 0
    graph = import_model(tmp_path / "q.onnx")
    assert [node.op for node in graph.nodes if node.op in ("conv2d", "dense")] == ["conv2d"] * 3 + ["dense"]
    wanted = np.concatenate([interpret(path, [image[None]])[0] for image in images[16:]])
    given = np.concatenate([evaluate(graph, {"x": image[None]})[graph.outputs[0]] for image in images[16:]])
    assert signal_to_noise({"y": wanted}, {"y": given}) > 30


CASES: dict[str, tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...], dict[str, Array]]] = {
    "max": ("MAX_POOL_2D", {"kind": "Pool2DOptions", "filterHeight": 3, "filterWidth": 2, "strideH": 2, "strideW": 2,
                            "padding": schema.Padding.SAME}, (1, 7, 9, 4), (1, 4, 5, 4), {}),
    "average": ("AVERAGE_POOL_2D", {"kind": "Pool2DOptions", "filterHeight": 2, "filterWidth": 2, "strideH": 2,
                                    "strideW": 2, "padding": schema.Padding.SAME}, (1, 7, 7, 4), (1, 4, 4, 4), {}),
    "swish": ("HARD_SWISH", {}, (1, 5, 5, 4), (1, 5, 5, 4), {}),
    "leaky": ("LEAKY_RELU", {"kind": "LeakyReluOptions", "alpha": 0.2}, (1, 5, 5, 4), (1, 5, 5, 4), {}),
    "slope": ("PRELU", {}, (1, 5, 5, 4), (1, 5, 5, 4), {"alpha": np.full((1, 1, 4), 0.3, np.float32)}),
    "pad": ("PAD", {}, (1, 5, 5, 4), (1, 8, 7, 4), {"pads": np.array([[0, 0], [1, 2], [1, 1], [0, 0]], np.int32)}),
    "near": ("RESIZE_NEAREST_NEIGHBOR", {"kind": "ResizeNearestNeighborOptions"}, (1, 5, 5, 4), (1, 10, 10, 4),
             {"size": np.array([10, 10], np.int32)}),
    "between": ("RESIZE_BILINEAR", {"kind": "ResizeBilinearOptions", "halfPixelCenters": True}, (1, 5, 5, 4),
                (1, 9, 10, 4), {"size": np.array([9, 10], np.int32)}),
    "turned": ("TRANSPOSE", {}, (1, 5, 6, 4), (1, 4, 5, 6), {"perm": np.array([0, 3, 1, 2], np.int32)}),
    "cut": ("STRIDED_SLICE", {"kind": "StridedSliceOptions", "beginMask": 1, "endMask": 5, "shrinkAxisMask": 2},
            (1, 5, 6, 4), (1, 3, 4), {"b": np.array([0, 2, 1, 0], np.int32), "e": np.array([0, 3, 0, 4], np.int32),
                                     "s": np.array([1, 1, 2, 1], np.int32)}),
    "flat": ("RESHAPE", {}, (1, 5, 6, 4), (1, 120), {"shape": np.array([1, 120], np.int32)}),
    "depth": ("DEPTH_TO_SPACE", {"kind": "DepthToSpaceOptions", "blockSize": 2}, (1, 5, 6, 4), (1, 10, 12, 1), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_operator_is_the_interpreters(case: str, tmp_path: Path) -> None:
    code, options, before, after, constants = CASES[case]
    b = TfliteBuilder()
    b.tensor("x", before)
    b.tensor("y", after)
    for name, value in constants.items():
        b.tensor(name, value.shape, str(value.dtype), value)
    b.operator(code, ["x", *constants], ["y"], **options)
    assert_same(b.save(tmp_path / "op.tflite", ["x"], ["y"]), [normal(*before, size=1)])


@pytest.mark.parametrize(("stride", "size", "padding"), [(2, 10, "SAME"), (2, 11, "VALID"), (3, 15, "SAME")])
def test_a_transposed_convolution_is_the_interpreters(stride: int, size: int, padding: str, tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 5, 5, 4))
    b.tensor("y", (1, size, size, 6))
    b.tensor("shape", (4,), "int32", np.array([1, size, size, 6]))
    b.tensor("w", (6, 3, 3, 4), value=normal(6, 3, 3, 4))
    b.operator("TRANSPOSE_CONV", ["shape", "w", "x"], ["y"], "TransposeConvOptions", strideH=stride, strideW=stride,
               padding=getattr(schema.Padding, padding))  # fmt: skip
    assert_same(b.save(tmp_path / "t.tflite", ["x"], ["y"]), [normal(1, 5, 5, 4, size=1)])


def int8_network(path: Path) -> Path:
    """Write quantised layers: zero points, scales by channel, ranges that are a Relu and a Relu6."""
    b = TfliteBuilder()
    b.tensor("x", (1, 8, 8, 3), "int8", scale=0.03, zero=5)
    b.tensor("a", (1, 8, 8, 8), "int8", scale=0.02, zero=-128)
    b.tensor("c", (1, 8, 8, 8), "int8", scale=6 / 255, zero=-128)
    b.tensor("m", (1, 8), "int8", scale=0.02, zero=-128)
    b.tensor("y", (1, 5), "int8", scale=0.05, zero=3)
    b.tensor("axes", (2,), "int32", np.array([1, 2]))
    layers = (("wa", (8, 3, 3, 3), 0.03), ("wc", (8, 1, 1, 8), 0.02), ("wy", (5, 8), 0.02))
    for name, shape, before in layers:
        scales = np.exp2(RANDOM.uniform(-9, -7, shape[0])).astype(np.float32)
        values = RANDOM.integers(-127, 128, shape).astype(np.int8)
        b.tensor(name, shape, "int8", values, scales if name != "wy" else float(scales[0]))
        bias = RANDOM.integers(-2000, 2000, shape[:1])
        b.tensor(f"{name}b", shape[:1], "int32", bias, (scales if name != "wy" else scales[0]) * np.float32(before))
    same = schema.Padding.SAME
    b.operator("CONV_2D", ["x", "wa", "wab"], ["a"], "Conv2DOptions", 3, padding=same, strideH=1, strideW=1)
    b.operator("CONV_2D", ["a", "wc", "wcb"], ["c"], "Conv2DOptions", 3, padding=same, strideH=1, strideW=1)
    b.operator("MEAN", ["c", "axes"], ["m"], "ReducerOptions", 2, keepDims=False)
    b.operator("FULLY_CONNECTED", ["m", "wy", "wyb"], ["y"], "FullyConnectedOptions", 4)
    return b.save(path, ["x"], ["y"])


def test_an_int8_network_keeps_its_answers(tmp_path: Path) -> None:
    path = int8_network(tmp_path / "int8.tflite")
    images = normal(64, 8, 8, 3, size=1)
    graph = loaded(path)
    assert [node.op for node in graph.nodes][:5] == ["Transpose", "Conv", "Relu", "Conv", "Clip"]
    np.savez(tmp_path / "data.npz", x=images[:32])
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(tmp_path / "q.onnx")]
    assert run(command) == 0
    integers = import_model(tmp_path / "q.onnx")
    wanted = np.concatenate([interpret(path, [image[None]])[0] for image in images[32:]])
    given = np.concatenate([evaluate(integers, {"x": image[None]})[integers.outputs[0]] for image in images[32:]])
    noise = np.mean((wanted - given) ** 2) / np.mean(wanted**2)
    assert -10 * np.log10(noise) > 25
    clear = np.sort(wanted, axis=1)[:, -1] - np.sort(wanted, axis=1)[:, -2] > 0.1  # two steps of the output
    assert clear.sum() > 10 and np.all((wanted.argmax(axis=1) == given.argmax(axis=1))[clear])


def test_an_operator_that_hilt_does_not_convert_is_named(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 4))
    b.tensor("y", (1, 4))
    b.operator("CUMSUM", ["x"], ["y"])
    with pytest.raises(OnnxError, match=r"operator CUMSUM \(it makes y\), which hilt does not convert"):
        load_tflite(b.save(tmp_path / "c.tflite", ["x"], ["y"]))


def test_damaged_files_are_refused_in_one_line(tmp_path: Path) -> None:
    data = residual_network(tmp_path / "net.tflite").read_bytes()
    (tmp_path / "text.tflite").write_text("this is no model")
    with pytest.raises(OnnxError, match="is no TFLite model"):
        load_tflite(tmp_path / "text.tflite")
    for number in range(60):
        damaged = bytearray(data)
        for place in RANDOM.integers(8, len(data), 40):
            damaged[place] = RANDOM.integers(0, 256)
        (tmp_path / "damaged.tflite").write_bytes(bytes(damaged[: len(data) if number % 2 else len(data) // 2]))
        try:
            load_tflite(tmp_path / "damaged.tflite")
        except OnnxError as error:
            assert len(str(error).splitlines()) == 1
