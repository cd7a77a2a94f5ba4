"""Taps of dilated kernels that read zeros beside the image alone, wherever the kernel lies: they are left out.

A kernel with a dilation of 18 on an image of 16 pixels is its middle tap; a pad of more than 15 pixels, which VTA's
instructions do not hold, goes with the others.
"""

from __future__ import annotations

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant


def without_idle_taps(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a convolution of images without such taps; None if it has none."""
    attributes, pads = node.attributes, node.attributes.get("pads", [0] * 4)
    weights = graph.constants.get(node.inputs[1]) if node.op == "Conv" else None
    if weights is None or weights.ndim != 4 or len(pads) != 4 or not any(pads):
        return None
    steps, strides = attributes.get("dilations", [1, 1]), attributes.get("strides", [1, 1])
    sizes, results = graph.shape(node.inputs[0])[2:], graph.shape(node.outputs[0])[2:]
    kept = []
    for axis in (0, 1):
        reads = np.arange(results[axis])[:, None] * strides[axis] + np.arange(weights.shape[2 + axis]) * steps[axis]
        reads -= pads[axis]
        used = np.flatnonzero(((reads >= 0) & (reads < sizes[axis])).any(axis=0))
        before, after = (pads[place] // steps[axis] for place in (axis, 2 + axis))
        last = weights.shape[2 + axis] - 1
        first = min(int(used[0]), before) if len(used) else 0
        end = max(int(used[-1]), last - after) if len(used) else last
        kept.append((first, end + 1))
    (top, bottom), (left, right) = kept
    fewer = weights[:, :, top:bottom, left:right]
    if fewer.size == weights.size:
        return None
    ends = [taps - end for taps, (_, end) in zip(weights.shape[2:], kept, strict=True)]
    dropped = [top * steps[0], left * steps[1], ends[0] * steps[0], ends[1] * steps[1]]
    changed = {
        "kernel_shape": list(fewer.shape[2:]),
        "pads": [pad - less for pad, less in zip(pads, dropped, strict=True)],
        "dilations": [1 if taps == 1 else step for taps, step in zip(fewer.shape[2:], steps, strict=True)],
    }
    inputs = [node.inputs[0], new_constant(graph, f"{node.name}.taps", fewer.copy()), *node.inputs[2:]]
    return [OnnxNode(node.name, node.op, inputs, list(node.outputs), {**attributes, **changed})]
