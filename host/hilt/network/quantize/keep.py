"""Chooses the layers that stay in float on the processor, so that the outputs are as good as asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from hilt.did_you_mean import did_you_mean
from hilt.network.calibration import Feeds, HeldOut, Runner, spread
from hilt.network.onnx_graph import OnnxError, OnnxGraph
from hilt.network.quantize.qdq import write_qdq
from hilt.network.quantize.regions import Regions, find_regions
from hilt.network.quantize.scales import corrected_biases, initial_scales, layer_macs
from hilt.network.quantize.statistics import MeanDecibels, TensorStatistics, observe

_FITTED_SAMPLES = 16
_JUDGED_SAMPLES = 32
"""At most: the noise of single samples differs by a factor of a hundred, and the least of many choices flatters."""
_JUDGED_MACS = 2e11
"""Multiply-accumulates of the measurements, which bound their samples."""
_MARGIN = 1.0
"""Decibels above those asked for, since other samples may lose more."""
_DROPPED = 24
"""Chosen layers that are tried once more in int8."""


def require_nodes(graph: OnnxGraph, names: Collection[str]) -> None:
    """Raise OnnxError if a node that shall stay in float is not there."""
    known = [node.name for node in graph.nodes]
    for name in names:
        if name not in known:
            layers = ", ".join(layer.node.name for layer in find_regions(graph).layers[:5])
            hint = did_you_mean(name, known, f"its first layers are {layers}")
            raise OnnxError(f"{graph.name} has no node {name} to keep in float; {hint}")


def choose_kept(
    graph: OnnxGraph,
    model: OnnxGraph,
    samples: HeldOut,
    wanted: float,
    *,
    kept: Collection[str],
    channel_block: int,
    on_step: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Return the fewest layers beside `kept` that stay in float for each output to reach `wanted` decibels.

    Layers are ranked by the noise that each makes if it alone is in int8, since the noises of layers add up. Then as
    few of the first as reach the aim are taken, and those that turn out not to be needed go back, the largest first.
    If the aim is out of reach, all but the layer that makes least noise are returned.

    Args:
        graph: A canonical float graph, with channels equalised or tensors centred.
        model: The user's, whose outputs are those to reach.
        samples: The calibration data.
        wanted: Decibels at each output, on the deciding samples.
        kept: Nodes that stay in float anyway.
        channel_block: Output channels that share a weight scale.
        on_step: Is called with models measured and about how many there will be.
    """
    judge = _Judge(graph, model, samples, channel_block, on_step)
    layers = {layer.node.name: layer_macs(graph, layer) for layer in find_regions(graph, kept).layers}
    aim = 10 ** (-(wanted + _MARGIN) / 10)
    if judge.noise(kept) <= aim:
        return []
    alone = {name: judge.noise({*kept, *layers} - {name}) for name in layers}
    order = sorted(layers, key=lambda name: -alone[name])[: len(layers) - 1]
    count = _fewest(len(order), lambda number: judge.noise({*kept, *order[:number]}) <= aim)
    chosen = order[:count]
    for name in sorted(chosen, key=lambda name: -layers[name])[:_DROPPED]:
        fewer = [other for other in chosen if other != name]
        if judge.noise({*kept, *fewer}) <= aim:
            chosen = fewer
    return [name for name in layers if name in chosen]


def _fewest(most: int, serves: Callable[[int], bool]) -> int:
    """Return the smallest number from 1 to `most` that serves, found by doubling and halving; `most` if none does."""
    high = 1
    while high < most and not serves(high):
        high *= 2
    low, high = high // 2, min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if serves(middle) else (middle, high)
    return high


class _Judge:
    """Measures the noise at the outputs with given nodes in float."""

    def __init__(
        self,
        graph: OnnxGraph,
        model: OnnxGraph,
        samples: HeldOut,
        channel_block: int,
        on_step: Callable[[int, int], None] | None,
    ) -> None:
        self._graph = graph
        self._block = channel_block
        self._on_step = on_step
        regions = find_regions(graph)
        macs = sum(layer_macs(graph, layer) for layer in regions.layers) * (len(regions.layers) + 8)
        count = int(np.clip(_JUDGED_MACS / max(macs, 1), 2, _JUDGED_SAMPLES))
        self._allowed = len(regions.layers) + 8
        self._fitted, self._headroom = spread(samples.fitted, _FITTED_SAMPLES), not samples.unseen
        few = count <= len(samples.deciding) or not samples.unseen
        self._feeds = spread(samples.deciding if few else (*samples.fitted, *samples.deciding), count)
        self._statistics: dict[str, TensorStatistics] = {}
        self._outputs = [name for name in graph.outputs if graph.dtypes.get(name) == "float32"] or regions.ends
        self._wanted: Sequence[Feeds] = list(Runner(model, self._outputs).over(self._feeds))
        self._known: dict[frozenset[str], float] = {}

    def noise(self, kept: Collection[str]) -> float:
        """Return the share of noise in the output that has most."""
        key = frozenset(kept)
        if key not in self._known:
            self._known[key] = self._measure(key)
            if self._on_step is not None:
                self._on_step(len(self._known), max(self._allowed, len(self._known)))
        return self._known[key]

    def _measure(self, kept: frozenset[str]) -> float:
        regions = find_regions(self._graph, kept)
        statistics = self._observed(regions)
        scales = initial_scales(self._graph, regions, statistics, self._block)
        scales = replace(scales, biases=corrected_biases(self._graph, regions, scales, statistics))
        runner = Runner(write_qdq(self._graph, regions, scales), self._outputs)
        found = MeanDecibels(self._outputs)
        for wanted, given in zip(self._wanted, runner.over(self._feeds), strict=True):
            found.add(wanted, given)
        return float(10 ** (-min(found.means().values()) / 10))

    def _observed(self, regions: Regions) -> dict[str, TensorStatistics]:
        missing = [name for name in regions.tensors if name not in self._statistics]
        if missing:
            self._statistics.update(observe(self._graph, missing, self._fitted, headroom=self._headroom))
        return self._statistics
