"""ONNX's element-wise operators in numpy."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Sequence

import numpy as np

from hilt_runtime import functions

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _clip(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    low = inputs[1] if len(inputs) > 1 else None
    high = inputs[2] if len(inputs) > 2 else None
    data = data if low is None else np.where(data < low, low, data).astype(data.dtype)
    return data if high is None else np.where(data > high, high, data).astype(data.dtype)


def _hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> Any:
    return np.clip(x * np.float32(alpha) + np.float32(beta), 0, 1).astype(x.dtype)


def _divide(left: np.ndarray, right: np.ndarray) -> Any:
    if np.issubdtype(left.dtype, np.integer):  # ONNX's truncates, numpy's floors
        return (np.sign(left) * np.sign(right) * (np.abs(left) // np.abs(right))).astype(left.dtype)
    return left / right


def _modulo(inputs: Inputs, attributes: Attributes) -> Any:
    function = np.fmod if attributes.get("fmod", 0) else np.mod
    return function(inputs[0], inputs[1])


def _power(left: np.ndarray, right: np.ndarray) -> Any:
    if left.dtype != np.float32:
        return np.power(left, right).astype(left.dtype)
    if np.size(right) == 1 and np.ndim(right) <= left.ndim and float(np.ravel(right)[0]) in (2.0, 0.5):
        return left * left if float(np.ravel(right)[0]) == 2.0 else functions.sqrt(left)
    return np.power(left.astype(np.float64), right).astype(left.dtype)


def _gelu(inputs: Inputs, attributes: Attributes) -> Any:
    x = _first(inputs)
    if attributes.get("approximate", "none") == "tanh":
        inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
        return (0.5 * x * (1 + functions.tanh(inner).astype(x.dtype))).astype(x.dtype)
    return (0.5 * x * (1 + functions.erf(x / np.float32(np.sqrt(2))).astype(x.dtype))).astype(x.dtype)


def _first(inputs: Inputs) -> Any:
    tensor = inputs[0]
    assert tensor is not None
    return tensor


def _unary(function: Callable[[Any], Any]) -> Callable[[Inputs, Attributes], Any]:
    return lambda inputs, attributes: np.asarray(function(_first(inputs))).astype(_first(inputs).dtype)


def _test(function: Callable[[Any], Any]) -> Callable[[Inputs, Attributes], Any]:
    return lambda inputs, attributes: function(_first(inputs))


def _binary(function: Callable[..., Any]) -> Callable[[Inputs, Attributes], Any]:
    return lambda inputs, attributes: function(inputs[0], inputs[1])


def _over_all(function: Callable[..., Any]) -> Callable[[Inputs, Attributes], Any]:
    def apply(inputs: Inputs, attributes: Attributes) -> Any:
        result = _first(inputs)
        for tensor in inputs[1:]:
            result = function(result, tensor)
        return result

    return apply


def _wide(function: Callable[[Any], Any]) -> Callable[[Inputs, Attributes], Any]:
    """Return an operator that computes in float64 and rounds once."""
    return lambda inputs, attributes: np.asarray(function(np.asarray(_first(inputs), np.float64))).astype(
        _first(inputs).dtype
    )


def _of_two(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maximum or minimum whose zero is +0: which of +0 and -0 numpy returns depends on its build."""

    def apply(left: np.ndarray, right: np.ndarray) -> Any:
        result = function(left, right)
        return result + result.dtype.type(0)

    return apply


def _expm1(x: np.ndarray) -> Any:
    return functions.expm1(np.where(x > 0, x.dtype.type(0), x)).astype(x.dtype)


def _celu(x: np.ndarray, alpha: np.float32) -> Any:
    return (np.maximum(x, 0) + np.minimum(0, alpha * _expm1(x / alpha))).astype(x.dtype)


def _selu(inputs: Inputs, attributes: Attributes) -> Any:
    x = _first(inputs)
    alpha = np.float32(attributes.get("alpha", 1.67326319217681884765625))
    gamma = np.float32(attributes.get("gamma", 1.05070102214813232421875))
    return (gamma * np.where(x > 0, x, alpha * _expm1(x))).astype(x.dtype)


