"""ONNX models made of shapes only: their weights are empty initializers."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, TensorProto, helper


class Graph:
    """Nodes one after another; each call gives the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        tensor = TensorProto(name=f"w{len(self.weights)}", data_type=kind, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL  # so that no one looks for its contents
        self.weights.append(tensor)
        return str(tensor.name)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], f"{operator}_{len(self.nodes)}", **attributes))
        return output

    def conv(
        self, data: str, ci: int, co: int, kernel: int, stride: int = 1, *, bias: bool = False, **more: Any
    ) -> str:
        groups = more.get("group", 1)
        inputs = [data, self.weight(co, ci // groups if isinstance(groups, int) else ci, kernel, kernel)]
        if bias:
            inputs.append(self.weight(co))
        pads = {} if "auto_pad" in more else {"pads": [kernel // 2] * 4}
        return self.add("Conv", *inputs, **({"strides": [stride] * 2} | pads | more))

    def model(self, output: str, *input_shape: int | str, rank: int = 2) -> ModelProto:
        data = helper.make_tensor_value_info("data", TensorProto.FLOAT, input_shape)
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * rank)
        return helper.make_model(helper.make_graph(self.nodes, "made", [data], [result], self.weights))


def resnet18(size: int = 224, batch: int | str = 1) -> ModelProto:
    """Return ResNet-18 as torchvision has it, with batch normalisation folded away."""
    graph = Graph()
    data = graph.add("Relu", graph.conv("data", 3, 64, 7, 2))
    data = graph.add("MaxPool", data, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, width in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            shortcut = graph.conv(data, channels, width, 1, stride) if stride == 2 else data
            inner = graph.add("Relu", graph.conv(data, channels, width, 3, stride))
            inner = graph.conv(inner, width, width, 3)
            data = graph.add("Relu", graph.add("Add", inner, shortcut))
            channels = width
    data = graph.add("Flatten", graph.add("GlobalAveragePool", data))
    logits = graph.add("Gemm", data, graph.weight(1000, 512), graph.weight(1000), transB=1)
    return graph.model(logits, batch, 3, size, size)


def toy() -> ModelProto:
    """Two convolutions, one of them twice, and a dense layer."""
    graph = Graph()
    data = graph.conv("data", 16, 32, 3)
    data = graph.conv(graph.conv(data, 32, 32, 1), 32, 32, 1)
    return graph.model(data, 1, 16, 8, 8, rank=4)
