"""The loss of a quantised model against the float model, by layer and by output, on samples that were held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hilt.network.calibration import Feeds, HeldOut, Runner, spread
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.qdq import Scales
from hilt.network.quantize.regions import Regions
from hilt.network.quantize.scales import layer_macs
from hilt.network.quantize.statistics import MeanDecibels

_REPORTED_SAMPLES = 32
_REPORTED_MACS = 4e10
_POOR = 15.0
"""Decibels at an output below which the command warns."""
_NAMED = 3
"""Layers that a warning names."""


@dataclass(frozen=True)
class LayerCost:
    """One layer's loss.

    Attributes:
        name: The layer's node.
        op: Its operator.
        macs: Multiply-accumulates of one inference.
        exponent: k of its output's scale 2^-k.
        decibels: Signal-to-noise ratio of its output against the float model.
        added: Noise that the layer adds to that of its inputs, as a share of its output's power.
    """

    name: str
    op: str
    macs: int
    exponent: int
    decibels: float
    added: float


@dataclass(frozen=True)
class OutputCost:
    """One output's loss: its signal-to-noise ratio in decibels against the float model."""

    name: str
    decibels: float


@dataclass(frozen=True)
class Costs:
    """The loss of a quantised model.

    Attributes:
        layers: By layer.
        outputs: By output in floats.
        samples: How many were measured.
        unseen: Tells whether nothing was fitted to them or decided by them.
    """

    layers: tuple[LayerCost, ...]
    outputs: tuple[OutputCost, ...]
    samples: int
    unseen: bool

    @property
    def decibels(self) -> float:
        """Return the mean over the outputs."""
        return float(np.mean([output.decibels for output in self.outputs])) if self.outputs else 0.0

    def worst_layers(self) -> list[LayerCost]:
        """Return the layers that add most noise, the worst first."""
        return sorted(self.layers, key=lambda layer: -layer.added)[:_NAMED]

    def warnings(self) -> list[str]:
        """Return a line if the samples fitted the scales, and one for each output that lost much, with the remedy."""
        worst = [layer.name for layer in self.worst_layers()]
        fitted = (
            "warning: the decibels are of samples that fitted the scales; others lose more. Calibrate with eight "
            "samples or more: some of them are held out then"
        )
        return [fitted] * (not self.unseen) + [
            f"warning: output {output.name} is only {output.decibels:.1f} dB above its error; most of it comes from "
            f"{', '.join(worst)}: keep layers in float (--min-db 20, or --float {worst[0]}), calibrate with more "
            "samples, or try --channel-block 16"
            for output in self.outputs
            if output.decibels < _POOR
        ]


def measure_costs(
    source: OnnxGraph,
    graph: OnnxGraph,
    model: OnnxGraph,
    regions: Regions,
    scales: Scales,
    samples: HeldOut,
    advance: Callable[[int, int], None],
) -> Costs:
    """Return the loss of `model`, the quantised `graph`; the outputs' beside those of the user's `source`."""
    layers = regions.layers
    outputs = [name for name in graph.outputs if graph.dtypes.get(name) == "float32"]
    inner = [name for layer in layers for name in (layer.data, layer.residual, layer.output) if name in regions.groups]
    macs = sum(layer_macs(graph, layer) for layer in layers)
    count = int(np.clip(_REPORTED_MACS / max(macs, 1), 1, _REPORTED_SAMPLES))
    feeds = spread(samples.reported, count)
    wanted = ((graph, [name for name in inner if name not in outputs]), (source, outputs))
    floats = [Runner(floating, names) for floating, names in wanted if names]
    ratios = _ratios(floats, model, list(dict.fromkeys((*inner, *outputs))), feeds, advance)
    by_layer = []
    for layer in layers:
        before = max(_noise(ratios[name]) for name in (layer.data, layer.residual) if name in ratios)
        by_layer.append(
            LayerCost(
                layer.node.name,
                layer.node.op,
                layer_macs(graph, layer),
                scales.groups[regions.groups[layer.output]],
                ratios[layer.output],
                _noise(ratios[layer.output]) - before,
            )
        )
    return Costs(tuple(by_layer), tuple(OutputCost(name, ratios[name]) for name in outputs), len(feeds), samples.unseen)


def _ratios(
    floats: Sequence[Runner],
    model: OnnxGraph,
    names: Sequence[str],
    feeds: Sequence[Feeds],
    advance: Callable[[int, int], None],
) -> dict[str, float]:
    """Return each tensor's decibels, the mean over samples."""
    given = Runner(model, [name for name in names if name not in model.inputs])
    found = MeanDecibels(names)
    for done, sample in enumerate(feeds):
        advance(done, len(feeds))
        first = {name: array for runner in floats for name, array in runner.run(sample).items()}
        found.add(first, {**sample, **given.run(sample)})
    return found.means()


def _noise(decibels: float) -> float:
    return float(10 ** (-decibels / 10))
