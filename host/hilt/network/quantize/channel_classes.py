"""Classes of channels: all that one positive factor must reach for a float network to compute the same.

A factor on a channel passes through Relu, poolings, moves and sums; a layer with constant weights ends it on
both sides, since its weights can take factors up. A Clip (Relu6) lets channels pass whose values stay far below it, up
to a factor. Every other operator, the inputs and the outputs keep the factor 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt.network.quantize.statistics import TensorStatistics

Ids = NDArray[np.int64]

FIXED = 0
"""The class of all channels that keep the factor 1."""
_HOMOGENEOUS = frozenset(("Abs", "Identity", "LeakyRelu", "Neg", "PRelu", "Relu"))
"""f(s * x) = s * f(x) for s > 0, channel by channel."""
_CLIP_MARGIN = 1.0
"""Binary logarithm: no factor brings a channel's largest value seen nearer than this to the value that clips it."""


@dataclass(frozen=True)
class _Channels:
    """The classes along one axis of a tensor, or along neighbouring ones, as a shuffle of channels parts them.

    Attributes:
        axis: The first axis.
        ids: The classes, as many axes as they take.
    """

    axis: int
    ids: Ids

    def whole(self, rank: int) -> Ids:
        """Return the classes with as many axes as a tensor has, of length 1 where they do not differ."""
        return self.ids.reshape(*(1,) * self.axis, *self.ids.shape, *(1,) * (rank - self.axis - self.ids.ndim))


@dataclass(frozen=True)
class LayerClasses:
    """One layer with constant weights.

    Attributes:
        node: The Conv, ConvTranspose or Gemm.
        outputs: The class of each output channel (CO,).
        inputs: The class that each weight reads (CO, CI / groups).
    """

    node: OnnxNode
    outputs: Ids
    inputs: Ids

    def matrix(self, graph: OnnxGraph) -> NDArray[np.float64]:
        """Return the weights as (CO, CI / groups, taps)."""
        weights = graph.constants[self.node.inputs[1]].astype(np.float64)
        if self.node.op == "ConvTranspose":
            weights = weights.swapaxes(0, 1)
        return weights.reshape(*weights.shape[:2], -1)


@dataclass(frozen=True)
class ChannelClasses:
    """A graph's classes.

    Attributes:
        count: How many there are, `FIXED` among them.
        layers: The layers with constant weights.
        tensors: The classes of each channel (the second axis) by tensor.
        most: The binary logarithm of the largest factor of each class (count,): infinity, or the room below a Clip.
        sources: The classes of each channel of the tensors that were given as sources.
    """

    count: int
    layers: tuple[LayerClasses, ...]
    tensors: dict[str, Ids]
    most: NDArray[np.float64]
    sources: dict[str, Ids]


def find_classes(
    graph: OnnxGraph,
    fixed: Iterable[str],
    statistics: Mapping[str, TensorStatistics] | None = None,
    sources: Mapping[str, int | None] | None = None,
) -> ChannelClasses:
    """Return the classes of a canonical graph.

    Args:
        graph: The graph.
        fixed: Further tensors that keep the factor 1.
        statistics: Of tensors; a Clip with none of its output lets no factor pass.
        sources: Tensors whose maker can take factors up, with the axis of their channels; None where only one factor
            can reach all of it.
    """
    inputs = [name for name in graph.inputs if name not in (sources or {})]
    return _Finder(graph, statistics or {}, sources).find([*inputs, *graph.outputs, *fixed])


def homes_of(classes: ChannelClasses) -> Ids:
    """Return for each class the smallest of the classes that its tensors, and those that share classes, have."""
    homes = np.arange(classes.count)
    for ids in classes.tensors.values():
        members = np.isin(homes, homes[ids])
        homes[members] = homes[members].min(initial=classes.count)
    return homes


