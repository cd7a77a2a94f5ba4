"""LSTM as its steps: the products are layers for VTA, and the gates' functions and the cell state stay in floats.

A recurrence reads its weights again for each step. Where they are larger than the processor's cache, VTA is faster: it
multiplies them while it loads them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes, new_constant, reshape_node, slice_node
from hilt.network.onnx_layouts import cancel_layouts
from hilt.network.onnx_recurrence import takes_int8
from hilt_runtime.operators_recurrent import PEEPHOLES

_MOST_STEPS = 64
"""Steps of all directions that are written out."""
_LEAST_BYTES = 512 << 10
"""Bytes of a recurrence in int8 from which on it is written out: those of the smallest cache of a board's cores."""
_FLAT = {"Sigmoid": 8.0, "Tanh": 4.0}
"""From where on a gate's function is within 7e-4 of its bound."""
_GATES = ("input", "output", "forget", "cell")
"""In ONNX's order."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Unrolled:
    """A float graph with recurrences written out.

    Attributes:
        graph: The graph.
        nodes: The names of the recurrences.
        cells: The nodes of the gates' functions and the cells' states, which stay in floats.
    """

    graph: OnnxGraph
    nodes: tuple[str, ...]
    cells: tuple[str, ...]


def unrolled(graph: OnnxGraph, kept: Collection[str]) -> Unrolled | None:
    """Return a canonical float graph with its large LSTMs as steps; None if it has none beside the nodes `kept`."""
    chosen = [node.name for node in graph.nodes if node.name not in kept and _is_large(graph, node)]
    if not chosen:
        return None
    made = replace(graph, outputs=list(graph.outputs), nodes=[], constants=dict(graph.constants))
    made.shapes, made.dtypes = dict(graph.shapes), dict(graph.dtypes)
    cells: list[str] = []
    for node in graph.nodes:
        copy = OnnxNode(node.name, node.op, list(node.inputs), list(node.outputs), dict(node.attributes), node.domain)
        if node.name in chosen:
            cells += _Unroller(made, copy).write()
        else:
            made.nodes.append(copy)
    cancel_layouts(made)
    infer_shapes(made)
    there = {node.name for node in made.nodes}
    return Unrolled(made, tuple(chosen), tuple(name for name in cells if name in there))


def _is_large(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether a node is an LSTM of few steps with large constant weights, and without peepholes."""
    if node.op != "LSTM" or not takes_int8(graph, node) or graph.constants[node.inputs[2]].size <= _LEAST_BYTES:
        return False
    if any(node.inputs[PEEPHOLES:]):
        return False
    bias, directions = node.inputs[3] if len(node.inputs) > 3 else "", graph.shape(node.inputs[2])[0]
    steps = directions * math.prod(graph.shape(node.inputs[0])[:2])
    return (not bias or bias in graph.constants) and steps <= _MOST_STEPS


@dataclass
class _State:
    """A direction's hidden state and cell state; None is zero."""

    hidden: str | None
    cell: str | None


