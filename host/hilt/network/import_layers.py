"""Recognises in a quantised model the operators that integers compute exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxNode
from hilt.network.onnx_means import MEANS, counts_alike, has_whole_windows
from hilt.network.onnx_resize import interpolation_of, repeats_of
from hilt.network.qdq_view import QdqView, Quantised, mean_offset_steps, offset_steps
from hilt_runtime.operators_window import pads_of, transposed_pads

_LAYERS = {"Conv": "conv2d", "ConvTranspose": "conv2d", "Gemm": "dense"}
"""ONNX's layers, with hilt's operators for them."""
_LARGEST_MEAN_SHIFT = 20
"""Sums of int8 shifted left by this are exact in float64, and so is their comparison with the middle."""
_LARGEST_SHIFT = 31
_MOVES_DATA = "it only moves data"


@dataclass
class IntegerNode:
    """A node that has been recognised. `constants` are its constant inputs by place, each a kind and its values."""

    op: str
    name: str
    inputs: list[str]
    attributes: Mapping[str, Any]
    source: list[str]
    constants: dict[int, tuple[str, NDArray[Any]]] = field(default_factory=dict)
    reason: str = ""


@dataclass
class _Chain:
    """A tensor as a clipped sum: the tensor of the sum, and the real bounds."""

    name: str
    low: float
    high: float
    source: list[str]

    def bounds(self, exponent: int) -> list[int]:
        """Return the clip in steps of 2^-exponent, within int8."""
        return [_step(self.low, exponent), _step(self.high, exponent)]


class _Data(NamedTuple):
    """The data of a product: its int8 tensor, the steps that are added to it, and the nodes that do so."""

    leaf: Quantised
    added: int = 0
    source: tuple[str, ...] = ()


def _step(value: float, exponent: int) -> int:
    return int(np.clip(np.rint(np.clip(value, -1e30, 1e30) * 2.0**exponent), -128, 127))


def _shifts(sums: Sequence[int], exponent: int) -> list[int] | None:
    """Return by how many bits sums are shifted to steps of 2^-exponent; None if VTA cannot do so."""
    shifts = [k - exponent for k in sums]
    return shifts if all(0 <= amount <= _LARGEST_SHIFT for amount in shifts) else None


def _constant_bias(bias: NDArray[np.int32] | bool | None) -> dict[int, tuple[str, NDArray[Any]]]:
    return {2: ("bias", bias)} if isinstance(bias, np.ndarray) else {}


class LayerMatcher:
    """Matches the operators behind a float tensor with one integer operator."""

    def __init__(self, view: QdqView) -> None:
        """Match nodes of the view's graph."""
        self._view = view
        self._graph = view.graph

    def match(self, name: str, exponent: int) -> IntegerNode | None:
        """Return the layer, addition, product or mean that makes a tensor with scale 2^-exponent; None for none."""
        chain = self._unclipped(name)
        node = self._view.producers.get(chain.name)
        if node is None or node.domain:
            return None
        if node.op in _LAYERS:
            return self._layer(node, chain, exponent, None)
        if node.op == "Add":
            return (
                self._residual(node, chain, exponent)
                or self._pair(node, chain, exponent)
                or self._shifted_product(node, chain, exponent)
                or self._shifted_mean(node, chain, exponent)
            )
        if node.op == "Mul":
            return self._product(node, chain, exponent)
        if node.op in MEANS:
            return self._mean(node, chain, exponent)
        return None

    def match_move(self, name: str, exponent: int) -> IntegerNode | None:
        """Return the operator that moves int8 tensors of the same scale, or takes their largest; None for none."""
        node = self._view.producers.get(name)
        if node is None or node.domain or len(node.outputs) > 1:
            return None
        inputs = self._int8_inputs(node, exponent)
        return (self._filled(node, inputs, exponent) or self._moved(node, inputs)) if inputs else None

    def moved(self, name: str, int8_of: Callable[[str], str]) -> IntegerNode | None:
        """Return the operator that moves a tensor's floats, on int8; None for none.

        Args:
            name: The tensor.
            int8_of: Gives the int8 tensor of each computed input.
        """
        node = self._view.producers.get(name)
        if node is None or node.domain or node.op in ("GlobalMaxPool", "MaxPool"):
            return None
        sources = self._graph.computed_inputs(node)
        made = self._moved(node, sources)
        return None if made is None else replace(made, inputs=[int8_of(source) for source in sources])

    def _int8_inputs(self, node: OnnxNode, exponent: int) -> list[str]:
        """Return the computed inputs of a node as int8 tensors; none unless all have the scale 2^-exponent."""
        leaves = [self._view.activation(source) for source in node.inputs if source and not self._is_constant(source)]
        names = [leaf.name for leaf in leaves if leaf is not None and leaf.exponent == exponent]
        return names if len(names) == len(leaves) else []

    def _is_constant(self, name: str) -> bool:
        return name in self._graph.constants

    def _unclipped(self, name: str) -> _Chain:
        """Walk back over Relu and Clip."""
        chain = _Chain(name, -math.inf, math.inf, [])
        while True:
            node = self._view.producers.get(chain.name)
            bounds = None if node is None or node.domain else self._bounds(node)
            if node is None or bounds is None:
                return chain
            low, high = (min(max(bound, chain.low), chain.high) for bound in bounds)
            chain = _Chain(node.inputs[0], low, high, [node.name, *chain.source])

    def _bounds(self, node: OnnxNode) -> list[float] | None:
        """Return the constant bounds of a Relu or Clip; None for other nodes."""
        if node.op == "Relu":
            return [0.0, math.inf]
        parts = [*node.inputs[1:], "", ""][:2]
        if node.op != "Clip" or any(part and not self._is_constant(part) for part in parts):
            return None
        return [
            float(self._graph.constants[part].ravel()[0]) if part else limit
            for part, limit in zip(parts, (-math.inf, math.inf), strict=True)
        ]

    def _residual(self, node: OnnxNode, chain: _Chain, exponent: int) -> IntegerNode | None:
        """Match an addition of a layer's sums and an int8 tensor."""
        for place in (0, 1):
            layer = self._view.producers.get(node.inputs[place])
            other = self._view.activation(node.inputs[1 - place])
            if layer is None or layer.op not in _LAYERS or layer.domain or other is None:
                continue
            if self._graph.shape(node.inputs[1 - place]) != self._graph.shape(node.inputs[place]):
                continue
            chain.source.insert(0, node.name)
            return self._layer(layer, chain, exponent, other)
        return None

    def _layer(self, node: OnnxNode, chain: _Chain, exponent: int, residual: Quantised | None) -> IntegerNode | None:
        """Match a convolution or dense layer whose data, weights and bias are integers."""
        data, weights = self._view.activation(node.inputs[0]), self._int8_weights(node)
        if data is None or weights is None:
            return None
        kernels, exponents = weights
        sums = [data.exponent + k for k in exponents]
        attributes = self._geometry(node, kernels)
        bias = self._bias(node, sums)
        shift = _shifts(sums, exponent)
        residual_shift = [] if residual is None else _shifts(sums, residual.exponent)
        if attributes is None or bias is False or shift is None or residual_shift is None:
            return None
        constants = {1: ("weights", attributes.pop("weights", kernels))} | _constant_bias(bias)
        attributes |= {"shift": shift, "clip": chain.bounds(exponent)}
        inputs = [data.name]
        if residual is not None:
            attributes["residual_shift"] = residual_shift
            inputs = [data.name, "", "", residual.name]
        return IntegerNode(_LAYERS[node.op], node.name, inputs, attributes, [node.name, *chain.source], constants)

    def _int8_weights(self, node: OnnxNode) -> tuple[NDArray[Any], tuple[int, ...]] | None:
        """Return a layer's int8 weights and the exponents of their scales: one, or one an output channel."""
        weights = self._view.quantised(node.inputs[1])
        if weights is None or weights.constant is None or weights.constant.dtype != np.int8:
            return None
        if len(weights.exponents) > 1 and (weights.axis != 0 or node.op == "ConvTranspose"):
            return None
        return weights.constant, weights.exponents

    def _bias(self, node: OnnxNode, sums: Sequence[int]) -> NDArray[np.int32] | bool | None:
        """Return the int32 bias in steps of the sums, None if there is none, False if it is no constant."""
        if len(node.inputs) < 3 or not node.inputs[2]:
            return None
        leaf = self._view.quantised(node.inputs[2])
        if leaf is not None and leaf.constant is not None:
            if leaf.constant.dtype == np.int32 and leaf.exponents == tuple(sums):
                return np.asarray(leaf.constant.reshape(-1), np.int32)
            real = leaf.constant.reshape(-1) * np.array([2.0**-k for k in leaf.exponents])
        elif self._is_constant(node.inputs[2]):
            real = self._graph.constants[node.inputs[2]].reshape(-1).astype(np.float64)
        else:
            return False
        steps = np.rint(real * np.array([2.0**k for k in sums]))
        return np.asarray(np.clip(steps, -(2**30), 2**30), np.int32)

    def _geometry(self, node: OnnxNode, weights: NDArray[Any]) -> dict[str, Any] | None:
        """Return a layer's attributes, with its turned weights for a ConvTranspose; None for other forms."""
        attributes = node.attributes
        if node.op == "Gemm":
            plain = not attributes.get("transA", 0) and attributes.get("transB", 0)
            return {} if plain and attributes.get("alpha", 1.0) == attributes.get("beta", 1.0) == 1.0 else None
        if weights.ndim != 4:
            return None
        size, kernel = self._graph.shape(node.inputs[0])[2:], weights.shape[2:]
        strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
        groups = attributes.get("group", 1)
        if node.op == "Conv":
            pads = pads_of(attributes, size, kernel, strides, dilations)
            return {"strides": list(strides), "pads": pads, "groups": groups, "dilations": list(dilations)}
        top, left, bottom, right = transposed_pads(attributes, size, kernel)
        extra = attributes.get("output_padding", [0, 0])
        reach = [(taps - 1) * gap for taps, gap in zip(kernel, dilations, strict=True)]
        around = [reach[0] - top, reach[1] - left, reach[0] - bottom + extra[0], reach[1] - right + extra[1]]
        if min(around) < 0:
            return None
        inputs, outputs = weights.shape[:2]
        turned = weights.reshape(groups, inputs // groups, outputs, *kernel).transpose(0, 2, 1, 3, 4)
        turned = turned.reshape(groups * outputs, inputs // groups, *kernel)[:, :, ::-1, ::-1]
        return {
            "strides": [1, 1], "pads": around, "groups": groups, "dilations": list(dilations),
            "input_dilation": list(strides), "weights": np.ascontiguousarray(turned),
        }  # fmt: skip

    def _pair(self, node: OnnxNode, chain: _Chain, exponent: int) -> IntegerNode | None:
        """Match an addition of two int8 tensors."""
        first, second = (self._view.activation(name) for name in node.inputs[:2])
        if first is None or second is None:
            return None
        finest = max(first.exponent, second.exponent, exponent)
        shifts = [finest - first.exponent, finest - second.exponent]
        if max(shifts) > 20 or finest - exponent > _LARGEST_SHIFT:
            return None
        attributes = {"left_shifts": shifts, "shift": finest - exponent, "clip": chain.bounds(exponent)}
        return IntegerNode("add", node.name, [first.name, second.name], attributes, [node.name, *chain.source])

    def _shifted_product(self, node: OnnxNode, chain: _Chain, exponent: int) -> IntegerNode | None:
        """Match an addition of whole steps to a product of two int8 tensors."""
        name, value = self._offset(node)
        product = self._view.producers.get(name)
        behind = offset_steps(value, exponent)
        if product is None or product.op != "Mul" or product.domain or behind is None:
            return None
        chain.source.insert(0, node.name)
        return self._product(product, chain, exponent, behind)

    def _product(self, node: OnnxNode, chain: _Chain, exponent: int, behind: int = 0) -> IntegerNode | None:
        """Match a product of two int8 tensors. Whole steps may be added to one of them, which is the first one then."""
        for place in (0, 1):
            data, factor = self._data(node.inputs[place]), self._view.activation(node.inputs[1 - place])
            if data is None or factor is None:
                continue
            shift = data.leaf.exponent + factor.exponent - exponent
            if not 0 <= shift <= _LARGEST_SHIFT:
                return None
            attributes: dict[str, Any] = {"shift": shift, "clip": chain.bounds(exponent)}
            if data.added or behind:
                attributes["offsets"] = [data.added, behind]
            source = [*data.source, node.name, *chain.source]
            return IntegerNode("multiply", node.name, [data.leaf.name, factor.name], attributes, source)
        return None

    def _data(self, name: str) -> _Data | None:
        """Return the int8 tensor of a product's data, with the steps that are added to it; None of other tensors."""
        leaf, adding = self._view.activation(name), self._view.producers.get(name)
        if leaf is not None or adding is None:
            return None if leaf is None else _Data(leaf)
        source, value = self._offset(adding)
        leaf = self._view.activation(source)
        steps = None if leaf is None else offset_steps(value, leaf.exponent)
        return None if leaf is None or steps is None else _Data(leaf, steps, (adding.name,))

    def _offset(self, node: OnnxNode) -> tuple[str, float]:
        """Return the tensor and the number that a node adds; an empty name of other nodes."""
        constants = [name for name in node.inputs if self._is_constant(name)]
        others = [name for name in node.inputs if not self._is_constant(name)]
        if node.op != "Add" or node.domain or len(constants) != 1 or self._graph.constants[constants[0]].size != 1:
            return "", 0.0
        return others[0], float(self._graph.constants[constants[0]].reshape(()))

    def _shifted_mean(self, node: OnnxNode, chain: _Chain, exponent: int) -> IntegerNode | None:
        """Match an average to which whole steps of the result are added."""
        source, value = self._offset(node)
        mean, added = self._view.producers.get(source), mean_offset_steps(value, exponent)
        if mean is None or mean.op not in MEANS or added is None:
            return None
        made = self._mean(mean, replace(chain, source=[node.name, *chain.source]), exponent)
        if made is not None and added:
            return replace(made, attributes={**made.attributes, "offset": added})
        return made

    def _mean(self, node: OnnxNode, chain: _Chain, exponent: int) -> IntegerNode | None:
        """Match an average over windows that are all whole and have no gaps."""
        leaf = self._view.activation(node.inputs[0])
        shape = self._graph.shape(node.inputs[0])
        if leaf is None or len(shape) != 4:
            return None
        attributes = self._whole_windows(node) if node.op == "AveragePool" else {}
        if attributes is None:
            return None
        sees_all = bool(attributes) and self._sees_all(node, attributes["pads"], attributes["kernel"])
        count = self._elements(node, attributes, sees_all=sees_all)
        if sees_all:
            attributes = {}
        twos = (count & -count).bit_length() - 1 if count else 0
        shift = twos + leaf.exponent - exponent
        if not -_LARGEST_MEAN_SHIFT <= shift <= _LARGEST_SHIFT:
            return None
        attributes |= {"divisor": count >> twos, "shift": shift, "clip": chain.bounds(exponent)}
        op = "average_pool" if "kernel" in attributes else "global_average_pool"
        return IntegerNode(op, node.name, [leaf.name], attributes, [node.name, *chain.source])

    def _elements(self, node: OnnxNode, pool: Mapping[str, Any], *, sees_all: bool) -> int:
        """Return the elements by which an average divides its sums; 0: those of the data, in each window others."""
        if counts_alike(node):
            return math.prod(pool.get("kernel", self._graph.shape(node.inputs[0])[2:]))
        return math.prod(self._graph.shape(node.inputs[0])[2:]) if sees_all else 0

    def _whole_windows(self, node: OnnxNode) -> dict[str, Any] | None:
        """Return the attributes of an AveragePool whose windows are all whole; None for others."""
        return self._pool(node) if has_whole_windows(self._graph, node) else None

    def _sees_all(self, node: OnnxNode, pads: list[int], kernel: list[int]) -> bool:
        """Tell whether a pool has one window, which holds the whole image."""
        size, result = self._graph.shape(node.inputs[0])[2:], self._graph.shape(node.outputs[0])[2:]
        return tuple(result) == (1, 1) and all(pads[axis] + size[axis] <= kernel[axis] for axis in (0, 1))

    def _pool(self, node: OnnxNode) -> dict[str, Any]:
        """Return kernel, strides and the pads with which whole windows give the output's size."""
        kernel, strides = list(node.attributes["kernel_shape"]), list(node.attributes.get("strides", [1, 1]))
        size, result = self._graph.shape(node.inputs[0])[2:], self._graph.shape(node.outputs[0])[2:]
        pads = pads_of(node.attributes, size, kernel, strides, [1, 1])
        for axis in (0, 1):
            reach = (result[axis] - 1) * strides[axis] + kernel[axis]
            pads[2 + axis] = max(reach - size[axis] - pads[axis], 0)
        return {"kernel": kernel, "strides": strides, "pads": pads}

    def _moved(self, node: OnnxNode, inputs: list[str]) -> IntegerNode | None:
        if node.op in _MOVED_BY_CONSTANTS and self._is_constant(node.inputs[1]):
            constants = {1: (_MOVED_BY_CONSTANTS[node.op], self._graph.constants[node.inputs[1]])}
            return IntegerNode(node.op, node.name, inputs, dict(node.attributes), [node.name], constants, _MOVES_DATA)
        if node.op == "Resize" and node.attributes.get("mode", "nearest") != "nearest":
            form = interpolation_of(self._graph, node)
            return None if form is None else IntegerNode("interpolate", node.name, inputs, form, [node.name])
        if node.op == "Resize":
            return self._resize(node, inputs)
        if node.op == "Pad" and node.attributes.get("mode", "constant") != "constant":
            return self._repeated(node, inputs)
        if node.op == "Concat" and len(inputs) != len(node.inputs):  # a constant part is joined in float
            return None
        op, attributes_of = _MOVES.get(node.op, ("", None))
        attributes = None if attributes_of is None else attributes_of(self, node, self._graph.shape(node.inputs[0]))
        return None if attributes is None else IntegerNode(op, node.name, inputs, attributes, [node.name])

    def _repeated(self, node: OnnxNode, inputs: list[str]) -> IntegerNode | None:
        """Return a Pad with a tensor's own elements, which ONNX's own operator computes on int8."""
        pads = self._integers(node, 1)
        if pads is None or any(node.inputs[2:]):
            return None
        constants = {1: ("pads", np.array(pads, np.int64))}
        return IntegerNode("Pad", node.name, inputs, dict(node.attributes), [node.name], constants, _MOVES_DATA)

    def _filled(self, node: OnnxNode, inputs: list[str], exponent: int) -> IntegerNode | None:
        """Return a Pad with a constant that is not 0, as a number of int8 of scale 2^-exponent."""
        value = self._pad_value(node) if node.op == "Pad" else 0.0
        pads = self._pads(node, self._graph.shape(node.inputs[0])) if value else None
        if pads is None:
            return None
        return IntegerNode("pad", node.name, inputs, {"pads": pads, "value": _step(value, exponent)}, [node.name])

    def _largest_of_image(self, node: OnnxNode, shape: Sequence[int]) -> dict[str, Any] | None:
        return {"kernel": list(shape[2:]), "strides": [1, 1], "pads": [0] * 4} if len(shape) == 4 else None

    def _largest(self, node: OnnxNode, shape: Sequence[int]) -> dict[str, Any] | None:
        plain = len(shape) == 4 and max(node.attributes.get("dilations", [1])) == 1
        return self._pool(node) if plain else None

    def _joined(self, node: OnnxNode, shape: Sequence[int]) -> dict[str, Any]:
        return {"axis": node.attributes["axis"] % len(shape)}

    def _reshaped(self, node: OnnxNode, shape: Sequence[int]) -> dict[str, Any]:
        return {"shape": list(self._graph.shape(node.outputs[0]))}

    def _transposed(self, node: OnnxNode, shape: Sequence[int]) -> dict[str, Any]:
        return {"perm": list(node.attributes.get("perm", range(len(shape))[::-1]))}

    def _spread(self, node: OnnxNode, shape: Sequence[int]) -> dict[str, Any]:
        block = node.attributes["blocksize"]
        return {"block": [block, block], "mode": node.attributes.get("mode", "DCR")}

    def _resize(self, node: OnnxNode, inputs: list[str]) -> IntegerNode:
        """Return a nearest Resize, which ONNX's own operator computes on int8, unless it repeats rows and columns."""
        factors = repeats_of(self._graph, node)
        if factors is not None:
            return IntegerNode("upsample", node.name, inputs, {"factors": factors}, [node.name])
        kinds = zip(("roi", "scales", "sizes"), node.inputs[1:], strict=False)
        constants = {
            place: (kind, self._graph.constants[name]) for place, (kind, name) in enumerate(kinds, start=1) if name
        }
        return IntegerNode("Resize", node.name, inputs, dict(node.attributes), [node.name], constants, _MOVES_DATA)

    def _integers(self, node: OnnxNode, place: int) -> list[int] | None:
        if len(node.inputs) <= place or node.inputs[place] not in self._graph.constants:
            return None
        return [int(value) for value in self._graph.constants[node.inputs[place]].ravel()]

    def _slice(self, node: OnnxNode, shape: Sequence[int]) -> dict[str, Any] | None:
        starts, ends = self._integers(node, 1), self._integers(node, 2)
        if starts is None or ends is None:
            return None
        axes = self._integers(node, 3) or list(range(len(starts)))
        steps = self._integers(node, 4) or [1] * len(starts)
        limit = 2**31 - 1
        return {
            "starts": [min(max(value, -limit), limit) for value in starts],
            "ends": [min(max(value, -limit), limit) for value in ends],
            "axes": [axis % len(shape) for axis in axes],
            "steps": steps,
        }

    def _pad(self, node: OnnxNode, shape: Sequence[int]) -> dict[str, Any] | None:
        pads = None if self._pad_value(node) else self._pads(node, shape)
        return None if pads is None else {"pads": pads, "value": 0}

    def _pad_value(self, node: OnnxNode) -> float:
        """Return the constant of a Pad, 0 if it is left out."""
        value = self._graph.constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
        return 0.0 if value is None else float(value.reshape(-1)[0])

    def _pads(self, node: OnnxNode, shape: Sequence[int]) -> list[int] | None:
        """Return the constant pads of all axes, the begins first; None if they are computed, or take elements off."""
        pads = self._integers(node, 1)
        if pads is None or node.attributes.get("mode", "constant") != "constant":
            return None
        axes = self._integers(node, 3)
        full = [0] * (2 * len(shape))
        for place, axis in enumerate(axes if axes is not None else range(len(shape))):
            full[axis % len(shape)] = pads[place]
            full[axis % len(shape) + len(shape)] = pads[place + len(pads) // 2]
        return full if min(full) >= 0 else None


_MOVED_BY_CONSTANTS = {"Expand": "shape", "Gather": "indices"}
"""Operators that move data by constants, which are their second input, and its name."""

_MOVES: dict[str, tuple[str, Callable[[LayerMatcher, OnnxNode, Sequence[int]], dict[str, Any] | None]]] = {
    "Concat": ("concat", LayerMatcher._joined),
    "DepthToSpace": ("depth_to_space", LayerMatcher._spread),
    "Flatten": ("reshape", LayerMatcher._reshaped),
    "GlobalMaxPool": ("max_pool", LayerMatcher._largest_of_image),
    "MaxPool": ("max_pool", LayerMatcher._largest),
    "Pad": ("pad", LayerMatcher._pad),
    "Reshape": ("reshape", LayerMatcher._reshaped),
    "Slice": ("slice", LayerMatcher._slice),
    "Squeeze": ("reshape", LayerMatcher._reshaped),
    "Transpose": ("transpose", LayerMatcher._transposed),
    "Unsqueeze": ("reshape", LayerMatcher._reshaped),
}
"""Operators that move data: hilt's operator, and the function of their input's shape that gives its attributes."""
