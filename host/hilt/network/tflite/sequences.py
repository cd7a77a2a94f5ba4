"""TFLite's operators over sequences and lists: unpacking, reversing, looking up, and the fused LSTM."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilt.network.onnx_graph import OnnxError
from hilt.network.tflite.convert import Converter
from hilt.network.tflite.reader import TfliteOperator

_INT32 = 6
_TANH = 4
_WEIGHTS, _RECURRENCE, _BIASES = 1, 5, 12
_ONNX_ORDER = (0, 3, 1, 2)
"""Input, output, forget, cell: ONNX's gates by their places in TFLite's order (input, forget, cell, output)."""
_REFUSED = {9: "peepholes", 16: "a projection", 20: "layer normalisation"}


def unpack(c: Converter, op: TfliteOperator) -> None:
    """Convert UNPACK: a Split, and a Squeeze of each part."""
    options = op.option("UnpackOptions")
    axis = 0 if options is None else options.Axis()
    names = [c.model.tensors[place].name for place in op.outputs]
    axes = c.constant("axes", np.array([axis], np.int64))
    if len(names) == 1:
        c.add("Squeeze", [c.name(op, 0), axes], names[0])
        return
    for part, name in zip(c.add_parts("Split", [c.name(op, 0)], len(names), axis=axis), names, strict=True):
        c.add("Squeeze", [part, axes], name)


def reverse(c: Converter, op: TfliteOperator) -> None:
    """Convert REVERSE_V2: a Slice that steps back."""
    axes = c.value(op, 1).reshape(-1).astype(np.int64)
    lowest = np.iinfo(np.int64).min
    bounds = [np.full(len(axes), -1), np.full(len(axes), lowest), axes, np.full(len(axes), -1)]
    c.finish(op, c.add("Slice", [c.name(op, 0), *(c.constant("places", bound.astype(np.int64)) for bound in bounds)]))


def top_k(c: Converter, op: TfliteOperator) -> None:
    """Convert TOPK_V2: the largest of the last axis, and their places."""
    count = c.constant("count", c.value(op, 1).reshape(1).astype(np.int64))
    values, places = c.add_parts("TopK", [c.name(op, 0), count], 2, axis=-1)
    c.finish(op, values)
    c.add("Cast", [places], c.model.tensors[op.outputs[1]].name, to=_INT32)


def one_hot(c: Converter, op: TfliteOperator) -> None:
    """Convert ONE_HOT."""
    options = op.option("OneHotOptions")
    on, off = (c.value(op, place).reshape(()) for place in (2, 3))
    depth = c.constant("depth", c.value(op, 1).reshape(()).astype(np.int64))
    inputs = [c.integers(op, 0), depth, c.constant("values", np.array([off, on]))]
    c.finish(op, c.add("OneHot", inputs, axis=-1 if options is None else options.Axis()))


def lstm(c: Converter, op: TfliteOperator) -> None:
    """Convert UNIDIRECTIONAL_SEQUENCE_LSTM, with states that begin at zero.

    TFLite keeps cells within `cell_clip`, ONNX has no such bound. A cell grows by less than one a step, so that both
    agree while the sequence is no longer than the bound.

    Raises:
        OnnxError: It has peepholes, a projection, layer normalisation or one gate for two, another activation than
            tanh, or a bound that its cells may reach.
    """
    options = op.option("UnidirectionalSequenceLSTMOptions")
    _check_lstm(c, op, options)
    weights, recurrence, biases = (
        [c.value(op, first + gate) for gate in _ONNX_ORDER] for first in (_WEIGHTS, _RECURRENCE, _BIASES)
    )
    bias = np.concatenate([*biases, *(np.zeros_like(part) for part in biases)])
    values: list[Any] = [np.concatenate(weights), np.concatenate(recurrence), bias]
    constants = [c.constant("lstm", value[None].astype(np.float32)) for value in values]
    order = [1, 0, 2]
    source = c.name(op, 0) if options.TimeMajor() else c.add("Transpose", [c.name(op, 0)], perm=order)
    result = c.add("LSTM", [source, *constants], hidden_size=recurrence[0].shape[1])
    result = c.add("Squeeze", [result, c.constant("axes", np.array([1], np.int64))])
    c.finish(op, result if options.TimeMajor() else c.add("Transpose", [result], perm=order))


def _check_lstm(c: Converter, op: TfliteOperator, options: Any) -> None:
    made = c.output(op).name
    for place, what in _REFUSED.items():
        if c.tensor(op, place) is not None:
            raise OnnxError(f"{c.model.name}: {op.name} with {what} makes {made}; hilt converts it without")
    if c.tensor(op, _WEIGHTS) is None or options.FusedActivationFunction() != _TANH:
        raise OnnxError(f"{c.model.name}: {op.name} makes {made} with three gates or without tanh")
    _check_cells(c, op, options)


def _check_cells(c: Converter, op: TfliteOperator, options: Any) -> None:
    data, made = c.tensor(op, 0), c.output(op).name
    steps = None if data is None or len(data.shape) != 3 else data.shape[0 if options.TimeMajor() else 1]
    bound = float(options.CellClip())
    if bound and (steps is None or steps > bound):
        raise OnnxError(
            f"{c.model.name}: {op.name} makes {made} from {steps or 'any number of'} steps with cells clipped at "
            f"{bound:g}; hilt converts it without a clip (set unroll=True in Keras), or up to {bound:g} steps"
        )
