"""Writes a quantised model: QuantizeLinear and DequantizeLinear around every int8 tensor."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, free_name
from hilt.network.quantize.regions import LayerRegion, Regions

_LARGEST_BIAS = 1 << 30


@dataclass
class Scales:
    """Exponents k of scales 2^-k.

    Attributes:
        groups: By the representative of each group of int8 tensors.
        weights: By the name of each layer's node: one, or one an output channel.
        biases: Biases by the name of each layer's node, if they replace the model's.
        rounded: Integers of weights by the name of each layer's node, where they are not simply the nearest ones.
    """

    groups: dict[str, int]
    weights: dict[str, list[int]]
    biases: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    rounded: dict[str, NDArray[np.int8]] = field(default_factory=dict)

    def integers(self, layer: str, values: NDArray[np.float64]) -> NDArray[np.int8]:
        """Return a layer's weights (CO, ...) as int8."""
        found = self.rounded.get(layer)
        return quantised_weights(values, self.weights[layer]) if found is None else found

    def copy(self) -> Scales:
        """Return a copy that can be changed by itself."""
        return copy.deepcopy(self)


def write_qdq(graph: OnnxGraph, regions: Regions, scales: Scales) -> OnnxGraph:
    """Return the quantised model: int8 weights, int32 biases, constant scales."""
    return _Writer(graph, regions, scales, None).write()


def write_simulation(graph: OnnxGraph, regions: Regions, scales: Scales) -> OnnxGraph:
    """Return a model that computes as the quantised one does, with its scales as inputs: see `ScaleNames.feeds`."""
    return _Writer(graph, regions, scales, {}).write()


@dataclass(frozen=True)
class ScaleNames:
    """The names of scales in a quantised model: of the groups of tensors, and of the weights of layers."""

    groups: Mapping[str, str]
    weights: Mapping[str, str]

    @classmethod
    def free_in(cls, graph: OnnxGraph, scales: Scales) -> ScaleNames:
        """Return names that the graph does not have; a layer may have the name of a tensor."""
        taken = _names_of(graph)
        named: list[dict[str, str]] = []
        for keys in (scales.groups, scales.weights):
            names = {key: free_name(f"scale:{key}", taken) for key in keys}
            taken.update(names.values())
            named.append(names)
        return cls(*named)

    def feeds(self, scales: Scales) -> dict[str, NDArray[np.float32]]:
        """Return the inputs of a simulation that stand for scales."""
        feeds = {self.groups[group]: _steps([exponent]) for group, exponent in scales.groups.items()}
        return feeds | {self.weights[layer]: _steps(exponents) for layer, exponents in scales.weights.items()}


def _names_of(graph: OnnxGraph) -> set[str]:
    return {*graph.constants, *graph.inputs, *(name for node in graph.nodes for name in node.outputs)}


def _steps(exponents: Sequence[int]) -> NDArray[np.float32]:
    """Return scales: a scalar of one exponent, else one a channel."""
    steps = np.array([2.0**-exponent for exponent in exponents], np.float32)
    return steps if len(exponents) > 1 else steps.reshape(())


