"""Windows over volumes (1, C, D, H, W) as windows over images, the frames (D, C, H, W).

A convolution reads the frames below one window as further channels. A pool is one of each frame, and then one along the
frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant

_PER_AXIS = ("kernel_shape", "strides", "dilations", "pads")
_FOLLOWERS = UNARY | BINARY | {"BatchNormalization"}
_FRAMES_FIRST = [0, 2, 1, 3, 4]
"""The permutation between channels first and frames first."""


def part_volumes(graph: OnnxGraph) -> None:
    """Rewrite in place the convolutions and pools of one volume, and the element-wise operators that follow them.

    A convolution with computed weights or with groups stays, and so does a window with auto_pad.
    """
    frames: dict[str, str] = {}
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        nodes += _successors(graph, node, frames) or [node]
    graph.nodes = nodes
    graph.remove_unused()


def _successors(graph: OnnxGraph, node: OnnxNode, frames: dict[str, str]) -> list[OnnxNode] | None:
    """Return the successors of a node, and note the frames of the volume that it makes; None to keep it."""
    parts = _Parts(graph, node, frames)
    if node.domain or len(node.outputs) > 1:
        return None
    if node.op in _FOLLOWERS:
        return parts.followed() if parts.follows() else None
    if node.op in ("MaxPool", "AveragePool"):
        return parts.pools() if parts.is_of_a_volume() else None
    return parts.convolution() if node.op == "Conv" and parts.is_of_a_volume() and parts.is_plain() else None


class _Parts:
    """The successors of one node, as they are added; `frames` are the frames of volumes, by name."""

    def __init__(self, graph: OnnxGraph, node: OnnxNode, frames: dict[str, str]) -> None:
        self._graph, self._node, self._known = graph, node, frames
        self._nodes: list[OnnxNode] = []

    def is_of_a_volume(self) -> bool:
        """Tell whether a window is one over one volume."""
        shape = self._graph.shape(self._node.inputs[0])
        return len(shape) == 5 and shape[0] == 1 and self._node.attributes.get("auto_pad", "NOTSET") == "NOTSET"

    def is_plain(self) -> bool:
        """Tell whether a convolution has constant weights and no groups."""
        return self._node.inputs[1] in self._graph.constants and self._node.attributes.get("group", 1) == 1

    def follows(self) -> bool:
        """Tell whether an operator reads volumes of known frames, and single numbers or numbers of channels."""
        volumes = set(filter(None, self._node.inputs)) - self._graph.constants.keys()
        if not volumes or not self._known.keys() >= volumes:
            return False
        numbers = [self._graph.constants[name] for name in self._node.inputs if name in self._graph.constants]
        alike = {self._graph.shape(name) for name in (*volumes, self._node.outputs[0])}
        return len(alike) == 1 and (self._node.op == "BatchNormalization" or all(each.size == 1 for each in numbers))

    def followed(self) -> list[OnnxNode]:
        """Return an operator on frames."""
        inputs = [self._known.get(name, name) for name in self._node.inputs]
        shape = next(self._graph.shape(self._known[name]) for name in self._node.inputs if name in self._known)
        return self._ended_by_frames(self._add(self._node.op, inputs, shape, **self._node.attributes))

    def convolution(self) -> list[OnnxNode]:
        """Return a convolution of frames, each with those behind it that its windows reach."""
        node, weights = self._node, self._graph.constants[self._node.inputs[1]]
        made, _, taps, *kernel = weights.shape
        frames = self._with_pads(self._frames(node.inputs[0]))
        cuts = [self._under_tap(frames, tap) for tap in range(taps)]
        count, channels, *plane = self._graph.shape(cuts[0])
        joined = self._add("Concat", cuts, (count, taps * channels, *plane), axis=1) if taps > 1 else cuts[0]
        flat = np.ascontiguousarray(weights.swapaxes(1, 2)).reshape(made, taps * channels, *kernel)
        inputs = [joined, new_constant(self._graph, f"{node.name}.frames", flat), *node.inputs[2:]]
        shape = (count, made, *self._graph.shape(node.outputs[0])[3:])
        return self._ended_by_frames(self._add("Conv", inputs, shape, **self._attributes((1, 2))))

    def pools(self) -> list[OnnxNode]:
        """Return the pools of frames, and along them.

        A window's elements within the data are so many along the frames times so many in each: a mean is that of
        means, with or without the places beside the data.
        """
        node, source = self._node, self._node.inputs[0]
        channels, depth, *plane = self._graph.shape(node.outputs[0])[1:]
        if self._changes((1, 2)):
            frames = self._frames(source)
            shape = (*self._graph.shape(frames)[:2], *plane)
            pooled = self._add(node.op, [frames], shape, **self._attributes((1, 2)))
            if not self._changes((0,)):
                return self._ended_by_frames(pooled)
            source = self._volume(pooled)
        columns = plane[0] * plane[1]
        rows = self._reshaped(source, (1, channels, self._graph.shape(source)[2], columns))
        pooled = self._add(node.op, [rows], (1, channels, depth, columns), **self._attributes((0,)))
        return self._ended(self._reshaped(pooled, (1, channels, depth, *plane)))

    def _add(self, op: str, inputs: Sequence[str], shape: tuple[int, ...], **attributes: Any) -> str:
        """Add a node with a result of its own, which is returned."""
        name = self._graph.unique(f"{self._node.name}.{len(self._nodes)}")
        self._graph.shapes[name] = shape
        self._graph.dtypes[name] = self._graph.dtypes.get(self._node.inputs[0], "float32")
        self._nodes.append(OnnxNode(name, op, list(inputs), [name], attributes))
        return name

    def _ended_by_frames(self, frames: str) -> list[OnnxNode]:
        """Return the nodes with the volume of the frames that they make, which are known from now on."""
        self._known[self._node.outputs[0]] = frames
        return self._ended(self._volume(frames))

    def _ended(self, result: str) -> list[OnnxNode]:
        """Return the nodes, whose last one, which makes `result`, makes the node's own."""
        assert self._nodes[-1].outputs == [result]
        self._nodes[-1].outputs = list(self._node.outputs)
        return self._nodes

    def _reshaped(self, source: str, shape: tuple[int, ...]) -> str:
        target = new_constant(self._graph, f"{self._node.name}.shape", np.array(shape, np.int64))
        return self._add("Reshape", [source, target], shape)

    def _frames(self, volume: str) -> str:
        if volume in self._known:
            return self._known[volume]
        _, channels, depth, *plane = self._graph.shape(volume)
        turned = self._add("Transpose", [volume], (1, depth, channels, *plane), perm=_FRAMES_FIRST)
        return self._reshaped(turned, (depth, channels, *plane))

    def _volume(self, frames: str) -> str:
        depth, channels, *plane = self._graph.shape(frames)
        whole = self._reshaped(frames, (1, depth, channels, *plane))
        return self._add("Transpose", [whole], (1, channels, depth, *plane), perm=_FRAMES_FIRST)

    def _with_pads(self, frames: str) -> str:
        """Return frames with those of zeros that the node adds in front and behind."""
        front, behind = self._of_depth("pads", [0, 0])
        if not front and not behind:
            return frames
        depth, *shape = self._graph.shape(frames)
        sides = new_constant(
            self._graph, f"{self._node.name}.sides", np.array([front, 0, 0, 0, behind, 0, 0, 0], np.int64)
        )
        return self._add("Pad", [frames, sides], (depth + front + behind, *shape))

    def _under_tap(self, frames: str, tap: int) -> str:
        """Return the frames that one tap of the kernel reads, one for each frame of the result."""
        (stride,), (gap,) = self._of_depth("strides", [1]), self._of_depth("dilations", [1])
        count, first = self._graph.shape(self._node.outputs[0])[2], tap * gap
        bounds = (first, first + (count - 1) * stride + 1, 0, stride)
        names = [
            new_constant(self._graph, f"{self._node.name}.{key}", np.array([value], np.int64))
            for key, value in zip(("start", "end", "axis", "step"), bounds, strict=True)
        ]
        return self._add("Slice", [frames, *names], (count, *self._graph.shape(frames)[1:]))

    def _changes(self, axes: tuple[int, ...]) -> bool:
        """Tell whether the node changes anything along some of its three axes."""
        before, after = (self._graph.shape(name)[2:] for name in (self._node.inputs[0], self._node.outputs[0]))
        kernel = self._node.attributes["kernel_shape"]
        return any(kernel[axis] > 1 or before[axis] != after[axis] for axis in axes)

    def _of_depth(self, key: str, default: list[int]) -> list[int]:
        """Return an attribute's values of the first of three axes."""
        return list(self._node.attributes[key][::3]) if key in self._node.attributes else default

    def _attributes(self, axes: tuple[int, ...]) -> dict[str, Any]:
        """Return the node's attributes for windows of images along one or two of its axes."""
        attributes = {key: value for key, value in self._node.attributes.items() if key != "auto_pad"}
        for key in filter(attributes.__contains__, _PER_AXIS):
            given = np.array(attributes[key]).reshape(-1, 3)
            still = np.full((len(given), 2 - len(axes)), 0 if key == "pads" else 1)
            attributes[key] = np.concatenate((given[:, axes], still), axis=1).reshape(-1).tolist()
        return attributes
