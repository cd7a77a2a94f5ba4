"""The processor's operators against ONNX Runtime, which others wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from hilt_runtime import functions, operators
from tests.unit.network.engines import bits
from tests.unit.network.processor_cases import CASES, normal

OUTPUTS = {"TopK": 2, "Split": 2, "LSTM": 3, "GRU": 2, "RNN": 2}
UNTESTED = {"And", "Or", "Xor", "Not", "IsNaN", "ConstantOfShape", "ReduceMin", "Gelu"}
"""One-line operators of numpy, and Gelu, which opset 17 has not."""


def by_onnx_runtime(op: str, inputs: list[Any], attributes: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    names = ["" if value is None else f"x{place}" for place, value in enumerate(inputs)]
    outputs = [f"y{place}" for place in range(OUTPUTS.get(op, 1))]
    node = helper.make_node(op, names, outputs, **attributes)
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype), np.shape(value))
        for name, value in zip(names, inputs, strict=True)
        if name
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs]
    for result in results:
        result.ClearField("type")
    newer = {"Mish": 18, "Resize": 19, "ScatterElements": 18, "ScatterND": 18}
    opset = newer.get(op, 17)
    model = helper.make_model(
        helper.make_graph([node], "one", declared, results),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
    )
    session = onnxruntime.InferenceSession(onnx.shape_inference.infer_shapes(model).SerializeToString())
    return list(session.run(None, {name: np.asarray(v) for name, v in zip(names, inputs, strict=True) if name}))


@pytest.mark.parametrize("case", CASES)
def test_an_operator_computes_as_onnx_runtime_does(case: str) -> None:
    op, inputs, attributes = CASES[case]
    wanted = by_onnx_runtime(op, inputs, attributes)
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    given = operators.run(op, arrays, attributes)
    assert len(given) >= len(wanted)
    for first, second in zip(wanted, given, strict=False):
        assert first.shape == second.shape
        assert first.dtype == second.dtype
        np.testing.assert_allclose(first, second, rtol=2e-5, atol=2e-6)


def test_every_operator_of_onnx_has_a_case() -> None:
    named = {op for op in operators.OPERATORS if op[0].isupper()}
    assert named - UNTESTED == {op for op, _, _ in CASES.values()}


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(operators.UnknownOperatorError, match="operator Bernoulli is not known"):
        operators.run("Bernoulli", [], {})


def test_a_recurrent_layer_refuses_unsupported_attributes() -> None:
    arguments: list[Any] = [normal(5, 2, 3), normal(1, 16, 3), normal(1, 16, 4)]
    with pytest.raises(ValueError, match="activations"):
        operators.run("LSTM", arguments, {"hidden_size": 4, "activations": ["Relu", "Tanh", "Tanh"]})


FUNCTIONS = (
    *("ceil", "floor", "rint", "sqrt", "reciprocal", "minimum", "maximum"),
    *("less", "equal", "max", "min", "argmax"),
)
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 0.5, -2.5, 3.25], np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_in_float64_has_the_bits_of_float32(name: str) -> None:
    """numpy for ARM with 32 bits flushes subnormal numbers and estimates roots; float64 does neither."""
    function, random = getattr(np, name), np.random.default_rng(3)
    count = getattr(function, "nin", 1)
    settings = {} if hasattr(function, "nin") else {"axis": 1}
    for numbers in (random.choice(ODD, (2, 9, 300)), random.normal(0, 3, (2, 9, 300)).astype(np.float32)):
        arrays = [numbers, np.roll(numbers, 1)][:count]
        with np.errstate(all="ignore"):
            wanted, given = function(*arrays, **settings), functions.in_float64(function)(*arrays, **settings)
        assert given.dtype == wanted.dtype
        np.testing.assert_array_equal(bits(given), bits(wanted))
    whole = [np.arange(1, 7).reshape(2, 3)] * count
    assert functions.in_float64(function)(*whole, **settings).dtype == function(*whole, **settings).dtype
