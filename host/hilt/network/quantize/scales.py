"""Chooses the scales of a quantised model: tensor by tensor first, then by the error at the end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import Feeds, HeldOut, Runner, spread
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.qdq_view import mean_offset_steps, offset_steps
from hilt.network.quantize.qdq import ScaleNames, Scales, write_simulation
from hilt.network.quantize.regions import LayerRegion, Regions
from hilt.network.quantize.statistics import Reference, TensorStatistics, best_exponent, best_weight_exponents

_LARGEST_SHIFT = 31
_LARGEST_RESIDUAL_SHIFT = 20
_LARGEST_BIAS_BITS = 28
_FARTHEST_OFFSET = 8
"""How far an exponent is changed at most for an offset of a product to be whole steps."""
_SEARCH_MACS = 4e11
"""Multiply-accumulates that the search may spend."""
_SAMPLE_MACS = 4e9
_FEWEST_SAMPLES, _MOST_SAMPLES = 8, 32
"""Bounds of the samples of each set; between them as many as make `_SAMPLE_MACS` multiply-accumulates."""
_LEAST_GAIN = 0.02
"""Decibels below which a change is no improvement."""
_FIRST_SHARE, _FEWEST_FIRST = 4, 4
"""Every fourth sample tells first whether a change is worth the others; fewer than so many tell nothing."""
_SHAKEN, _MOST_COPIES, _SHAKEN_MACS = 0.01, 3, 1.5e8
"""Samples have copies with so much noise, as many as make so many multiply-accumulates together."""
_LEAST_SPREAD = 0.1
"""Decibels of standard deviation below which a place counts no more."""
_ERRORS = 2.0
"""Standard errors that the mean gain of a change must exceed, since the search tries many."""

Floats = NDArray[np.float64]


def initial_scales(
    graph: OnnxGraph, regions: Regions, statistics: dict[str, TensorStatistics], channel_block: int
) -> Scales:
    """Return for each group of tensors, and each layer's weights, the exponents that lose least by themselves."""
    groups = {
        group: best_exponent([statistics[name] for name in regions.members(group)])
        for group in dict.fromkeys(regions.groups.values())
    }
    weights = {
        layer.node.name: best_weight_exponents(
            graph.constants[layer.node.inputs[1]],
            channel_block if layer.node.op != "ConvTranspose" else 0,  # its first axis is the input's channels
        )
        for layer in regions.layers
    }
    scales = Scales(groups, weights)
    make_feasible(graph, regions, scales)
    return scales


def make_feasible(graph: OnnxGraph, regions: Regions, scales: Scales) -> None:
    """Change scales in place until VTA's shifts express them.

    Sums must be the finest of all that meet in a layer. Weights that make them finer than shifts reach get coarser:
    these sums are next to nothing beside the output or the residual.
    """
    for _ in range(len(regions.groups) + len(regions.layers) + 1):
        changes = [_fit_layer(graph, regions, scales, layer) for layer in regions.layers]
        if not any(changes + _fit_products(regions, scales)):
            return


def _fit_layer(graph: OnnxGraph, regions: Regions, scales: Scales, layer: LayerRegion) -> bool:
    """Fit one layer; tell whether something changed."""
    weights = scales.weights[layer.node.name]
    data = scales.groups[regions.groups[layer.data]]
    reached = {layer.output: _LARGEST_SHIFT, layer.residual: _LARGEST_RESIDUAL_SHIFT}
    groups = {regions.groups[name]: shift for name, shift in reached.items() if name}
    limits = [_LARGEST_BIAS_BITS - _bias_bits(graph, layer), *(scales.groups[of] + groups[of] for of in groups)]
    limit = min(limits) - data
    changed = False
    if max(weights) > limit:
        scales.weights[layer.node.name] = weights = [min(exponent, limit) for exponent in weights]
        changed = True
    for group in groups:
        if scales.groups[group] > min(weights) + data:
            scales.groups[group] = min(weights) + data
            changed = True
    return changed


def _bias_bits(graph: OnnxGraph, layer: LayerRegion) -> int:
    if len(layer.node.inputs) < 3 or not layer.node.inputs[2]:
        return -64
    largest = float(np.abs(graph.constants[layer.node.inputs[2]]).max(initial=0))
    return math.ceil(math.log2(largest)) if largest > 0 else -64


