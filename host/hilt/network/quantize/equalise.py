"""Equalises channels: scales them against the next layer's weights, so that one int8 scale serves all of a tensor.

The float network computes the same afterwards, but for rounding in float32. Which rule serves best depends on the
network; the caller compares the results on data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, new_constant
from hilt.network.quantize.channel_classes import FIXED, ChannelClasses, LayerClasses, find_classes, homes_of
from hilt.network.quantize.statistics import TensorStatistics

RULES = (1.0, 0.5, 0.0)
"""Shares of the activations in a rule; the rest is the weights'."""
_ROUNDS = 60
_STEP = 0.5
_SILENT = -30.0
"""Binary logarithm below which a channel, beside its tensor's largest, counts as silent."""
_DEAD = -48.0
"""The same of a weight, beside its layer's largest."""
_LARGEST_FACTOR = 40.0
_ROW_MARGIN = 1.0
"""A row of weights may grow to twice the range of three quarters of its layer's rows."""
_PEAK_MARGIN, _BIAS_MARGIN = 2.0, 6.0
"""Binary logarithms by which a channel's largest value, and its bias, may exceed those of three quarters beside it."""
_NEVER = -1e9

Logs = NDArray[np.float64]


def equalised(
    graph: OnnxGraph, fixed: list[str], statistics: Mapping[str, TensorStatistics], rule: float
) -> OnnxGraph | None:
    """Return a canonical graph with its channels equalised; None if no channel can be scaled.

    Args:
        graph: The float graph.
        fixed: Tensors whose values must stay.
        statistics: Of the tensors that become int8.
        rule: How much the activations' ranges count, from 0 to 1; the weights' ranges count for the rest.
    """
    classes = find_classes(graph, fixed, statistics)
    if classes.count <= 1:
        return None
    factors = _solve(graph, classes, statistics, rule)
    return scaled(graph, classes, np.exp2(factors))


def _solve(graph: OnnxGraph, classes: ChannelClasses, statistics: Mapping[str, TensorStatistics], rule: float) -> Logs:
    """Return the binary logarithm of each class's factor."""
    layers = [(layer.outputs, _read(layer), _logs(layer, graph)) for layer in classes.layers]
    levels, biases, homes = _levels(classes, statistics), _biases(graph, classes), homes_of(classes)
    heard = levels > _NEVER
    clipped = np.isfinite(classes.most)
    aims = np.where(clipped, levels + np.where(clipped, classes.most, 0), 0.0)
    factors = np.zeros(classes.count)
    for _ in range(_ROUNDS):
        rows, columns = _ranges(layers, classes.count, factors)
        tops = _tops(homes, levels + factors, heard)
        both = (rows > _NEVER) & (columns > _NEVER)
        by_weights = np.where(both, 0.5 * (rows - columns), 0.0)
        by_values = np.maximum(levels + factors - aims, rows - _ROW_MARGIN)
        change = np.where(heard, rule * by_values + (1 - rule) * by_weights, np.maximum(rows, 0))
        excess = np.maximum(levels + factors - tops - _PEAK_MARGIN, biases + factors - tops - _BIAS_MARGIN)
        factors -= _STEP * np.maximum(change, np.where((tops > _NEVER) & ~clipped, excess, _NEVER))
        factors = np.minimum(factors, classes.most)
        factors[FIXED] = 0
    factors = np.clip(factors, -_LARGEST_FACTOR, _LARGEST_FACTOR)
    return np.minimum(_aligned(homes, levels, factors), classes.most)


def _biases(graph: OnnxGraph, classes: ChannelClasses) -> Logs:
    """Return the binary logarithm of each class's largest bias."""
    largest = np.full(classes.count, 0.0)
    for layer in classes.layers:
        if len(layer.node.inputs) > 2 and layer.node.inputs[2]:
            values = np.abs(graph.constants[layer.node.inputs[2]].astype(np.float64).reshape(-1))
            np.maximum.at(largest, layer.outputs, values)
    return np.where(largest > 0, np.log2(np.maximum(largest, 1e-300)), _NEVER)


def _tops(homes: NDArray[np.int64], levels: Logs, heard: NDArray[np.bool_]) -> Logs:
    """Return for each class the level that three quarters of the classes beside it do not exceed."""
    tops = np.full(len(homes), _NEVER)
    for home in np.unique(homes):
        members = homes == home
        if (members & heard).any():
            tops[members] = np.quantile(levels[members & heard], 0.75)
    return tops


