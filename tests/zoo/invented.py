"""Networks of no wheel: usual forms with random weights, normalised by data as training leaves them.

Nothing in hilt was made by the last three. Each channel gets a size and a middle of its own, as a batch norm gives it,
and a ridge regression on the last features makes an answer of them. The samples differ in contrast.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from . import data

Array = NDArray[Any]
_FITTED = 512
_CLASSES = 10
_OPSET = 17
_RIDGE = 1.0


class _Builder:
    """Adds nodes, and computes each on samples at once, so that the next weights fit to its values."""

    def __init__(self, samples: Array, seed: int) -> None:
        self._samples = samples
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, Array] = {}
        self.values: dict[str, Array] = {"x": samples}

    def add(self, op: str, inputs: list[str], constants: tuple[Array, ...] = (), **attributes: Any) -> str:
        """Add a node behind tensors and constants; return its output."""
        import onnxruntime

        output = f"t{len(self._nodes)}"
        names = [f"{output}.c{place}" for place in range(len(constants))]
        self._constants.update(zip(names, constants, strict=True))
        node = helper.make_node(op, [*inputs, *names], [output], name=output, **attributes)
        model = _model([node], inputs, output, dict(zip(names, constants, strict=True)), {})
        session = onnxruntime.InferenceSession(model.SerializeToString())
        self.values[output] = session.run(None, {name: self.values[name] for name in inputs})[0]
        self._nodes.append(node)
        return output

    def convolution(self, source: str, channels: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        """Add a convolution whose channels have sizes and middles as behind a batch norm."""
        read = self.values[source].shape[1]
        axes = self.values[source].ndim - 2
        weights = self._random.standard_t(5, (channels, read // group, *(kernel,) * axes)).astype(np.float32)
        attributes = {"pads": [kernel // 2] * (2 * axes), "strides": [stride] * axes, "group": group}
        raw = self.add("Conv", [source], (weights,), **attributes)
        rest = (0, *range(2, 2 + axes))
        deviation, middle = self.values[raw].std(axis=rest) + 1e-6, self.values[raw].mean(axis=rest)
        size, offset = np.exp(self._random.normal(0, 0.4, channels)), self._random.normal(0, 0.4, channels)
        self._nodes.pop()
        scaled = weights * (size / deviation).reshape(-1, *(1,) * (1 + axes))
        bias = offset - middle * size / deviation
        return self.add("Conv", [source], (scaled.astype(np.float32), bias.astype(np.float32)), **attributes)

    def swish(self, source: str) -> str:
        """Add x * Sigmoid(x)."""
        return self.add("Mul", [source, self.add("Sigmoid", [source])])

    def gated(self, source: str, act: str, gate: str) -> str:
        """Add a squeeze and excitation."""
        count = self.values[source].shape[1]
        squeezed = self.activated(self.convolution(self.add("GlobalAveragePool", [source]), max(count // 4, 8), 1), act)
        return self.add("Mul", [source, self.add(gate, [self.convolution(squeezed, count, 1)])])

    def activated(self, source: str, act: str) -> str:
        """Add an activation; none if `act` is empty."""
        return self.swish(source) if act == "Swish" else self.add(act, [source]) if act else source

    def classified(self, source: str, labels: Array) -> onnx.ModelProto:
        """Return the model, with a dense layer behind the mean of each channel that fits the labels."""
        flat = self.add("Flatten", [self.add("GlobalAveragePool", [source])])
        features = self.values[flat].astype(np.float64)
        middle, wanted = features.mean(axis=0), 4 * np.eye(_CLASSES)[labels] - 4 / _CLASSES
        moments = (features - middle).T @ (features - middle)
        ridge = _RIDGE * np.trace(moments) / len(moments) * np.eye(len(moments))
        weights = np.linalg.solve(moments + ridge, (features - middle).T @ wanted)
        made = weights.T.astype(np.float32), (-middle @ weights).astype(np.float32)
        return self.model(self.add("Gemm", [flat], made, transB=1))

    def model(self, output: str) -> onnx.ModelProto:
        """Return the model of one sample that ends with a tensor."""
        return _model(self._nodes, ["x"], output, self._constants, {"x": [1, *self._samples.shape[1:]]})


def _model(
    nodes: list[onnx.NodeProto], inputs: list[str], output: str, constants: dict[str, Array], shapes: dict[str, Any]
) -> onnx.ModelProto:
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes, "invented",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes.get(name)) for name in dict.fromkeys(inputs)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items() if name in read],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)


def images(seed: int, count: int) -> tuple[Array, Array]:
    """Return stripes, discs and boxes (n, 3, 32, 32) of many colours and contrasts in noise, and their classes (n,)."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:32, 0:32] / 32.0
    labels, made = random.integers(0, _CLASSES, count), []
    for label in labels:
        angle, phase = (label % 5) * np.pi / 5 + random.normal(0, 0.05), random.uniform(0, 6)
        wave = np.sin((12 if label < 5 else 30) * (rows * np.sin(angle) + columns * np.cos(angle)) + phase)
        colours = random.uniform(-1, 1, (2, 3, 1, 1))
        image = colours[0] + colours[1] * wave + random.normal(0, 0.15, (3, 32, 32))
        made.append(image * np.exp(random.normal(0, 0.4)))
    return np.stack(made).astype(np.float32), labels


def signals(seed: int, count: int) -> tuple[Array, Array]:
    """Return waves (n, 2, 256) of ten pitches and of many amplitudes in noise, and their classes (n,)."""
    random, time = np.random.default_rng(seed), np.arange(256) / 256
    labels, made = random.integers(0, _CLASSES, count), []
    for label in labels:
        wave = np.sin(2 * np.pi * (3 + 2 * label) * time + random.uniform(0, 6))
        both = np.stack([wave, np.roll(wave, random.integers(0, 40)) * random.uniform(-1, 1)])
        made.append((both + random.normal(0, 0.4, both.shape)) * np.exp(random.normal(0, 0.4)))
    return np.stack(made).astype(np.float32), labels


