"""ONNX's LSTM and GRU in numpy, with their default activations, and RNN.

Weights and recurrence may both be of int8, with a float scale a row: the inputs WEIGHT_SCALES and RECURRENCE_SCALES
(directions, gates * hidden), which ONNX does not have. What they are multiplied with is rounded to steps of a power of
two, 2^14 of them to the largest value: 1 of the hidden state, which lies in (-1, 1). So sums are exact integers. Their
Sigmoid and Tanh are looked up, with lines between the table's steps, to a tenth of such a step.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from hilt_runtime import functions
from hilt_runtime.fixed_point import MOST_DEPTH, STEPS, exponent_of, factors_of, fixed_point

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]

PEEPHOLES = 7
"""The place of an LSTM's factors of its cell state among the inputs."""
WEIGHT_SCALES, RECURRENCE_SCALES = 8, 9
"""The places of the scales of int8 weights among the inputs, behind all of ONNX's."""
_Function = Callable[[np.ndarray], Any]


def _functions(inputs: Inputs) -> Tuple[_Function, _Function]:
    """Return the sigmoid and tanh of an operator: of int8 weights' they are looked up."""
    if is_int8(inputs):
        one, other = functions.sigmoid_by_table, functions.tanh_by_table
    else:
        one, other = functions.sigmoid, functions.tanh
    return lambda x: one(x).astype(x.dtype), lambda x: other(x).astype(x.dtype)


def _at(inputs: Inputs, place: int) -> Optional[np.ndarray]:
    return inputs[place] if len(inputs) > place else None


def _refuse_extras(
    name: str, inputs: Inputs, attributes: Attributes, lengths: int, activations: Tuple[str, ...]
) -> None:
    """Refuse attributes and inputs that this code does not compute."""
    given = [str(value) for value in attributes.get("activations", [])]
    if given and any(value != activations[place % len(activations)] for place, value in enumerate(given)):
        raise ValueError("{} with activations {} is not known; hilt computes {}".format(name, given, activations))
    if attributes.get("clip") or attributes.get("layout", 0) or attributes.get("input_forget", 0):
        raise ValueError("{} with clip, layout or input_forget is not known".format(name))
    steps = _at(inputs, lengths)
    if steps is not None and np.any(steps != np.asarray(inputs[0]).shape[0]):
        raise ValueError("{} with sequences of different lengths is not known".format(name))


def _directions(attributes: Attributes) -> List[bool]:
    """Return for each direction whether it runs backwards."""
    return {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
        attributes.get("direction", "forward")
    ]


def require_known(kernel: str, inputs: Inputs, attributes: Attributes) -> None:
    """Refuse an LSTM ("lstm"), GRU ("gru") or RNN ("rnn") that this code does not compute. Raises ValueError."""
    if kernel == "gru":
        _refuse_extras("GRU", inputs, attributes, 4, ("Sigmoid", "Tanh"))
        return
    if kernel == "rnn":
        _require_known_rnn(inputs, attributes)
        return
    _refuse_extras("LSTM", inputs, attributes, 4, ("Sigmoid", "Tanh", "Tanh"))


def is_int8(inputs: Inputs) -> bool:
    """Tell whether a recurrent operator has int8 weights."""
    return bool(np.asarray(inputs[2]).dtype == np.int8)


class _Rows:
    """One direction's weights (rows, depth), of float or int8."""

    def __init__(self, inputs: Inputs, place: int, direction: int) -> None:
        self._matrix: np.ndarray = np.asarray(inputs[place])[direction]
        self._scales: Optional[np.ndarray] = None
        if is_int8(inputs):
            self._matrix = self._matrix.astype(np.float64)
            self._scales = scales_of(inputs, place)[direction]

    def of_data(self, data: np.ndarray) -> Any:
        """Return the products of data (..., depth) with all rows, float32."""
        return self._product(data, 0, None, exponent_of(data))

    def of_state(self, hidden: np.ndarray, first: int = 0, last: Optional[int] = None) -> Any:
        """Return the products of a state (N, depth) with the rows from `first` to `last`, float32."""
        return self._product(hidden, first, last, STEPS)

    def _product(self, data: np.ndarray, first: int, last: Optional[int], exponent: int) -> Any:
        matrix = self._matrix[first:last].T
        if self._scales is None:
            return functions.product(data, matrix)
        sums = np.matmul(fixed_point(data, exponent), matrix).astype(np.float32)
        return (sums * factors_of(self._scales[first:last], exponent)).astype(data.dtype)


