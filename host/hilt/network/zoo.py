"""Networks with seeded weights made here: MLPerf Tiny's four, ResNet-18 and ResNet-50, as float ONNX models."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, to_model

_OPSET = 17


def make(name: str, seed: int = 0) -> Any:
    """Return a network as a ModelProto.

    Args:
        name: A key of NETWORKS.
        seed: Of its weights.

    Raises:
        KeyError: No such network.
    """
    return NETWORKS[name](seed)


class _Builder:
    """Adds layers to a graph, one after another."""

    def __init__(self, name: str, shape: tuple[int, ...], seed: int) -> None:
        self.graph = OnnxGraph(name, _OPSET, ["input"], [], [], {}, {"input": shape}, {"input": "float32"})
        self._random = np.random.default_rng(seed)
        self._shapes = {"input": shape}

    def model(self, output: str) -> Any:
        """Return the finished model."""
        self.graph.replace(output, "output")
        for node in self.graph.nodes:
            node.outputs = ["output" if name == output else name for name in node.outputs]
        self.graph.outputs = ["output"]
        self.graph.shapes["output"] = self._shapes[output]
        self.graph.dtypes["output"] = "float32"
        return to_model(self.graph)

    def conv(
        self, source: str, channels: int, kernel: int | tuple[int, int], *, stride: int | tuple[int, int] = 1,
        groups: int = 1, relu: bool = True, same: bool = True, norm: bool = True,
    ) -> str:  # fmt: skip
        """Add a convolution, its batch norm and its Relu; `same` pads as TensorFlow does, else by half the kernel."""
        kernels = (kernel, kernel) if isinstance(kernel, int) else kernel
        strides = (stride, stride) if isinstance(stride, int) else stride
        images, depth, height, width = self._shapes[source]
        pads, size = (_same_pads if same else _half_pads)((height, width), kernels, strides)
        fan_in = depth // groups * math.prod(kernels)
        weights = self._random.normal(0, math.sqrt(2 / fan_in), (channels, depth // groups, *kernels))
        inputs = [source, self._constant("weight", weights)]
        if not norm:
            inputs.append(self._constant("bias", self._random.normal(0, 0.1, channels)))
        attributes = {"kernel_shape": list(kernels), "strides": list(strides), "pads": pads, "group": groups}
        output = self._node("Conv", inputs, (images, channels, *size), attributes)
        if norm:
            parts = [
                self._constant("gamma", self._random.uniform(0.8, 1.2, channels)),
                self._constant("beta", self._random.normal(0, 0.1, channels)),
                self._constant("mean", self._random.normal(0, 0.1, channels)),
                self._constant("variance", self._random.uniform(0.8, 1.2, channels)),
            ]
            output = self._node("BatchNormalization", [output, *parts], self._shapes[output], {"epsilon": 1e-3})
        return self.relu(output) if relu else output

    def dense(self, source: str, outputs: int, *, relu: bool = False) -> str:
        """Add a dense layer."""
        rows, depth = self._shapes[source]
        weights = self._random.normal(0, math.sqrt((2 if relu else 1) / depth), (outputs, depth))
        bias = self._random.normal(0, 0.1, outputs)
        inputs = [source, self._constant("weight", weights), self._constant("bias", bias)]
        output = self._node("Gemm", inputs, (rows, outputs), {"transB": 1})
        return self.relu(output) if relu else output

    def relu(self, source: str) -> str:
        """Add a Relu."""
        return self._node("Relu", [source], self._shapes[source])

    def add(self, first: str, second: str) -> str:
        """Add an addition and its Relu."""
        return self.relu(self._node("Add", [first, second], self._shapes[first]))

    def max_pool(self, source: str, kernel: int, stride: int, pad: int) -> str:
        """Add a MaxPool."""
        images, channels, height, width = self._shapes[source]
        size = [(length + 2 * pad - kernel) // stride + 1 for length in (height, width)]
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self._node("MaxPool", [source], (images, channels, *size), attributes)

    def pool_and_flatten(self, source: str) -> str:
        """Add a global average pool and a Flatten."""
        images, channels = self._shapes[source][:2]
        pooled = self._node("GlobalAveragePool", [source], (images, channels, 1, 1))
        return self._node("Flatten", [pooled], (images, channels), {"axis": 1})

    def softmax(self, source: str) -> str:
        """Add a Softmax."""
        return self._node("Softmax", [source], self._shapes[source], {"axis": -1})

    def _constant(self, kind: str, value: Any) -> str:
        name = f"{kind}_{len(self.graph.constants)}"
        self.graph.constants[name] = np.asarray(value, np.float32)
        return name

    def _node(
        self, op: str, inputs: list[str], shape: tuple[int, ...], attributes: Mapping[str, Any] | None = None
    ) -> str:
        number = len(self.graph.nodes)
        name = f"{op.lower()}_{number}"
        self.graph.nodes.append(OnnxNode(name, op, inputs, [f"{name}_out"], dict(attributes or {})))
        self._shapes[f"{name}_out"] = tuple(shape)
        return f"{name}_out"


def _same_pads(
    size: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int]
) -> tuple[list[int], tuple[int, int]]:
    begins, ends, outputs = [], [], []
    for length, taps, stride in zip(size, kernel, strides, strict=True):
        outputs.append(-(-length // stride))
        total = max((outputs[-1] - 1) * stride + taps - length, 0)
        begins.append(total // 2)
        ends.append(total - total // 2)
    return begins + ends, (outputs[0], outputs[1])


def _half_pads(
    size: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int]
) -> tuple[list[int], tuple[int, int]]:
    pads = [taps // 2 for taps in kernel]
    outputs = [
        (length + 2 * pad - taps) // stride + 1
        for length, pad, taps, stride in zip(size, pads, kernel, strides, strict=True)
    ]
    return pads + pads, (outputs[0], outputs[1])


def _resnet8(seed: int) -> Any:
    """Return MLPerf Tiny's image classification network."""
    net = _Builder("resnet8", (1, 3, 32, 32), seed)
    x = net.conv("input", 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv(x, channels, 3, stride=stride)
        y = net.conv(y, channels, 3, relu=False)
        x = net.add(y, x if stride == 1 else net.conv(x, channels, 1, stride=stride, relu=False, norm=False))
    return net.model(net.softmax(net.dense(net.pool_and_flatten(x), 10)))


def _ds_cnn(seed: int) -> Any:
    """Return MLPerf Tiny's keyword spotting network."""
    net = _Builder("ds_cnn", (1, 1, 49, 10), seed)
    x = net.conv("input", 64, (10, 4), stride=2)
    for _ in range(4):
        x = net.conv(net.conv(x, 64, 3, groups=64), 64, 1)
    return net.model(net.softmax(net.dense(net.pool_and_flatten(x), 12)))


def _mobilenet_v1(seed: int) -> Any:
    """Return MLPerf Tiny's visual wake words network: MobileNetV1 of width 0.25."""
    net = _Builder("mobilenet_v1", (1, 3, 96, 96), seed)
    x, depth = net.conv("input", 8, 3, stride=2), 8
    layers = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]
    for channels, stride in layers:
        x = net.conv(net.conv(x, depth, 3, stride=stride, groups=depth), channels, 1)
        depth = channels
    return net.model(net.softmax(net.dense(net.pool_and_flatten(x), 2)))