def mobile(act: str, gate: str, seed: int) -> onnx.ModelProto:
    """Return inverted residuals with gates: MobileNetV3 (HardSwish, HardSigmoid), EfficientNet (Swish, Sigmoid)."""
    samples, labels = images(seed, _FITTED)
    builder = _Builder(samples, seed)
    tensor = builder.activated(builder.convolution("x", 16, 3, 2), act)
    for channels, wide, kernel, stride, gated in (
        (16, 32, 3, 1, True), (24, 64, 3, 2, False), (24, 96, 3, 1, False), (40, 96, 5, 2, True), (40, 160, 5, 1, True),
        (48, 144, 5, 1, True),
    ):  # fmt: skip
        before, tensor = tensor, builder.activated(builder.convolution(tensor, wide, 1), act)
        tensor = builder.activated(builder.convolution(tensor, wide, kernel, stride, wide), act)
        tensor = builder.gated(tensor, "Relu", gate) if gated else tensor
        tensor = builder.convolution(tensor, channels, 1)
        if builder.values[before].shape == builder.values[tensor].shape:
            tensor = builder.add("Add", [before, tensor])
    return builder.classified(builder.activated(builder.convolution(tensor, 128, 1), act), labels)


def residual(make: Callable[[int, int], tuple[Array, Array]], seed: int) -> onnx.ModelProto:
    """Return a residual network of one dimension or two, as its samples have."""
    samples, labels = make(seed, _FITTED)
    builder = _Builder(samples, seed)
    tensor = builder.add("Relu", [builder.convolution("x", 16, 5, 2)])
    for channels, stride in ((16, 1), (32, 2), (48, 2), (48, 1)):
        made = builder.convolution(builder.add("Relu", [builder.convolution(tensor, channels, 3, stride)]), channels, 3)
        if builder.values[made].shape != builder.values[tensor].shape:
            tensor = builder.convolution(tensor, channels, 1, stride)
        tensor = builder.add("Relu", [builder.add("Add", [made, tensor])])
    return builder.classified(tensor, labels)


def squeezed(seed: int) -> onnx.ModelProto:
    """Return a SqueezeNet: kernels of 1 x 1 and 3 x 3 side by side behind a narrow layer."""
    samples, labels = images(seed, _FITTED)
    builder = _Builder(samples, seed)
    tensor = builder.activated(builder.convolution("x", 32, 3, 2), "Relu")
    for narrow, wide, pooled in ((8, 24, False), (12, 24, True), (16, 32, False), (16, 48, True), (24, 64, False)):
        narrowed = builder.activated(builder.convolution(tensor, narrow, 1), "Relu")
        sides = [builder.activated(builder.convolution(narrowed, wide, kernel), "Relu") for kernel in (1, 3)]
        tensor = builder.add("Concat", sides, axis=1)
        if pooled:
            tensor = builder.add("MaxPool", [tensor], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    return builder.classified(tensor, labels)


def dense(seed: int) -> onnx.ModelProto:
    """Return a DenseNet: each layer reads the results of all before it."""
    samples, labels = images(seed, _FITTED)
    builder = _Builder(samples, seed)
    tensor = builder.activated(builder.convolution("x", 24, 3, 2), "Relu")
    for block in range(3):
        if block:
            tensor = builder.activated(builder.convolution(tensor, builder.values[tensor].shape[1] // 2, 1), "Relu")
            tensor = builder.add("AveragePool", [tensor], kernel_shape=[2, 2], strides=[2, 2])
        for _ in range(4):
            narrowed = builder.activated(builder.convolution(tensor, 32, 1), "Relu")
            grown = builder.activated(builder.convolution(narrowed, 12, 3), "Relu")
            tensor = builder.add("Concat", [tensor, grown], axis=1)
    return builder.classified(tensor, labels)


def separable(seed: int) -> onnx.ModelProto:
    """Return a keyword network: depthwise and pointwise layers along time."""
    samples, labels = signals(seed, _FITTED)
    builder = _Builder(samples, seed)
    tensor = builder.activated(builder.convolution("x", 32, 9, 2), "Relu")
    for channels, stride in ((32, 1), (48, 2), (48, 1), (64, 2), (64, 1)):
        count = builder.values[tensor].shape[1]
        tensor = builder.activated(builder.convolution(tensor, count, 9, stride, count), "Relu")
        tensor = builder.activated(builder.convolution(tensor, channels, 1), "Relu")
    return builder.classified(tensor, labels)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "invented MobileNetV3": lambda: mobile("HardSwish", "HardSigmoid", 11),
    "invented EfficientNet": lambda: mobile("Swish", "Sigmoid", 12),
    "invented ResNet": lambda: residual(images, 13),
    "invented ResNet, 1-D": lambda: residual(signals, 14),
    "invented SqueezeNet": lambda: squeezed(15),
    "invented DenseNet": lambda: dense(16),
    "invented keywords, 1-D": lambda: separable(17),
}


def write(name: str, folder: Path) -> Path:
    """Write a network to a folder, if it is not there; return its path."""
    path = folder / f"{name.replace(' ', '_')}.onnx"
    if not path.is_file():
        onnx.save(MODELS[name](), str(path))
    return path


def samples(name: str) -> dict[str, Array]:
    """Return samples by input that no weight was fitted to."""
    make = signals if name.endswith("1-D") else images
    return {"x": make(101, data.COUNT)[0]}
