"""Normalizations of int8 that a layer made: they are computed from the integers, and the quantisation behind them too.

As floats they take the processor five times as long: a look-up, two sums in double, and the quantisation. The
result does not change where all elements are moved or scaled alike, so the integers give it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node
from hilt.network.graph_rewrite import GraphRewrite
from hilt.network.linear_floats import linear_floats
from hilt_runtime.integer_norm import MOST_COUNTED, are_normal

_REASON = "a normalization; the processor sums its integers"
_MOST_FLOAT = float(np.finfo(np.float32).max)
_RANKS = range(2, 6)
_VIEWS = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "reshape"))
_OPERATORS = ("InstanceNormalization", "LayerNormalization")


def with_integer_norms(graph: Graph) -> Graph:
    """Return a graph with the same outputs, but for the rounding of such normalizations."""
    return _Rewriter(graph).rewritten()


@dataclass
class _Norm:
    """A normalization in the making, and the nodes behind it that it does the work of.

    Attributes:
        images: With means over `groups` of channels and their pixels; 0 where each pixel has a mean of its own.
        groups: Of channels; 0 where each pixel has a mean.
        factors: Each channel's factor, and its number that is added behind it: float64 (2, C).
        output: The tensor that it makes.
        merged: Names of its nodes.
        source: Of the ONNX nodes that it stands for.
        limits: Least and largest result; None: not limited.
        step: Of the int8 result; None of floats.
        turned: Tells whether the data is an image (N, C, ...) whose channels a transpose puts last; not behind a view.
        back: Tells whether a transpose behind it that puts them second again is among its nodes.
    """

    images: int
    groups: int
    factors: NDArray[np.float64]
    output: str
    merged: list[str]
    source: tuple[str, ...]
    limits: tuple[float, float] | None = None
    step: float | None = None
    turned: bool = False
    back: bool = False

    @property
    def axis(self) -> int:
        """Return the axis of the result's channels."""
        return 1 if self.images or self.back else -1

    def in_steps(self) -> tuple[NDArray[np.float32], list[float]]:
        """Return factors and limits of the result in its own steps."""
        low, high = self.limits or (-_MOST_FLOAT, _MOST_FLOAT)
        if self.step is None:
            return self.factors.astype(np.float32), [low, high]
        steps = np.rint(np.clip(np.array([low, high]) / self.step, -128, 127))
        return (self.factors / self.step).astype(np.float32), [float(each) for each in steps]


