"""Rounds weights by their effect on the layer's sums: each weight's error is made up for by those not rounded yet.

The method is GPTQ's (Frantar et al., 2023), a closed form of AdaRound's aim: the columns of a layer's weights are
rounded one by one, and the inverse of the inputs' second moments says how the error spreads to the next columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import Feeds, Runner
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.qdq import Scales
from hilt.network.quantize.regions import LayerRegion, Regions

_LARGEST_COLUMNS = 1200
"""Inputs of one sum beyond which a layer keeps its plain rounding: the work grows with their third power."""
_ROWS = 8192
_DAMPING = 0.01

Floats = NDArray[np.float64]
_Key = tuple[str, tuple[int, ...], int]


def rounded_weights(
    graph: OnnxGraph,
    regions: Regions,
    scales: Scales,
    samples: Sequence[Feeds],
    advance: Callable[[int, int], None],
) -> dict[str, NDArray[np.int8]]:
    """Return the int8 weights of the layers that can be rounded so, by the name of each layer's node.

    Layers that share weights and their scale, as the steps of a recurrence do, share the integers too.
    """
    layers = [layer for layer in regions.layers if _columns(graph, layer) is not None]
    if not layers:
        return {}
    names = list(dict.fromkeys(layer.data for layer in layers))
    moments: dict[_Key, Floats] = {}
    runner = Runner(graph, names)
    share = max(_ROWS // max(len(samples), 1), 1)
    done, count = 0, (len(samples) + 1) * len(layers)
    for values in runner.over(samples):
        for layer in layers:
            advance(done, count)
            step = 2.0 ** -scales.groups[regions.groups[layer.data]]
            seen = np.clip(np.rint(values[layer.data] / step), -128, 127) * step
            moment = _moment(_windows(graph, layer, seen), share)
            key = _key(layer, scales)
            moments[key] = moments.get(key, 0.0) + moment
            done += 1
    made = {_key(layer, scales): layer for layer in layers}
    rounded = {}
    for key, layer in made.items():
        advance(done, count)
        rounded[key] = _rounded(graph, layer, scales, moments[key])
        done += 1
    return {layer.node.name: rounded[_key(layer, scales)] for layer in layers}


def _key(layer: LayerRegion, scales: Scales) -> _Key:
    """Return a key that layers of the same integers share: weights, scale, and groups."""
    node = layer.node
    return node.inputs[1], tuple(scales.weights[node.name]), int(node.attributes.get("group", 1))


def _columns(graph: OnnxGraph, layer: LayerRegion) -> int | None:
    """Return the inputs of one sum; None of a layer that is rounded plainly."""
    if layer.node.op not in ("Conv", "Gemm") or max(layer.node.attributes.get("dilations", [1])) > 1:
        return None
    count = int(np.prod(graph.constants[layer.node.inputs[1]].shape[1:]))
    return count if 1 < count <= _LARGEST_COLUMNS else None


def _windows(graph: OnnxGraph, layer: LayerRegion, data: Floats) -> Floats:
    """Return the inputs of each sum: (groups, sums, columns)."""
    node = layer.node
    if node.op == "Gemm":
        return data.reshape(1, -1, data.shape[-1])
    top, left, bottom, right = node.attributes["pads"]
    kernel, strides = graph.constants[node.inputs[1]].shape[2:], node.attributes["strides"]
    padded = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))[:, :, :: strides[0], :: strides[1]]
    batch, channels, height, width = view.shape[:4]
    groups = int(node.attributes.get("group", 1))
    keep = max(height * width * batch // _ROWS, 1)
    flat = view.transpose(1, 0, 2, 3, 4, 5).reshape(channels, batch * height * width, -1)[:, ::keep]
    grouped = flat.reshape(groups, channels // groups, flat.shape[1], -1).transpose(0, 2, 1, 3)
    return grouped.reshape(groups, flat.shape[1], -1)


def _moment(windows: Floats, share: int) -> Floats:
    """Return the second moments (groups, columns, columns) of at most `share` sums."""
    part = windows[:, :: max(windows.shape[1] // share, 1)]
    moment: Floats = np.matmul(part.transpose(0, 2, 1), part)
    return moment


def _rounded(graph: OnnxGraph, layer: LayerRegion, scales: Scales, moments: Floats) -> NDArray[np.int8]:
    weights = graph.constants[layer.node.inputs[1]].astype(np.float64)
    exponents = np.broadcast_to(np.array(scales.weights[layer.node.name], np.float64), (len(weights),))
    scaled = weights.reshape(len(weights), -1) * np.exp2(exponents)[:, None]
    return _spread(scaled.reshape(len(moments), -1, moments.shape[1]), moments).reshape(weights.shape)


def _spread(weights: Floats, moments: Floats) -> NDArray[np.int8]:
    """Return weights (groups, rows, columns) in steps as integers, each column's error made up for by the later ones.

    `moments` are (groups, columns, columns).
    """
    columns = moments.shape[1]
    middle = np.array([float(np.diag(moment).mean()) for moment in moments])
    damped = moments + np.eye(columns) * np.maximum(_DAMPING * middle, 1e-12)[:, None, None]
    factors = np.linalg.cholesky(np.linalg.inv(damped)).swapaxes(1, 2)
    left, made = weights.copy(), np.zeros(weights.shape, np.int8)
    for column in range(columns):
        made[..., column] = np.clip(np.rint(left[..., column]), -128, 127)
        error = (left[..., column] - made[..., column]) / factors[:, column, column, None]
        left[..., column + 1 :] -= error[..., None] * factors[:, None, column, column + 1 :]
    return made