class _Writer:
    """Builds one model; with `inputs` the scales are inputs and weights stay float until they are computed."""

    def __init__(
        self, graph: OnnxGraph, regions: Regions, scales: Scales, inputs: Mapping[str, NDArray[np.float32]] | None
    ) -> None:
        self._source = graph
        self._regions = regions
        self._scales = scales
        self._simulate = inputs is not None
        self._graph = OnnxGraph(
            graph.name, graph.opset, list(graph.inputs), list(graph.outputs), [], dict(graph.constants),
            dict(graph.shapes), dict(graph.dtypes),
        )  # fmt: skip
        self._reads: dict[str, str] = {}
        self._shared: dict[str, list[str]] = {}
        """The int8 constants that were made of each float one."""
        self._scale_names = ScaleNames.free_in(graph, scales)
        self._taken = _names_of(graph) | {*self._scale_names.groups.values(), *self._scale_names.weights.values()}
        self._nodes_taken = {node.name for node in graph.nodes}
        self._zero = self._constant("int8_zero", np.zeros((), np.int8))

    def write(self) -> OnnxGraph:
        graph, chosen = self._graph, set(self._regions.tensors)
        layers = {layer.node.name: layer for layer in self._regions.layers}
        for name in self._source.inputs:
            if name in chosen:
                self._quantise(name, name)
        for node in self._source.nodes:
            made = OnnxNode(
                node.name, node.op, [self._reads.get(name, name) for name in node.inputs], list(node.outputs),
                dict(node.attributes), node.domain,
            )  # fmt: skip
            if node.name in layers and node is layers[node.name].node:
                made.inputs[1:] = self._weights(layers[node.name])
            for place, name in enumerate(node.outputs):
                if name in chosen:
                    made.outputs[place] = self._free(f"{name}_float")
                    graph.shapes[made.outputs[place]] = graph.shapes[name]
            graph.nodes.append(made)
            for name, result in zip(node.outputs, made.outputs, strict=True):
                if name in chosen:
                    self._quantise(result, name)
        graph.remove_unused()
        return graph

    def _constant(self, stem: str, value: NDArray[np.generic]) -> str:
        name = self._free(stem)
        self._graph.constants[name] = value
        return name

    def _free(self, stem: str) -> str:
        """Return a name for a tensor, `stem` if neither the source nor this model has it."""
        name = free_name(stem, self._taken)
        self._taken.add(name)
        return name

    def _node(
        self, stem: str, op: str, inputs: list[str], output: str, attributes: Mapping[str, int] | None = None
    ) -> None:
        """Add a node with a free name."""
        name = free_name(stem, self._nodes_taken)
        self._nodes_taken.add(name)
        self._graph.nodes.append(OnnxNode(name, op, inputs, [output], dict(attributes or {})))

    def _scale(self, name: str, exponents: Sequence[int]) -> str:
        """Return the name of a scale, which is an input of a simulation and a constant of the model."""
        if name in self._graph.constants or name in self._graph.inputs:
            return name
        steps = _steps(exponents)
        if self._simulate:
            self._graph.inputs.append(name)
            self._graph.shapes[name] = steps.shape
            self._graph.dtypes[name] = "float32"
        else:
            self._graph.constants[name] = steps
        return name

    def _quantise(self, source: str, name: str) -> None:
        """Put Q and DQ behind `source`; a tensor of the caller keeps its name behind them."""
        group = self._regions.groups[name]
        scale = self._scale(self._scale_names.groups[group], [self._scales.groups[group]])
        integers = self._free(f"{name}_int8")
        result = self._free(f"{name}_dequantized") if source == name else name
        self._node(f"{name}_q", "QuantizeLinear", [source, scale, self._zero], integers)
        self._node(f"{name}_dq", "DequantizeLinear", [integers, scale, self._zero], result)
        self._graph.shapes[result] = self._graph.shapes[integers] = self._graph.shapes[name]
        self._graph.dtypes[integers] = "int8"
        self._reads[name] = result

    def _weights(self, layer: LayerRegion) -> list[str]:
        """Return the names of a layer's dequantised weights and bias."""
        node = layer.node
        values = self._source.constants[node.inputs[1]].astype(np.float64)
        exponents = self._scales.weights[node.name]
        scale = self._scale(self._scale_names.weights[node.name], exponents)
        attributes = {"axis": 0} if len(exponents) > 1 else {}
        zero = self._zero
        if len(exponents) > 1:
            zero = self._constant(f"{node.name}.zeros", np.zeros(len(exponents), np.int8))
        bias = self._bias(layer)
        if self._simulate:
            integers, source = self._free(f"{node.name}.wi"), node.inputs[1]
            if node.name in self._scales.rounded:
                steps = np.array([2.0**-exponent for exponent in exponents]).reshape(-1, *(1,) * (values.ndim - 1))
                made = self._scales.rounded[node.name] * steps
                source = self._constant(f"{node.name}.rounded", made.astype(np.float32))
            self._node(f"{node.name}.wq", "QuantizeLinear", [source, scale, zero], integers, attributes)
        else:
            integers = self._integers(layer, values)
        result = self._free(f"{node.name}.weight_dq")
        self._node(f"{node.name}.wdq", "DequantizeLinear", [integers, scale, zero], result, attributes)
        if bias is None:
            return [result]
        if self._simulate:
            return [result, self._constant(f"{node.name}.bias_float", bias.astype(np.float32))]
        sums = [exponent + self._scales.groups[self._regions.groups[layer.data]] for exponent in exponents]
        steps = _steps(sums)
        scaled = np.rint(bias / steps.astype(np.float64))
        stored = np.clip(scaled, -_LARGEST_BIAS, _LARGEST_BIAS).astype(np.int32)
        parts = [
            self._constant(f"{node.name}.bias_int32", stored),
            self._constant(f"{node.name}.bias_scale", steps),
            self._constant(f"{node.name}.bias_zero", np.zeros(steps.shape, np.int32)),
        ]
        name = self._free(f"{node.name}.bias_dq")
        self._node(f"{node.name}.bdq", "DequantizeLinear", parts, name, attributes)
        return [result, name]

    def _integers(self, layer: LayerRegion, values: NDArray[np.float64]) -> str:
        """Return the name of a layer's int8 weights, which layers with the same weights may share."""
        name = layer.node.name
        made = self._scales.integers(name, values)
        for known in self._shared.setdefault(layer.node.inputs[1], []):
            if np.array_equal(self._graph.constants[known], made):
                return known
        self._shared[layer.node.inputs[1]].append(self._constant(f"{name}.weight_int8", made))
        return self._shared[layer.node.inputs[1]][-1]

    def _bias(self, layer: LayerRegion) -> NDArray[np.float64] | None:
        node = layer.node
        if node.name in self._scales.biases:
            return self._scales.biases[node.name]
        if len(node.inputs) < 3 or not node.inputs[2]:
            return None
        return self._source.constants[node.inputs[2]].astype(np.float64)


def quantised_weights(values: NDArray[np.float64], exponents: Sequence[int]) -> NDArray[np.int8]:
    """Return float weights (CO, ...) as int8 with scales 2^-k, rounded half to even."""
    factors = np.array([2.0**exponent for exponent in exponents]).reshape(-1, *(1,) * (values.ndim - 1))
    integers: NDArray[np.int8] = np.clip(np.rint(values * factors), -128, 127).astype(np.int8)
    return integers
