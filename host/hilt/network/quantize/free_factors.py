"""Factors that cost nothing: they bring tensors, and weights, up to the end of int8's range.

A scale is a power of two, so that values may use little more than half of int8. A layer's weights take up a factor of
its results. A table multiplies by any number, and so does the processor where it makes int8 of an input. The layers
that read the result take the factor up in their weights: the float network computes the same. One number serves all of
a tensor here; equalising finds others by channel.

A layer's weights become larger by the factor of its results, and smaller by that of its data, so that the best
one of a tensor may cost a layer half of its steps. All factors are chosen together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import roots_of
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant
from hilt.network.onnx_pixels import pixels_of
from hilt.network.quantize.channel_classes import FIXED, ChannelClasses, find_classes, homes_of
from hilt.network.quantize.equalise import scaled
from hilt.network.quantize.regions import Regions
from hilt.network.quantize.shifts import is_padded
from hilt.network.quantize.statistics import (
    TensorStatistics,
    best_exponent,
    exponent_without_clipping,
    least_loss,
    loss_of,
)

_STEPS = 16
"""Factors within a power of two that are tried."""
_ROUNDS = 20
_MOST_LOSS = 0.9
"""The factors must leave so much of the noise at most."""
_MOST_WEIGHTS = 1 << 14
"""Weights of a layer, evenly spread, whose noise is computed."""
_LARGEST, _OTHERS = 256, 4096
"""Values of a tensor whose noise is computed: the largest, and some of the others."""
_MOST_EXACT = 0.5
"""The largest share of a tensor's numbers besides 0 that may lie on steps of int8."""

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class FreeFactors:
    """The factors of a graph's tensors."""

    def __init__(
        self,
        graph: OnnxGraph,
        regions: Regions,
        statistics: Mapping[str, TensorStatistics],
        fixed: Collection[str] = (),
    ) -> None:
        """Compute the noise of tensors and weights.

        Args:
            graph: A canonical float graph.
            regions: Its int8 part.
            statistics: Of the tensors that become int8.
            fixed: Further tensors whose values must stay.
        """
        self._graph = graph
        self._sources = dict.fromkeys(_candidates(graph, regions, statistics))
        self._classes = find_classes(graph, set(fixed).difference(self._sources), statistics, self._sources)
        self._homes = homes_of(self._classes)
        layers = _layers(graph, self._classes, self._homes)
        self._noises = _Noises(layers, _tensors(graph, regions, statistics, self._classes, self._homes, layers))

    def together(self) -> OnnxGraph | None:
        """Return the graph whose tensors and weights have less noise by factors of all; None if it gains little."""
        return self._made(self._noises.least())

    def alone(self) -> OnnxGraph | None:
        """Return the graph with factors of inputs and tables alone, each by its own noise; None if there are none.

        Those of layers' results may come later.
        """
        reached = {int(self._homes[self._classes.sources[name].flat[0]]) for name in self._sources}
        return self._made(self._noises.least_of_each(reached - {FIXED}))

    def _made(self, steps: Mapping[int, int]) -> OnnxGraph | None:
        if not any(steps.values()):
            return None
        homes, most = self._homes, self._classes.most
        octaves = {home: _octaves(steps.get(home, 0), most[homes == home].min()) for home in set(homes.tolist())}
        factors = np.exp2([octaves[home] for home in homes.tolist()])
        chosen = {name: float(factors[self._classes.sources[name].flat[0]]) for name in self._sources}
        made = scaled(self._graph, self._classes, factors)
        return _multiplied(made, {name: factor for name, factor in chosen.items() if factor != 1})


def _octaves(step: int, most: float) -> float:
    """Return the binary logarithm of a factor of so many steps, but for whole octaves if it is above `most`."""
    octaves = step / _STEPS
    return octaves - max(float(np.ceil(octaves - most)), 0.0)


class _Layer(NamedTuple):
    """A layer: the homes of its results and of its data, and its weights' noise for each factor of their quotient."""

    node: OnnxNode
    made: int
    read: int
    noise: Floats


def _layers(graph: OnnxGraph, classes: ChannelClasses, homes: Ids) -> list[_Layer]:
    return [
        _Layer(
            layer.node,
            int(homes[layer.outputs[0]]),
            int(homes[layer.inputs.flat[0]]),
            _by_step(partial(_weights_noise, layer.matrix(graph).reshape(-1))),
        )
        for layer in classes.layers
    ]


