"""Room in a tensor's range for the values of samples to come, where few were seen and none was held out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import Feeds
from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt.network.onnx_means import MEANS
from hilt.network.quantize.regions import MOVES

Ends = tuple[float, float]
"""The least and the largest value that a tensor may take."""
NO_ENDS: Ends = (-np.inf, np.inf)
NO_GROWTH = ((1.0, 1.0),)
_SPREAD, _SPREAD_SAMPLES = 0.2, 2.0
"""Standard deviation of the logarithm of a tensor's largest value from sample to sample, before any is seen, and how
many samples that counts for."""
_SMALLEST = 0.25
"""A sample's largest value counts as so much of that of all samples at least: in some a tensor is next to empty."""
_NODES = ((-np.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (np.sqrt(3.0), 1 / 6))
"""Places and shares by which a normal distribution is summed."""
_ENDS_OF = {
    "Erf": (-1.0, 1.0), "HardSigmoid": (0.0, 1.0), "Sigmoid": (0.0, 1.0), "Softmax": (0.0, 1.0),
    "Softsign": (-1.0, 1.0), "Tanh": (-1.0, 1.0),
}  # fmt: skip
_BYTES = 255
"""Steps from the least to the largest value of a byte."""
_OFF_STEP = 0.05
"""How far from whole steps values of bytes may lie, by rounding of floats."""


def growth(peaks: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Return the factors by which a new sample's values may exceed those that were seen, with the share of each.

    The logarithm of a sample's largest value is taken as normal. Its variance about the mean of n samples is 1 + 1/n of
    the true one. The samples themselves show 1 - 1/n of that, so 2/n is left.

    Args:
        peaks: The largest magnitude in each sample.
    """
    largest = max(peaks)
    if not largest > 0:
        return NO_GROWTH
    logarithms, count = np.log(np.maximum(np.asarray(peaks) / largest, _SMALLEST)), len(peaks)
    squares = float(np.square(logarithms - logarithms.mean()).sum())
    variance = (_SPREAD_SAMPLES * _SPREAD**2 + squares) / (_SPREAD_SAMPLES + count - 1)
    deviation = np.sqrt(2 * variance / count)
    return tuple((float(np.exp(place * deviation)), share) for place, share in _NODES)


def find_ends(graph: OnnxGraph, tensors: Collection[str], samples: Sequence[Feeds]) -> dict[str, Ends]:
    """Return the values that tensors cannot pass, by their operators, and by the bytes that the inputs are made of.

    Args:
        graph: A canonical float graph.
        tensors: The tensors.
        samples: They show which inputs are bytes.
    """
    ends = {name: _ends_of_bytes([feeds[name] for feeds in samples]) for name in graph.inputs}
    for node in graph.nodes:
        if node.outputs[0]:
            ends[node.outputs[0]] = _ends_of_node(graph, node, ends)
    return {name: ends.get(name, NO_ENDS) for name in tensors}


def _ends_of_node(graph: OnnxGraph, node: OnnxNode, ends: dict[str, Ends]) -> Ends:
    if node.op == "Clip":
        low, high = (graph.constants.get(name) for name in (*node.inputs[1:3], "", "")[:2])
        return (-np.inf if low is None else float(low.min()), np.inf if high is None else float(high.max()))
    if node.op in MOVES | MEANS:
        read = [ends.get(name, NO_ENDS) for name in graph.computed_inputs(node)]
        return (min((low for low, _ in read), default=-np.inf), max((high for _, high in read), default=np.inf))
    return _ENDS_OF.get(node.op, NO_ENDS)


def _ends_of_bytes(arrays: Sequence[NDArray[np.float32]]) -> Ends:
    """Return the values that bytes cannot pass, if arrays are some by channel, whatever their mean and scale."""
    if arrays[0].ndim < 2:
        return NO_ENDS
    channels = np.concatenate([np.moveaxis(array, 1, 0).reshape(array.shape[1], -1) for array in arrays], axis=1)
    found = [_ends_of_channel(np.unique(channel).astype(np.float64)) for channel in channels]
    return (min((low for low, _ in found), default=-np.inf), max((high for _, high in found), default=np.inf))


def _ends_of_channel(levels: NDArray[np.float64]) -> Ends:
    """Return the values that a channel's bytes cannot pass, given the different values in it, in order."""
    if not 1 < len(levels) <= _BYTES + 1:
        return NO_ENDS
    reach = levels[-1] - levels[0]
    step = reach / max(np.rint(reach / np.diff(levels).min()), 1)
    places = (levels - levels[0]) / step
    if places[-1] > _BYTES + 0.5 or np.abs(places - np.rint(places)).max() > _OFF_STEP:
        return NO_ENDS
    return (float(levels[-1] - _BYTES * step), float(levels[0] + _BYTES * step))
