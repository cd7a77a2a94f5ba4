"""Factors that cost nothing: they bring the values of tables and inputs up to the end of int8's range.

A scale is a power of two, so that values may use little more than half of int8. A table multiplies by any number, and
so does the processor where it makes int8 of an input. The layers that read the result take the factor up in their
weights: the float network computes the same. Behind Relu, equalising finds such factors by channel; it cannot pass
other functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import roots_of
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant
from hilt.network.onnx_pixels import pixels_of
from hilt.network.quantize.channel_classes import FIXED, ChannelClasses, find_classes
from hilt.network.quantize.equalise import scaled
from hilt.network.quantize.regions import Regions
from hilt.network.quantize.shifts import is_padded
from hilt.network.quantize.statistics import TensorStatistics, exponent_without_clipping, least_loss, loss_of

_STEPS = 8
"""Factors within a power of two that are tried."""
_MOST_LOSS = 0.9
"""A factor must leave so much of the noise at most."""
_MOST_EXACT = 0.05
"""The largest share of a tensor's numbers besides 0 that may lie on steps of int8."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Group:
    """Tensors that take one factor, and the classes of channels that they reach."""

    tensors: list[str]
    classes: set[int]


def with_free_factors(
    graph: OnnxGraph, regions: Regions, statistics: Mapping[str, TensorStatistics]
) -> OnnxGraph | None:
    """Return a canonical graph with products by a number behind tensors that gain by it; None if there are none.

    Args:
        graph: The float graph.
        regions: Its int8 part.
        statistics: Of the tensors that become int8.
    """
    classes = find_classes(graph, (), sources=dict.fromkeys(_candidates(graph, regions, statistics)))
    groups = [group for group in _groups(classes) if FIXED not in group.classes]
    factors = np.ones(classes.count)
    chosen: dict[str, float] = {}
    for group in groups:
        factor = _best(graph, group, classes, statistics)
        chosen |= dict.fromkeys(group.tensors, factor)
        factors[list(group.classes)] = factor
    chosen = {name: factor for name, factor in chosen.items() if factor != 1}
    return _multiplied(scaled(graph, classes, factors), chosen) if chosen else None


def _candidates(graph: OnnxGraph, regions: Regions, statistics: Mapping[str, TensorStatistics]) -> list[str]:
    """Return the tensors that become int8 by the processor, from an input, or by a table, and pass no factors yet."""
    roots, producers = roots_of(graph), graph.producers()
    passed = find_classes(graph, ()).tensors

    def is_free(name: str) -> bool:
        if name in graph.inputs:
            return graph.dtypes.get(name) == "float32"
        return name in roots or pixels_of(graph, name, producers) is not None

    able = [name for name in regions.tensors if name not in graph.outputs and len(graph.shape(name)) > 1]
    fixed = [name for name in able if name not in passed or np.all(passed[name] == FIXED)]
    return [name for name in fixed if is_free(name) and not _is_exact(statistics[name])]


def _groups(classes: ChannelClasses) -> Iterator[_Group]:
    """Yield the tensors that share classes of channels together."""
    left = {name: set(ids.reshape(-1).tolist()) for name, ids in classes.sources.items()}
    while left:
        name, reached = left.popitem()
        tensors = [name]
        while joined := [other for other, ids in left.items() if ids & reached]:
            for other in joined:
                reached |= left.pop(other)
            tensors += joined
        yield _Group(tensors, reached)


def _best(
    graph: OnnxGraph, group: _Group, classes: ChannelClasses, statistics: Mapping[str, TensorStatistics]
) -> float:
    """Return the factor between 1/2 and 2 with the least noise; 1 if none brings enough."""
    reading = [layer for layer in classes.layers if np.isin(layer.inputs, list(group.classes)).any()]
    shifted = set() if any(is_padded(layer.node) for layer in reading) else roots_of(graph).keys()
    found = [_centred(statistics[name]) if name in shifted else statistics[name] for name in group.tensors]
    fixed = [layer.matrix(graph) for layer in reading if np.all(layer.outputs == FIXED)]
    noises = {factor: _noise(found, fixed, factor) for factor in _factors(max(part.largest for part in found))}
    best = min(noises, key=noises.__getitem__)
    return best if noises[best] <= _MOST_LOSS * noises[1.0] else 1.0


def _factors(largest: float) -> list[float]:
    """Return 1, the factor that brings the largest value to the end of int8, and smaller ones, which clip it."""
    if not largest > 0:
        return [1.0]
    first = 2.0 ** (np.log2(127 / largest) % 1)
    return [1.0, *(first * 2.0 ** (-step / _STEPS) for step in range(_STEPS))]


def _noise(found: Sequence[TensorStatistics], fixed: Sequence[Floats], factor: float) -> float:
    """Return the mean noise of tensors, and of weights whose scale no factor of their sums can fit."""
    tensors = [loss_of(_times(part, factor)) for part in found]
    weights = [least_loss((each / factor).astype(np.float32)) for each in fixed]
    return float(np.mean(tensors) + np.mean(weights or [0.0]))


def _is_exact(found: TensorStatistics) -> bool:
    """Tell whether int8 holds many of the values as they are, as it does counts: no factor may move them."""
    some = found.values[found.values != 0].astype(np.float64) * 2.0 ** exponent_without_clipping(found.largest)
    return not some.size or bool(np.mean(some == np.rint(some)) > _MOST_EXACT)


def _centred(found: TensorStatistics) -> TensorStatistics:
    """Return values around the middle of their range: layers that pad no zeros read those of tables so."""
    middle = 0.5 * float(found.highs.max() + found.lows.min())
    values = found.values - np.float32(middle)
    return replace(found, values=values, largest=float(np.abs(values).max(initial=0)))


def _times(found: TensorStatistics, factor: float) -> TensorStatistics:
    return replace(found, values=found.values * np.float32(factor), largest=found.largest * factor)


def _multiplied(graph: OnnxGraph, factors: Mapping[str, float]) -> OnnxGraph:
    """Return a graph with a product behind each of the tensors."""
    for name, factor in factors.items():
        product = graph.unique(f"{name}.full")
        graph.shapes[product], graph.dtypes[product] = graph.shape(name), "float32"
        for node in graph.nodes:
            node.inputs = [product if each == name else each for each in node.inputs]
        number = new_constant(graph, f"{product}.factor", np.array(factor, np.float32))
        places = [place for place, node in enumerate(graph.nodes) if name in node.outputs]
        graph.nodes.insert(places[0] + 1 if places else 0, OnnxNode(product, "Mul", [name, number], [product]))
    return graph