def _tensors(
    graph: OnnxGraph,
    regions: Regions,
    statistics: Mapping[str, TensorStatistics],
    classes: ChannelClasses,
    homes: Ids,
    layers: Sequence[_Layer],
) -> dict[int, Floats]:
    """Return the noise of each home's tensors for each of its factors."""
    padded = {layer.read for layer in layers if is_padded(layer.node)}
    tables = roots_of(graph)

    def seen(name: str, home: int) -> TensorStatistics:
        found = statistics[name]
        return _thinned(_centred(found) if name in tables and home not in padded else found)

    made: dict[int, Floats] = {home: np.zeros(_STEPS) for home in homes.tolist()}
    for group in dict.fromkeys(regions.groups.values()):
        names = [name for name in regions.members(group) if name in classes.tensors]
        if names:
            home = int(homes[classes.tensors[names[0]][0]])
            made[home] += _by_step(partial(_tensors_noise, [seen(name, home) for name in names]))
    return made


class _Noises:
    """The noise of tensors and of layers' weights, by that of their values, for each factor within a power of two."""

    def __init__(self, layers: Sequence[_Layer], tensors: Mapping[int, Floats]) -> None:
        self._layers, self._tensors = layers, tensors
        self._beside: dict[int, list[_Layer]] = {home: [] for home in tensors}
        for layer in layers:
            for home in {layer.made, layer.read}:
                self._beside[home].append(layer)

    def of(self, steps: Mapping[int, int]) -> float:
        """Return the sum of all noise by the step of each home's factor, 0 of those that are left out."""
        tensors = [noise[steps.get(home, 0)] for home, noise in self._tensors.items()]
        layers = [each.noise[(steps.get(each.made, 0) - steps.get(each.read, 0)) % _STEPS] for each in self._layers]
        return float(np.sum(tensors) + np.sum(layers))

    def least_of_each(self, homes: Collection[int]) -> dict[int, int]:
        """Return the step of the factor of each home that leaves its own tensors least noise."""
        return {home: int(np.argmin(self._tensors[home])) for home in homes}

    def least(self) -> dict[int, int]:
        """Return the step of each home's factor, with little noise together; none if they gain little.

        Each is the best beside the others.
        """
        free = [home for home in self._tensors if home != FIXED]
        best = min((self._descended(start, free) for start in ({}, self.least_of_each(free))), key=self.of)
        return best if self.of(best) <= _MOST_LOSS * self.of({}) else {}

    def _descended(self, steps: dict[int, int], free: Sequence[int]) -> dict[int, int]:
        for _ in range(_ROUNDS):
            before = dict(steps)
            for home in free:
                steps[home] = int(np.argmin(self._around(home, steps)))
            if steps == before:
                break
        return steps

    def _around(self, home: int, steps: Mapping[int, int]) -> Floats:
        """Return the noise of a home's tensors, and of the layers that make or read them, for each of its factors."""
        tried, total = np.arange(_STEPS), self._tensors[home].copy()
        for layer in self._beside[home]:
            made, read = (tried if each == home else steps.get(each, 0) for each in (layer.made, layer.read))
            total += layer.noise[(made - read) % _STEPS]
        return total


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


def _by_step(noise: Callable[[float], float]) -> Floats:
    """Return the noise for each factor within a power of two."""
    return np.array([noise(2.0 ** (step / _STEPS)) for step in range(_STEPS)])


def _tensors_noise(found: Sequence[TensorStatistics], factor: float) -> float:
    """Return the noise of tensors that share a scale."""
    times = [_times(each, factor) for each in found]
    exponent = best_exponent(times)
    return float(np.mean([loss_of(each, exponent) for each in times]))


def _weights_noise(weights: Floats, factor: float) -> float:
    """Return the noise of weights."""
    return least_loss((weights[:: max(weights.size // _MOST_WEIGHTS, 1)] * factor).astype(np.float32))


def _thinned(found: TensorStatistics) -> TensorStatistics:
    """Return fewer values, and all of the largest, which a range may clip."""
    order = np.argsort(np.abs(found.values))
    others, largest = order[:-_LARGEST], order[-_LARGEST:]
    step = max(len(others) // _OTHERS, 1)
    some = np.concatenate((others[::step], largest))
    counts = found.counts[some]
    counts[:-_LARGEST] *= step
    return replace(found, values=found.values[some], counts=counts)


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