def corrected_biases(
    graph: OnnxGraph, regions: Regions, scales: Scales, statistics: dict[str, TensorStatistics]
) -> dict[str, NDArray[np.float64]]:
    """Return biases without the error that rounding the weights adds to each output channel's mean.

    The error of a channel's mean is the sum over its weights of their rounding error times the mean of the input
    channel that each reads. Rows at the border, which read zeros, are taken as the others.
    """
    biases = {}
    for layer in regions.layers:
        node = layer.node
        if node.op == "ConvTranspose":
            continue
        weights = graph.constants[node.inputs[1]].astype(np.float64)
        exponents = scales.weights[node.name]
        steps = np.array([2.0**-exponent for exponent in exponents]).reshape(-1, *(1,) * (weights.ndim - 1))
        errors = (scales.integers(node.name, weights) * steps - weights).reshape(*weights.shape[:2], -1).sum(axis=2)
        groups = node.attributes.get("group", 1) if node.op == "Conv" else 1
        means = statistics[layer.data].means.reshape(groups, 1, -1)
        shift = (errors.reshape(groups, len(weights) // groups, -1) * means).sum(axis=2).reshape(-1)
        bias = np.zeros(len(weights))
        if len(node.inputs) > 2 and node.inputs[2]:
            bias = graph.constants[node.inputs[2]].astype(np.float64).reshape(-1)
        biases[node.name] = bias - shift
    return biases


def _fit_products(regions: Regions, scales: Scales) -> list[bool]:
    changes = []
    for output, (first, second) in regions.products.items():
        limit = scales.groups[regions.groups[first]] + scales.groups[regions.groups[second]]
        group = regions.groups[output]
        changes.append(scales.groups[group] > limit)
        scales.groups[group] = min(scales.groups[group], limit)
    for name, value in regions.offsets.items():
        group = regions.groups[name]
        wanted = _exact(value, scales.groups[group], is_mean=name in regions.means)
        changes.append(scales.groups[group] != wanted)
        scales.groups[group] = wanted
    return changes


def _exact(value: float, exponent: int, *, is_mean: bool) -> int:
    """Return the exponent next to one whose steps make up an offset of a product, or of an average."""
    near = sorted(range(exponent - _FARTHEST_OFFSET, exponent + _FARTHEST_OFFSET + 1), key=lambda k: abs(k - exponent))
    steps_of = mean_offset_steps if is_mean else offset_steps
    return next((k for k in near if steps_of(value, k) is not None), exponent)


class ScaleSearch:
    """Measures scales by the signal-to-noise ratio of the tensors that leave the int8 part, and of the outputs."""

    def __init__(
        self,
        graph: OnnxGraph,
        regions: Regions,
        scales: Scales,
        samples: HeldOut,
        model: OnnxGraph,
        ends: list[str],
        like: ScaleSearch | None = None,
    ) -> None:
        """Compute the float model's tensors on the samples that scales are fitted to, and on those that decide.

        Args:
            graph: The graph, with channels equalised or tensors centred.
            regions: Its int8 part.
            scales: The first ones.
            samples: The calibration data.
            model: The user's model, whose `ends` the graph computes alike.
            ends: The tensors that leave its int8 part.
            like: Another search of the same model, with which this one is compared; None for none.
        """
        self._graph = graph
        self._regions = regions
        self._macs = sum(layer_macs(graph, layer) for layer in regions.layers)
        self._places: list[list[str]] = _places(model, ends or regions.tensors[-1:]) if like is None else like._places
        """The tensors that errors are measured at: the ends, and the outputs if these are others."""
        self._measured = [name for names in self._places for name in names]
        read = Counter(layer.node.inputs[1] for layer in regions.layers)
        self._own_weights = [layer.node.name for layer in regions.layers if read[layer.node.inputs[1]] == 1]
        """Layers whose weights no other layer reads: those that are shared keep one scale, and one place in memory."""
        self._names = ScaleNames.free_in(graph, scales)
        self._evaluated = 0
        self.use_constants_of(scales)
        self._sets: _Sets
        self._weights: Floats = np.ones(len(self._places))
        """How much the decibels of each place count, 1 on the average: the more they differ from sample to sample, the
        less they tell."""
        if like is not None:
            self._sets, self._weights = like._sets, like._weights
        else:
            self._sets = self._sets_of(samples, model)
            self._weights = self._weights_by(scales)

    def _sets_of(self, samples: HeldOut, model: OnnxGraph) -> _Sets:
        copies = int(np.clip(_SHAKEN_MACS / max(self._macs, 1), 0, _MOST_COPIES)) if samples.unseen else 0
        count = int(np.clip(_SAMPLE_MACS / max(self._macs, 1), _FEWEST_SAMPLES, _MOST_SAMPLES))
        return _Sets.of(samples, count, copies, Runner(model, self._measured), self._places)

    def _weights_by(self, scales: Scales) -> Floats:
        """Return how much each place counts, by the spread of its decibels with some scales."""
        if len(self._places) == 1:
            return self._weights
        inverse = 1 / (self._shaken(scales).std(axis=(0, 1)) + _LEAST_SPREAD)
        weights: Floats = inverse / inverse.mean()
        return weights

    def use_constants_of(self, scales: Scales) -> None:
        """Take the biases and rounded weights of `scales` from now on."""
        self._runner = Runner(write_simulation(self._graph, self._regions, scales), self._measured)

    def measure(self, scales: Scales) -> float:
        """Return the mean decibels over the deciding samples."""
        return float(np.mean(self._measure(scales, self._sets.deciding)))

    def measure_shaken(self, scales: Scales) -> float:
        """Return the mean decibels of the fitted and of the deciding samples, with copies of all that have noise.

        Two forms of a model round each sample by chance better or worse. The copies tell that from a gain. The deciding
        samples, which are fewer, count as much as the fitted: these show no value beyond the ranges.
        """
        found, fitted = self._shaken(scales), self._sets.count - len(self._sets.deciding.feeds)
        return float(np.mean(found[:, :fitted]) + np.mean(found[:, fitted:])) / 2

    def _shaken(self, scales: Scales) -> Floats:
        """Return the weighted decibels (copies, samples, places), of the samples themselves first."""
        found = [self._measure(scales, part) for part in self._sets.parts]
        return np.concatenate(found).reshape(-1, self._sets.count, len(self._places))

    def _measure(self, scales: Scales, samples: _Set) -> Floats:
        """Return the weighted decibels (samples, places) of samples: at the ends, and at outputs that are others."""
        self._evaluated += len(samples.feeds)
        feeds = self._names.feeds(scales)
        if not samples.feeds:
            return np.zeros((0, len(self._places)))
        made = self._runner.over(samples.feeds, feeds)
        ratios = [wanted.decibels(given) for wanted, given in zip(samples.wanted, made, strict=True)]
        return np.array(ratios) * self._weights

    def improve(self, scales: Scales, on_step: Callable[[int, int], None] | None = None) -> Scales:
        """Return scales changed by one exponent at a time, each change better on both sets of samples.

        None makes the ends or the outputs worse on either set.

        Args:
            scales: The start.
            on_step: Is called with inferences done, and with them and the most that this round may still make.
        """
        allowed = max(int(_SEARCH_MACS / max(self._macs, 1)), 1)
        best, level = scales.copy(), self._shaken(scales)
        changed = True
        while changed and self._evaluated < allowed:
            changed = False
            moves = [*((key, "") for key in best.groups), *(("", key) for key in self._own_weights)]
            for place, move in enumerate(moves, 1):
                for step in (1, -1):
                    if self._evaluated >= allowed:
                        return best
                    candidate = self._moved(best, *move, step)
                    if candidate is None:
                        continue
                    reached = self._reached(candidate, level)
                    if on_step is not None:
                        left = 2 * len(self._sets.first.feeds) * (len(moves) - place)
                        on_step(self._evaluated, min(self._evaluated + left, max(allowed, self._evaluated)))
                    if reached is not None:
                        best, level, changed = candidate, reached, True
                        break
        return best

    def _reached(self, candidate: Scales, level: Floats) -> Floats | None:
        """Return a candidate's decibels (copies, samples, places); None if they are not better than these."""
        sets, before = self._sets, level[0]
        first = self._measure(candidate, sets.first)
        if _is_hopeless(np.mean(first - before[: len(first)], axis=1)):
            return None
        fitted = np.concatenate([first, self._measure(candidate, sets.rest)])
        if not _gains(fitted - before[: len(fitted)]):
            return None
        deciding = self._measure(candidate, sets.deciding)
        if not _gains(deciding - before[-len(deciding) :]):
            return None
        reached = np.concatenate([fitted, deciding, self._measure(candidate, sets.copies)]).reshape(level.shape)
        gains = np.mean(reached - level, axis=(0, 2))
        return reached if is_gain(gains) else None

    def _moved(self, scales: Scales, group: str, layer: str, step: int) -> Scales | None:
        """Return scales with the exponent of a group or of a layer changed; None if VTA cannot have them."""
        moved = scales.copy()
        if layer:
            moved.weights[layer] = [exponent + step for exponent in moved.weights[layer]]
        else:
            moved.groups[group] += step
        fitted = moved.copy()
        make_feasible(self._graph, self._regions, fitted)
        return moved if fitted.groups == moved.groups and fitted.weights == moved.weights else None


def _is_hopeless(gains: Floats) -> bool:
    """Tell whether a few samples lose more decibels than chance makes of a gain: the others are spared."""
    return len(gains) >= _FEWEST_FIRST and bool(np.mean(gains) < -np.std(gains) / np.sqrt(len(gains)))


def _gains(gains: Floats) -> bool:
    """Tell whether decibels (samples, places) are a gain, and a loss at none of the places."""
    return bool(np.mean(gains) > _LEAST_GAIN and np.mean(gains, axis=0).min() >= 0)


def is_gain(gains: Floats) -> bool:
    """Tell whether the decibels that a change gains, sample by sample, exceed some standard errors of their mean."""
    return bool(np.mean(gains) > _ERRORS * np.std(gains) / np.sqrt(len(gains)))


def _places(model: OnnxGraph, ends: list[str]) -> list[list[str]]:
    outputs = [name for name in model.outputs if model.dtypes.get(name) == "float32"]
    return [ends, outputs] if set(outputs).difference(ends) else [ends]


@dataclass(frozen=True)
class _Set:
    """Samples, and the float model's tensors on each."""

    feeds: tuple[Feeds, ...]
    wanted: tuple[Reference, ...]

    @classmethod
    def of(cls, feeds: tuple[Feeds, ...], runner: Runner, places: list[list[str]]) -> _Set:
        wanted = ({name: array.astype(np.float32) for name, array in made.items()} for made in runner.over(feeds))
        return cls(feeds, tuple(Reference(made, places) for made in wanted))


@dataclass(frozen=True)
class _Sets:
    """The samples by their use.

    Attributes:
        first: Some of those that scales are fitted to: a change that fails here is not tried on the others.
        rest: The others.
        deciding: Those that scales are not fitted to.
        copies: All of these with noise, in their order, as often as they are copied.
    """

    first: _Set
    rest: _Set
    deciding: _Set
    copies: _Set

    @property
    def parts(self) -> tuple[_Set, ...]:
        """Return all sets, the copies last."""
        return self.first, self.rest, self.deciding, self.copies

    @property
    def count(self) -> int:
        """Return how many samples there are without their copies."""
        return sum(len(part.feeds) for part in self.parts[:3])

    @classmethod
    def of(cls, samples: HeldOut, count: int, copies: int, runner: Runner, places: list[list[str]]) -> _Sets:
        """Return at most `count` samples of each kind, each with so many `copies`."""
        fitted, deciding = spread(samples.fitted, count), spread(samples.deciding, count)
        first, rest = fitted[::_FIRST_SHARE], tuple(each for place, each in enumerate(fitted) if place % _FIRST_SHARE)
        random = np.random.default_rng(0)
        made = tuple(_shaken(each, random) for _ in range(copies) for each in (*first, *rest, *deciding))
        return cls(*(_Set.of(feeds, runner, places) for feeds in (first, rest, deciding, made)))


def _shaken(feeds: Feeds, random: np.random.Generator) -> Feeds:
    """Return a copy of a sample whose floats are changed by a hundredth."""
    return {
        name: (value * (1 + _SHAKEN * random.standard_normal(value.shape))).astype(value.dtype)
        if value.dtype.kind == "f"
        else value
        for name, value in feeds.items()
    }


def layer_macs(graph: OnnxGraph, layer: LayerRegion) -> int:
    """Return a layer's multiply-accumulates."""
    weights: NDArray[np.float32] = graph.constants[layer.node.inputs[1]]
    return math.prod(graph.shape(layer.node.outputs[0])) * math.prod(weights.shape[1:])
