"""The integer graph of a network: the operators on VTA and on the processor beside it, with exact semantics.

Operators with lower-case names are integer operators and the borders to float; `OPERATORS` lists them. An operator
whose name starts with a capital is ONNX's operator of that name at opset 17, computed by the processor on whatever
numpy types its inputs have (`hilt_runtime.operators`).

Rounding is VTA's: `rounded(x, shift)` is `(x + (1 << (shift - 1))) >> shift` for a shift above 0 and `x` for 0, in
int32 that wraps, with an arithmetic shift. `quantize` and the entries of a `table` round half to even, as ONNX
does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAD_VALUE = "pad_value"
"""The attribute of a conv2d whose pads hold another number than 0: compiling makes it, and VTA alone runs it.

So it is with a residual of fewer channels than the output, which adds nothing to the others.
"""
OPERATORS: Mapping[str, str] = {
    "conv2d": (
        "data int8 (N, C, H, W), weights int8 (CO, C / groups, KH, KW), bias int32 (CO,) or '', residual int8 of the "
        "output's shape or ''. Attributes: strides [2], pads [top, left, bottom, right], groups, dilations [2], "
        "input_dilation [2] (zeros between the elements: size (H - 1) * d + 1), shift [1 or CO], clip [lo, hi]; with "
        "a residual residual_shift [1 or CO]. out = clip(rounded(sum + bias + (residual << residual_shift), shift))"
    ),
    "dense": "data int8 (M, K), weights int8 (N, K), bias, residual: as conv2d; shift [1 or N], clip, residual_shift",
    "add": (
        "two int8 tensors, numpy broadcasting. Attributes left_shifts [2], shift, clip: "
        "out = clip(rounded((a << left_shifts[0]) + (b << left_shifts[1]), shift))"
    ),
    "multiply": (
        "two int8 tensors, numpy broadcasting. Attributes shift, clip, offsets [2] (0 and 0 if left out): "
        "out = clip(rounded((a + offsets[0]) * b, shift) + offsets[1])"
    ),
    "max_pool": "int8 (N, C, H, W). Attributes kernel [2], strides [2], pads [4]: padding never wins",
    "average_pool": (
        "int8 (N, C, H, W). Attributes kernel, strides, pads (zeros), divisor (odd; 0: the elements of the data in "
        "each window), shift, clip, offset (optional, 16 bits): "
        "out = clip(floor(sum / (divisor << shift) + 1/2) + offset), exact; a shift below 0 multiplies"
    ),
    "global_average_pool": (
        "int8 (N, C, H, W) -> (N, C, 1, 1). Attributes divisor, shift, clip, offset: as average_pool"
    ),
    "table": "int8 data, table (256,) int8 or float32: out = table[data + 128]",
    "pixel_table": (
        "uint8 or int8 data, table (C, 256) int8. Attribute axis: out = table[c, data mod 256] with c the place along "
        "the axis; a table of one row is that of all places"
    ),
    "prelu": (
        "int8 (N, C, ...), factors (2, C) int16, those of data from 0 on first. Attributes left, offset (optional, "
        "-256 to 256): out = clip(rounded((data << left) * factor, 15) + offset)"
    ),
    "concat": "int8 tensors of one scale. Attribute axis",
    "reshape": "Attribute shape",
    "transpose": "Attribute perm",
    "pad": (
        "Attributes pads (the begins of all axes, then their ends), value; or mode 'reflect' or 'edge' (ONNX), whose "
        "pads repeat the tensor's own elements, without value"
    ),
    "slice": "Attributes starts, ends, axes, steps; as numpy's slices after ONNX's clamping",
    "depth_to_space": (
        "int8 (N, C, H, W). Attributes block [2], mode 'DCR' or 'CRD' (ONNX): "
        "(N, C / (bh * bw), H * bh, W * bw); DCR: channel = (row * bw + column) * C' + c"
    ),
    "upsample": "(N, C, H, W) -> (N, C, H * fh, W * fw). Attribute factors [2]: each element fh times, fw times",
    "interpolate": (
        "int8 (N, C, H, W) -> (N, C, H * fh, W * fw). Attributes factors [2], powers of two; centred (1: ONNX's "
        "half_pixel, 0: asymmetric): ONNX's linear Resize, out = rounded(sum of weights * data), exact, halves up"
    ),
    "softmax": (
        "int8 -> float32. Attributes axis (from the last, -1), scale, logarithm (0 or 1), shape of the result: ONNX's "
        "Softmax or LogSoftmax of data * scale, its sum over the 256 values in order of falling value, in float64"
    ),
    "counted_sum": (
        "places int64, table float32 (T, K). Attributes rows, shape of the result: the sum of table[places] over its "
        "first axis of so many rows, which is counts times entries in order of the table, in float64; those of "
        "no place are left out"
    ),
    "fixed_matmul": (
        "data float32 (..., M, K), lines int8 (..., N, K), numpy broadcasting of the stacks. Attributes scale and "
        "offset (0 if left out) of the lines, whose numbers are (line + offset) * scale, turned (0 or 1), step if the "
        "result is int8: the product (..., M, N), or (..., N, M) if turned; each row of data is rounded to steps of a "
        "power of two, its largest finite value less than 2^14 of them (NaN is 0, larger ones clipped), sums are "
        "exact, and quantised as by quantize with the step"
    ),
    "normalization": (
        "int8 (N, C, ...), factors float32 (2, C). Attributes axis (of the channels: 1 or the last), groups, epsilon, "
        "rounded (1: int8, 0: float32), clip [lo, hi], which contains 0: with the mean of an image's channels in so "
        "many groups, or in 0 groups of each pixel's channels, and the deviation, the root of variance plus epsilon: "
        "out = clip((data - mean) * (1 / deviation * factors[0]) + factors[1]); mean and 1 / deviation are rounded "
        "to float32 from exact sums, the result is computed in float32, and rounded half to even"
    ),
    "quantize": (
        "float32 -> int8. Attributes scale, factor (1 if left out; in float32): "
        "out = clip(rint(data * factor / scale), -128, 127)"
    ),
    "dequantize": "int8 -> float32. Attribute scale: out = data * scale",
}
"""The integer operators: inputs, attributes and semantics of each."""


class GraphError(ValueError):
    """A graph that contradicts itself."""


@dataclass(frozen=True)
class Tensor:
    """One tensor of a graph.

    Attributes:
        name: Unique within the graph.
        shape: All dimensions, the batch too; feature maps are (N, C, H, W).
        dtype: numpy's name: int8, int32, float32, int64, bool.
        scale: The real value of one step of an int8 tensor, a power of two; None if the values are themselves.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None

    @property
    def exponent(self) -> int:
        """Return k of scale 2**-k. Raise GraphError if the scale is no power of two."""
        return exponent_of(self.scale, self.name)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Node:
    """One operator of a graph.

    Attributes:
        name: Unique within the graph.
        op: A key of OPERATORS, or ONNX's name of the operator.
        inputs: Names of tensors or constants in the operator's order; "" for one that is left out.
        outputs: Names of the tensors that it makes; "" for one that nobody reads.
        attributes: Plain values (numbers, strings, lists of them), fit for JSON.
        source: Names of the ONNX nodes that it stands for.
        reason: Why it cannot run on VTA, in one line; empty if it can.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    source: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Graph:
    """A network: nodes in an order in which they can run.

    Attributes:
        name: The model's name.
        inputs: Names of the tensors that the caller gives.
        outputs: Names of the tensors that the caller gets.
        nodes: In topological order.
        tensors: Every tensor that is no constant, by name.
        constants: Weights, biases, tables and other constants, by name.
        decibels: Signal-to-noise ratios of layers' outputs against the float model, by the model's node names, as far
            as the quantiser wrote them down.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, NDArray[Any]]
    decibels: Mapping[str, float] = field(default_factory=dict)

    def decibels_of(self, node: Node) -> float | None:
        """Return the signal-to-noise ratio of a node's output, if it is known."""
        known = (self.decibels[name] for name in (node.name, *node.source) if name in self.decibels)
        return next(known, None)

    def consumers(self) -> dict[str, list[Node]]:
        """Return the nodes that read each tensor, in order; a tensor that only the caller reads has none."""
        readers: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name in readers:
                    readers[name].append(node)
        return readers

    def producer(self) -> dict[str, Node]:
        """Return the node that makes each tensor; inputs have none."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    def macs(self, node: Node) -> int:
        """Return the multiply-accumulates of a conv2d or dense node, inserted zeros included; 0 of any other."""
        if node.op not in ("conv2d", "dense"):
            return 0
        weights = self.constants[node.inputs[1]]
        output = self.tensors[node.outputs[0]]
        return output.size * math.prod(weights.shape[1:])


def with_used_tensors(graph: Graph) -> Graph:
    """Return a graph with the tensors and constants alone that its nodes, inputs and outputs name."""
    used = {name for node in graph.nodes for name in (*node.inputs, *node.outputs)} | {*graph.inputs, *graph.outputs}
    return replace(
        graph,
        tensors={name: tensor for name, tensor in graph.tensors.items() if name in used},
        constants={name: value for name, value in graph.constants.items() if name in used},
    )


def without_unread(graph: Graph) -> Graph:
    """Return the graph without nodes whose outputs nobody reads, and their tensors."""
    nodes: list[Node] = []
    read = set(graph.outputs)
    for node in reversed(graph.nodes):
        if read & set(node.outputs):
            nodes.append(node)
            read |= set(node.inputs)
    return with_used_tensors(replace(graph, nodes=tuple(nodes[::-1])))


def exponent_of(scale: float | None, name: str) -> int:
    """Return k of a scale 2**-k.

    Raises:
        GraphError: The scale is None or no power of two.
    """
    if scale is None or scale <= 0:
        raise GraphError(f"tensor {name} has scale {scale}, which is no power of two; run `hilt quantize` on the model")
    mantissa, exponent = math.frexp(scale)
    if mantissa != 0.5:
        raise GraphError(f"tensor {name} has scale {scale}, which is no power of two; run `hilt quantize` on the model")
    return 1 - exponent


def check(graph: Graph) -> None:
    """Check that names, order and types of a graph fit each other.

    Raises:
        GraphError: A name is missing or made twice, a node runs before its input, or shapes disagree.
    """
    known = set(graph.inputs) | set(graph.constants)
    for node in graph.nodes:
        for name in node.inputs:
            if name and name not in known:
                raise GraphError(f"node {node.name} ({node.op}) reads {name}, which no earlier node makes")
        for name in filter(None, node.outputs):
            if name in known:
                raise GraphError(f"node {node.name} ({node.op}) makes {name}, which is there already")
            if name not in graph.tensors:
                raise GraphError(f"node {node.name} ({node.op}) makes {name}, which the graph does not list")
            known.add(name)
        if node.op[0].islower() and node.op not in OPERATORS:
            raise GraphError(f"node {node.name} is {node.op}, which is none of {', '.join(OPERATORS)}")
        _check_node(graph, node)
    for name in graph.outputs:
        if name not in known:
            raise GraphError(f"the graph's output {name} is made by no node")


def _check_node(graph: Graph, node: Node) -> None:
    if node.op not in ("conv2d", "dense"):
        return
    weights = graph.constants.get(node.inputs[1])
    output = graph.tensors[node.outputs[0]]
    if weights is None or weights.dtype != np.int8:
        raise GraphError(f"node {node.name} ({node.op}) has weights {node.inputs[1]} that are no int8 constant")
    if weights.shape[0] != output.shape[1]:
        raise GraphError(f"node {node.name} has {weights.shape[0]} kernels for {output.shape[1]} output channels")
    for key in ("shift", "residual_shift"):
        values: Sequence[int] = node.attributes.get(key, [0])
        if len(values) not in (1, weights.shape[0]) or not all(0 <= value <= 31 for value in values):
            raise GraphError(f"node {node.name} has {key} {list(values)[:4]}; hilt needs 0 to 31, one or one a channel")