def scales_of(inputs: Inputs, place: int) -> np.ndarray:
    """Return the scales (directions, rows) of the int8 weights at a place. Raises ValueError if they do not fit."""
    scales = _at(inputs, WEIGHT_SCALES if place == 1 else RECURRENCE_SCALES)
    values = np.asarray(inputs[place])
    fits = scales is not None and scales.shape == values.shape[:2] and scales.dtype == np.float32
    if scales is None or not fits or values.dtype != np.int8 or values.shape[2] > MOST_DEPTH:
        raise ValueError("int8 weights need a float32 scale for each of their rows, and all of them are int8")
    return scales


def _require_known_rnn(inputs: Inputs, attributes: Attributes) -> None:
    names = rnn_activations(attributes)
    if any(name not in _ACTIVATIONS for name in names):
        raise ValueError("RNN with activations {} is not known; hilt computes {}".format(names, sorted(_ACTIVATIONS)))
    if is_int8(inputs) and "Relu" in names:
        raise ValueError("RNN with Relu and int8 weights is not known: its state has no bounds")
    _refuse_extras("RNN", inputs, {**attributes, "activations": []}, 4, ("Tanh",))


def rnn_activations(attributes: Attributes) -> List[str]:
    """Return the activation of each direction of an RNN."""
    return [str(name) for name in attributes.get("activations", [])] or ["Tanh"] * len(_directions(attributes))


def _lstm(inputs: Inputs, attributes: Attributes) -> Any:
    require_known("lstm", inputs, attributes)
    data, recurrence = np.asarray(inputs[0]), np.asarray(inputs[2])
    sigmoid, tanh = _functions(inputs)
    hidden_size = recurrence.shape[2]
    outputs, hiddens, cells = [], [], []
    for direction, backwards in enumerate(_directions(attributes)):
        hidden, cell = (_initial(_at(inputs, place), direction, data, hidden_size) for place in (5, 6))
        recurrent = _Rows(inputs, 2, direction)
        gates = _input_part(inputs, direction, hidden_size, 4, both=True)
        peepholes = peepholes_of(inputs, direction) if has_peepholes(inputs) else None
        steps = np.empty((data.shape[0], data.shape[1], hidden_size), data.dtype)
        for step in _order(data.shape[0], backwards):
            four = gates[step] + recurrent.of_state(hidden)
            enter, leave, forget, new = (four[:, k * hidden_size : (k + 1) * hidden_size] for k in range(4))
            if peepholes is not None:
                enter, forget = enter + peepholes[0] * cell, forget + peepholes[2] * cell
            cell = sigmoid(forget) * cell + sigmoid(enter) * tanh(new)
            if peepholes is not None:
                leave = leave + peepholes[1] * cell
            hidden = sigmoid(leave) * tanh(cell)
            steps[step] = hidden
        outputs.append(steps)
        hiddens.append(hidden)
        cells.append(cell)
    return [np.stack(outputs, axis=1), np.stack(hiddens), np.stack(cells)]


def has_peepholes(inputs: Inputs) -> bool:
    """Tell whether an operator is an LSTM whose gates read its cell state."""
    return _at(inputs, PEEPHOLES) is not None


def peepholes_of(inputs: Inputs, direction: int) -> Any:
    """Return an LSTM's factors of its cell state (3, hidden) at the gates input, output and forget."""
    return inputs[PEEPHOLES][direction].reshape(3, -1)


