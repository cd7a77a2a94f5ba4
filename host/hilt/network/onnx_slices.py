"""Slices of a Concat's operands as the operands themselves: detection heads join what they part again.

A YOLO head joins boxes and classes of each scale, the scales, and then cuts boxes and classes apart. Joined, they share
a scale that fits neither; apart, each keeps its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, reshape_node


@dataclass(frozen=True)
class _Range:
    """The elements [start, end) of an axis."""

    axis: int
    start: int
    end: int


def part_joined(graph: OnnxGraph) -> None:
    """Rewrite in place: each tensor that only Slices read, all of whole operands of the Concats behind it."""
    changed = True
    while changed:
        changed = any(_parted(graph, name, readers) for name, readers in graph.consumers().items())
    graph.remove_unused()


def _parted(graph: OnnxGraph, name: str, readers: Sequence[OnnxNode]) -> bool:
    """Let the Slices that read a tensor take their parts from in front of its Concats; return whether they can."""
    parts = _parts(graph, name, readers)
    if not parts:
        return False
    made = {id(reader): nodes for reader, (nodes, _) in zip(readers, parts, strict=True)}
    graph.nodes = [each for node in graph.nodes for each in made.get(id(node), [node])]
    for reader, (_, source) in zip(readers, parts, strict=True):
        graph.replace(reader.outputs[0], source)
    return True


def _parts(graph: OnnxGraph, name: str, readers: Sequence[OnnxNode]) -> list[tuple[list[OnnxNode], str]]:
    """Return for each Slice of a tensor the nodes that make its part, and the part; none if one is no such Slice."""
    ranges = [_range(graph, reader) for reader in readers]
    if name in graph.outputs or name in graph.constants or any(each is None for each in ranges):
        return []
    producers, consumers = graph.producers(), graph.consumers()
    made: list[tuple[list[OnnxNode], str]] = []
    for reader, part in zip(readers, ranges, strict=True):
        parter = _Parter(graph, producers, consumers)
        source = None if part is None or reader.outputs[0] in graph.outputs else parter.part(name, part)
        if source is None:
            return []
        made.append((parter.nodes, source))
    return made


def _range(graph: OnnxGraph, node: OnnxNode) -> _Range | None:
    """Return the range of a Slice of one axis in steps of one; None of any other node."""
    if node.op != "Slice" or node.domain or len(node.inputs) < 4:
        return None
    given = [graph.constants[name] for name in node.inputs[1:] if name in graph.constants]
    if len(given) < len(node.inputs) - 1 or any(value.size != 1 for value in given):
        return None
    start, end, axis, *step = (int(value.ravel()[0]) for value in given)
    shape = graph.shape(node.inputs[0])
    axis %= len(shape)
    begin, stop, _ = slice(start, end).indices(shape[axis])
    return None if step not in ([], [1]) or stop <= begin else _Range(axis, begin, stop)


@dataclass
class _Parter:
    """Writes the nodes that make a part of a tensor."""

    graph: OnnxGraph
    producers: Mapping[str, OnnxNode]
    consumers: Mapping[str, Sequence[OnnxNode]]
    nodes: list[OnnxNode] = field(default_factory=list)

    def part(self, name: str, part: _Range, inner: bool = False) -> str | None:
        """Return the tensor with a part of a tensor; None if a Concat must be cut within an operand."""
        maker = self.producers.get(name)
        if maker is None or not self._can_go(name, inner) or maker.domain:
            return None
        if maker.op == "Reshape":
            return self._reshaped(name, maker, part)
        return self._of_concat(name, maker, part) if maker.op == "Concat" else None

    def _can_go(self, name: str, inner: bool) -> bool:
        """Return whether a tensor is no output, and (an inner one) is read once at most."""
        return name not in self.graph.outputs and not (inner and len(self.consumers.get(name, ())) > 1)

    def _of_concat(self, name: str, maker: OnnxNode, part: _Range) -> str | None:
        axis = int(maker.attributes["axis"]) % len(self.graph.shape(name))
        if axis == part.axis:
            return self._operands(name, maker, part)
        parts = [self.part(each, part, inner=True) for each in maker.inputs]
        return None if None in parts else self._joined(name, [each for each in parts if each], axis, part)

    def _reshaped(self, name: str, maker: OnnxNode, part: _Range) -> str | None:
        before, after = self.graph.shape(maker.inputs[0]), self.graph.shape(name)
        if before[: part.axis + 1] != after[: part.axis + 1]:
            return None
        source = self.part(maker.inputs[0], part, inner=True)
        if source is None:
            return None
        shape = (*after[: part.axis], part.end - part.start, *after[part.axis + 1 :])
        made = self._new(name, shape, part)
        self.nodes.append(reshape_node(self.graph, f"{made}.reshape", source, made, shape))
        return made

    def _operands(self, name: str, maker: OnnxNode, part: _Range) -> str | None:
        """Return the operands that a range of the joined axis covers."""
        ends = np.cumsum([0, *(self.graph.shape(each)[part.axis] for each in maker.inputs)]).tolist()
        if part.start not in ends or part.end not in ends:
            return None
        chosen = maker.inputs[ends.index(part.start) : ends.index(part.end)]
        return chosen[0] if len(chosen) == 1 else self._joined(name, chosen, part.axis, part)

    def _joined(self, name: str, inputs: Sequence[str], axis: int, part: _Range) -> str:
        shape = list(self.graph.shape(name))
        shape[part.axis] = part.end - part.start
        made = self._new(name, tuple(shape), part)
        self.nodes.append(OnnxNode(f"{made}.concat", "Concat", list(inputs), [made], {"axis": axis}))
        return made

    def _new(self, name: str, shape: tuple[int, ...], part: _Range) -> str:
        made = self.graph.unique(f"{name}.{part.start}_{part.end}")
        self.graph.shapes[made] = shape
        self.graph.dtypes[made] = self.graph.dtypes.get(name, "float32")
        return made
