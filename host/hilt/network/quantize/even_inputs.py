"""Inputs whose channels have different units: a factor for each brings their ranges together before they become int8.

Without them, numbers of a table or of several sensors have the scale of the largest. The factors are powers of two. The
layers that read the input take them up in their weights, so that the float network computes the same. Weights become
uneven by that: the share of the way that makes least noise, of input and weights together, is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import Feeds
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant
from hilt.network.quantize.channel_classes import FIXED, ChannelClasses, find_classes
from hilt.network.quantize.equalise import scaled

_UNEVEN = 2.0
"""Binary logarithm of the largest channel beside the smallest from which on channels count as of different units."""
_HEADROOM = 1.0
"""Binary logarithm by which a channel's values may exceed those of the samples: the largest channel's cannot."""
_MOST_CHANNELS = 4096
_LARGEST_FACTOR = 24.0
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far the ranges are brought together, from not at all to one range."""
_MOST_NOISE = 0.25
"""Factors must leave so much of the noise at most: the processor multiplies each number by one."""
_LARGEST = 127

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Data:
    """The values of an input by channel, over all samples: the largest, and the mean of the squares."""

    peaks: Floats
    squares: Floats


def with_even_inputs(graph: OnnxGraph, samples: Sequence[Feeds]) -> tuple[OnnxGraph, list[str]]:
    """Return a canonical float graph with a product behind each input whose channels are uneven, and these inputs.

    Args:
        graph: The graph.
        samples: They show the values of each channel.
    """
    made, uneven = graph, []
    for name in graph.inputs:
        rank = len(graph.shape(name))
        if graph.dtypes.get(name) != "float32" or rank < 2 or name in graph.outputs:
            continue
        for axis in dict.fromkeys((1, rank - 1)):
            before, made = made, _evened(made, name, axis, samples)
            uneven += [name] * (made is not before)
    return made, uneven


def _evened(graph: OnnxGraph, name: str, axis: int, samples: Sequence[Feeds]) -> OnnxGraph:
    """Return a graph whose input is multiplied along an axis; the graph itself where that brings nothing."""
    data = _measured(samples, name, axis)
    apart = _apart(data)
    if not apart.any():
        return graph
    made = graph.copied()
    even = made.unique(f"{name}.even")
    made.shapes[even], made.dtypes[even] = graph.shape(name), "float32"
    for node in made.nodes:
        node.inputs = [even if each == name else each for each in node.inputs]
    product = OnnxNode(even, "Mul", [name, ""], [even])
    made.nodes.insert(0, product)
    classes = find_classes(made, (), sources={even: axis})
    ids = classes.sources[even]
    choices = [_logarithms(classes, ids, np.round(share * np.maximum(apart - _HEADROOM, 0))) for share in _SHARES]
    noises = [_noise(made, classes, ids, logarithms, data) for logarithms in choices]
    best = choices[int(np.argmin(noises))]
    if not min(noises) <= _MOST_NOISE * noises[0]:
        return graph
    shape = [1] * len(graph.shape(name))
    shape[axis] = len(ids)
    factors: NDArray[Any] = np.exp2(best[ids]).astype(np.float32).reshape(shape)
    product.inputs[1] = new_constant(made, f"{even}.factors", factors)
    return scaled(made, classes, np.exp2(best))


def _measured(samples: Sequence[Feeds], name: str, axis: int) -> _Data:
    others = tuple(place for place in range(samples[0][name].ndim) if place != axis)
    arrays = [feeds[name].astype(np.float64) for feeds in samples]
    peaks = np.max([np.abs(array).max(axis=others, initial=0) for array in arrays], axis=0)
    return _Data(peaks, np.mean([np.square(array).mean(axis=others) for array in arrays], axis=0))


def _apart(data: _Data) -> Floats:
    """Return the binary logarithm of the largest channel's peak over each one's; zeros if they are even."""
    heard = data.peaks > 0
    if not heard.any() or not np.isfinite(data.peaks).all() or len(heard) > _MOST_CHANNELS:
        return np.zeros(len(heard))
    apart = np.where(heard, np.log2(data.peaks.max() / np.where(heard, data.peaks, 1)), 0.0)
    return np.minimum(apart, _LARGEST_FACTOR) if apart.max() >= _UNEVEN else np.zeros(len(heard))


def _logarithms(classes: ChannelClasses, ids: NDArray[np.int64], wanted: Floats) -> Floats:
    """Return the binary logarithm of each class's factor: the least that one of its channels wants."""
    logarithms = np.full(classes.count, np.inf)
    np.minimum.at(logarithms, ids, wanted)
    logarithms[FIXED] = 0
    return np.where(np.isfinite(logarithms), logarithms, 0.0)


def _noise(graph: OnnxGraph, classes: ChannelClasses, ids: NDArray[np.int64], logarithms: Floats, data: _Data) -> float:
    """Return the power that rounding the input and the weights to int8 adds to the sums of the layers that read it."""
    factors, squares, counts = np.exp2(logarithms), np.zeros(classes.count), np.bincount(ids, minlength=classes.count)
    np.add.at(squares, ids, data.squares)
    squares *= factors**2 / np.maximum(counts, 1)
    step = float((data.peaks * factors[ids]).max()) / _LARGEST
    noise = 0.0
    for layer in classes.layers:
        if counts[layer.inputs].any():
            weights = layer.matrix(graph) / factors[layer.inputs][:, :, None]
            own_step, taps = float(np.abs(weights).max(initial=0)) / _LARGEST, weights.shape[2]
            noise += step**2 * float((weights**2).sum()) + own_step**2 * taps * float(squares[layer.inputs].sum())
    return noise