def _gru(inputs: Inputs, attributes: Attributes) -> Any:
    require_known("gru", inputs, attributes)
    data, recurrence = np.asarray(inputs[0]), np.asarray(inputs[2])
    sigmoid, tanh = _functions(inputs)
    size = recurrence.shape[2]
    linear = bool(attributes.get("linear_before_reset", 0))
    outputs, hiddens = [], []
    for direction, backwards in enumerate(_directions(attributes)):
        hidden = _initial(_at(inputs, 5), direction, data, size)
        bias = _at(inputs, 3)
        gates = _input_part(inputs, direction, size, 3, both=False)
        recurrent_bias = np.zeros(3 * size, data.dtype) if bias is None else bias[direction, 3 * size :]
        recurrent = _Rows(inputs, 2, direction)
        steps = np.empty((data.shape[0], data.shape[1], size), data.dtype)
        for step in _order(data.shape[0], backwards):
            both = gates[step][:, : 2 * size] + recurrent.of_state(hidden, 0, 2 * size) + recurrent_bias[: 2 * size]
            update, reset = sigmoid(both[:, :size]), sigmoid(both[:, size:])
            tail = recurrent_bias[2 * size :]
            inner = (
                reset * (recurrent.of_state(hidden, 2 * size) + tail)
                if linear
                else recurrent.of_state(reset * hidden, 2 * size) + tail
            )
            new = tanh(gates[step][:, 2 * size :] + inner)
            hidden = (1 - update) * new + update * hidden
            steps[step] = hidden
        outputs.append(steps)
        hiddens.append(hidden)
    return [np.stack(outputs, axis=1), np.stack(hiddens)]


def _relu(x: np.ndarray) -> Any:
    return np.maximum(x, x.dtype.type(0)) + x.dtype.type(0)


_ACTIVATIONS = ("Tanh", "Sigmoid", "Relu")


def _rnn(inputs: Inputs, attributes: Attributes) -> Any:
    require_known("rnn", inputs, attributes)
    data, recurrence = np.asarray(inputs[0]), np.asarray(inputs[2])
    size, directions, names = recurrence.shape[2], _directions(attributes), rnn_activations(attributes)
    sigmoid, tanh = _functions(inputs)
    known = dict(zip(_ACTIVATIONS, (tanh, sigmoid, _relu)))
    outputs, hiddens = [], []
    for direction, backwards in enumerate(directions):
        hidden = _initial(_at(inputs, 5), direction, data, size)
        recurrent = _Rows(inputs, 2, direction)
        entered = _input_part(inputs, direction, size, 1, both=True)
        steps = np.empty((data.shape[0], data.shape[1], size), data.dtype)
        for step in _order(data.shape[0], backwards):
            total = entered[step] + recurrent.of_state(hidden)
            hidden = steps[step] = known[names[direction]](total)
        outputs.append(steps)
        hiddens.append(hidden)
    return [np.stack(outputs, axis=1), np.stack(hiddens)]


def _initial(given: Optional[np.ndarray], direction: int, data: np.ndarray, size: int) -> Any:
    return np.zeros((data.shape[1], size), data.dtype) if given is None else given[direction]


def _input_part(inputs: Inputs, direction: int, size: int, gates: int, both: bool) -> Any:
    """Return the gates' part that depends on the data alone (T, N, gates * size); `both` adds both biases."""
    product, bias = _Rows(inputs, 1, direction).of_data(np.asarray(inputs[0])), _at(inputs, 3)
    if bias is None:
        return product
    first = bias[direction, : gates * size]
    return product + (first + bias[direction, gates * size :] if both else first)


def _order(steps: int, backwards: bool) -> Sequence[int]:
    return range(steps - 1, -1, -1) if backwards else range(steps)


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {"GRU": _gru, "LSTM": _lstm, "RNN": _rnn}
