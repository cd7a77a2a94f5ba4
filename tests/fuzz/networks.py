"""Random networks from ONNX to tensors: `python -m tests.fuzz networks` makes a thousand.

Each network is some operators in a row or in branches, with sizes, kernels, strides and pads drawn at random.
It is quantised, compiled for one of the targets, read back, and run on the golden model. Every tensor must be the
reference's, the quantised file's answers must be ONNX Runtime's but for ties, and the answer must be the float model's
within int8's noise. A network that hilt refuses in one line is counted.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import helper, shape_inference

from hilt.network.calibration import Calibration, CalibrationError
from hilt.network.compile import UnplaceableError, compile_network
from hilt.network.graph import GraphError
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import graph_of, to_model
from hilt.network.onnx_import import import_proto
from hilt.network.onnx_simplify import fix
from hilt.network.quantize.quantizer import quantise
from hilt.network.random_inputs import random_inputs
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.target import aimed
from hilt.network.verify import compare, inside_of
from hilt_runtime import Network, read_bundle
from tests.unit.network.models import model_of, run_float
from tests.unit.network_compile.graphs import BATCHED, PYNQ, SMALL, banded, target, without_table

BLOCK32 = "1x32_i8w8a32_15_17_19_18"
BATCH2 = "2x16_i8w8a32_15_15_18_17"
TARGETS = (
    *(target(name) for name in (PYNQ, PYNQ, SMALL, BATCHED, BLOCK32)),
    *(banded(target(name)) for name in (BATCH2, BATCHED)),
)
_LEAST_DECIBELS = 8.0
_FROM_STATED = 3.0
"""An answer has so many decibels of the float model, or those that the quantiser states for it less so many."""
_MOST_ELEMENTS = 40_000
_REFUSALS = (GraphError, CalibrationError, UnplaceableError)
_ACTIVATIONS = ("Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Clip", "Tanh")


@dataclass
class NetworkStatistics:
    """The outcome of each network."""

    networks: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    tensors: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def fuzz_networks(count: int, seed: int, first: int = 0) -> NetworkStatistics:
    """Make and run networks `first` to `first + count` of a seed; network k of seed s is s/k."""
    statistics = NetworkStatistics()
    for number in range(first, first + count):
        try_one(seed, number, statistics)
    return statistics


def try_one(seed: int, number: int, statistics: NetworkStatistics) -> None:
    """Make and run a network, and add its outcome."""
    random = np.random.default_rng((seed, number))
    statistics.networks += 1
    try:
        _run(RandomNetwork(random), random, statistics)
    except _REFUSALS as error:
        statistics.refused[type(error).__name__] += 1
    except Exception as error:  # whatever is no refusal is a fault
        statistics.wrong.append(f"{seed}/{number}: {type(error).__name__}: {error}")


class RandomNetwork:
    """An ONNX model drawn at random, operator by operator.

    Attributes:
        model: The ModelProto. Its input is x, its output y.
    """

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        channels, images = int(random.choice([1, 3, 8, 16, 17, 32, 48])), int(random.choice([1, 1, 1, 2, 3]))
        shape = (images, channels, int(random.integers(4, 20)), int(random.integers(4, 20)))
        self._shapes = {"x": shape}
        name = self._conv("x")
        steps = [self._conv, self._depthwise, self._depthwise, self._activation, self._pool, self._join, self._resize]
        for _ in range(int(random.integers(2, 8))):
            name = steps[int(random.integers(len(steps)))](name)
        name = self._conv(name)
        self._nodes.append(helper.make_node("Identity", [name], ["y"]))
        self.model = model_of(self._nodes, {"x": shape}, self._constants)

    def _pick(self, *values: Any) -> Any:
        return values[int(self._random.integers(len(values)))]

    def _add(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """Add a node if its output has a size; return its name, or the name of its first input."""
        name = f"t{len(self._nodes)}"
        node = helper.make_node(op, inputs, [name], **attributes)
        model = model_of([*self._nodes, node], {"x": self._shapes["x"]}, self._constants, (name,))
        try:
            inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        except shape_inference.InferenceError:
            return inputs[0]
        sizes = inferred.graph.output[0].type.tensor_type.shape.dim
        shape = tuple(int(size.dim_value) for size in sizes)
        if len(shape) != 4 or min(shape) < 1 or math.prod(shape) > _MOST_ELEMENTS:
            return inputs[0]
        self._nodes.append(node)
        self._shapes[name] = shape
        return name

    def _weights(self, *shape: int) -> str:
        name = f"w{len(self._constants)}"
        scale = 1.4 / math.sqrt(math.prod(shape[1:]))
        self._constants[name] = self._random.normal(0, scale, shape).astype(np.float32)
        return name

    def _bias(self, channels: int) -> str:
        name = f"b{len(self._constants)}"
        self._constants[name] = self._random.normal(0, self._pick(0.1, 0.5, 3.0), channels).astype(np.float32)
        return name

    def _window(self, name: str, kernels: tuple[int, ...]) -> dict[str, Any]:
        high, wide = self._shapes[name][2:]
        kernel = [min(self._pick(*kernels), high), min(self._pick(*kernels), wide)]
        if self._random.random() < 0.5:
            kernel[1] = min(kernel[0], wide)
        stride = self._pick([1, 1], [1, 1], [2, 2], [2, 1], [1, 3])
        pads = [
            int(self._random.integers(0, size)) if self._random.random() < 0.7 else 0 for size in (*kernel, *kernel)
        ]
        return {"kernel_shape": kernel, "strides": stride, "pads": pads}

    def _conv(self, name: str) -> str:
        groups, channels = 1, self._shapes[name][1]
        made = int(self._pick(8, 16, 16, 24, 32, 40))
        window = self._window(name, (1, 1, 2, 3, 3, 5))
        weights = self._weights(made, channels // groups, *window["kernel_shape"])
        return self._add("Conv", [name, weights, self._bias(made)], **window)

    def _depthwise(self, name: str) -> str:
        channels = self._shapes[name][1]
        window = self._window(name, (1, 2, 3, 3, 3, 4, 5, 7))
        if self._random.random() < 0.15:
            window["dilations"] = [2, 2]
        weights = self._weights(channels, 1, *window["kernel_shape"])
        made = self._add("Conv", [name, weights, self._bias(channels)], group=channels, **window)
        return self._activation(made) if self._random.random() < 0.5 else made

    def _activation(self, name: str) -> str:
        op = self._pick(*_ACTIVATIONS)
        if op != "Clip":
            return self._add(op, [name])
        self._constants["low"], self._constants["high"] = np.float32(0), np.float32(6)
        return self._add(op, [name, "low", "high"])

    def _pool(self, name: str) -> str:
        op = self._pick("MaxPool", "AveragePool", "GlobalAveragePool")
        if op == "GlobalAveragePool":
            gate = self._add("HardSigmoid", [self._add(op, [name])])
            return self._add("Mul", [name, gate])
        return self._add(op, [name], **self._window(name, (2, 3, 3)))

    def _join(self, name: str) -> str:
        """Add, multiply or concatenate with an earlier tensor, or with a branch of this one."""
        shape = self._shapes[name]
        same = [each for each, size in self._shapes.items() if size == shape and each not in (name, "x")]
        other = self._pick(*same) if same and self._random.random() < 0.5 else self._activation(name)
        op = self._pick("Add", "Mul", "Concat", "Concat")
        if other == name:
            return name
        return self._add(op, [name, other], **({"axis": 1} if op == "Concat" else {}))

    def _resize(self, name: str) -> str:
        kind = self._pick("Resize", "Slice", "Transpose")
        if kind == "Resize":
            self._constants["scales"] = np.array([1, 1, self._pick(1, 2), 2], np.float32)
            self._constants["no_roi"] = np.zeros(0, np.float32)
            return self._add(
                "Resize",
                [name, "no_roi", "scales"],
                mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            )
        if kind == "Slice":
            for each, value in (("from", 0), ("to", max(self._shapes[name][1] // 2, 1)), ("axis", 1)):
                self._constants[each] = self._constants.get(each, np.array([value], np.int64))
            return self._add("Slice", [name, "from", "to", "axis"])
        return self._add("Transpose", [self._add("Transpose", [name], perm=[0, 2, 3, 1])], perm=[0, 3, 1, 2])


def _run(network: RandomNetwork, random: np.random.Generator, statistics: NetworkStatistics) -> None:
    graph = graph_of(network.model, "random")
    fix(graph, {}, {})
    canonicalise(graph)
    samples = [{"x": random.normal(0, 1, graph.shape("x")).astype(np.float32)} for _ in range(3)]
    result = quantise(graph, Calibration(tuple(samples)), search=False)
    assert result.agreement.unexplained == 0, "the reference is not ONNX Runtime"
    integer = import_proto(to_model(result.model), "random")
    aim = TARGETS[int(random.integers(len(TARGETS)))]
    aim = without_table(aim) if random.random() < 0.25 else aim
    aim = aimed(aim, integer, None)
    inputs = random_inputs(integer)
    with SimulatedVta(aim) as device:
        bundle = read_bundle(compile_network(integer, aim).data, "random")
        inference = Network(bundle, device, keep=True).run(inputs)
    expected = evaluate(integer, inputs)
    statistics.tensors += compare(inference.tensors, expected, integer, inside_of(bundle.manifest)).tensors
    statistics.operators.update(node.op for node in integer.nodes)
    (wanted, *_), given = run_float(network.model, inputs), expected[integer.outputs[0]]
    noise, signal = float(np.mean((wanted - given) ** 2)), float(np.mean(wanted**2))
    least = min(_LEAST_DECIBELS, result.costs.decibels - _FROM_STATED)
    assert noise <= signal / 10 ** (least / 10), f"{10 * math.log10(signal / noise):.1f} dB of the float model"