def _shrink(inputs: Inputs, attributes: Attributes) -> Any:
    x, bias, limit = _first(inputs), np.float32(attributes.get("bias", 0.0)), attributes.get("lambd", 0.5)
    return np.where(x < -limit, x + bias, np.where(x > limit, x - bias, 0)).astype(x.dtype)


def _is_inf(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    return (np.isposinf(data) & bool(attributes.get("detect_positive", 1))) | (
        np.isneginf(data) & bool(attributes.get("detect_negative", 1))
    )


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {
    "Abs": _unary(np.abs),
    "Acos": _wide(np.arccos),
    "Acosh": _wide(np.arccosh),
    "Add": _binary(np.add),
    "And": _binary(np.logical_and),
    "Asin": _wide(np.arcsin),
    "Asinh": _wide(np.arcsinh),
    "Atan": _wide(np.arctan),
    "Atanh": _wide(np.arctanh),
    "Ceil": _unary(functions.ieee(np.ceil)),
    "Celu": lambda i, a: _celu(_first(i), np.float32(a.get("alpha", 1.0))),
    "Clip": _clip,
    "Cos": _wide(np.cos),
    "Cosh": _wide(np.cosh),
    "Div": _binary(_divide),
    "Elu": lambda i, a: np.where(_first(i) > 0, _first(i), np.float32(a.get("alpha", 1.0)) * _expm1(_first(i))).astype(
        _first(i).dtype
    ),
    "Equal": _binary(functions.ieee(np.equal)),
    "Erf": _unary(functions.erf),
    "Exp": _unary(functions.exp),
    "Floor": _unary(functions.ieee(np.floor)),
    "Gelu": _gelu,
    "Greater": _binary(functions.ieee(np.greater)),
    "GreaterOrEqual": _binary(functions.ieee(np.greater_equal)),
    "HardSigmoid": lambda i, a: _hard_sigmoid(_first(i), a.get("alpha", 0.2), a.get("beta", 0.5)),
    "HardSwish": lambda i, a: (_first(i) * _hard_sigmoid(_first(i), 1 / 6, 0.5)).astype(_first(i).dtype),
    "Identity": lambda i, a: _first(i),
    "IsInf": _is_inf,
    "IsNaN": _test(np.isnan),
    "LeakyRelu": lambda i, a: np.where(_first(i) >= 0, _first(i), np.float32(a.get("alpha", 0.01)) * _first(i)).astype(
        _first(i).dtype
    ),
    "Less": _binary(functions.ieee(np.less)),
    "LessOrEqual": _binary(functions.ieee(np.less_equal)),
    "Log": _unary(functions.log),
    "Max": _over_all(_of_two(functions.ieee(np.maximum))),
    "Mean": lambda i, a: (_over_all(np.add)(i, a) / np.float32(len(i))).astype(_first(i).dtype),
    "Min": _over_all(_of_two(functions.ieee(np.minimum))),
    "Mish": _unary(lambda x: x * functions.tanh(functions.softplus(x))),
    "Mod": _modulo,
    "Mul": _binary(np.multiply),
    "Neg": _unary(np.negative),
    "Not": _test(np.logical_not),
    "Or": _binary(np.logical_or),
    "PRelu": lambda i, a: np.where(_first(i) >= 0, _first(i), i[1] * _first(i)).astype(_first(i).dtype),
    "Pow": _binary(_power),
    "Reciprocal": _unary(functions.ieee(np.reciprocal)),
    "Relu": lambda i, a: np.where(_first(i) <= 0, 0, _first(i)).astype(_first(i).dtype),
    "Round": _unary(functions.ieee(np.rint)),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": _unary(functions.sigmoid),
    "Sign": _unary(np.sign),
    "Sin": _wide(np.sin),
    "Sinh": _wide(np.sinh),
    "Softplus": _unary(functions.softplus),
    "Softsign": _unary(lambda x: x / (1 + np.abs(x))),
    "Sqrt": _unary(functions.sqrt),
    "Sub": _binary(np.subtract),
    "Sum": _over_all(np.add),
    "Tan": _wide(np.tan),
    "Tanh": _unary(functions.tanh),
    "ThresholdedRelu": lambda i, a: np.where(_first(i) > a.get("alpha", 1.0), _first(i), 0).astype(_first(i).dtype),
    "Where": lambda i, a: np.where(_first(i), i[1], i[2]),
    "Xor": _binary(np.logical_xor),
}
