"""Reads QuantizeLinear and DequantizeLinear: which tensors are int8, with which power-of-two scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxError, OnnxGraph, OnnxNode

_NUMBERED = {0: "uint8", 3: "int8"}
"""ONNX's numbers of integer types, as `output_dtype` has them."""
_TYPES = {"QuantizeLinear": ("int8",), "DequantizeLinear": ("int8", "int32")}
_LARGEST_INPUT = 127
"""The largest number that an input of int8 adds to a product's data; two make up an even one."""
_MOST_ADDED_TO_MEAN = 1 << 14
"""The most steps of its result that an average adds."""


def offset_steps(value: float, exponent: int) -> int | None:
    """Return a number that a product adds, in steps of 2^-exponent; None if VTA cannot add it."""
    steps = value * 2.0**exponent
    if not steps.is_integer() or abs(steps) > (_LARGEST_INPUT if steps % 2 else 2 * _LARGEST_INPUT):
        return None
    return int(steps)


def mean_offset_steps(value: float, exponent: int) -> int | None:
    """Return a number that an average adds, in steps of 2^-exponent; None if it cannot."""
    steps = value * 2.0**exponent
    return int(steps) if steps.is_integer() and abs(steps) <= _MOST_ADDED_TO_MEAN else None


@dataclass(frozen=True)
class Quantised:
    """The integer tensor behind a dequantised one.

    Attributes:
        name: The integer tensor.
        exponents: k of its scale 2^-k: one, or one for each place along an axis.
        constant: Its values where it is a constant.
        axis: The axis of its exponents, if there are several.
    """

    name: str
    exponents: tuple[int, ...]
    constant: NDArray[Any] | None = None
    axis: int = 0

    @property
    def exponent(self) -> int:
        """Return the one exponent of an activation."""
        return self.exponents[0]


class QdqView:
    """A fixed graph with queries for its tensors in integers."""

    def __init__(self, graph: OnnxGraph) -> None:
        """Read a fixed graph, which must not change afterwards."""
        self.graph = graph
        self.producers = graph.producers()

    def quantised(self, name: str) -> Quantised | None:
        """Return the integer tensor that a float tensor is dequantised from; None if it is a float one.

        Raises:
            OnnxError: Its scale is no power of two, or its zero point is not 0.
        """
        node = self.producers.get(name)
        if node is None or node.op != "DequantizeLinear" or node.domain not in ("", "com.microsoft"):
            return None
        constant = self.graph.constants.get(node.inputs[0])
        rank = 0 if constant is None else constant.ndim
        axis = node.attributes.get("axis", 1) % rank if rank > 1 else 0
        if constant is not None and node.attributes.get("block_size", 0):
            raise OnnxError(f"node {node.label} has scales by block; run `hilt quantize` on the model")
        return Quantised(node.inputs[0], self._exponents(node), constant, axis)

    def activation(self, name: str) -> Quantised | None:
        """Return the same for tensors that are no constants and have one scale."""
        leaf = self.quantised(name)
        return None if leaf is None or leaf.constant is not None or len(leaf.exponents) > 1 else leaf

    def exponent(self, node: OnnxNode) -> int:
        """Return k of the scale of a QuantizeLinear."""
        exponents = self._exponents(node)
        if len(exponents) > 1:
            raise OnnxError(f"node {node.label} has a scale by channel; run `hilt quantize` on the model")
        return exponents[0]

    def _kind(self, node: OnnxNode) -> str:
        """Return the integers' type of a node without a zero point, which is 0 then."""
        if node.op == "QuantizeLinear":
            return _NUMBERED.get(node.attributes.get("output_dtype", 0), "uint8")
        values = self.graph.constants.get(node.inputs[0])
        if values is not None:
            return str(values.dtype)
        producer = self.producers.get(node.inputs[0])
        if producer is not None and producer.op == "QuantizeLinear" and not producer.inputs[2:3]:
            return self._kind(producer)
        return self.graph.dtypes.get(node.inputs[0], "uint8")

    def _exponents(self, node: OnnxNode) -> tuple[int, ...]:
        scale = self.graph.constants.get(node.inputs[1])
        if scale is None:
            raise OnnxError(f"node {node.label} has a scale that is computed; run `hilt quantize` on the float model")
        zero = self.graph.constants.get(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
        kind = self._kind(node) if zero is None else str(zero.dtype)
        if kind not in _TYPES[node.op] or (zero is not None and np.any(zero != 0)):
            text = kind if zero is None else f"{kind} {zero.ravel()[:1].tolist()}"
            raise OnnxError(
                f"node {node.label} has the zero point {text}, and VTA needs int8 and 0; "
                "run `hilt quantize` on the model"
            )
        exponents = []
        for value in scale.astype(np.float64).ravel():
            mantissa, exponent = math.frexp(value)
            if mantissa != 0.5:
                raise OnnxError(
                    f"node {node.label} has the scale {value:.6g}, which is no power of two; "
                    "run `hilt quantize` on the model"
                )
            exponents.append(1 - exponent)
        return tuple(exponents)