class _Rewriter(GraphRewrite):
    """The normalizations of a graph, from integers."""

    def rewritten(self) -> Graph:
        nodes: list[Node] = []
        merged: set[str] = set()
        for node in self._graph.nodes:
            norm = self._begun(node) if node.op in _OPERATORS else None
            made = self._nodes(node, self._followed(norm)) if norm else None
            if norm is None or made is None:
                nodes.append(node)
                continue
            nodes += made
            merged.update(norm.merged)
        if not merged:
            return self._graph
        return self._of_nodes(node for node in nodes if node.name not in merged or node.op == "normalization")

    # --- The form ---

    def _begun(self, node: Node) -> _Norm | None:
        """Return a normalization alone; None of a form that is not computed from integers."""
        shape = self._tensors[node.inputs[0]].shape
        if len(shape) not in _RANKS or len(node.outputs) != 1:
            return None
        if node.op == "InstanceNormalization":
            images, channels, counted = shape[0], shape[1], math.prod(shape[2:])
        else:
            images, channels, counted = 0, shape[-1], shape[-1]
            if int(node.attributes.get("axis", -1)) not in (-1, len(shape) - 1):
                return None
        factors = self._factors(node, channels)
        if factors is None or not 0 < counted <= MOST_COUNTED:
            return None
        turned = not images and self._turn_of(node) is not None
        return _Norm(
            images, channels if images else 0, factors, node.outputs[0], [node.name], node.source, turned=turned
        )

    def _turn_of(self, node: Node) -> Node | None:
        """Return the transpose that puts an image's channels last in front of a normalization; None of others."""
        floats = linear_floats(self._graph, self._producers.get(node.inputs[0]))
        maker = None if floats is None else self._producers.get(floats.data)
        if maker is None or maker.op != "transpose":
            return None
        rank = len(self._tensors[maker.outputs[0]].shape)
        return maker if list(maker.attributes["perm"]) == [0, *range(2, rank), 1] else None

    def _factors(self, node: Node, channels: int) -> NDArray[np.float64] | None:
        """Return an ONNX normalization's factors of channels and the numbers that are added; None if computed."""
        factors = np.stack([np.ones(channels), np.zeros(channels)])
        for row, name in zip(factors, filter(None, node.inputs[1:]), strict=False):
            constant = self._graph.constants.get(name)
            if constant is None or constant.shape != (channels,):
                return None
            row[:] = constant
        return factors

    def _followed(self, norm: _Norm) -> _Norm:
        """Add the nodes behind a normalization that compute each element by its channel, up to a quantisation.

        A transpose of the int8 may follow.
        """
        while norm.output not in self._graph.outputs:
            readers = self._readers[norm.output]
            takes = self._takes if norm.step is None else self._turns_back
            if len(readers) != 1 or not takes(norm, readers[0]):
                break
            norm.merged.append(readers[0].name)
            norm.source += readers[0].source
            norm.output = readers[0].outputs[0]
        return norm

    def _takes(self, norm: _Norm, node: Node) -> bool:
        """Tell whether a normalization does the work of the node behind it, and add it."""
        if node.op == "quantize":
            norm.step = float(np.float32(node.attributes["scale"]))
            return True
        if node.op in ("Relu", "Clip"):
            limits = self._limits(node)
            if limits is not None:
                low, high = norm.limits or limits
                norm.limits = (min(max(low, limits[0]), limits[1]), min(max(high, limits[0]), limits[1]))
            return limits is not None
        if node.op in ("Mul", "Add") and norm.limits is None:
            return self._scales(norm, node)
        if node.op in ("Mul", "Add"):
            return self._stretches(norm, node)
        if node.op in _VIEWS:
            norm.turned = False  # the axes behind it are others
            return not norm.back and node.inputs[0] == norm.output
        return self._turns_back(norm, node)

    def _turns_back(self, norm: _Norm, node: Node) -> bool:
        """Tell whether a transpose puts the channels of a turned image second again, and note it."""
        rank = len(self._tensors[node.outputs[0]].shape)
        wanted = [0, rank - 1, *range(1, rank - 1)]
        if (
            node.op not in ("transpose", "Transpose")
            or not norm.turned
            or norm.back
            or list(node.attributes.get("perm", ())) != wanted
        ):
            return False
        norm.back = True
        return True

    def _limits(self, node: Node) -> tuple[float, float] | None:
        """Return the least and largest result of a Relu or Clip; None if one is computed, or 0 is not between them."""
        if node.op == "Relu":
            return 0.0, _MOST_FLOAT
        bounds = [self._graph.constants.get(name) for name in node.inputs[1:]]
        if len(bounds) != 2 or any(bound is None or bound.size != 1 for bound in bounds):
            return None
        low, high = (float(np.asarray(bound).reshape(())) for bound in bounds)
        return (low, high) if -_MOST_FLOAT <= low <= 0 <= high <= _MOST_FLOAT else None

    def _scales(self, norm: _Norm, node: Node) -> bool:
        """Tell whether a node is a product with, or a sum of, constants of the channels, and add it."""
        values = self._by_channel(norm, node)
        if values is None:
            return False
        norm.factors = np.repeat(norm.factors, len(values) // norm.factors.shape[1], axis=1)
        if node.op == "Mul":
            norm.factors *= values
        else:
            norm.factors[1] += values
        return True

    def _stretches(self, norm: _Norm, node: Node) -> bool:
        """Tell whether a node is a product of limited results with one positive number, or a sum with one, and add it.

        0 has to stay between the limits.
        """
        values = self._by_channel(norm, node)
        if values is None or norm.limits is None or values.min() != values.max() or abs(values[0]) > _MOST_FLOAT:
            return False
        factor, added = (float(values[0]), 0.0) if node.op == "Mul" else (1.0, float(values[0]))
        low, high = (limit * factor + added for limit in norm.limits)
        if factor <= 0 or not low <= 0 <= high:
            return False
        norm.factors *= factor
        norm.factors[1] += added
        norm.limits = max(low, -_MOST_FLOAT), min(high, _MOST_FLOAT)
        return True

    def _by_channel(self, norm: _Norm, node: Node) -> NDArray[np.float64] | None:
        """Return a value a channel, of as many channels as a node's constant tells apart; None of other operands."""
        constants = [self._graph.constants[name] for name in node.inputs if name in self._graph.constants]
        shape, channels = self._tensors[norm.output].shape, norm.factors.shape[1]
        if len(constants) != 1 or shape != self._tensors[node.outputs[0]].shape:
            return None
        constant = constants[0].astype(np.float64)
        if constant.size == 1:
            return np.full(channels, constant.reshape(()))
        axis = norm.axis % len(shape)
        if len(shape) not in _RANKS or (*[1] * (len(shape) - constant.ndim), *constant.shape)[axis] != constant.size:
            return None
        if norm.images:
            fits = shape[0] == norm.images and constant.size % channels == 0
        else:
            fits = constant.size == channels
        return constant.reshape(-1) if fits else None

    # --- The nodes ---

    def _nodes(self, node: Node, norm: _Norm) -> list[Node] | None:
        """Return the nodes of a normalization; None if it has to be computed from floats."""
        floats = linear_floats(self._graph, self._producers.get(node.inputs[0]))
        if floats is None:
            return None
        epsilon = float(node.attributes.get("epsilon", 1e-5)) / floats.scale**2
        factors, clip = norm.in_steps()
        factors[0] *= np.sign(floats.scale)
        if not are_normal(factors, epsilon):
            return None
        made: list[Node] = []
        data = self._laid_out(node, norm, floats.data, made)
        shape = self._tensors[data].shape
        attributes: dict[str, Any] = {"axis": norm.axis % len(shape), "groups": norm.groups}
        attributes |= {"epsilon": epsilon, "rounded": int(norm.step is not None), "clip": clip}
        result = norm.output
        if shape != self._tensors[result].shape:
            result = self._new_tensor(f"{node.name}.normal", replace(self._tensors[result], shape=shape))
        name = self._new_constant(f"{node.name}.factors", factors)
        made.append(Node(node.name, "normalization", (data, name), (result,), attributes, norm.source, _REASON))
        if result != norm.output:
            made.append(self._reshape(result, norm.output, norm.source))
        return made

    def _laid_out(self, node: Node, norm: _Norm, source: str, made: list[Node]) -> str:
        """Return the int8 tensor (N, C, ...) of a normalization; add the node that makes it, if one is needed."""
        turn = self._turn_of(node) if norm.back else None
        if turn is not None:
            return turn.inputs[0]
        if not norm.images:
            return source
        maker = self._producers.get(source)
        before = [maker.inputs[0]] if maker is not None and maker.op == "reshape" else []
        wanted = (norm.images, norm.factors.shape[1])
        for name in (*before, source):
            if self._tensors[name].shape[:2] == wanted and len(self._tensors[name].shape) in _RANKS:
                return name
        tensor = self._tensors[source]
        shape = (*wanted, tensor.size // math.prod(wanted))
        name = self._new_tensor(f"{node.name}.channels", replace(tensor, shape=shape))
        made.append(self._reshape(source, name, norm.source))
        return name

    def _reshape(self, data: str, result: str, source: tuple[str, ...]) -> Node:
        shape = [int(size) for size in self._tensors[result].shape]
        return Node(f"{result}.shaped", "reshape", (data,), (result,), {"shape": shape}, source, "it only moves data")