class _Unroller:
    """Writes the steps of one LSTM."""

    def __init__(self, graph: OnnxGraph, node: OnnxNode) -> None:
        self._graph, self._node = graph, node
        self._weights, self._recurrence = (graph.constants[name] for name in node.inputs[1:3])
        self._steps, self._batch, depth = graph.shape(node.inputs[0])
        self._size = self._recurrence.shape[2]
        self._cells: list[str] = []
        self._rows = self._name("rows", (self._steps * self._batch, depth))
        shape = (self._steps * self._batch, depth)
        graph.nodes.append(reshape_node(graph, f"{node.name}.rows", node.inputs[0], self._rows, shape))

    def write(self) -> list[str]:
        """Add all nodes; return the names of those of the cells' states."""
        directions = {"reverse": [True], "bidirectional": [False, True]}.get(
            self._node.attributes.get("direction", "forward"), [False]
        )
        hidden: list[dict[int, str]] = []
        states: list[_State] = []
        for place, backwards in enumerate(directions):
            state = _State(self._initial(5, place), self._initial(6, place))
            hidden.append(self._direction(place, backwards, state))
            states.append(state)
        self._outputs(hidden, states)
        return self._cells

    def _name(self, stem: str, shape: tuple[int, ...]) -> str:
        name = self._graph.unique(f"{self._node.name}.{stem}")
        self._graph.shapes[name], self._graph.dtypes[name] = shape, "float32"
        return name

    def _add(
        self, stem: str, op: str, inputs: list[str], columns: int, attributes: dict[str, Any] | None = None
    ) -> str:
        """Add a node, whose result (N, columns) is named as the node is."""
        name = self._name(stem, (self._batch, columns))
        self._graph.nodes.append(OnnxNode(name, op, inputs, [name], attributes or {}))
        return name

    def _initial(self, place: int, direction: int) -> str | None:
        """Return the state (N, hidden) that a direction begins with."""
        name = self._node.inputs[place] if len(self._node.inputs) > place else ""
        if not name or (name in self._graph.constants and not self._graph.constants[name].any()):
            return None
        if name in self._graph.constants:
            return new_constant(self._graph, f"{name}.{direction}", self._graph.constants[name][direction])
        source = name
        if self._weights.shape[0] > 1:
            source = self._slice(f"start{place}.{direction}", name, direction, 1)
        made = self._name(f"begin{place}.{direction}", (self._batch, self._size))
        self._graph.nodes.append(reshape_node(self._graph, made, source, made, (self._batch, self._size)))
        return made

    def _slice(self, stem: str, source: str, first: int, count: int) -> str:
        """Add a Slice of the first axis."""
        made = self._name(stem, (count, *self._graph.shape(source)[1:]))
        self._graph.nodes.append(slice_node(self._graph, made, source, made, {0: (first, first + count)}))
        return made

    def _direction(self, place: int, backwards: bool, state: _State) -> dict[int, str]:
        """Add the steps of a direction; return the hidden state behind each."""
        entered = [self._entered(place, gate) for gate in range(len(_GATES))]
        matrices = [
            new_constant(self._graph, f"{self._node.name}.{place}.{name}_recurrence", rows)
            for name, rows in zip(_GATES, np.split(self._recurrence[place], len(_GATES)), strict=True)
        ]
        order = range(self._steps - 1, -1, -1) if backwards else range(self._steps)
        return {step: self._step(f"{place}.{step}", step, state, entered, matrices) for step in order}

    def _entered(self, place: int, gate: int) -> str:
        """Add the product of all data with a gate's weights, and its bias."""
        size, stem = self._size, f"{place}.{_GATES[gate]}"
        rows = slice(gate * size, (gate + 1) * size)
        weights = new_constant(self._graph, f"{self._node.name}.{stem}_weights", self._weights[place, rows])
        bias = np.zeros(size, np.float32)
        if len(self._node.inputs) > 3 and self._node.inputs[3]:
            data, recurrent = np.split(self._graph.constants[self._node.inputs[3]][place], 2)
            bias = data[rows] + recurrent[rows]
        inputs = [self._rows, weights, new_constant(self._graph, f"{self._node.name}.{stem}_bias", bias)]
        made = self._name(f"{stem}_data", (self._steps * self._batch, size))
        self._graph.nodes.append(OnnxNode(made, "Gemm", inputs, [made], {"transB": 1}))
        return made

    def _step(self, stem: str, step: int, state: _State, entered: list[str], matrices: list[str]) -> str:
        """Add one step; it changes the state. Return the hidden state."""
        gates = []
        for name, data, matrix in zip(_GATES, entered, matrices, strict=True):
            part = data
            if self._steps > 1:
                part = self._slice(f"{stem}.{name}_part", data, step * self._batch, self._batch)
            if state.hidden is not None:
                product = self._add(f"{stem}.{name}_product", "Gemm", [state.hidden, matrix], self._size, {"transB": 1})
                part = self._add(f"{stem}.{name}_sum", "Add", [product, part], self._size)
            gates.append(self._activated(f"{stem}.{name}", "Tanh" if name == "cell" else "Sigmoid", part))
        enter, leave, forget, fresh = gates
        cell = self._cell(f"{stem}.added", "Mul", enter, fresh)
        if state.cell is not None:
            cell = self._cell(f"{stem}.state", "Add", self._cell(f"{stem}.kept", "Mul", forget, state.cell), cell)
        state.cell = cell
        state.hidden = self._cell(f"{stem}.hidden", "Mul", leave, self._cell(f"{stem}.bounded", "Tanh", cell))
        return state.hidden

    def _activated(self, stem: str, op: str, source: str) -> str:
        """Add a gate's function of a clipped sum: int8 has finer steps where the function is not flat."""
        bounds = [
            new_constant(self._graph, f"{self._node.name}.{stem}_{end}", np.array(sign * _FLAT[op], np.float32))
            for end, sign in (("least", -1), ("most", 1))
        ]
        return self._cell(stem, op, self._add(f"{stem}_clipped", "Clip", [source, *bounds], self._size))

    def _cell(self, stem: str, op: str, *inputs: str) -> str:
        """Add a node that stays in floats."""
        name = self._add(stem, op, list(inputs), self._size)
        self._cells.append(name)
        return name

    def _outputs(self, hidden: list[dict[int, str]], states: list[_State]) -> None:
        """Add the nodes of the LSTM's outputs: all hidden states (T, directions, N, hidden), and the last states."""
        graph, node = self._graph, self._node
        directions, batch, size = len(hidden), self._batch, self._size
        rows = [self._joined(f"{step}.both", [each[step] for each in hidden], 1) for step in range(self._steps)]
        whole = self._joined("all", rows, 0)
        parted = self._name("parted", (self._steps, batch, directions, size))
        graph.nodes.append(reshape_node(graph, parted, whole, parted, (self._steps, batch, directions, size)))
        graph.nodes.append(OnnxNode(node.name, "Transpose", [parted], [node.outputs[0]], {"perm": [0, 2, 1, 3]}))
        for place, kind in ((1, "hidden"), (2, "cell")):
            if len(node.outputs) > place and node.outputs[place]:
                last = [str(getattr(state, kind)) for state in states]
                joined = self._joined(f"last_{kind}", last, 0)
                shape = (directions, batch, size)
                graph.nodes.append(
                    reshape_node(graph, f"{node.name}.last_{kind}.shape", joined, node.outputs[place], shape)
                )

    def _joined(self, stem: str, parts: list[str], axis: int) -> str:
        if len(parts) == 1:
            return parts[0]
        shape = list(self._graph.shape(parts[0]))
        shape[axis] *= len(parts)
        made = self._name(stem, tuple(shape))
        self._graph.nodes.append(OnnxNode(made, "Concat", parts, [made], {"axis": axis}))
        return made
