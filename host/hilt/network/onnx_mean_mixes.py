"""An image and its means over windows, each times a factor a channel, added: the means less the image, as PoolFormer.

Int8 has no difference, and a product with a constant beside one would be a layer of its own. Here the factors are
those of depthwise convolutions of 1 x 1, and VTA adds the sums of one to the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_affine import LEAST_CHANNELS
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant


@dataclass
class _Mix:
    """Nodes that add an image times a factor a channel and its means times another: the last of them makes `result`."""

    factors: dict[str, NDArray[np.float64]]
    """The factors of the means, and of the image, by their tensors."""
    nodes: list[OnnxNode]

    @property
    def result(self) -> str:
        return self.nodes[-1].outputs[0]


def write_mean_mixes(graph: OnnxGraph) -> None:
    """Rewrite in place each difference of an image and its means, with factors and a sum with the image behind it."""
    producers = graph.producers()
    for node in list(graph.nodes):
        mix = _difference(graph, producers, node) if node.op == "Sub" and not node.domain else None
        if mix is None:
            continue
        _take_in_readers(graph, mix)
        place = graph.nodes.index(mix.nodes[-1])
        graph.nodes[place : place + 1] = _sum_of_layers(graph, mix)
        graph.nodes = [each for each in graph.nodes if not any(each is taken for taken in mix.nodes)]


def _difference(graph: OnnxGraph, producers: dict[str, OnnxNode], node: OnnxNode) -> _Mix | None:
    """Return a difference of an image of several channels and its means; None of another."""
    for place, sign in ((0, 1.0), (1, -1.0)):
        pooled, image = node.inputs[place], node.inputs[1 - place]
        pool, shape = producers.get(pooled), graph.shape(image)
        is_mean = pool is not None and pool.op == "AveragePool" and pool.inputs[0] == image
        if is_mean and len(shape) == 4 and shape[1] >= LEAST_CHANNELS and graph.shape(pooled) == shape:
            return _Mix({pooled: np.full(shape[1], sign), image: np.full(shape[1], -sign)}, [node])
    return None


def _take_in_readers(graph: OnnxGraph, mix: _Mix) -> None:
    """Take in, as long as there are any, the product with a constant and the sum that alone read a mix."""
    consumers = graph.consumers()
    while mix.result not in graph.outputs and len(consumers.get(mix.result, [])) == 1:
        (reader,) = consumers[mix.result]
        others = [name for name in reader.inputs if name != mix.result]
        if reader.domain or len(others) != 1 or not _take_in(graph, mix, reader.op, others[0]):
            return
        mix.nodes.append(reader)


def _take_in(graph: OnnxGraph, mix: _Mix, op: str, other: str) -> bool:
    """Take in a product or a sum with another tensor, if a mix can; return whether it could."""
    channels = len(next(iter(mix.factors.values())))
    factor = graph.constants.get(other)
    if op == "Add" and other in mix.factors:
        mix.factors[other] = mix.factors[other] + 1
        return True
    if op != "Mul" or factor is None or np.broadcast_shapes(factor.shape, (1, channels, 1, 1)) != (1, channels, 1, 1):
        return False
    by_channel = np.broadcast_to(factor.astype(np.float64), (1, channels, 1, 1)).reshape(-1)
    mix.factors = {name: value * by_channel for name, value in mix.factors.items()}
    return True


def _sum_of_layers(graph: OnnxGraph, mix: _Mix) -> list[OnnxNode]:
    """Return a depthwise convolution of each part that has a factor, and their sum if there are two."""
    made: list[OnnxNode] = []
    parts: list[str] = []
    last = mix.nodes[-1]
    used = [(source, factors) for source, factors in mix.factors.items() if np.any(factors)]
    for number, (source, factors) in enumerate(used or list(mix.factors.items())[:1]):
        if np.all(factors == 1):
            parts.append(source)
            continue
        parts.append(graph.unique(f"{last.name}.part{number}"))
        graph.shapes[parts[-1]], graph.dtypes[parts[-1]] = graph.shape(source), "float32"
        weights = new_constant(graph, f"{last.name}.factors{number}", factors.astype(np.float32).reshape(-1, 1, 1, 1))
        attributes = {"kernel_shape": [1, 1], "group": len(factors), "strides": [1, 1], "pads": [0] * 4}
        attributes["dilations"] = [1, 1]
        made.append(OnnxNode(parts[-1], "Conv", [source, weights], [parts[-1]], attributes))
    if len(parts) == 1 and last.outputs[0] not in graph.outputs:
        graph.replace(last.outputs[0], parts[0])
        return made
    return [*made, OnnxNode(last.name, "Add" if len(parts) == 2 else "Identity", parts, list(last.outputs))]
