"""The regions of a float graph: tensors that become int8, nodes that fuse, and tensors that share one scale."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from hilt.network.elementwise import root_of
from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt.network.onnx_means import MEANS, has_whole_windows
from hilt.network.onnx_resize import interpolation_of
from hilt.network.quantize.powers import find_powers
from hilt.network.quantize.tabled import find_tabled

LAYERS = frozenset(("Conv", "ConvTranspose", "Gemm"))
MAXIMA = frozenset(("MaxPool", "GlobalMaxPool"))
MOVES = MAXIMA | {"Reshape", "Transpose", "Concat", "Slice", "DepthToSpace", "Pad", "Resize", "Expand", "Gather"}
"""Operators whose int8 results have the scale of their input."""
_COMBINING = MEANS | {"Add", "Mul"}
_MOST_AXES = 5
"""Tensors with more have their channels twice, as VTA packs them."""
_OFFSET_BITS, _OFFSET_BITS_OF_MEANS = 8, 14
"""Significant bits of a constant that a product adds to its data, or to its result, in whole steps; of one that an
average adds to its result."""


@dataclass
class LayerRegion:
    """A convolution or dense layer with the operators that fuse into it.

    Attributes:
        node: The Conv, ConvTranspose or Gemm.
        output: The tensor that leaves the region.
        residual: The tensor that is added to the sums; empty if there is none.
    """

    node: OnnxNode
    output: str
    residual: str = ""

    @property
    def data(self) -> str:
        """Return the tensor that the layer reads."""
        return self.node.inputs[0]


@dataclass
class Regions:
    """The plan of a quantisation.

    Attributes:
        layers: Convolutions and dense layers, in order.
        tensors: The tensors that become int8, in the order in which they are made.
        groups: The representative of each int8 tensor's group; tensors of one group share a scale.
        adds: Outputs of unfused additions, with the two tensors that each reads.
        products: The same of products, the data before its factor; each adds constants to its data and its result.
        bends: The int8 results of PRelus with slopes by channel, with the tensor that each reads.
        means: The int8 results of averages.
        shifted: The floats between a product and the int8 tensors that constants are added to, or make of it, and those
            between such a PRelu, or an average, and its int8 result.
        offsets: These constants, by int8 tensor.
        ends: The int8 tensors that the caller reads, or operators that compute floats.
        moved: The tensors that an operator moves, in int8, from others.
    """

    layers: list[LayerRegion] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    adds: dict[str, tuple[str, str]] = field(default_factory=dict)
    products: dict[str, tuple[str, str]] = field(default_factory=dict)
    bends: dict[str, str] = field(default_factory=dict)
    means: set[str] = field(default_factory=set)
    shifted: set[str] = field(default_factory=set)
    offsets: dict[str, float] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)
    moved: set[str] = field(default_factory=set)

    def members(self, group: str) -> list[str]:
        """Return the tensors of a group."""
        return [name for name in self.tensors if self.groups[name] == group]


def find_regions(graph: OnnxGraph, kept: Collection[str] = ()) -> Regions:
    """Return the plan for a canonical graph, whose nodes named in `kept` stay in float.

    A tensor becomes int8 if a layer makes it. It does so too if a layer further on depends on it and every operator
    between can be computed on int8, and if it is a maximum over windows of such a tensor. Other tensors after the last
    layer stay float, and powers whose root is taken.
    """
    return _Finder(graph, kept).find()


class _Finder:
    """The state of find_regions."""

    def __init__(self, graph: OnnxGraph, kept: Collection[str]) -> None:
        self._graph = graph
        self._kept = kept
        self._consumers = graph.consumers()
        self._producers = graph.producers()
        self._on_int8: set[int] = set()
        self._powers = find_powers(graph, MOVES)
        self._able = self._able_tensors()
        self._needed = self._needed_tensors()
        self._regions = Regions()
        self._inner: set[str] = set()

    def find(self) -> Regions:
        chosen = set(self._able) & set(self._needed)
        for node in self._graph.nodes:
            if self._is_layer(node) and node.inputs[0] in self._able:
                chosen.add(node.inputs[0])
                self._regions.layers.append(LayerRegion(node, self._activated(node.outputs[0])))
        self._fuse_residuals(chosen)
        chosen.update(layer.output for layer in self._regions.layers)
        chosen.update(self._pooled(chosen))
        self._drop_inner(chosen)
        self._drop_shifted(chosen)
        self._regions.tensors = [name for name in self._names() if name in chosen]
        self._regions.moved = {node.outputs[0] for node in self._graph.nodes if self._moves(node, chosen)}
        self._note_pairs(chosen)
        self._group(chosen)
        inside = chosen | self._inner
        self._regions.ends = [name for name in self._regions.tensors if self._leaves(name, inside)]
        return self._regions

    def _pooled(self, chosen: set[str]) -> set[str]:
        """Return the maxima of images of int8 that floats alone read: the same values, and fewer to be read back."""
        found: set[str] = set()
        for node in self._graph.nodes:
            if node.op in MAXIMA and id(node) in self._on_int8 and node.inputs[0] in chosen | found:
                found.add(node.outputs[0])
        return found

    def _names(self) -> list[str]:
        return [*self._graph.inputs, *(name for node in self._graph.nodes for name in node.outputs)]

    def _is_layer(self, node: OnnxNode) -> bool:
        graph = self._graph
        if node.domain or node.op not in LAYERS or node.name in self._kept:
            return False
        weights, bias = graph.constants.get(node.inputs[1]), set(filter(None, node.inputs[2:3]))
        if weights is None or not bias <= graph.constants.keys():
            return False
        if node.op == "Gemm":
            return not node.attributes.get("transA", 0) and bool(node.attributes.get("transB", 0))
        return weights.ndim == 4 and graph.dtypes.get(node.inputs[0], "float32") == "float32"

    def _is_head(self, node: OnnxNode) -> bool:
        """Tell whether a node is a dense layer that stays in float: few numbers, which are read back in int8."""
        return node.op == "Gemm" and not node.domain and node.name in self._kept

    def _able_tensors(self) -> set[str]:
        """Return the float tensors that can be int8: the inputs, and the results of int8 operators on such tensors.

        A layer may read any float tensor: where an operator that only floats can compute makes it, it is quantised, in
        front of a border. So is the tensor of a costly function, unless a node that stays in float makes it.
        """
        graph = self._graph
        kept = {name for node in graph.nodes if node.name in self._kept for name in node.outputs}
        given = (set(map(self._entering, graph.inputs)) | find_tabled(graph)) - self._powers - kept
        able = {name for name in given if graph.dtypes.get(name) == "float32" and len(graph.shapes[name]) > 1}
        roots: dict[str, str] = {}
        for node in graph.nodes:
            able.update({node.inputs[0]} - kept if node.op == "Pad" and self._is_border(node) else ())
            if self._is_layer(node):
                able.update((node.inputs[0], node.outputs[0]))
            elif self._computes_int8(node, able, roots):
                self._on_int8.add(id(node))
                able.add(node.outputs[0])
        return able

    def _entering(self, name: str) -> str:
        """Return an input, or its product with a number that alone reads it: quantising multiplies, too."""
        reader = self._only_reader(name)
        value = self._graph.constants.get(reader.inputs[1]) if reader is not None and reader.op == "Mul" else None
        return reader.outputs[0] if reader is not None and value is not None and value.size == 1 else name

    def _computes_int8(self, node: OnnxNode, able: set[str], roots: dict[str, str]) -> bool:
        """Tell whether a node can read and write int8."""
        if node.domain or node.name in self._kept or self._graph.dtypes.get(node.outputs[0]) != "float32":
            return False
        if node.outputs[0] in self._powers:
            return False
        read = self._graph.computed_inputs(node)
        if not read or not able.issuperset(read):
            return False
        root = root_of(self._graph, node, roots)
        if root is not None:
            roots[node.outputs[0]] = root
            return True
        return len(node.outputs) == 1 and (self._bends(node) or self._moves_or_combines(node, len(read)))

    def _bends(self, node: OnnxNode) -> bool:
        """Tell whether a node is a PRelu with constant slopes by channel: int8 multiplies by them."""
        if node.op != "PRelu" or node.inputs[1] not in self._graph.constants:
            return False
        slopes, rank = self._graph.constants[node.inputs[1]], len(self._graph.shape(node.outputs[0]))
        axes = [axis + rank - slopes.ndim for axis, size in enumerate(slopes.shape) if size > 1]
        return axes == [1] and rank <= _MOST_AXES

    def _moves_or_combines(self, node: OnnxNode, read: int) -> bool:
        """Tell whether a node of `read` computed inputs is an operator that int8 has."""
        if node.op in MOVES:
            return self._moves_int8(node)
        return node.op in _COMBINING and read == (2 if node.op in ("Add", "Mul") else 1) and self._plain_pool(node)

    def _moves_int8(self, node: OnnxNode) -> bool:
        """Tell whether a moving operator gives int8 the same results as floats."""
        constants = [self._graph.constants[name] for name in node.inputs if name in self._graph.constants]
        if node.op == "Resize":
            nearest = node.attributes.get("mode", "nearest") == "nearest"
            return nearest or interpolation_of(self._graph, node) is not None
        if node.op == "Pad":
            filled = any(value.dtype.kind == "f" and np.any(value != 0) for value in constants)
            return node.attributes.get("mode", "constant") != "constant" or not filled or self._is_border(node)
        return not any(value.dtype.kind == "f" for value in constants) and self._plain_pool(node)

    def _is_border(self, pad: OnnxNode) -> bool:
        """Tell whether layers alone read a Pad with a constant: its value counts for the scale as the data's do."""
        readers = self._consumers.get(pad.outputs[0], [])
        return pad.outputs[0] not in self._graph.outputs and all(
            self._is_layer(reader) and reader.inputs[0] == pad.outputs[0] for reader in readers
        )

    def _plain_pool(self, node: OnnxNode) -> bool:
        """Tell whether a pool is of images, and its windows are all whole."""
        if node.op == "GlobalMaxPool":
            return len(self._graph.shape(node.inputs[0])) == 4
        return node.op not in ("MaxPool", "AveragePool") or has_whole_windows(self._graph, node)

    def _needed_tensors(self) -> set[str]:
        """Return the tensors that a layer depends on through operators on int8."""
        needed: set[str] = set()
        for node in reversed(self._graph.nodes):
            if self._is_layer(node):
                needed.add(node.inputs[0])
            elif self._is_head(node):
                needed.add(self._root(node.inputs[0]))
            elif id(node) in self._on_int8 and node.outputs[0] in needed:
                needed.update(self._graph.computed_inputs(node))
        return needed

    def _root(self, name: str) -> str:
        """Return the tensor that a function of one tensor is computed from, or the tensor itself."""
        maker = self._producers.get(name)
        root = None if maker is None else root_of(self._graph, maker, {})
        return name if root is None else self._root(root)

    def _only_reader(self, name: str) -> OnnxNode | None:
        readers = self._consumers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self._graph.outputs else None

    def _activated(self, name: str) -> str:
        """Return the tensor after the Relu or Clip that alone reads a tensor, or the tensor itself."""
        reader = self._only_reader(name)
        while reader is not None and self._is_clip(reader):
            name = reader.outputs[0]
            reader = self._only_reader(name)
        return name

    def _is_clip(self, node: OnnxNode) -> bool:
        return node.op == "Relu" or (
            node.op == "Clip" and all(not name or name in self._graph.constants for name in node.inputs[1:])
        )

    def _fuse_residuals(self, chosen: set[str]) -> None:
        """Let the later of an addition's layers take the other operand into its sums."""
        taken: set[int] = set()
        ready = self._with_moved(chosen | {layer.output for layer in self._regions.layers})
        for layer in reversed(self._regions.layers):
            reader = self._only_reader(layer.output)
            if reader is None or reader.op != "Add" or id(reader) in taken:
                continue
            other = reader.inputs[1 - reader.inputs.index(layer.output)]
            if layer.output != layer.node.outputs[0] or other not in ready or other == layer.output:
                continue
            if self._graph.shape(other) != self._graph.shape(layer.output):
                continue
            taken.add(id(reader))
            layer.residual = other
            layer.output = self._activated(reader.outputs[0])
            self._choose(other, chosen)

    def _with_moved(self, ready: set[str]) -> set[str]:
        """Return tensors with those that operators only move from them: int8 costs them nothing more."""
        found = set(ready)
        for node in self._graph.nodes:
            if node.op in MOVES and id(node) in self._on_int8 and found.issuperset(self._graph.computed_inputs(node)):
                found.add(node.outputs[0])
        return found

    def _choose(self, name: str, chosen: set[str]) -> None:
        """Let a tensor be int8, and those that it is moved from."""
        while name not in chosen:
            chosen.add(name)
            maker = self._producers.get(name)
            if maker is None or maker.op not in MOVES:
                return
            for source in self._graph.computed_inputs(maker):
                self._choose(source, chosen)

    def _drop_inner(self, chosen: set[str]) -> None:
        """Keep the tensors within a fused layer, or within an expression of one tensor, float."""
        for layer in self._regions.layers:
            name = layer.node.outputs[0]
            self._inner.add(name)
            while name != layer.output:
                chosen.discard(name)
                name = self._consumers[name][0].outputs[0]
                self._inner.add(name)
        roots = self._roots(chosen)
        for name, root in roots.items():
            readers = self._consumers.get(name, [])
            alone = readers and all(roots.get(reader.outputs[0]) == root for reader in readers)
            if alone and name not in self._graph.outputs:
                chosen.discard(name)
                self._inner.add(name)

    def _roots(self, chosen: set[str]) -> dict[str, str]:
        """Return the chosen tensor that each chosen one is an expression of, but for results of layers."""
        roots: dict[str, str] = {}
        outputs = {layer.output for layer in self._regions.layers} | set(self._graph.inputs)
        for node in self._graph.nodes:
            if node.outputs[0] in outputs or node.outputs[0] not in chosen:
                continue
            root = root_of(self._graph, node, roots)
            if root is not None and root in chosen:
                roots[node.outputs[0]] = root
        return roots

    def _drop_shifted(self, chosen: set[str]) -> None:
        """Keep the numbers that a product adds to its data and to its result float: the product takes them up.

        A PRelu with slopes by channel, and an average, do so with those that are added to their results.
        """
        for node in self._graph.nodes:
            is_product = node.op == "Mul" and len(self._graph.computed_inputs(node)) == 2
            if id(node) in self._on_int8 and (is_product or node.op in MEANS or self._bends(node)):
                self._note_behind(node, chosen)
            if id(node) in self._on_int8 and is_product:
                self._note_in_front(node, chosen)
        chosen -= self._regions.shifted
        self._inner |= self._regions.shifted

    def _note_behind(self, node: OnnxNode, chosen: set[str]) -> None:
        """Note the floats that a node makes if they are an int8 tensor, but for a constant."""
        reader = self._only_reader(node.outputs[0])
        if reader is not None and reader.outputs[0] in chosen:
            bits = _OFFSET_BITS_OF_MEANS if node.op in MEANS else _OFFSET_BITS
            self._note_offset(reader, node.outputs[0], reader.outputs[0], bits)

    def _note_in_front(self, product: OnnxNode, chosen: set[str]) -> None:
        """Note the floats that a product reads if they are an int8 tensor, but for a constant."""
        data = product.inputs[self._data_place(product)]
        maker = self._producers.get(data)
        if maker is not None and self._only_reader(data) is product:
            for source in chosen.intersection(maker.inputs):
                self._note_offset(maker, data, source)

    def _note_offset(self, node: OnnxNode, floats: str, integers: str, bits: int = _OFFSET_BITS) -> None:
        """Note floats between an operator and an int8 tensor if a node adds a scalar of few `bits` there."""
        values = [self._graph.constants[name] for name in node.inputs if name in self._graph.constants]
        if node.op != "Add" or node.domain or len(values) != 1 or values[0].size != 1:
            return
        value = float(values[0].reshape(()))
        if (math.frexp(value)[0] * 2**bits).is_integer():
            self._regions.shifted.add(floats)
            self._regions.offsets[integers] = value

    def _data_place(self, product: OnnxNode) -> int:
        """Return which input of a product has the result's shape, the first one if both do."""
        return 0 if self._graph.shape(product.inputs[0]) == self._graph.shape(product.outputs[0]) else 1

    def _note_pairs(self, chosen: set[str]) -> None:
        """Note the additions and products of two int8 tensors, and the PRelus and averages of one."""
        for node in self._graph.nodes:
            if node.op == "Add" and node.outputs[0] in chosen and not self._fused(node):
                self._note_pair(self._regions.adds, node.outputs[0], (node.inputs[0], node.inputs[1]), chosen)
            elif node.op == "Mul" and node.outputs[0] in chosen | self._regions.shifted:
                self._note_product(node, chosen)
            elif id(node) in self._on_int8:
                self._note_one(node, chosen)

    def _note_one(self, node: OnnxNode, chosen: set[str]) -> None:
        """Note a PRelu or an average of one int8 tensor."""
        if self._bends(node) and chosen.issuperset((node.inputs[0], *node.outputs)):
            self._regions.bends[node.outputs[0]] = node.inputs[0]
        elif node.op in MEANS:
            self._regions.means |= chosen & {*node.outputs, *self._behind_shifted(node.outputs[0])}

    def _behind_shifted(self, name: str) -> list[str]:
        """Return the int8 tensor behind floats that a constant is added to; none of other tensors."""
        return self._consumers[name][0].outputs if name in self._regions.shifted else []

    def _note_pair(self, pairs: dict[str, tuple[str, str]], made: str, read: tuple[str, str], chosen: set[str]) -> None:
        if chosen.issuperset(read) and read[0] != read[1]:
            pairs[made] = read

    def _note_product(self, node: OnnxNode, chosen: set[str]) -> None:
        made, place = node.outputs[0], self._data_place(node)
        data, factor = node.inputs[place], node.inputs[1 - place]
        if made in self._regions.shifted:
            made = self._consumers[made][0].outputs[0]
        if data in self._regions.shifted:
            (data,) = self._graph.computed_inputs(self._producers[data])
        self._note_pair(self._regions.products, made, (data, factor), chosen)

    def _fused(self, node: OnnxNode) -> bool:
        return any(layer.output == node.outputs[0] and layer.residual for layer in self._regions.layers)

    def _group(self, chosen: set[str]) -> None:
        """Give the tensors on both sides of a moving operator one group."""
        parent = {name: name for name in self._regions.tensors}

        def find(name: str) -> str:
            while parent[name] != name:
                name = parent[name]
            return name

        for node in self._graph.nodes:
            if node.op in MOVES and node.outputs[0] in chosen:
                for name in node.inputs:
                    if name in chosen:
                        parent[find(node.outputs[0])] = find(name)
        self._regions.groups = {name: find(name) for name in self._regions.tensors}

    def _moves(self, node: OnnxNode, chosen: set[str]) -> bool:
        """Tell whether a node moves int8 tensors. A Concat that reads a float as well joins floats."""
        read = self._graph.computed_inputs(node)
        return node.op in MOVES and id(node) in self._on_int8 and chosen.issuperset((*read, *node.outputs))

    def _leaves(self, name: str, inside: set[str]) -> bool:
        """Tell whether the caller reads a tensor, or an operator that computes floats of it.

        Floats that are moved to an int8 tensor again, from a Resize between pixels say, do not leave.
        """
        return name in self._graph.outputs or any(
            node.op not in MOVES or self._leaves(output, inside)
            for node in self._consumers.get(name, [])
            for output in node.outputs
            if output not in inside
        )
