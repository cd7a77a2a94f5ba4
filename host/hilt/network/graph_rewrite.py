"""The state of a rewrite of an integer graph: where its tensors are made and read, and the additions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from hilt.network.graph import Graph, Node, Tensor, without_unread
from hilt.network.onnx_graph import free_name


class GraphRewrite:
    """A graph in its new form; a subclass chooses the nodes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._producers = graph.producer()
        self._readers = graph.consumers()
        self._tensors: dict[str, Tensor] = dict(graph.tensors)
        self._constants: dict[str, NDArray[Any]] = dict(graph.constants)

    def _new_tensor(self, stem: str, tensor: Tensor) -> str:
        """Add a tensor like another; return its name, which is `stem` if that is free."""
        name = self._free(stem)
        self._tensors[name] = replace(tensor, name=name)
        return name

    def _new_constant(self, stem: str, value: NDArray[Any]) -> str:
        """Add a constant; return its name, which is `stem` if that is free."""
        name = self._free(stem)
        self._constants[name] = value
        return name

    def _free(self, stem: str) -> str:
        return free_name(stem, self._tensors.keys() | self._constants.keys())

    def _of_nodes(self, nodes: Iterable[Node]) -> Graph:
        """Return the graph of these nodes, without those that nobody reads."""
        whole = replace(self._graph, nodes=tuple(nodes), tensors=self._tensors, constants=self._constants)
        return without_unread(whole)
