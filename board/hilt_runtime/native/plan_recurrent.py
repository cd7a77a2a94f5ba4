"""LSTM, GRU and RNN as steps of the native engine: the data's part as a product, then all steps in one kernel."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from hilt_runtime.fixed_point import STEPS, factors_of
from hilt_runtime.functions import SIGMOIDS
from hilt_runtime.native import split
from hilt_runtime.native.plan_float import add_bias, product
from hilt_runtime.native.steps import Builder, NotNativeError, StepRecord, copy, strides_of
from hilt_runtime.operators_recurrent import (
    PEEPHOLES,
    RECURRENCE_SCALES,
    WEIGHT_SCALES,
    has_peepholes,
    is_int8,
    peepholes_of,
    require_known,
    rnn_activations,
    scales_of,
)

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]

_LEAST_COLUMNS = 16
"""A product's piece has so many columns at least: one line of the cache."""
_ACTIVATIONS = ("Tanh", "Sigmoid", "Relu")
"""The activations of an RNN in the order of recurrent.c."""


def _at(inputs: Inputs, place: int) -> Any:
    return inputs[place] if len(inputs) > place else None


def _recurrent(kernel: str, gates: int) -> Callable[[Builder, Inputs, Attributes], List[Any]]:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        _require_native(builder, inputs)
        require_known(kernel, inputs, attributes)
        data, recurrence = inputs[0], inputs[2]
        steps, batch, size = data.shape[0], data.shape[1], recurrence.shape[2]
        directions = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}[attributes.get("direction", "forward")]
        out = builder.new((steps, len(directions), batch, size), np.float32)
        states = [builder.new((len(directions), batch, size), np.float32) for _ in range(2 if kernel == "lstm" else 1)]
        for place, _ in enumerate(directions):
            for state, given in zip(states, (_at(inputs, 5), _at(inputs, 6))):
                _start(builder, state[place], None if given is None else given[place])
        if kernel == "lstm" and is_int8(inputs) and out.size == size and _pieces(builder, inputs) > 1:
            _one_step(builder, inputs, out, states)
            return [out, *states]
        parts = _data_parts(builder, kernel, gates, inputs, len(directions))
        with builder.at_once():
            for place, backwards in enumerate(directions):
                _direction(builder, kernel, parts[place], inputs, attributes, place, backwards, out, states)
        return [out, *states]

    return plan


