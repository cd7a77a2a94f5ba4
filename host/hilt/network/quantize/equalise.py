"""Equalises channels: scales them against the next layer's weights, so that one int8 scale serves all of a tensor.

The float network computes the same afterwards, but for rounding in float32. Which rule serves best depends on the
network; the caller compares the results on data.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, new_constant
from hilt.network.quantize.channel_classes import FIXED, ChannelClasses, LayerClasses, find_classes
from hilt.network.quantize.statistics import TensorStatistics

RULES = (1.0, 0.5, 0.0)
"""Shares of the activations in a rule; the rest is the weights'."""
_ROUNDS = 60
_STEP = 0.5
_SILENT = -30.0
"""Binary logarithm below which a channel, beside its tensor's largest, counts as silent."""
_LARGEST_FACTOR = 40.0
_ROW_MARGIN = 1.0
"""A row of weights may grow to twice the range of three quarters of its layer's rows."""
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
    classes = find_classes(graph, fixed)
    if classes.count <= 1:
        return None
    factors = _solve(graph, classes, statistics, rule)
    return _scaled(graph, classes, np.exp2(factors))


def _solve(graph: OnnxGraph, classes: ChannelClasses, statistics: Mapping[str, TensorStatistics], rule: float) -> Logs:
    """Return the binary logarithm of each class's factor."""
    layers = [(layer, _logs(layer, graph)) for layer in classes.layers]
    levels = _levels(classes, statistics)
    factors = np.zeros(classes.count)
    for _ in range(_ROUNDS):
        rows, columns = _ranges(layers, classes.count, factors)
        both = (rows > _NEVER) & (columns > _NEVER)
        by_weights = np.where(both, 0.5 * (rows - columns), 0.0)
        by_values = np.where(levels > _NEVER, levels + factors, by_weights)
        by_values = np.maximum(by_values, rows - _ROW_MARGIN) if rule > 0 else by_values
        factors -= _STEP * (rule * by_values + (1 - rule) * by_weights)
        factors[FIXED] = 0
    factors = np.clip(factors, -_LARGEST_FACTOR, _LARGEST_FACTOR)
    return _aligned(classes, statistics, factors)


def _logs(layer: LayerClasses, graph: OnnxGraph) -> Logs:
    """Return the binary logarithm of the largest tap between each pair of channels (CO, CI / groups)."""
    largest = np.abs(layer.matrix(graph)).max(axis=2, initial=0)
    return np.where(largest > 0, np.log2(np.maximum(largest, 1e-300)), _NEVER)


def _levels(classes: ChannelClasses, statistics: Mapping[str, TensorStatistics]) -> Logs:
    """Return the binary logarithm of each class's largest value."""
    levels = np.full(classes.count, _NEVER)
    for name, found in statistics.items():
        if name in classes.tensors and found.peaks.shape == classes.tensors[name].shape and found.largest > 0:
            heard = found.peaks > found.largest * 2.0**_SILENT
            np.maximum.at(levels, classes.tensors[name][heard], np.log2(found.peaks[heard]))
    return levels


def _ranges(layers: list[tuple[LayerClasses, Logs]], count: int, factors: Logs) -> tuple[Logs, Logs]:
    """Return the ranges of each class's rows and columns, beside those of their layers."""
    rows, columns = np.full(count, _NEVER), np.full(count, _NEVER)
    for layer, logs in layers:
        scaled = logs + factors[layer.outputs][:, None] - factors[layer.inputs]
        row = scaled.max(axis=1, initial=_NEVER)
        present = row[row > _NEVER / 2]
        if not len(present):
            continue
        np.maximum.at(rows, layer.outputs, np.where(row > _NEVER / 2, row - np.quantile(present, 0.75), _NEVER))
        silent = scaled < _NEVER / 2
        np.maximum.at(columns, layer.inputs, np.where(silent, _NEVER, scaled - scaled.max(initial=_NEVER)))
    return rows, columns


def _aligned(classes: ChannelClasses, statistics: Mapping[str, TensorStatistics], factors: Logs) -> Logs:
    """Shift the factors of tensors that share classes: the largest value becomes 127 times a near power of two."""
    home = np.arange(classes.count)
    for ids in classes.tensors.values():  # the tensors of a group share classes: join them by the smallest
        members = np.isin(home, home[ids])
        home[members] = home[members].min(initial=classes.count)
    shifted = factors.copy()
    levels = _levels(classes, statistics)
    for place in np.unique(home):
        members = home == place
        known = members & (levels > _NEVER)
        if place != FIXED and known.any():
            wanted = np.round(float(levels[known].max()) - np.log2(127)) + np.log2(127)
            shifted[members] += wanted - float((levels + factors)[known].max())
    return shifted


def _scaled(graph: OnnxGraph, classes: ChannelClasses, factors: NDArray[np.float64]) -> OnnxGraph:
    """Return a copy of a graph whose layers take the factors up; shared weights become each layer's own."""
    made = copy.copy(graph)
    made.nodes, made.constants = copy.deepcopy(graph.nodes), dict(graph.constants)
    made.shapes, made.dtypes = dict(graph.shapes), dict(graph.dtypes)
    copies = dict(zip(map(id, graph.nodes), made.nodes, strict=True))
    for layer in classes.layers:
        change = factors[layer.outputs][:, None] / factors[layer.inputs]
        if np.all(change == 1):
            continue
        node = copies[id(layer.node)]
        weights: NDArray[Any] = graph.constants[node.inputs[1]]
        change = change.T if node.op == "ConvTranspose" else change
        scaled = weights * change.reshape(*change.shape, *(1,) * (weights.ndim - 2))
        node.inputs[1] = new_constant(made, f"{node.name}.equalised", scaled.astype(np.float32))
        if len(node.inputs) > 2 and node.inputs[2]:
            bias = graph.constants[node.inputs[2]].reshape(-1) * factors[layer.outputs]
            node.inputs[2] = new_constant(made, f"{node.name}.equalised_bias", bias.astype(np.float32))
    return made
