"""The processor's operators against ONNX Runtime, which others wrote."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hilt_runtime import functions, operators
from tests.unit.network.engines import bits
from tests.unit.network.models import session_of
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
    session = session_of(onnx.shape_inference.infer_shapes(model))
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


X = np.linspace(-4, 4, 33).astype(np.float32)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_its_formula(approximate: str) -> None:
    (made,) = operators.run("Gelu", [X], {"approximate": approximate})
    inner = math.sqrt(2 / math.pi) * (X.astype(float) + 0.044715 * X.astype(float) ** 3)
    erf = np.array([math.erf(value / math.sqrt(2)) for value in X.tolist()])
    wanted = 0.5 * X * (1 + (np.tanh(inner) if approximate == "tanh" else erf))
    np.testing.assert_allclose(made, wanted, rtol=2e-6, atol=2e-7)
    assert made.dtype == np.float32
    assert np.array_equal(operators.run("Gelu", [X], {})[0], made) == (approximate == "none")


@pytest.mark.parametrize(("length", "count", "sizes"), [(10, 3, [4, 4, 2]), (9, 3, [3, 3, 3]), (5, 2, [3, 2])])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_split_into_a_number_of_parts_has_the_small_one_last(
    length: int, count: int, sizes: list[int], axis: int
) -> None:
    data = np.arange(2 * length).reshape((2, length) if axis else (length, 2))
    made = operators.run("Split", [data], {"num_outputs": count, "axis": axis})
    assert [part.shape[axis] for part in made] == sizes
    assert np.array_equal(np.concatenate(made, axis), data)


def test_a_constant_of_a_shape_has_the_value_and_its_type() -> None:
    (made,) = operators.run("ConstantOfShape", [np.array([2, 3])], {"value": np.array([7], np.int64)})
    assert made.tolist() == [[7] * 3] * 2 and made.dtype == np.int64
    (made,) = operators.run("ConstantOfShape", [np.array([2])], {})
    assert made.tolist() == [0, 0] and made.dtype == np.float32
    assert operators.run("ConstantOfShape", [np.zeros(0, np.int64)], {})[0].shape == ()


FLOATS = np.zeros((3, 1, 4), np.float32)
GATES = [FLOATS, np.zeros((1, 8, 4), np.float32), np.zeros((1, 8, 2), np.float32), np.zeros((1, 16), np.float32)]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "words"),
    [
        ("GatherND", [FLOATS, np.zeros((1, 1), np.int64)], {"batch_dims": 1}, "GatherND with batch_dims"),
        ("ScatterND", [FLOATS, np.zeros((1, 1), np.int64), FLOATS[:1]], {"reduction": "xor"}, "a scatter with.* xor"),
        ("Resize", [FLOATS, None, np.ones(3) * 2], {"mode": "area"}, "Resize with mode area"),
        ("Resize", [FLOATS, None, np.ones(3) * 2], {"coordinate_transformation_mode": "tf"}, "_mode tf is"),
        ("LSTM", GATES, {"clip": 1.0}, "LSTM with clip, layout or input_forget"),
        ("LSTM", GATES, {"layout": 1}, "LSTM with clip, layout or input_forget"),
        ("LSTM", GATES, {"input_forget": 1}, "LSTM with clip, layout or input_forget"),
        ("LSTM", [*GATES, np.array([2], np.int32)], {}, "LSTM with sequences of different lengths"),
        ("LSTM", GATES, {"activations": ["Relu", "Tanh", "Tanh"]}, r"LSTM with activations \['Relu'"),
    ],
)
def test_a_form_that_is_not_computed_is_refused(op: str, inputs: list[Any], attributes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"{words}.*not known"):
        operators.run(op, inputs, attributes)


def test_a_resize_of_tensorflows_half_pixels_begins_half_a_pixel_later() -> None:
    attributes = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}
    (made,) = operators.run("Resize", [np.arange(6), None, np.array([0.5])], attributes)
    assert made.tolist() == [1, 3, 5]
