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
from hilt.network.quantize.qdq import ScaleNames, Scales, write_simulation
from hilt.network.quantize.regions import LayerRegion, Regions
from hilt.network.quantize.statistics import (
    TensorStatistics,
    best_exponent,
    best_weight_exponents,
    signal_to_noise,
)

_LARGEST_SHIFT = 31
_LARGEST_RESIDUAL_SHIFT = 20
_LARGEST_BIAS_BITS = 28
_SEARCH_MACS = 4e11
"""Multiply-accumulates that the search may spend."""
_SAMPLE_MACS = 4e9
_FEWEST_SAMPLES, _MOST_SAMPLES = 8, 32
"""Bounds of the samples of each set; between them as many as make `_SAMPLE_MACS` multiply-accumulates."""
_LEAST_GAIN = 0.02
"""Decibels below which a change is no improvement."""
_ERRORS = 2.0
"""Standard errors that the mean gain of a change must exceed, since the search tries many. Of too few samples to hold
some out, any gain counts."""

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
    """Change scales in place until VTA's shifts express them: sums must be the finest of all that meet in a layer."""
    for _ in range(len(regions.groups) + len(regions.layers) + 1):
        changes = [_fit_layer(graph, regions, scales, layer) for layer in regions.layers]
        if not any(changes + _fit_products(regions, scales)):
            return


def _fit_layer(graph: OnnxGraph, regions: Regions, scales: Scales, layer: LayerRegion) -> bool:
    """Fit one layer; tell whether something changed."""
    weights = scales.weights[layer.node.name]
    data = scales.groups[regions.groups[layer.data]]
    limit = _LARGEST_BIAS_BITS - data - _bias_bits(graph, layer)
    changed = False
    if max(weights) > limit:
        scales.weights[layer.node.name] = weights = [min(exponent, limit) for exponent in weights]
        changed = True
    for name, largest in ((layer.output, _LARGEST_SHIFT), (layer.residual, _LARGEST_RESIDUAL_SHIFT)):
        if not name:
            continue
        group = regions.groups[name]
        coarsest = min(weights) + scales.groups[regions.groups[layer.data]]
        finest = max(weights) + scales.groups[regions.groups[layer.data]]
        wanted = max(min(scales.groups[group], coarsest), finest - largest)
        if wanted != scales.groups[group]:
            scales.groups[group] = wanted
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
    return changes