def _logs(layer: LayerClasses, graph: OnnxGraph) -> Logs:
    """Return the binary logarithm of the largest tap between each pair of channels (CO, CI / groups).

    Training leaves dead weights of next to nothing, which are none here: no range should follow them.
    """
    largest = np.abs(layer.matrix(graph)).max(axis=2, initial=0)
    alive = largest > largest.max(initial=0) * 2.0**_DEAD
    return np.where(alive, np.log2(np.maximum(largest, 1e-300)), _NEVER)


def _levels(classes: ChannelClasses, statistics: Mapping[str, TensorStatistics]) -> Logs:
    """Return the binary logarithm of each class's largest value."""
    levels = np.full(classes.count, _NEVER)
    for name, found in statistics.items():
        if name in classes.tensors and found.peaks.shape == classes.tensors[name].shape and found.largest > 0:
            heard = found.peaks > found.largest * 2.0**_SILENT
            np.maximum.at(levels, classes.tensors[name][heard], np.log2(found.peaks[heard]))
    return levels


def _read(layer: LayerClasses) -> NDArray[np.int64]:
    """Return the class that each weight reads (CO, CI / groups); (CI,) if all rows read the same."""
    alike = len(layer.inputs) > 0 and bool(np.all(layer.inputs == layer.inputs[0]))
    return layer.inputs[0] if alike else layer.inputs


def _ranges(
    layers: list[tuple[NDArray[np.int64], NDArray[np.int64], Logs]], count: int, factors: Logs
) -> tuple[Logs, Logs]:
    """Return the ranges of each class's rows and columns, beside those of their layers.

    Args:
        layers: The classes of each layer's output channels, those that its weights read, and the weights' logarithms.
        count: Of the classes.
        factors: Binary logarithms, of each class.
    """
    rows, columns = np.full(count, _NEVER), np.full(count, _NEVER)
    for outputs, read, logs in layers:
        scaled = logs + factors[outputs][:, None] - factors[read]
        row = scaled.max(axis=1, initial=_NEVER)
        present = row[row > _NEVER / 2]
        if not len(present):
            continue
        np.maximum.at(rows, outputs, np.where(row > _NEVER / 2, row - np.quantile(present, 0.75), _NEVER))
        column = np.where(scaled < _NEVER / 2, _NEVER, scaled - scaled.max(initial=_NEVER))
        np.maximum.at(columns, read, column.max(axis=0) if read.ndim == 1 else column)
    return rows, columns


def _aligned(homes: NDArray[np.int64], levels: Logs, factors: Logs) -> Logs:
    """Shift the factors of tensors that share classes: the largest value becomes 127 times a near power of two."""
    shifted = factors.copy()
    for home in np.unique(homes):
        members = homes == home
        known = members & (levels > _NEVER)
        if home != FIXED and known.any():
            wanted = np.round(float(levels[known].max()) - np.log2(127)) + np.log2(127)
            shifted[members] += wanted - float((levels + factors)[known].max())
    return shifted


def scaled(graph: OnnxGraph, classes: ChannelClasses, factors: NDArray[np.float64]) -> OnnxGraph:
    """Return a copy of a graph whose layers take the factors up; weights stay shared where these are the same."""
    made = graph.copied()
    copies = dict(zip(map(id, graph.nodes), made.nodes, strict=True))
    shared: dict[tuple[str, bytes], str] = {}
    for layer in classes.layers:
        change = factors[layer.outputs][:, None] / factors[layer.inputs]
        if np.all(change == 1) and np.all(factors[layer.outputs] == 1):
            continue
        node = copies[id(layer.node)]
        weights: NDArray[Any] = graph.constants[node.inputs[1]]
        change = change.T if node.op == "ConvTranspose" else change
        key = (node.inputs[1], change.tobytes())
        if key not in shared:
            scaled = weights * change.reshape(*change.shape, *(1,) * (weights.ndim - 2))
            shared[key] = new_constant(made, f"{node.name}.equalised", scaled.astype(np.float32))
        node.inputs[1] = shared[key]
        if len(node.inputs) > 2 and node.inputs[2]:
            bias = graph.constants[node.inputs[2]].reshape(-1) * factors[layer.outputs]
            node.inputs[2] = new_constant(made, f"{node.name}.equalised_bias", bias.astype(np.float32))
    return made
