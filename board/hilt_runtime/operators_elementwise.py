"""ONNX's element-wise operators in numpy."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Sequence

import numpy as np

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _sigmoid(x: np.ndarray) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def _erf(x: np.ndarray) -> Any:
    """Return the error function, to 1.2e-7 (the rational approximation of Numerical Recipes, erfc Chebyshev)."""
    coefficients = (
        -1.26551223,
        1.00002368,
        0.37409196,
        0.09678418,
        -0.18628806,
        0.27886807,
        -1.13520398,
        1.48851587,
        -0.82215223,
        0.17087277,
    )
    size = np.abs(x).astype(np.float64)
    t = 1 / (1 + 0.5 * size)
    polynomial = np.zeros_like(size)
    for coefficient in reversed(coefficients):
        polynomial = polynomial * t + coefficient
    complement = t * np.exp(-size * size + polynomial)
    return (np.sign(x) * (1 - complement)).astype(x.dtype)


def _clip(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    low = inputs[1] if len(inputs) > 1 else None
    high = inputs[2] if len(inputs) > 2 else None
    data = data if low is None else np.maximum(data, low)
    return data if high is None else np.minimum(data, high)


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
    return np.power(left, right).astype(left.dtype)


def _gelu(inputs: Inputs, attributes: Attributes) -> Any:
    x = _first(inputs)
    if attributes.get("approximate", "none") == "tanh":
        inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
        return (0.5 * x * (1 + np.tanh(inner))).astype(x.dtype)
    return (0.5 * x * (1 + _erf(x / np.float32(np.sqrt(2))))).astype(x.dtype)


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


def _softplus(x: np.ndarray) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _celu(x: np.ndarray, alpha: np.float32) -> Any:
    return (np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(np.minimum(x, 0) / alpha))).astype(x.dtype)


def _selu(inputs: Inputs, attributes: Attributes) -> Any:
    x = _first(inputs)
    alpha = np.float32(attributes.get("alpha", 1.67326319217681884765625))
    gamma = np.float32(attributes.get("gamma", 1.05070102214813232421875))
    return (gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))).astype(x.dtype)


def _shrink(inputs: Inputs, attributes: Attributes) -> Any:
    x, bias, limit = _first(inputs), np.float32(attributes.get("bias", 0.0)), attributes.get("lambd", 0.5)
    return np.where(x < -limit, x + bias, np.where(x > limit, x - bias, 0)).astype(x.dtype)


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {
    "Abs": _unary(np.abs),
    "Acos": _unary(np.arccos),
    "Acosh": _unary(np.arccosh),
    "Add": _binary(np.add),
    "And": _binary(np.logical_and),
    "Asin": _unary(np.arcsin),
    "Asinh": _unary(np.arcsinh),
    "Atan": _unary(np.arctan),
    "Atanh": _unary(np.arctanh),
    "Ceil": _unary(np.ceil),
    "Celu": lambda i, a: _celu(_first(i), np.float32(a.get("alpha", 1.0))),
    "Clip": _clip,
    "Cos": _unary(np.cos),
    "Cosh": _unary(np.cosh),
    "Div": _binary(_divide),
    "Elu": lambda i, a: np.where(
        _first(i) > 0, _first(i), np.float32(a.get("alpha", 1.0)) * np.expm1(np.minimum(_first(i), 0))
    ).astype(_first(i).dtype),
    "Equal": _binary(np.equal),
    "Erf": _unary(_erf),
    "Exp": _unary(np.exp),
    "Floor": _unary(np.floor),
    "Gelu": _gelu,
    "Greater": _binary(np.greater),
    "GreaterOrEqual": _binary(np.greater_equal),
    "HardSigmoid": lambda i, a: _hard_sigmoid(_first(i), a.get("alpha", 0.2), a.get("beta", 0.5)),
    "HardSwish": lambda i, a: (_first(i) * _hard_sigmoid(_first(i), 1 / 6, 0.5)).astype(_first(i).dtype),
    "Identity": lambda i, a: _first(i),
    "IsNaN": _test(np.isnan),
    "LeakyRelu": lambda i, a: np.where(_first(i) >= 0, _first(i), np.float32(a.get("alpha", 0.01)) * _first(i)).astype(
        _first(i).dtype
    ),
    "Less": _binary(np.less),
    "LessOrEqual": _binary(np.less_equal),
    "Log": _unary(np.log),
    "Max": _over_all(np.maximum),
    "Mean": lambda i, a: (_over_all(np.add)(i, a) / np.float32(len(i))).astype(_first(i).dtype),
    "Min": _over_all(np.minimum),
    "Mish": _unary(lambda x: x * np.tanh(_softplus(x))),
    "Mod": _modulo,
    "Mul": _binary(np.multiply),
    "Neg": _unary(np.negative),
    "Not": _test(np.logical_not),
    "Or": _binary(np.logical_or),
    "PRelu": lambda i, a: np.where(_first(i) >= 0, _first(i), i[1] * _first(i)).astype(_first(i).dtype),
    "Pow": _binary(_power),
    "Reciprocal": _unary(np.reciprocal),
    "Relu": lambda i, a: np.maximum(_first(i), 0),
    "Round": _unary(np.rint),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": _unary(_sigmoid),
    "Sign": _unary(np.sign),
    "Sin": _unary(np.sin),
    "Sinh": _unary(np.sinh),
    "Softplus": _unary(_softplus),
    "Softsign": _unary(lambda x: x / (1 + np.abs(x))),
    "Sqrt": _unary(np.sqrt),
    "Sub": _binary(np.subtract),
    "Sum": _over_all(np.add),
    "Tan": _unary(np.tan),
    "Tanh": _unary(np.tanh),
    "ThresholdedRelu": lambda i, a: np.where(_first(i) > a.get("alpha", 1.0), _first(i), 0).astype(_first(i).dtype),
    "Where": lambda i, a: np.where(_first(i), i[1], i[2]),
    "Xor": _binary(np.logical_xor),
}