class ScaleSearch:
    """Measures scales by the signal-to-noise ratio of the tensors that leave the int8 part, and of the outputs."""

    def __init__(
        self, graph: OnnxGraph, regions: Regions, scales: Scales, samples: HeldOut, model: OnnxGraph, ends: list[str]
    ) -> None:
        """Compute the float model's tensors on the samples that scales are fitted to, and on those that decide.

        `model` is the user's; `graph` computes its `ends` alike, with channels equalised or tensors centred.
        """
        self._graph = graph
        self._regions = regions
        self._macs = sum(layer_macs(graph, layer) for layer in regions.layers)
        count = int(np.clip(_SAMPLE_MACS / max(self._macs, 1), _FEWEST_SAMPLES, _MOST_SAMPLES))
        ends = ends or regions.tensors[-1:]
        outputs = [name for name in model.outputs if model.dtypes.get(name) == "float32"]
        self._places = [ends, outputs] if set(outputs).difference(ends) else [ends]
        """The tensors that errors are measured at: the ends, and the outputs if these are others."""
        self._measured = [name for names in self._places for name in names]
        read = Counter(layer.node.inputs[1] for layer in regions.layers)
        self._own_weights = [layer.node.name for layer in regions.layers if read[layer.node.inputs[1]] == 1]
        """Layers whose weights no other layer reads: those that are shared keep one scale, and one place in memory."""
        self._errors = _ERRORS if samples.unseen else 0.0
        self._names = ScaleNames.free_in(graph, scales)
        floats = Runner(model, self._measured)
        self._fitted = _Set.of(spread(samples.fitted, count), floats)
        self._deciding = _Set.of(spread(samples.deciding, count), floats)
        self.use_constants_of(scales)
        self._evaluated = 0

    def use_constants_of(self, scales: Scales) -> None:
        """Take the biases and rounded weights of `scales` from now on."""
        self._runner = Runner(write_simulation(self._graph, self._regions, scales), self._measured)

    def measure(self, scales: Scales) -> float:
        """Return the mean decibels over the deciding samples."""
        return float(np.mean(self._measure(scales, self._deciding)))

    def measure_fitted(self, scales: Scales) -> float:
        """Return the mean decibels over the fitted samples."""
        return float(np.mean(self._measure(scales, self._fitted)))

    def _measure(self, scales: Scales, samples: _Set) -> Floats:
        """Return the decibels of each sample (samples, places): at the ends, and at the outputs if these are others."""
        self._evaluated += len(samples.feeds)
        feeds = self._names.feeds(scales)
        ratios = [
            [signal_to_noise({name: wanted[name] for name in names}, given) for names in self._places]
            for wanted, given in zip(samples.wanted, self._runner.over(samples.feeds, feeds), strict=True)
        ]
        return np.array(ratios)

    def improve(self, scales: Scales, on_step: Callable[[int, int], None] | None = None) -> Scales:
        """Return scales changed by one exponent at a time, each change better on both sets of samples.

        None makes the ends or the outputs worse on either set.

        Args:
            scales: The start.
            on_step: Is called with inferences done, and with them and the most that this round may still make.
        """
        allowed = max(int(_SEARCH_MACS / max(self._macs, 1)), 1)
        best, level = scales.copy(), (self._measure(scales, self._fitted), self._measure(scales, self._deciding))
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
                    reached = self._reached(candidate, *level)
                    if on_step is not None:
                        left = 2 * len(self._fitted.feeds) * (len(moves) - place)
                        on_step(self._evaluated, min(self._evaluated + left, max(allowed, self._evaluated)))
                    if reached is not None:
                        best, level, changed = candidate, reached, True
                        break
        return best

    def _reached(self, candidate: Scales, fitted: Floats, deciding: Floats) -> tuple[Floats, Floats] | None:
        """Return a candidate's decibels on both sets of samples; None if it is not better than these."""
        reached = self._measure(candidate, self._fitted)
        if not np.mean(reached - fitted) > _LEAST_GAIN or _loses(reached - fitted):
            return None
        unseen = self._measure(candidate, self._deciding)
        gains = np.mean(reached - fitted, axis=1), np.mean(unseen - deciding, axis=1)
        return (reached, unseen) if is_gain(*gains, errors=self._errors) and not _loses(unseen - deciding) else None

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


def _loses(gains: Floats) -> bool:
    """Tell whether decibels that are gained (samples, places) are a loss at one of the places."""
    return bool(np.mean(gains, axis=0).min() < 0)


def is_gain(fitted: Floats, deciding: Floats, errors: float = _ERRORS) -> bool:
    """Tell whether the decibels that a change gains, sample by sample, exceed so many standard errors of their mean."""
    every = np.concatenate([fitted, deciding])
    error = float(np.std(every)) / np.sqrt(len(every))
    return bool(np.mean(deciding) > _LEAST_GAIN and np.mean(every) > errors * error)


@dataclass(frozen=True)
class _Set:
    """Samples, and the float model's tensors on each."""

    feeds: tuple[Feeds, ...]
    wanted: tuple[Feeds, ...]

    @classmethod
    def of(cls, feeds: tuple[Feeds, ...], runner: Runner) -> _Set:
        wanted = ({name: array.astype(np.float32) for name, array in made.items()} for made in runner.over(feeds))
        return cls(feeds, tuple(wanted))


def layer_macs(graph: OnnxGraph, layer: LayerRegion) -> int:
    """Return a layer's multiply-accumulates."""
    weights: NDArray[np.float32] = graph.constants[layer.node.inputs[1]]
    return math.prod(graph.shape(layer.node.outputs[0])) * math.prod(weights.shape[1:])
