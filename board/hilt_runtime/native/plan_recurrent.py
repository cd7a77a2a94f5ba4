"""LSTM and GRU as steps of the native engine: the data's part as a product, then all steps in one kernel."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from hilt_runtime.native.plan_float import add_bias, product
from hilt_runtime.native.steps import Builder, NotNativeError, copy, strides_of
from hilt_runtime.operators_recurrent import require_known

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _at(inputs: Inputs, place: int) -> Any:
    return inputs[place] if len(inputs) > place else None


def _recurrent(kernel: str, gates: int) -> Callable[[Builder, Inputs, Attributes], List[Any]]:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        if any(each is not None and each.dtype != np.float32 for each in (*inputs[:4], *inputs[5:])):
            raise NotNativeError("a tensor that is not float32")
        for place in (1, 2, 3, 4):
            if _at(inputs, place) is not None and not builder.is_constant(inputs[place]):
                raise NotNativeError("weights that are computed")
        require_known(kernel, inputs, attributes)
        data, recurrence = inputs[0], inputs[2]
        steps, batch, size = data.shape[0], data.shape[1], recurrence.shape[2]
        directions = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}[attributes.get("direction", "forward")]
        out = builder.new((steps, len(directions), batch, size), np.float32)
        states = [builder.new((len(directions), batch, size), np.float32) for _ in range(2 if kernel == "lstm" else 1)]
        for place, _ in enumerate(directions):
            for state, given in zip(states, (_at(inputs, 5), _at(inputs, 6))):
                _start(builder, state[place], None if given is None else given[place])
        parts = [_data_part(builder, kernel, gates, inputs, place) for place, _ in enumerate(directions)]
        with builder.at_once():
            for place, backwards in enumerate(directions):
                _direction(builder, kernel, parts[place], recurrence[place], attributes, place, backwards, out, states)
        return [out, *states]

    return plan


def _start(builder: Builder, state: Any, given: Any) -> None:
    if given is None:
        builder.step("fill", [state], [4, state.size, 0])
    else:
        copy(builder, given, state, state.shape, (0, strides_of(state.shape)), (0, strides_of(state.shape)))


def _data_part(builder: Builder, kernel: str, gates: int, inputs: Inputs, place: int) -> Tuple[Any, Any]:
    """Add the data's part of a direction's gates; return it, and the bias that the recurrence adds (GRU)."""
    data, weights, bias = inputs[0], inputs[1][place], _at(inputs, 3)
    width = gates * inputs[2].shape[2]
    part = product(builder, data, builder.constant(np.ascontiguousarray(weights.T)))
    later = builder.constant(np.zeros(width, np.float32))
    if bias is not None:
        first, second = bias[place, :width], bias[place, width:]
        added = first + second if kernel == "lstm" else first
        part = add_bias(builder, part, builder.constant(np.ascontiguousarray(added)))
        later = builder.constant(np.ascontiguousarray(second))
    return part, later


def _direction(
    builder: Builder,
    kernel: str,
    given: Tuple[Any, Any],
    recurrence: Any,
    attributes: Attributes,
    place: int,
    backwards: int,
    out: Any,
    states: Sequence[Any],
) -> None:
    """Add all steps of a direction."""
    part, later = given
    steps, batch, size = out.shape[0], out.shape[2], recurrence.shape[1]
    matrix = builder.constant(np.ascontiguousarray(recurrence.T))
    target = out.reshape(-1)[place * batch * size :]
    numbers = [steps, batch, size, backwards, out.shape[1] * batch * size]
    room = builder.new((4 * size,), np.float32)
    if kernel == "lstm":
        builder.step("lstm", [part, matrix, room, target, states[0][place], states[1][place]], numbers)
    else:
        numbers.append(bool(attributes.get("linear_before_reset", 0)))
        builder.step("gru", [part, matrix, later, target, states[0][place], room], numbers)


PLANS: Dict[str, Callable[[Builder, Inputs, Attributes], List[Any]]] = {
    "GRU": _recurrent("gru", 3),
    "LSTM": _recurrent("lstm", 4),
}