def _autoencoder(seed: int) -> Any:
    """Return MLPerf Tiny's anomaly detection network."""
    net = _Builder("autoencoder", (1, 640), seed)
    x = "input"
    for outputs in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, outputs, relu=True)
    return net.model(net.dense(x, 640))


def _resnet18(seed: int) -> Any:
    """Return ResNet-18 for images of 224x224."""
    net = _Builder("resnet18", (1, 3, 224, 224), seed)
    x = net.max_pool(net.conv("input", 64, 7, stride=2, same=False), 3, 2, 1)
    depth = 64
    for channels in (64, 128, 256, 512):
        for _ in range(2):
            stride = 2 if channels != depth else 1
            y = net.conv(x, channels, 3, stride=stride, same=False)
            y = net.conv(y, channels, 3, relu=False, same=False)
            shortcut = x if stride == 1 else net.conv(x, channels, 1, stride=stride, relu=False, same=False)
            x, depth = net.add(y, shortcut), channels
    return net.model(net.dense(net.pool_and_flatten(x), 1000))


def _resnet50(seed: int) -> Any:
    """Return ResNet-50 for images of 224x224, with the stride in the 3x3 layers, as torchvision has it."""
    net = _Builder("resnet50", (1, 3, 224, 224), seed)
    x = net.max_pool(net.conv("input", 64, 7, stride=2, same=False), 3, 2, 1)
    for channels, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if channels > 64 and not block else 1
            y = net.conv(net.conv(x, channels, 1, same=False), channels, 3, stride=stride, same=False)
            y = net.conv(y, 4 * channels, 1, relu=False, same=False)
            shortcut = x if block else net.conv(x, 4 * channels, 1, stride=stride, relu=False, same=False)
            x = net.add(y, shortcut)
    return net.model(net.dense(net.pool_and_flatten(x), 1000))


NETWORKS: Mapping[str, Callable[[int], Any]] = {
    "resnet8": _resnet8,
    "ds_cnn": _ds_cnn,
    "mobilenet_v1": _mobilenet_v1,
    "autoencoder": _autoencoder,
    "resnet18": _resnet18,
    "resnet50": _resnet50,
}


def calibration_data(name: str, samples: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return seeded inputs of a network: smooth noise between -1 and 1, (samples, ...).

    Args:
        name: A key of NETWORKS.
        samples: How many.
        seed: Of the noise.
    """
    shapes = {
        "resnet8": (3, 32, 32), "ds_cnn": (1, 49, 10), "mobilenet_v1": (3, 96, 96), "autoencoder": (640,),
        "resnet18": (3, 224, 224), "resnet50": (3, 224, 224),
    }  # fmt: skip
    random = np.random.default_rng(seed)
    noise = random.normal(0, 1, (samples, *shapes[name]))
    for axis in range(2, noise.ndim):
        noise = (noise + np.roll(noise, 1, axis) + np.roll(noise, 2, axis)) / np.sqrt(3)
    result: np.ndarray[Any, np.dtype[np.float32]] = np.tanh(noise).astype(np.float32)
    return result
