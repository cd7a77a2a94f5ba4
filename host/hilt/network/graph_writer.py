"""Nodes, tensors and constants of a rewritten graph, with names that the old one does not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node


class GraphWriter:
    """Collects the nodes of a new graph, in order, beside the tensors and constants of the old one.

    Attributes:
        nodes: Those that were added.
        tensors: By name.
        constants: By name.
    """

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.tensors, self.constants = dict(graph.tensors), dict(graph.constants)
        self._names = {*graph.tensors, *graph.constants, *(node.name for node in graph.nodes)}

    def name(self, wanted: str) -> str:
        """Return a name that nothing has yet."""
        while wanted in self._names:
            wanted += "_"
        self._names.add(wanted)
        return wanted

    def tensor(self, name: str, like: str, channels: int) -> str:
        """Add a tensor as another one, but for its channels; return its name."""
        name, tensor = self.name(name), self.tensors[like]
        self.tensors[name] = replace(tensor, name=name, shape=(tensor.shape[0], channels, *tensor.shape[2:]))
        return name

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant; return its name."""
        name = self.name(name)
        self.constants[name] = np.ascontiguousarray(value)
        return name