def is_scalable(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether a node is a layer whose weights can take up factors of its channels."""
    if node.domain or any(name and name not in graph.constants for name in node.inputs[1:]):
        return False
    if node.op == "Gemm":
        return bool(node.attributes.get("transB", 0)) and not node.attributes.get("transA", 0)
    if node.op == "ConvTranspose":
        return bool(node.attributes.get("group", 1) == 1)
    return node.op == "Conv"


class _Finder:
    """The state of find_classes: a forest of classes, and each tensor's channels."""

    def __init__(
        self,
        graph: OnnxGraph,
        statistics: Mapping[str, TensorStatistics],
        sources: Mapping[str, int | None] | None = None,
    ) -> None:
        self._graph, self._sources = graph, sources or {}
        self._statistics = statistics
        self._clipped: list[tuple[Ids, NDArray[np.float64]]] = []
        self._parents = [FIXED]
        self._channels: dict[str, _Channels] = {}
        self._layers: list[tuple[OnnxNode, Ids, Ids]] = []

    def find(self, fixed: Sequence[str]) -> ChannelClasses:
        for name in self._sources:
            if name in self._graph.inputs:
                self._channels[name] = self._source(name)
        for node in self._graph.nodes:
            made = self._made(node)
            if made is None:
                for name in (*node.inputs, *node.outputs):
                    self._fix(name)
            else:
                self._channels[node.outputs[0]] = made
        for name in fixed:
            self._fix(name)
        roots = np.array([self._root(place) for place in range(len(self._parents))])
        names, numbers = np.unique(roots, return_inverse=True)  # FIXED is the smallest and stays 0
        most = np.full(len(names), np.inf)
        for ids, logarithms in self._clipped:
            np.minimum.at(most, numbers[ids], logarithms)
        return ChannelClasses(
            len(names),
            tuple(LayerClasses(node, numbers[outputs], numbers[inputs]) for node, outputs, inputs in self._layers),
            self._seconds(numbers),
            most,
            {name: numbers[self._channels[name].ids] for name in self._sources},
        )

    def _seconds(self, numbers: Ids) -> dict[str, Ids]:
        """Return the classes along the second axis by tensor, with their final numbers."""
        found = {name: _second(numbers[each.ids], each.axis) for name, each in self._channels.items()}
        return {name: ids for name, ids in found.items() if ids is not None}

    def _made(self, node: OnnxNode) -> _Channels | None:
        """Return the channels of a node's output; None if their factor is fixed."""
        name = node.outputs[0]
        if name in self._sources:
            for each in node.inputs:
                self._fix(each)
            return self._source(name)
        return self._layer(node) if is_scalable(self._graph, node) else self._passed(node)

    def _source(self, name: str) -> _Channels:
        axis, shape = self._sources[name], self._graph.shape(name)
        if axis is None:
            return _Channels(1, np.repeat(self._fresh(1), shape[1]))
        return _Channels(axis, self._fresh(shape[axis]))

    def _root(self, place: int) -> int:
        while self._parents[place] != place:
            self._parents[place] = self._parents[self._parents[place]]
            place = self._parents[place]
        return place

    def _join(self, first: Ids, second: Ids) -> None:
        for one, other in zip(first.reshape(-1).tolist(), second.reshape(-1).tolist(), strict=True):
            low, high = sorted((self._root(one), self._root(other)))
            self._parents[high] = low

    def _fix(self, name: str) -> None:
        if name in self._channels:
            ids = self._channels[name].ids
            self._join(ids, np.full(ids.shape, FIXED))

    def _fresh(self, count: int) -> Ids:
        start = len(self._parents)
        self._parents += range(start, start + count)
        return np.arange(start, start + count)

    def _layer(self, node: OnnxNode) -> _Channels:
        weights = self._graph.constants[node.inputs[1]]
        read = self._read(node.inputs[0])
        groups = node.attributes.get("group", 1) if node.op == "Conv" else 1
        made = self._fresh(weights.shape[1 if node.op == "ConvTranspose" else 0])
        inputs = np.repeat(read.reshape(groups, -1), len(made) // groups, axis=0)
        self._layers.append((node, made, inputs))
        return _Channels(1, made)

    def _read(self, name: str) -> Ids:
        """Return the class that a layer reads in each channel: parts of a channel take one factor."""
        channels, size = self._channels.get(name), self._graph.shape(name)[1]
        if channels is None or channels.axis != 1:
            self._fix(name)
            return np.full(size, FIXED)
        parts = _parts(channels.ids)
        self._join(np.broadcast_to(parts[:, :1], parts.shape), parts)
        return parts[:, 0]

    def _passed(self, node: OnnxNode) -> _Channels | None:
        """Return the output's channels if a node lets factors pass."""
        if node.domain or node.subgraphs() or not node.outputs[0] or any(node.outputs[1:]):
            return None
        read = self._graph.computed_inputs(node)
        channels = [self._channels.get(name) for name in read]
        if not channels or channels[0] is None:
            return None
        if node.op not in {"Reshape", "Transpose"} | _HOMOGENEOUS and any(map(_is_parted, channels)):
            return None
        if len(read) == 1:
            return self._moved(node, channels[0])
        return self._combined(node, read, channels)

    def _moved(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        graph = self._graph
        before, after = graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
        if node.inputs[0] in graph.constants:
            return channels if node.op == "Mul" and before == after else None
        if node.op in _HOMOGENEOUS or (node.op in ("Mul", "Div") and before == after):
            return channels if len(before) == len(after) else None
        if node.op == "Reshape":
            return _reshaped(channels, before, after)
        move = _MOVES.get(node.op)
        return None if move is None else move(self, node, channels)

    def _clip(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        """Fix the channels that come near the bounds of a Clip, and limit the factors of the others."""
        found = self._statistics.get(node.outputs[0])
        bound = self._bound(node)
        if bound == np.inf:
            return channels
        if found is None or channels.axis != 1 or found.peaks.shape != channels.ids.shape or bound <= 0:
            return None
        most = np.log2(bound / np.maximum(found.peaks, 1e-300)) - _CLIP_MARGIN
        near = (most <= 0) | (found.peaks == 0)
        self._join(channels.ids[near], np.full(np.count_nonzero(near), FIXED))
        self._clipped.append((channels.ids[~near], most[~near]))
        return channels

    def _bound(self, node: OnnxNode) -> float:
        """Return the least magnitude besides 0 that a Clip bounds; 0 if its bounds are not around zero."""
        given = [self._graph.constants.get(name) for name in node.inputs[1:3]]
        low, high = (float(each) if each is not None else None for each in (*given, None, None)[:2])
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        if low > 0 or high <= 0:
            return 0.0
        return high if low == 0 else min(-low, high)

    def _pooled(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        """Return the channels of a pool; None if its windows join classes."""
        return channels if channels.axis <= 1 else None

    def _transposed(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        order = list(node.attributes["perm"])
        axes = sorted(order.index(channels.axis + place) for place in range(channels.ids.ndim))
        if axes[-1] - axes[0] >= len(axes):
            return None
        return _Channels(axes[0], _along(channels.whole(len(order)).transpose(order), axes))

    def _expanded(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        before, after = self._graph.shape(node.inputs[0]), self._graph.shape(node.outputs[0])
        return self._resized(node, channels) if len(before) == len(after) else None

    def _gathered(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        places, rank = self._graph.constants.get(node.inputs[1]), len(self._graph.shape(node.inputs[0]))
        if places is None or places.ndim != 1:
            return None
        if node.attributes.get("axis", 0) % rank != channels.axis:
            return channels
        return _Channels(channels.axis, channels.ids[places])

    def _resized(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        before, after = self._graph.shape(node.inputs[0]), self._graph.shape(node.outputs[0])
        if before[channels.axis] == after[channels.axis]:
            return channels
        one = np.unique(channels.ids)
        return _Channels(channels.axis, np.repeat(one, after[channels.axis])) if len(one) == 1 else None

    def _padded(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        return None if self._fills(node) else self._resized(node, channels)

    def _fills(self, node: OnnxNode) -> bool:
        """Tell whether a Pad writes other values than zeros and its input's."""
        value = self._graph.constants[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else np.zeros(1)
        return bool(np.any(value != 0))

    def _sliced(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        starts, ends, axes, steps = (self._integers(node, place) for place in (1, 2, 3, 4))
        if starts is None or ends is None:
            return None
        axes = list(range(len(starts))) if axes is None else axes
        steps = [1] * len(starts) if steps is None else steps
        rank, ids = len(self._graph.shape(node.inputs[0])), channels.ids
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            if axis % rank == channels.axis:
                if step <= 0:
                    return None
                ids = ids[start:end:step]
        return _Channels(channels.axis, ids)

    def _integers(self, node: OnnxNode, place: int) -> list[int] | None:
        """Return a node's constant input; None if it is left out, or computed."""
        value = self._graph.constants.get(node.inputs[place]) if len(node.inputs) > place else None
        return None if value is None else [int(each) for each in value.tolist()]

    def _spread(self, node: OnnxNode, channels: _Channels) -> _Channels | None:
        if channels.axis != 1:
            return None
        size = int(node.attributes["blocksize"]) ** 2
        deep = node.attributes.get("mode", "DCR") == "DCR"
        ids = channels.ids.reshape(size, -1) if deep else channels.ids.reshape(-1, size).T
        for row in ids[1:]:
            self._join(ids[0], row)
        return _Channels(1, ids[0])

    def _combined(self, node: OnnxNode, read: Sequence[str], channels: Sequence[_Channels | None]) -> _Channels | None:
        """Return the channels of a sum, a Concat, or a product with a gate."""
        if node.op != "Concat" and len(read) != 2:
            return None
        if node.op == "Mul":
            return self._gated(node, read, channels)
        parts = [part for part in channels if part is not None]
        if len(parts) != len(node.inputs) or any(part.axis != parts[0].axis for part in parts):
            return None
        return self._joined(node, parts)

    def _joined(self, node: OnnxNode, parts: Sequence[_Channels]) -> _Channels | None:
        """Return the channels of a sum or Concat of tensors with channels on one axis."""
        axis = parts[0].axis
        if node.op == "Concat" and node.attributes.get("axis", 0) % len(self._graph.shape(node.outputs[0])) == axis:
            return _Channels(axis, np.concatenate([part.ids for part in parts]))
        return self._summed(parts) if node.op in ("Add", "Sub", "Concat") else None

    def _gated(self, node: OnnxNode, read: Sequence[str], channels: Sequence[_Channels | None]) -> _Channels | None:
        """Return the channels of a product's data; those of its gate stay fixed."""
        after = self._graph.shape(node.outputs[0])
        gates = [place for place in (1, 0) if self._graph.shape(read[1 - place]) == after]
        passed = channels[1 - gates[0]] if gates else None
        if passed is None or read[0] == read[1]:
            return None
        self._fix(read[gates[0]])
        return passed

    def _summed(self, parts: Sequence[_Channels]) -> _Channels | None:
        """Return the channels of tensors that are added, or joined along another axis: all have one class."""
        first = parts[0]
        if any(len(part.ids) != len(first.ids) for part in parts):
            return None
        for part in parts[1:]:
            self._join(first.ids, part.ids)
        return first


def _parts(ids: Ids) -> Ids:
    """Return the classes of each channel's parts (C, parts), of channels that lie first."""
    return ids.reshape(len(ids), math.prod(ids.shape[1:]))


def _second(ids: Ids, axis: int) -> Ids | None:
    """Return the class of each channel of the second axis; None if one has several, or if they lie elsewhere."""
    parts = _parts(ids)
    return parts[:, 0] if axis == 1 and np.array_equal(parts, np.broadcast_to(parts[:, :1], parts.shape)) else None


def _is_parted(channels: _Channels | None) -> bool:
    """Tell whether classes lie along several axes."""
    return channels is not None and channels.ids.ndim > 1


def _reshaped(channels: _Channels, before: Sequence[int], after: Sequence[int]) -> _Channels | None:
    """Return the channels behind a Reshape: along the axes on which they differ, the second one if they do nowhere."""
    if math.prod(after) == 0:
        return None
    every = np.broadcast_to(channels.whole(len(before)), before).reshape(after)
    axes = [axis for axis in range(len(after)) if np.any(every != every.take([0], axis))] or [1][: len(after) - 1]
    return _Channels(axes[0], _along(every, axes)) if axes else None


def _along(ids: Ids, axes: Sequence[int]) -> Ids:
    """Return classes along the axes from the first to the last one given."""
    return ids[tuple(slice(None) if axes[0] <= axis <= axes[-1] else 0 for axis in range(ids.ndim))]


_MOVES: dict[str, Callable[[_Finder, OnnxNode, _Channels], _Channels | None]] = {
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"), _Finder._pooled),
    "Clip": _Finder._clip,
    "DepthToSpace": _Finder._spread,
    "Expand": _Finder._expanded,
    "Gather": _Finder._gathered,
    "Pad": _Finder._padded,
    "Resize": _Finder._resized,
    "Slice": _Finder._sliced,
    "Transpose": _Finder._transposed,
}
"""Operators that move, join or clip channels, and how they do."""
