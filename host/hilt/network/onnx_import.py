"""The import of a quantised ONNX model as an integer graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.counted_sums import with_counted_sums
from hilt.network.elementwise import expression, int8_steps, neutral_factor, roots_of, tabulate
from hilt.network.fixed_products import with_fixed_products
from hilt.network.graph import Graph, Node, Tensor, check
from hilt.network.import_layers import IntegerNode, LayerMatcher
from hilt.network.integer_forms import with_integer_forms
from hilt.network.integer_norms import with_integer_norms
from hilt.network.joined_order import with_whole_blocks_first
from hilt.network.multiplied_steps import with_multiplied_steps
from hilt.network.onnx_graph import CONSTANT_DOMAIN, OnnxError, OnnxGraph, OnnxNode, free_name
from hilt.network.onnx_pixels import channels_of, factors_of, pixels_of
from hilt.network.onnx_recurrence import int8_weights
from hilt.network.onnx_refusals import require_computable
from hilt.network.onnx_simplify import fixed_model, read_fixed
from hilt.network.postponed import with_postponed_floats
from hilt.network.qdq_view import QdqView, Quantised

_REASONS = {
    "dequantize": "it leaves the integers",
    "pad": "it only moves data",
    "pixel_table": "it reads bytes",
    "quantize": "it reads floats",
    "reshape": "it only moves data",
    "slice": "it only moves data",
    "softmax": "it leaves the integers",
    "transpose": "it only moves data",
}
_PACKED_RANK = 6
"""The rank of tensors in VTA's layout, by which operators know them."""
_TURNS = frozenset(("Concat", "DepthToSpace", "Expand", "Pad", "Resize", "Slice", "Transpose"))
"""Moves that cost the processor something."""


def import_model(
    path: Path, shapes: Mapping[str, Sequence[int]] | None = None, values: Mapping[str, float] | None = None
) -> Graph:
    """Return a quantised model's integer graph.

    Args:
        path: A QDQ model with power-of-two scales, as `hilt quantize` writes it.
        shapes: Shapes of inputs that the model leaves open.
        values: Inputs that become constants.

    Raises:
        OnnxError: The file is no such model, or holds an operator that neither VTA nor the processor computes.
    """
    return import_graph(read_fixed(path, shapes, values))


def import_proto(model: Any, name: str) -> Graph:
    """Return the integer graph of a ModelProto: see import_model."""
    return import_graph(fixed_model(model, name))


def import_graph(graph: OnnxGraph) -> Graph:
    """Return the integer graph of a fixed graph: see import_model."""
    if not any(node.op == "QuantizeLinear" for node in graph.nodes):
        raise OnnxError(f"{graph.name} is not quantised; run `hilt quantize` on it first")
    require_computable(graph)
    return _Importer(graph).build()


