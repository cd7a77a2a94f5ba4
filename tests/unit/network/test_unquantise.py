"""Models that others quantised, back in floats: their results stay within a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hilt.network.calibration import Runner
from hilt.network.onnx_graph import OnnxError
from hilt.network.onnx_simplify import fix, fixed_model
from hilt.network.onnx_unquantise import unquantise

from .models import Array, model_of, run_float, saved

RANDOM = np.random.default_rng(12)
_FIRST = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def _same_numbers_alone() -> None:
    """Give each test the same numbers whether or not others ran before it."""
    RANDOM.bit_generator.state = _FIRST


def real(value: float) -> Array:
    return np.array(value, np.float32)


def normal(*shape: int) -> Array:
    return RANDOM.normal(0, 1, shape).astype(np.float32)


def place(value: int) -> Array:
    return np.array(value, np.uint8)


def seven_bits(*shape: int) -> Array:
    """Return weights with which ONNX Runtime's products of uint8 and int8 saturate on no processor."""
    return RANDOM.integers(-63, 64, shape, dtype=np.int8)


@pytest.mark.parametrize("reads", ["float32", "uint8"])
@pytest.mark.parametrize("between", ["", "Sub", "GlobalAveragePool"])
@pytest.mark.parametrize("end", [0, 255])
def test_a_zero_point_at_an_end_of_the_integers_is_a_clip_behind_any_operator(
    reads: str, between: str, end: int
) -> None:
    numbers: dict[str, Array] = {"s": real(0.02), "z": place(128), "t": real(0.05), "u": place(end)}
    entry = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])] if reads == "float32" else []
    middle = [helper.make_node(between, ["k", "a"] if between == "Sub" else ["a"], ["m"])] if between else []
    nodes = [
        *entry,
        helper.make_node("QLinearConv", ["q" if entry else "x", "s", "z", "w", "ws", "wz", "os", "z"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "os", "z"], ["a"]),
        *middle,
        helper.make_node("QuantizeLinear", ["m" if middle else "a", "t", "u"], ["e"]),
        helper.make_node("DequantizeLinear", ["e", "t", "u"], ["y"]),
    ]
    numbers |= {"w": seven_bits(4, 3, 3, 3), "ws": real(0.01), "wz": np.array(0, np.int8), "os": real(0.2)}
    numbers["k"] = RANDOM.normal(0, 0.5, (4, 1, 1)).astype(np.float32)
    kinds = {"x": TensorProto.UINT8 if reads == "uint8" else TensorProto.FLOAT}
    model = model_of(nodes, {"x": (1, 3, 6, 6)}, numbers, types=kinds)
    graph = fixed_model(model, "test")
    unquantise(graph)
    fix(graph, {}, {})
    given = RANDOM.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)
    data = given if reads == "uint8" else (given.astype(np.float32) - 128) * np.float32(0.02)
    (wanted,) = run_float(model, {"x": data})
    (answer,) = Runner(graph, graph.outputs).run({"x": data}).values()
    assert (wanted.min() if end == 0 else wanted.max()) == 0
    np.testing.assert_allclose(answer, wanted, atol=0.14)  # half a step of the convolution, and half of the last


@pytest.mark.parametrize("value", [None, 128, 178])
def test_a_pad_of_integers_pads_with_the_number_that_they_stand_for(value: int | None) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("MaxPool", ["q"], ["m"], kernel_shape=[2, 2]),
        helper.make_node("Pad", ["m", "p"] if value is None else ["m", "p", "v"], ["n"]),
        helper.make_node("DequantizeLinear", ["n", "s", "z"], ["d"]),
        helper.make_node("Mul", ["d", "k"], ["y"]),
    ]
    numbers = {"s": real(0.02), "z": place(128), "p": np.array([0, 0, 1, 0, 0, 0, 0, 2]), "k": real(1.0)}
    numbers |= {} if value is None else {"v": place(value)}
    model = model_of(nodes, {"x": (1, 2, 4, 4)}, numbers)
    graph = fixed_model(model, "test")
    unquantise(graph)
    fix(graph, {}, {})
    data = {"x": RANDOM.uniform(-2.5, 2.5, (1, 2, 4, 4)).astype(np.float32)}
    np.testing.assert_allclose(*run_float(model, data), *Runner(graph, graph.outputs).run(data).values(), atol=0.011)