def _pieces(builder: Builder, inputs: Inputs) -> int:
    """Return how many pieces the units of one step are cut in: a product takes an instruction, about."""
    return int(min(builder.threads, inputs[2].shape[2], (inputs[1].size + inputs[2].size) // split.LEAST))


def _one_step(builder: Builder, inputs: Inputs, out: Any, states: Sequence[Any]) -> None:
    """Add the only step of an LSTM of int8 in pieces: each has some of the units, of all four gates."""
    size, count = inputs[2].shape[2], _pieces(builder, inputs)
    records: List[StepRecord] = []
    before = len(builder.records)
    for piece in range(count):
        first, last = size * piece // count, size * (piece + 1) // count
        with builder.whole(np.zeros):
            _units(builder, inputs, out, states, first, last)
        own = builder.records[before:]
        del builder.records[before:]
        records += [own[0]._replace(chain=len(own), rows=1, height=1), *own[1:]]
    builder.records += [records[0]._replace(together=count), *records[1:]]
    copy(builder, out, states[0], (size,), (0, [1]), (0, [1]))


def _units(builder: Builder, inputs: Inputs, out: Any, states: Sequence[Any], first: int, last: int) -> None:
    """Add the step of some units."""
    data, size, units = inputs[0], inputs[2].shape[2], last - first
    rows = np.concatenate([gate * size + np.arange(first, last) for gate in range(4)])
    weights, recurrence = (builder.constant(inputs[place][0][rows]) for place in (1, 2))
    scales = builder.constant(scales_of(inputs, 1)[0][rows])
    peepholes = _peepholes(inputs, 0, np.s_[first:last])
    later = builder.constant(_with_table(scales_of(inputs, 2)[0][rows], peepholes))
    part = builder.new((1, 4 * units), np.float32)
    arrays = [data, weights, scales, builder.new((data.size,), np.int16), part]
    builder.step("product_int8", arrays, [1, data.size, 4 * units, 4 * units])
    if _at(inputs, 3) is not None:
        both = inputs[3][0, : 4 * size] + inputs[3][0, 4 * size :]
        part = add_bias(builder, part, builder.constant(both[rows]))
    made, cell = (array.reshape(-1)[first:last] for array in (out, states[1]))
    arrays = [part, recurrence, made, states[0], builder.new((4 * units,), np.float32), cell, later]
    numbers = [1, 1, units, 0, units, int(has_peepholes(inputs)), size]
    builder.step("lstm", [*arrays, builder.new((size,), np.int16)], numbers)


def _require_native(builder: Builder, inputs: Inputs) -> None:
    """Raise NotNativeError unless all reals are float32, and all weights are constant."""
    others = (1, 2, 4) if is_int8(inputs) else (4,)
    real = [each for place, each in enumerate(inputs) if place not in others and each is not None]
    if any(each.dtype != np.float32 for each in real):
        raise NotNativeError("a tensor that is not float32")
    for place in (1, 2, 3, 4, PEEPHOLES, WEIGHT_SCALES, RECURRENCE_SCALES):
        if _at(inputs, place) is not None and not builder.is_constant(inputs[place]):
            raise NotNativeError("weights that are computed")


def _start(builder: Builder, state: Any, given: Any) -> None:
    if given is None:
        builder.step("fill", [state], [4, state.size, 0])
    else:
        copy(builder, given, state, state.shape, (0, strides_of(state.shape)), (0, strides_of(state.shape)))


def _data_parts(builder: Builder, kernel: str, gates: int, inputs: Inputs, directions: int) -> List[Tuple[Any, Any]]:
    """Add the data's part of each direction's gates; return it, and the bias that the recurrence adds (GRU)."""
    width, bias, made = gates * inputs[2].shape[2], _at(inputs, 3), []
    for place, part in enumerate(_products(builder, inputs, directions)):
        later = builder.constant(np.zeros(width, np.float32))
        if bias is not None:
            first, second = bias[place, :width], bias[place, width:]
            added = first if kernel == "gru" else first + second
            part = add_bias(builder, part, builder.constant(np.ascontiguousarray(added)))
            later = builder.constant(np.ascontiguousarray(second))
        made.append((part, later))
    return made


def _products(builder: Builder, inputs: Inputs, directions: int) -> List[Any]:
    """Add the products of the data with each direction's weights; they are read once for all steps.

    Products of int8 are cut in pieces of columns for the builder's threads.
    """
    data, weights = inputs[0], inputs[1]
    if not is_int8(inputs):
        each = [builder.constant(np.ascontiguousarray(weights[place].T)) for place in range(directions)]
        return [product(builder, data, matrix) for matrix in each]
    rows, depth, columns = data.shape[0] * data.shape[1], data.shape[2], weights.shape[1]
    scales = scales_of(inputs, 1)
    made = [builder.new((*data.shape[:2], columns), np.float32) for _ in range(directions)]
    pieces = min(builder.threads, directions * rows * depth * columns // split.LEAST) // directions
    with builder.at_once():
        for place, target in enumerate(made):
            matrix, own = builder.constant(weights[place]), builder.constant(scales[place])
            for first, last in split.ranges(columns, max(pieces, 1), _LEAST_COLUMNS):
                room = builder.new((rows * depth,), np.int16)
                arrays = [data, matrix[first:last], own[first:last], room, target.reshape(-1)[first:]]
                builder.step("product_int8", arrays, [rows, depth, last - first, columns])
    return made


def _direction(
    builder: Builder,
    kernel: str,
    given: Tuple[Any, Any],
    inputs: Inputs,
    attributes: Attributes,
    place: int,
    backwards: int,
    out: Any,
    states: Sequence[Any],
) -> None:
    """Add all steps of a direction."""
    part, later = given
    steps, batch, size = out.shape[0], out.shape[2], inputs[2].shape[2]
    target = out.reshape(-1)[place * batch * size :]
    matrix, *scales = _matrix(builder, inputs, place)
    numbers = [steps, batch, size, backwards, out.shape[1] * batch * size]
    arrays = [part, matrix, target, states[0][place], builder.new((4 * size,), np.float32)]
    if kernel == "lstm":
        arrays.append(states[1][place])
        numbers.append(int(has_peepholes(inputs)))
    elif kernel == "gru":
        arrays.append(later)
        numbers.append(bool(attributes.get("linear_before_reset", 0)))
    else:
        numbers.append(_ACTIVATIONS.index(rnn_activations(attributes)[place]))
    builder.step(kernel, [*arrays, *scales], numbers)


def _matrix(builder: Builder, inputs: Inputs, place: int) -> List[Any]:
    """Return a direction's recurrence as the kernels read it: of int8 with scales, table and room for the state."""
    recurrence = inputs[2][place]
    peepholes = _peepholes(inputs, place)
    if not is_int8(inputs):
        return [builder.constant(np.concatenate([recurrence.T.reshape(-1), peepholes]))]
    return [
        builder.constant(recurrence),
        builder.constant(_with_table(scales_of(inputs, 2)[place], peepholes)),
        builder.new((recurrence.shape[1],), np.int16),
    ]


def _peepholes(inputs: Inputs, direction: int, units: slice = slice(None)) -> Any:
    """Return the peepholes (3 * units) of some units of an LSTM; none of others."""
    if not has_peepholes(inputs):
        return np.zeros(0, np.float32)
    return peepholes_of(inputs, direction)[:, units].reshape(-1)


def _with_table(scales: Any, peepholes: Any) -> Any:
    """Return the factors of sums of a state's steps and, behind them, the table of sigmoids and the peepholes."""
    return np.concatenate([factors_of(scales, STEPS), SIGMOIDS, peepholes])


PLANS: Dict[str, Callable[[Builder, Inputs, Attributes], List[Any]]] = {
    "GRU": _recurrent("gru", 3),
    "LSTM": _recurrent("lstm", 4),
    "RNN": _recurrent("rnn", 1),
}