class _Importer:
    """The graph in the making."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph = graph
        self._view = QdqView(graph)
        self._matcher = LayerMatcher(self._view)
        self._roots = roots_of(self._graph)
        self._nodes: list[Node] = []
        self._tensors: dict[str, Tensor] = {}
        self._constants: dict[str, NDArray[Any]] = {}
        self._named_constants: dict[int, str] = {}
        """The names of integer constants by the arrays' identity."""
        self._readers = graph.consumers()
        self._moved: dict[tuple[str, int], str] = {}
        """The int8 tensors of floats that are moved, by the floats and the exponent."""
        self._floats: dict[str, str] = {}
        self._renamed: dict[str, str] = {}
        self._names: set[str] = set()

    def build(self) -> Graph:
        graph = self._graph
        for name in graph.inputs:
            self._tensors[name] = self._tensor(name)
        for node in graph.nodes:
            if node.op == "QuantizeLinear" and node.inputs[0] not in graph.constants:
                self._quantise(node)
        outputs = tuple(self._output(name) for name in graph.outputs)
        built = Graph(graph.name, tuple(graph.inputs), outputs, tuple(self._nodes), self._tensors, self._constants)
        built = with_counted_sums(with_integer_forms(replace(built, decibels=dict(graph.decibels))))
        built = with_fixed_products(with_integer_norms(with_postponed_floats(built)))
        built = with_whole_blocks_first(with_multiplied_steps(built))
        check(built)
        return built

    def _output(self, name: str) -> str:
        """Return the tensor of one of the model's outputs."""
        producer = self._view.producers.get(name)
        if producer is not None and producer.op == "QuantizeLinear":
            return self._renamed.get(name, name)
        return self._float(name)

    def _tensor(self, name: str, dtype: str = "", scale: float | None = None) -> Tensor:
        return Tensor(name, self._graph.shape(name), dtype or self._graph.dtypes.get(name, "float32"), scale)

    def _quantise(self, node: OnnxNode) -> None:
        """Emit the node that makes the int8 tensor of a QuantizeLinear."""
        source, result = node.inputs[0], node.outputs[0]
        exponent = self._view.exponent(node)
        same = self._view.activation(source)
        if same is not None and same.exponent == exponent:
            self._renamed[result] = self._renamed.get(same.name, same.name)
            return
        made = self._pixels(node, exponent) or self._matcher.match(source, exponent)
        if made is None:
            made = self._table(source, 2.0**-exponent) or self._matcher.match_move(source, exponent)
        if made is None:
            made = self._by_channel(source, 2.0**-exponent)
        if made is None and self._is_turned(source, exponent):
            made = self._matcher.moved(source, lambda name: self._int8_of(name, exponent))
        self._tensors[result] = Tensor(result, self._graph.shape(source), "int8", 2.0**-exponent)
        if made is None:
            attributes = {"scale": 2.0**-exponent}
            made = IntegerNode("quantize", f"{source}.quantize", [self._float(source)], attributes, [node.name])
        self._emit(made, [result])

    def _pixels(self, node: OnnxNode, exponent: int) -> IntegerNode | None:
        """Return a look-up of bytes that floats depend on, or the transpose of one that it emits; None of others."""
        source, scale = node.inputs[0], 2.0**-exponent
        found = pixels_of(self._graph, source, self._view.producers)
        if found is None:
            return None
        entries, names = int8_steps(found.values, scale), [*found.nodes, node.name]
        made = IntegerNode(
            "pixel_table", f"{source}.pixels", [found.source], {"axis": found.axis}, names, {1: ("table", entries)}
        )
        if found.perm == tuple(range(len(found.perm))):
            return made
        pixels = self._unique_tensor(f"{source}.pixels")
        self._tensors[pixels] = Tensor(pixels, self._graph.shape(found.source), "int8", scale)
        self._emit(made, [pixels])
        return IntegerNode("transpose", f"{source}.transpose", [pixels], {"perm": list(found.perm)}, [])

    def _by_channel(self, name: str, scale: float) -> IntegerNode | None:
        """Return a look-up for an expression of one int8 tensor and of constants by channel; None of others."""

        def scale_of(each: str) -> float | None:
            leaf = self._view.activation(each)
            return None if leaf is None else 2.0**-leaf.exponent

        found = channels_of(self._graph, name, self._view.producers, scale_of)
        leaf = None if found is None else self._view.activation(found.source)
        if found is None or leaf is None:
            return None
        names = [*found.nodes]
        if found.axis == 1 and 2 <= len(found.perm) < _PACKED_RANK and (factors := factors_of(found.values / scale)):
            kept = {1: ("factors", factors.steps)}
            attributes = {"left": factors.left} | ({"offset": factors.offset} if factors.offset else {})
            return IntegerNode("prelu", names[-1], [leaf.name], attributes, names, kept)
        entries, reason = int8_steps(found.values, scale), "each of its channels has a table of its own"
        constants = {1: ("table", entries)}
        return IntegerNode("pixel_table", names[-1], [leaf.name], {"axis": found.axis}, names, constants, reason)

    def _is_turned(self, name: str, exponent: int) -> bool:
        """Tell whether floats are moved or repeated, and only int8 of a scale follows: int8 moves less.

        Cuts of a tensor that is more than twice as large are left, for all of it would be quantised.
        """
        maker = self._view.producers.get(name)
        if maker is None or maker.domain or not self._ends_in_int8(name, exponent):
            return False
        sources = self._graph.computed_inputs(maker)
        sizes = [math.prod(self._graph.shape(each)) for each in (*sources, name)]
        if sum(sizes[:-1]) > 2 * sizes[-1]:
            return False
        if maker.op == "Reshape":
            return self._is_tabulated(maker.inputs[0]) or self._is_turned(maker.inputs[0], exponent)
        return maker.op in _TURNS

    def _ends_in_int8(self, name: str, exponent: int) -> bool:
        """Tell whether all that reads a tensor moves it, if anything, and quantises it with one scale."""
        readers = self._readers.get(name, [])
        if not readers or name in self._graph.outputs:
            return False
        return all(
            self._view.exponent(reader) == exponent
            if reader.op == "QuantizeLinear"
            else not reader.domain
            and reader.op in _TURNS | {"Reshape"}
            and self._ends_in_int8(reader.outputs[0], exponent)
            for reader in readers
        )

    def _int8_of(self, source: str, exponent: int) -> str:
        """Return the int8 tensor of floats, emitting its node."""
        leaf = self._view.activation(source)
        if leaf is not None and leaf.exponent == exponent:
            return self._renamed.get(leaf.name, leaf.name)
        if (source, exponent) not in self._moved:
            made = None
            if self._is_turned(source, exponent):
                made = self._matcher.moved(source, lambda name: self._int8_of(name, exponent))
            made = made or self._table(source, 2.0**-exponent)
            if made is None:
                attributes = {"scale": 2.0**-exponent}
                made = IntegerNode("quantize", f"{source}.quantize", [self._float(source)], attributes, [])
            result = self._unique_tensor(f"{source}.int8")
            self._tensors[result] = Tensor(result, self._graph.shape(source), "int8", 2.0**-exponent)
            self._emit(made, [result])
            self._moved[source, exponent] = result
        return self._moved[source, exponent]

    def _unique_tensor(self, stem: str) -> str:
        return free_name(stem, {*self._tensors, *self._graph.shapes, *self._graph.constants})

    def _table(self, name: str, scale: float | None) -> IntegerNode | None:
        """Return a table for an expression of one int8 tensor, with int8 entries of `scale` or else float32 ones."""
        root = self._roots.get(name, name)
        leaf = self._view.activation(root)
        if leaf is None or (scale is None and root == name):
            return None
        nodes = expression(self._graph, name, root, self._view.producers)
        entries: NDArray[Any] = tabulate(self._graph, nodes, root, name, 2.0**-leaf.exponent)
        if scale is not None:
            entries = int8_steps(entries, scale)
        label = nodes[-1].name if nodes else f"{name}.rescale"
        return IntegerNode("table", label, [leaf.name], {}, [node.name for node in nodes], {1: ("table", entries)})

    def _emit(self, made: IntegerNode, outputs: list[str]) -> None:
        name = self._unique(made.name)
        inputs = [self._renamed.get(source, source) for source in made.inputs]
        for place, (kind, value) in sorted(made.constants.items()):
            inputs += [""] * (place + 1 - len(inputs))
            inputs[place] = self._named_constants.setdefault(id(value), f"{name}.{kind}")  # layers may share weights
            self._constants[inputs[place]] = value
        reason = made.reason or _REASONS.get(made.op, "")
        self._nodes.append(
            Node(name, made.op, tuple(inputs), tuple(outputs), made.attributes, tuple(made.source), reason)
        )

    def _unique(self, stem: str) -> str:
        name, number = stem, 1
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name

    def _float(self, wanted: str) -> str:
        """Return the tensor that holds a float value, emitting all that it still needs, in order."""
        pending = [wanted]
        while pending:
            name = pending[-1]
            missing = [] if self._ready(name) else self._missing(name)
            if missing:
                pending += missing
                continue
            pending.pop()
            if not self._ready(name):
                self._emit_float(name)
        return self._floats.get(wanted, wanted)

    def _ready(self, name: str) -> bool:
        return name in self._floats or name in self._tensors or name in self._constants

    def _missing(self, name: str) -> list[str]:
        """Return the float tensors that must be there before one can be made."""
        if name in self._graph.constants or self._view.quantised(name) is not None:
            return []
        if self._is_tabulated(name):
            return []
        node = self._view.producers[name]
        if self._softmax_leaf(node) is not None:
            return []
        read = [source for place, source in enumerate(node.inputs) if place not in self._int8_weights(node)]
        return [source for source in read if source and not self._ready(source)]

    def _int8_weights(self, node: OnnxNode) -> dict[int, NDArray[Any]]:
        """Return the int8 weights and scales of a recurrent operator by their places; none of other operators."""
        return int8_weights(self._graph, node, self._view.producers) or {}

    def _is_tabulated(self, name: str) -> bool:
        return name in self._roots and self._view.activation(self._roots[name]) is not None

    def _emit_float(self, name: str) -> None:
        graph = self._graph
        if name in graph.constants:
            self._constants[name] = graph.constants[name]
            return
        leaf = self._view.quantised(name)
        if leaf is not None and leaf.constant is not None:
            along = [-1 if axis == leaf.axis else 1 for axis in range(leaf.constant.ndim)]
            shape = along if len(leaf.exponents) > 1 else ()
            steps = np.array([2.0**-exponent for exponent in leaf.exponents], np.float32).reshape(shape)
            self._constants[name] = leaf.constant.astype(np.float32) * steps
            return
        if leaf is not None:
            self._tensors[name] = self._tensor(name, "float32")
            made = IntegerNode("dequantize", f"{name}.dequantize", [leaf.name], {"scale": 2.0**-leaf.exponent}, [])
            self._emit(made, [name])
            return
        table = self._table(name, None) if self._is_tabulated(name) else None
        if table is not None:
            self._tensors[name] = self._tensor(name, "float32")
            self._emit(table, [name])
            return
        self._emit_operator(self._view.producers[name])

    def _softmax_leaf(self, node: OnnxNode) -> tuple[Quantised, float] | None:
        """Return the int8 tensor that a Softmax or LogSoftmax reads, and the size of its steps; None if it has none.

        Between them may be a Reshape, positive factors, and constants, which change no softmax.
        """
        if node.domain or node.op not in ("Softmax", "LogSoftmax"):
            return None
        source, factor = node.inputs[0], 1.0
        while (leaf := self._view.activation(source)) is None:
            maker = self._view.producers.get(source)
            number = None if maker is None else neutral_factor(self._graph, maker)
            if maker is None or number is None:
                return None
            source, factor = maker.inputs[0], factor * number
        return leaf, 2.0**-leaf.exponent * factor

    def _emit_softmax(self, node: OnnxNode, leaf: Quantised, step: float) -> None:
        """Emit a softmax of int8: it has 256 different powers at most."""
        shape = self._graph.shape(node.inputs[0])
        axis = int(node.attributes.get("axis", -1)) % len(shape) - len(shape)
        attributes = {
            "axis": axis, "scale": step, "logarithm": int(node.op == "LogSoftmax"), "shape": list(shape)
        }  # fmt: skip
        data, before = leaf.name, self._graph.shape(leaf.name)
        if (axis != -1 and before != shape) or before[-1:] != shape[-1:]:  # not along the same lines
            data = self._unique_tensor(f"{node.name}.shaped")
            self._tensors[data] = Tensor(data, shape, "int8", 2.0**-leaf.exponent)
            self._emit(IntegerNode("reshape", data, [leaf.name], {"shape": list(shape)}, [node.name]), [data])
        self._tensors[node.outputs[0]] = self._tensor(node.outputs[0])
        self._emit(IntegerNode("softmax", node.name, [data], attributes, [node.name]), list(node.outputs))

    def _emit_operator(self, node: OnnxNode) -> None:
        """Emit one of ONNX's operators for the processor."""
        read = self._softmax_leaf(node)
        if read is not None:
            self._emit_softmax(node, *read)
            return
        op = "Identity" if node.domain == CONSTANT_DOMAIN else node.op
        attributes = {
            key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in node.attributes.items()
        }
        for output in node.outputs:
            if output:
                self._tensors[output] = self._tensor(output)
        inputs = [self._floats.get(source, source) for source in node.inputs]
        name = self._unique(node.name)
        for place, value in self._int8_weights(node).items():
            inputs += [""] * (place + 1 - len(inputs))
            inputs[place] = f"{name}.{place}"
            self._constants[inputs[place]] = value
        reason = f"{op} is computed in floats"
        self._nodes.append(Node(name, op, tuple(inputs), tuple(node.outputs), attributes, (node.name,), reason))