def test_quantised_scalars_are_numbers() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearMul", ["q", "s", "z", "k", "s", "z", "t", "z"], ["m"], domain="com.microsoft"),
        helper.make_node("DequantizeLinear", ["m", "t", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["k", "s", "z"], ["f"]),
        helper.make_node("Add", ["d", "f"], ["y"]),
    ]
    numbers = {"s": real(0.02), "z": place(128), "t": real(0.05), "k": place(200)}
    model = model_of(nodes, {"x": (1, 4)}, numbers)
    graph = fixed_model(model, "test")
    unquantise(graph)
    fix(graph, {}, {})
    data = {"x": RANDOM.uniform(-2.5, 2.5, (1, 4)).astype(np.float32)}
    np.testing.assert_allclose(*run_float(model, data), *Runner(graph, graph.outputs).run(data).values(), atol=0.05)


def test_a_bias_that_is_computed_is_refused_by_name() -> None:
    node = helper.make_node("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z", "b"], ["y"], name="odd")
    numbers = {"s": real(0.5), "z": np.array(0, np.int8), "w": seven_bits(4, 3, 1, 1)}
    kinds = {"x": TensorProto.INT8, "b": TensorProto.INT32, "y": TensorProto.INT8}
    graph = fixed_model(model_of([node], {"x": (1, 3, 2, 2), "b": (4,)}, numbers, types=kinds), "test")
    with pytest.raises(OnnxError, match=r"node odd \(QLinearConv\) has a bias that is computed"):
        unquantise(graph)


@pytest.mark.parametrize("zero", [0, 3])
def test_integer_convolutions_read_what_was_cast(zero: int) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["u"], to=TensorProto.UINT8),
        helper.make_node("ConvInteger", ["u", "w", "z"], ["i"], pads=[1] * 4),
        helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
    ]
    model = model_of(nodes, {"x": (1, 3, 4, 4)}, {"w": seven_bits(4, 3, 3, 3), "z": place(zero)})
    graph = fixed_model(model, "test")
    unquantise(graph)
    fix(graph, {}, {})
    data = {"x": RANDOM.uniform(0, 255, (1, 3, 4, 4)).astype(np.float32)}
    np.testing.assert_allclose(*run_float(model, data), *Runner(graph, graph.outputs).run(data).values(), rtol=1e-5)


def test_an_lstm_quantised_dynamically_is_read(tmp_path: Path) -> None:
    """DynamicQuantizeLSTM, as ONNX Runtime's quantize_dynamic writes it: nothing infers its results' shapes."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    numbers = {"w": RANDOM.normal(0, 0.3, (2, 32, 6)), "r": RANDOM.normal(0, 0.3, (2, 32, 8)), "g": normal(4, 16)}
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["s"], hidden_size=8, direction="bidirectional"),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "g"], ["y"], transB=1),
    ]
    constants = {name: value.astype(np.float32) for name, value in numbers.items()}
    constants["shape"] = np.array([5, 16])
    saved(model_of(nodes, {"x": (5, 1, 6)}, constants), tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "dynamic.onnx", weight_type=QuantType.QInt8)
    model = onnx.load(tmp_path / "dynamic.onnx")
    assert "DynamicQuantizeLSTM" in [node.op_type for node in model.graph.node]
    graph = fixed_model(model, "m")
    unquantise(graph)
    feeds = {"x": normal(5, 1, 6)}
    made = Runner(graph, graph.outputs).run(feeds)[graph.outputs[0]]
    (wanted,) = run_float(model, feeds)
    np.testing.assert_allclose(made, wanted, atol=0.05 * float(np.abs(wanted).max()))


def test_a_scale_that_is_an_output_is_refused() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("DynamicQuantizeLinear", ["a"], ["y", "y_scale", "y_zero"]),
    ]
    model = model_of(nodes, {"x": (2, 3)}, {"w": normal(3, 3)})
    model.graph.output.append(helper.make_tensor_value_info("y_scale", TensorProto.FLOAT, ()))
    graph = fixed_model(model, "m")
    with pytest.raises(OnnxError, match="output y_scale is a scale or zero point"):
        unquantise(graph)
