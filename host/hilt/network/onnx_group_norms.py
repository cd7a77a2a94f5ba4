"""GroupNormalization as InstanceNormalization of groups, which hilt computes from integers; ONNX defines it by sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilt.network.onnx_graph import free_name

_BY_CHANNEL = 21
"""The opset from which on factors are of channels, no longer of groups."""


def write_group_norms(model: Any, opset: int) -> Any:
    """Return a ModelProto whose GroupNormalizations are written so, where the data's rank is known."""
    import onnx

    if all(node.op_type != "GroupNormalization" or node.domain for node in model.graph.node):
        return model
    model = onnx.shape_inference.infer_shapes(model)
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in (*model.graph.input, *model.graph.value_info)
        if value.type.tensor_type.HasField("shape")
    }
    taken = {each.name for each in (*model.graph.input, *model.graph.initializer)}
    taken |= {name for node in model.graph.node for name in (node.name, *node.output)}
    nodes: list[Any] = []
    for node in model.graph.node:
        known = node.op_type == "GroupNormalization" and not node.domain and node.input[0] in ranks
        nodes += _Written(model, node, ranks[node.input[0]], opset, taken).nodes if known else [node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


class _Written:
    """The nodes of one GroupNormalization.

    Attributes:
        nodes: In order.
    """

    def __init__(self, model: Any, node: Any, rank: int, opset: int, taken: set[str]) -> None:
        self._model, self._taken = model, taken
        self._name = node.name or node.output[0]
        self.nodes: list[Any] = []
        attributes = {each.name: each for each in node.attribute}
        data, scale, bias = node.input
        groups, epsilon = attributes["num_groups"].i, attributes["epsilon"].f if "epsilon" in attributes else 1e-5
        factors = [scale, bias]
        if opset >= _BY_CHANNEL:
            numbers = {"ones": np.ones(groups, np.float32), "zeros": np.zeros(groups, np.float32)}
            factors = [self._constant(part, each) for part, each in numbers.items()]
        grouped = self._node("Reshape", data, self._constant("groups", np.array([0, groups, -1])))
        normal = self._node("InstanceNormalization", grouped, *factors, epsilon=epsilon)
        shape = self._node("Shape", data)
        if opset < _BY_CHANNEL:
            self._node("Reshape", normal, shape, result=node.output[0])
            return
        along = self._constant("along", np.array([-1, *[1] * (rank - 2)]))
        whole = self._node("Reshape", normal, shape)
        scaled = self._node("Mul", whole, self._node("Reshape", scale, along))
        self._node("Add", scaled, self._node("Reshape", bias, along), result=node.output[0])

    def _node(self, op: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        import onnx

        name = self._free(str(len(self.nodes)))
        made = result or self._free(f"{len(self.nodes)}.made")
        self.nodes.append(onnx.helper.make_node(op, inputs, [made], name=name, **attributes))
        return made

    def _constant(self, part: str, value: np.ndarray[Any, Any]) -> str:
        import onnx

        name = self._free(part)
        self._model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
        return name

    def _free(self, part: str) -> str:
        name = free_name(f"{self._name}.{part}", self._taken)
        self._taken.add(name)
        return name
