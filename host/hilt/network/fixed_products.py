"""Products of two computed matrices in fixed point, where one of them is of int8: attention's.

A MatMul of floats takes a Cortex-A9 five times as long: its sums are in double. Here each row of the other matrix is
rounded to steps of a power of two, 2^13 or more to its largest value, and sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hilt.network.graph import Graph, Node
from hilt.network.graph_rewrite import GraphRewrite
from hilt.network.linear_floats import LinearFloats, linear_floats
from hilt_runtime.fixed_point import MOST_DEPTH, MOST_OFFSET

_LEAST_ROWS = 4
"""A matrix of fewer rows or columns stays in floats: converting a row takes as long as multiplying it."""
_LEAST_PRODUCTS = 4096
_REASON = "both its matrices are computed; the processor multiplies in fixed point"
_NEAR_WHOLE = 1e-3
"""Steps that an offset may be from a whole number: the floats of a table are rounded."""


@dataclass(frozen=True)
class _Form:
    """A product's operands: floats (..., rows, depth), and the int8 matrix whose lines they are multiplied with.

    Attributes:
        data: The floats.
        lines: The int8 tensor (..., depth, columns) where it `is_turned`, else (..., columns, depth).
        turned: 1 where the product is (..., columns, rows).
    """

    data: str
    lines: LinearFloats
    is_turned: bool
    turned: int


def with_fixed_products(graph: Graph) -> Graph:
    """Return a graph with the same outputs, but for the rounding of such products."""
    return _Rewriter(graph).rewritten()


class _Rewriter(GraphRewrite):
    """The products of a graph, in fixed point."""

    def rewritten(self) -> Graph:
        nodes: list[Node] = []
        merged: set[str] = set()
        for node in self._graph.nodes:
            form = self._form(node) if node.op == "MatMul" else None
            if form is None:
                nodes.append(node)
                continue
            made, quantiser = self._nodes(node, form)
            nodes += made
            merged.update(quantiser)
        return self._of_nodes(node for node in nodes if node.name not in merged)

    def _form(self, node: Node) -> _Form | None:
        """Return how a MatMul is computed in fixed point; None if it is not."""
        shapes = [self._shape(name) for name in node.inputs]
        if any(len(shape) < 2 for shape in shapes):
            return None
        rows, (depth, columns) = shapes[0][-2], shapes[1][-2:]
        if min(rows, columns) < _LEAST_ROWS or rows * depth * columns < _LEAST_PRODUCTS or depth > MOST_DEPTH:
            return None
        left, right = node.inputs
        lines = self._int8(right)
        if lines is not None:
            return _Form(left, lines, True, 0)
        lines, data = self._int8(left), self._turned(right)
        return None if lines is None or data is None else _Form(data, lines, False, 1)

    def _shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a computed tensor; () of a constant."""
        tensor = self._graph.tensors.get(name)
        return () if tensor is None else tuple(tensor.shape)

    def _int8(self, name: str) -> LinearFloats | None:
        """Return the int8 tensor whose multiples the floats are, a whole number added; None of other floats."""
        floats = linear_floats(self._graph, self._producers.get(name))
        whole = floats is not None and abs(floats.offset - round(floats.offset)) < _NEAR_WHOLE
        return floats if floats is not None and whole and abs(floats.offset) <= MOST_OFFSET else None

    def _turned(self, name: str) -> str | None:
        """Return the floats that a tensor is, with its last two axes exchanged; None if it is not made so."""
        maker = self._producers.get(name)
        if maker is None or maker.op != "Transpose":
            return None
        rank = len(self._shape(name))
        perm = list(maker.attributes.get("perm", range(rank)[::-1]))
        return maker.inputs[0] if perm == _exchanged(list(range(rank))) else None

    def _nodes(self, node: Node, form: _Form) -> tuple[list[Node], list[str]]:
        """Return the nodes of a product, and the name of the node behind it that it does the work of."""
        made: list[Node] = []
        lines = form.lines.data
        if form.is_turned:
            lines, turn = self._lines(node, lines)
            made += turn
        attributes: dict[str, Any] = {"scale": form.lines.scale, "turned": form.turned}
        if round(form.lines.offset):
            attributes["offset"] = round(form.lines.offset)
        outputs, source, merged = node.outputs, node.source, list[str]()
        readers = self._readers.get(node.outputs[0], ())
        if len(readers) == 1 and readers[0].op == "quantize" and node.outputs[0] not in self._graph.outputs:
            attributes["step"] = readers[0].attributes["scale"]
            outputs, source, merged = readers[0].outputs, (*node.source, *readers[0].source), [readers[0].name]
        made.append(Node(node.name, "fixed_matmul", (form.data, lines), outputs, attributes, source, _REASON))
        return made, merged

    def _lines(self, node: Node, name: str) -> tuple[str, list[Node]]:
        """Return an int8 tensor with its last two axes exchanged, and the node that makes it, if one is needed."""
        maker, rank = self._producers.get(name), len(self._graph.tensors[name].shape)
        source, perm = name, list(range(rank))
        if maker is not None and maker.op == "transpose":
            source, perm = maker.inputs[0], list(maker.attributes["perm"])
        perm = _exchanged(perm)
        if perm == sorted(perm):
            return source, []
        tensor = self._graph.tensors[source]
        made = self._new_tensor(f"{node.name}.lines", replace(tensor, shape=tuple(tensor.shape[axis] for axis in perm)))
        reason = "it only moves data"
        return made, [Node(made, "transpose", (source,), (made,), {"perm": perm}, node.source, reason)]


def _exchanged(perm: list[int]) -> list[int]:
    return [*perm[:-2], perm[-1], perm[-2]]
