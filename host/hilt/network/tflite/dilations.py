"""Gives a convolution the dilation that TFLite writes as SPACE_TO_BATCH_ND, a dense convolution, BATCH_TO_SPACE_ND."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from hilt.network.tflite.reader import TfliteModel, TfliteOperator, TfliteTensor

_SHAPED = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")
_LAYERS = {"CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}
_VALID = 1


def unfold_dilations(model: TfliteModel) -> TfliteModel:
    """Return the model with each such chain as a pad, a dilated convolution and a slice.

    A chain may add and drop axes of size one around its convolution, as Keras does for sequences. A chain of another
    form stays as it is.
    """
    readers: dict[int, list[int]] = {}
    for number, operator in enumerate(model.operators):
        for place in operator.inputs:
            readers.setdefault(place, []).append(number)
    made = replace(model, tensors=list(model.tensors), operators=list(model.operators))
    for number, operator in enumerate(model.operators):
        if operator.name == "SPACE_TO_BATCH_ND":
            chain = _chain(model, readers, number)
            if chain:
                _unfold(made, chain)
    return made


def _chain(model: TfliteModel, readers: dict[int, list[int]], first: int) -> list[int]:
    """Return the numbers of the operators from `first` to its BATCH_TO_SPACE_ND; [] if it is no chain of one layer."""
    chain = [first]
    while model.operators[chain[-1]].name != "BATCH_TO_SPACE_ND":
        following = _only_reader(model, readers, model.operators[chain[-1]].outputs[0])
        if following is None:
            return []
        chain.append(following)
    layers = [model.operators[number] for number in chain[1:-1] if model.operators[number].name in _LAYERS]
    if len(layers) != 1 or not _is_dense(layers[0]) or not _same_blocks(model, chain):
        return []
    return chain if _axes_of(model, chain) is not None else []


def _only_reader(model: TfliteModel, readers: dict[int, list[int]], place: int) -> int | None:
    """Return the number of the one operator that reads a tensor of known sides; None if it cannot be of a chain."""
    following = readers.get(place, [])
    if len(following) != 1 or place in model.outputs or None in model.tensors[place].shape[1:]:
        return None
    operator = model.operators[following[0]]
    known = operator.name in (*_SHAPED, *_LAYERS, "BATCH_TO_SPACE_ND")
    return following[0] if known and operator.inputs[0] == place else None


def _same_blocks(model: TfliteModel, chain: list[int]) -> bool:
    """Tell whether both ends have the same constant blocks, and cut tensors known sides."""
    ends = [model.operators[chain[0]], model.operators[chain[-1]]]
    if any(model.tensors[operator.inputs[place]].value is None for operator in ends for place in (1, 2)):
        return False
    if None in model.tensors[ends[0].inputs[0]].shape[1:]:
        return False
    return bool(np.array_equal(_constant(model, ends[0], 1), _constant(model, ends[1], 1)))


def _is_dense(operator: TfliteOperator) -> bool:
    options = operator.option(_LAYERS[operator.name])
    steps = (options.StrideH(), options.StrideW(), options.DilationHFactor(), options.DilationWFactor())
    return bool(options.Padding() == _VALID and steps == (1, 1, 1, 1))


def _constant(model: TfliteModel, operator: TfliteOperator, place: int) -> NDArray[np.int64]:
    value = model.tensors[operator.inputs[place]].value
    assert value is not None
    return value.astype(np.int64)


def _axes_of(model: TfliteModel, chain: list[int]) -> list[tuple[int, ...]] | None:
    """Return the blocked axes of each result but the last; None if a reshape does more than units."""
    first = model.operators[chain[0]]
    axes = tuple(range(1, 1 + len(_constant(model, first, 1))))
    found = [axes]
    for number in chain[1:-1]:
        operator = model.operators[number]
        if operator.name in _SHAPED:
            before, after = (model.tensors[place].shape for place in (operator.inputs[0], operator.outputs[0]))
            moved = _moved(before, after, axes)
            if moved is None:
                return None
            axes = moved
        elif len(model.tensors[operator.outputs[0]].shape) != 4 or not set(axes) <= {1, 2}:
            return None
        found.append(axes)
    return found if axes == found[0] else None


def _moved(
    before: tuple[int | None, ...], after: tuple[int | None, ...], axes: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return where axes go in a reshape that adds or drops units; None if it does more, or cannot be told."""
    kept = [[axis for axis, size in enumerate(shape) if size != 1] for shape in (before, after)]
    sizes = [[shape[axis] for axis in places] for shape, places in zip((before, after), kept, strict=True)]
    if sizes[0] != sizes[1] or any(axis not in kept[0] for axis in axes):
        return None
    return tuple(kept[1][kept[0].index(axis)] for axis in axes)


def _unfold(model: TfliteModel, chain: list[int]) -> None:
    """Rewrite a chain in place: the operators' numbers stay."""
    first, last = model.operators[chain[0]], model.operators[chain[-1]]
    block, pads, crops = _constant(model, first, 1), _constant(model, first, 2), _constant(model, last, 2)
    found = _axes_of(model, chain)
    assert found is not None
    for number, axes in zip(chain[:-1], found, strict=True):
        _widen(model, number, dict(zip(axes, (int(step) for step in block), strict=True)))
    rank = len(model.tensors[first.inputs[0]].shape)
    amounts = np.zeros((rank, 2), np.int64)
    amounts[1 : 1 + len(block)] = pads
    pad = replace(first, name="PAD", inputs=(first.inputs[0], _add(model, amounts)), options=None)
    model.operators[chain[0]] = pad
    begin, size = np.zeros(rank, np.int64), np.full(rank, -1, np.int64)
    for axis, (low, high) in enumerate(crops, start=1):
        begin[axis] = low
        size[axis] = (model.tensors[last.inputs[0]].shape[axis] or 0) - low - high
    inputs = (last.inputs[0], _add(model, begin), _add(model, size))
    model.operators[chain[-1]] = replace(last, name="SLICE", inputs=inputs, options=None)


def _widen(model: TfliteModel, number: int, steps: dict[int, int]) -> None:
    """Let an operator of a chain make the whole image in place of blocks of `steps` by axis."""
    operator = model.operators[number]
    made = model.tensors[operator.outputs[0]]
    count, *sizes = made.shape
    known = [int(size or 0) * steps.get(axis, 1) for axis, size in enumerate(sizes, start=1)]
    shape = (None if count is None else count // prod(steps.values()), *known)
    model.tensors[operator.outputs[0]] = replace(made, shape=shape)
    if operator.name in _SHAPED:
        reshaped = np.array([-1 if size is None else size for size in shape])
        inputs = (operator.inputs[0], _add(model, reshaped))
        model.operators[number] = replace(operator, name="RESHAPE", inputs=inputs, options=None)
    elif operator.name in _LAYERS:
        model.operators[number] = replace(operator, dilations=(steps.get(1, 1), steps.get(2, 1)))


def _add(model: TfliteModel, value: NDArray[np.int64]) -> int:
    """Add a constant; return its place."""
    name = f"dilation#{len(model.tensors)}"
    scales, zeros = np.zeros(0, np.float32), np.zeros(0, np.int64)
    model.tensors.append(TfliteTensor(name, tuple(value.shape), "int64", value.astype(np.int64), scales, zeros, 0))
    return len(model.tensors) - 1
