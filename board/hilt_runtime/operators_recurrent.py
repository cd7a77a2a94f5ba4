"""ONNX's LSTM and GRU in numpy, with their default activations, and RNN."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from hilt_runtime import functions

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _sigmoid(x: np.ndarray) -> Any:
    return functions.sigmoid(x).astype(x.dtype)


def _tanh(x: np.ndarray) -> Any:
    return functions.tanh(x).astype(x.dtype)


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
    """Refuse an LSTM ("lstm") or GRU ("gru") that this code does not compute. Raises ValueError."""
    if kernel == "gru":
        _refuse_extras("GRU", inputs, attributes, 4, ("Sigmoid", "Tanh"))
        return
    _refuse_extras("LSTM", inputs, attributes, 4, ("Sigmoid", "Tanh", "Tanh"))
    if _at(inputs, 7) is not None:
        raise ValueError("LSTM with peepholes is not known")


def _lstm(inputs: Inputs, attributes: Attributes) -> Any:
    require_known("lstm", inputs, attributes)
    data, weights, recurrence = (np.asarray(tensor) for tensor in inputs[:3])
    hidden_size = recurrence.shape[2]
    outputs, hiddens, cells = [], [], []
    for direction, backwards in enumerate(_directions(attributes)):
        hidden, cell = (_initial(_at(inputs, place), direction, data, hidden_size) for place in (5, 6))
        gates = _input_part(data, weights[direction], _at(inputs, 3), direction, hidden_size, 4, both=True)
        steps = np.empty((data.shape[0], data.shape[1], hidden_size), data.dtype)
        for step in _order(data.shape[0], backwards):
            four = gates[step] + functions.product(hidden, recurrence[direction].T)
            enter, leave, forget, new = (four[:, k * hidden_size : (k + 1) * hidden_size] for k in range(4))
            cell = _sigmoid(forget) * cell + _sigmoid(enter) * _tanh(new)
            hidden = _sigmoid(leave) * _tanh(cell)
            steps[step] = hidden
        outputs.append(steps)
        hiddens.append(hidden)
        cells.append(cell)
    return [np.stack(outputs, axis=1), np.stack(hiddens), np.stack(cells)]


def _gru(inputs: Inputs, attributes: Attributes) -> Any:
    require_known("gru", inputs, attributes)
    data, weights, recurrence = (np.asarray(tensor) for tensor in inputs[:3])
    size = recurrence.shape[2]
    linear = bool(attributes.get("linear_before_reset", 0))
    outputs, hiddens = [], []
    for direction, backwards in enumerate(_directions(attributes)):
        hidden = _initial(_at(inputs, 5), direction, data, size)
        bias = _at(inputs, 3)
        gates = _input_part(data, weights[direction], bias, direction, size, 3, both=False)
        recurrent_bias = np.zeros(3 * size, data.dtype) if bias is None else bias[direction, 3 * size :]
        matrix = recurrence[direction]
        steps = np.empty((data.shape[0], data.shape[1], size), data.dtype)
        for step in _order(data.shape[0], backwards):
            both = (
                gates[step][:, : 2 * size]
                + functions.product(hidden, matrix[: 2 * size].T)
                + recurrent_bias[: 2 * size]
            )
            update, reset = _sigmoid(both[:, :size]), _sigmoid(both[:, size:])
            tail, last = recurrent_bias[2 * size :], matrix[2 * size :].T
            inner = (
                reset * (functions.product(hidden, last) + tail)
                if linear
                else functions.product(reset * hidden, last) + tail
            )
            new = _tanh(gates[step][:, 2 * size :] + inner)
            hidden = (1 - update) * new + update * hidden
            steps[step] = hidden
        outputs.append(steps)
        hiddens.append(hidden)
    return [np.stack(outputs, axis=1), np.stack(hiddens)]


_ACTIVATIONS: Dict[str, Callable[[np.ndarray], Any]] = {
    "Tanh": _tanh,
    "Sigmoid": _sigmoid,
    "Relu": lambda x: np.maximum(x, x.dtype.type(0)),
}


def _rnn(inputs: Inputs, attributes: Attributes) -> Any:
    data, weights, recurrence = (np.asarray(tensor) for tensor in inputs[:3])
    size, directions = recurrence.shape[2], _directions(attributes)
    names = [str(name) for name in attributes.get("activations", [])] or ["Tanh"] * len(directions)
    if any(name not in _ACTIVATIONS for name in names):
        raise ValueError("RNN with activations {} is not known; hilt computes {}".format(names, sorted(_ACTIVATIONS)))
    _refuse_extras("RNN", inputs, {**attributes, "activations": []}, 4, ("Tanh",))
    outputs, hiddens = [], []
    for direction, backwards in enumerate(directions):
        hidden = _initial(_at(inputs, 5), direction, data, size)
        entered = _input_part(data, weights[direction], _at(inputs, 3), direction, size, 1, both=True)
        steps = np.empty((data.shape[0], data.shape[1], size), data.dtype)
        for step in _order(data.shape[0], backwards):
            total = entered[step] + functions.product(hidden, recurrence[direction].T)
            hidden = steps[step] = _ACTIVATIONS[names[direction]](total)
        outputs.append(steps)
        hiddens.append(hidden)
    return [np.stack(outputs, axis=1), np.stack(hiddens)]


def _initial(given: Optional[np.ndarray], direction: int, data: np.ndarray, size: int) -> Any:
    return np.zeros((data.shape[1], size), data.dtype) if given is None else given[direction]


def _input_part(
    data: np.ndarray, weights: np.ndarray, bias: Optional[np.ndarray], direction: int, size: int, gates: int, both: bool
) -> Any:
    """Return the gates' part that depends on the data alone (T, N, gates * size); `both` adds both biases."""
    product = functions.product(data, weights.T)
    if bias is None:
        return product
    first = bias[direction, : gates * size]
    return product + (first + bias[direction, gates * size :] if both else first)


def _order(steps: int, backwards: bool) -> Sequence[int]:
    return range(steps - 1, -1, -1) if backwards else range(steps)


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {"GRU": _gru, "LSTM": _lstm, "RNN": _rnn}
