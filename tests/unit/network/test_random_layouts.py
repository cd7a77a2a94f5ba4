"""Random graphs whose images lie channels last and first by turns, as converters write them: the function stays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Runner

from .models import Array, canonical, model_of, run_float

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]
MOST_ELEMENTS = 3000


@dataclass
class Drawn:
    """A graph that is being drawn: nodes, constants, and tensors by name with their shapes, channels last."""

    random: np.random.Generator
    opset: int
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    tensors: dict[str, tuple[int, ...]] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)

    def constant(self, values: Any) -> str:
        self.constants[f"c{len(self.constants)}"] = np.asarray(values)
        return f"c{len(self.constants) - 1}"

    def floats(self, *shape: int) -> str:
        return self.constant(self.random.normal(0, 1, shape).astype(np.float32))

    def sizes(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def below(self, end: int, start: int = 0) -> int:
        return int(self.random.integers(start, end))

    def one(self) -> str:
        names = list(self.tensors)
        return names[max(self.below(len(names)), self.below(len(names)))]

    def keep(self, name: str, *shape: int) -> None:
        if np.prod(shape) <= MOST_ELEMENTS:
            self.tensors[name] = shape
        else:
            self.ends.append(name)


def turned(drawn: Drawn) -> None:
    """A layer on channels first between two Transposes."""
    data = drawn.one()
    images, height, width, channels = drawn.tensors[data]
    first = drawn.node("Transpose", data, perm=FIRST)
    outs = drawn.below(4, 1)
    first = drawn.node("Conv", first, drawn.floats(outs, channels, 1, 1))
    drawn.keep(drawn.node("Transpose", first, perm=LAST), images, height, width, outs)


def unary(drawn: Drawn) -> None:
    data = drawn.one()
    drawn.keep(drawn.node(str(drawn.random.choice(["Relu", "Sigmoid", "Neg", "Identity"])), data), *drawn.tensors[data])


def with_constant(drawn: Drawn) -> None:
    """A constant of one item, of the channels, or of any axes, on either side."""
    data = drawn.one()
    shape = drawn.tensors[data]
    of = [(), (1,), shape[3:], shape[1:], (1, *shape[1:3], 1), (shape[1], 1, shape[3])][drawn.below(6)]
    pair = [data, drawn.floats(*of)]
    op = str(drawn.random.choice(["Add", "Sub", "Mul"]))
    drawn.keep(drawn.node(op, *(pair if drawn.chance() else pair[::-1])), *shape)


def two(drawn: Drawn) -> None:
    data = drawn.one()
    others = [name for name, shape in drawn.tensors.items() if shape == drawn.tensors[data]]
    drawn.keep(drawn.node("Add", data, others[drawn.below(len(others))]), *drawn.tensors[data])


def joined(drawn: Drawn) -> None:
    data = drawn.one()
    axis = drawn.below(4, 1)
    shape = drawn.tensors[data]
    rest = [*shape[:axis], *shape[axis + 1 :]]
    fits = [name for name, other in drawn.tensors.items() if [*other[:axis], *other[axis + 1 :]] == rest]
    parts = [data, *(fits[drawn.below(len(fits))] for _ in range(drawn.below(3, 1)))]
    size = sum(drawn.tensors[name][axis] for name in parts)
    made = drawn.node("Concat", *parts, axis=axis - 4 if drawn.chance() else axis)
    drawn.keep(made, *shape[:axis], size, *shape[axis + 1 :])


def padded(drawn: Drawn) -> None:
    data = drawn.one()
    shape = drawn.tensors[data]
    pads = [0, *(drawn.below(3) for _ in range(2)), 0, 0, *(drawn.below(3) for _ in range(2)), drawn.below(2)]
    value = [drawn.constant(np.float32(1.5))] if drawn.chance() else []
    made = drawn.node("Pad", data, drawn.sizes(*pads), *value)
    drawn.keep(made, *(size + pads[axis] + pads[axis + 4] for axis, size in enumerate(shape)))


def sliced(drawn: Drawn) -> None:
    data = drawn.one()
    shape = list(drawn.tensors[data])
    axes = [axis for axis in (1, 2, 3) if shape[axis] > 1 and drawn.chance()]
    if not axes:
        return
    starts = [drawn.below(shape[axis]) for axis in axes]
    ends = [drawn.below(shape[axis] + 1, start + 1) for axis, start in zip(axes, starts, strict=True)]
    given = [axis - 4 if drawn.chance() else axis for axis in axes]
    more = [drawn.sizes(*[1] * len(axes))] if drawn.chance() else []
    made = drawn.node("Slice", data, drawn.sizes(*starts), drawn.sizes(*ends), drawn.sizes(*given), *more)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        shape[axis] = end - start
    drawn.keep(made, *shape)


def mean(drawn: Drawn) -> None:
    data = drawn.one()
    images, _, _, channels = drawn.tensors[data]
    keep = drawn.chance()
    given = [[1, 2], [2, 1], [-3, -2], [1, 3]][drawn.below(4)]
    if drawn.opset < 18:
        made = drawn.node("ReduceMean", data, axes=given, keepdims=int(keep))
    else:
        made = drawn.node("ReduceMean", data, drawn.sizes(*given), keepdims=int(keep))
    if keep and given != [1, 3]:
        drawn.keep(made, images, 1, 1, channels)
    else:
        drawn.ends.append(made)


def flattened(drawn: Drawn) -> None:
    """A dense layer behind an image that is made a row."""
    data = drawn.one()
    count = int(np.prod(drawn.tensors[data][1:]))
    row = drawn.node("Reshape", data, drawn.sizes(drawn.tensors[data][0], count))
    for _ in range(drawn.below(3, 1)):
        by = drawn.chance(0.8)
        weights = drawn.floats(3, count) if by else drawn.floats(count, 3)
        drawn.ends.append(drawn.node("Gemm", row, weights, drawn.floats(3), transB=int(by)))


def of_sequences(drawn: Drawn) -> None:
    """A side of 1 that is dropped, and comes back behind an operator."""
    data = drawn.one()
    images, height, width, channels = drawn.tensors[data]
    if 1 not in (height, width):
        return
    length = max(height, width)
    row = drawn.node("Reshape", data, drawn.sizes(images, length, channels))
    row = drawn.node("Add", drawn.node("Relu", row), drawn.floats(channels))
    sides = (1, length) if drawn.chance() else (length, 1)
    drawn.keep(drawn.node("Reshape", row, drawn.sizes(images, *sides, channels)), images, *sides, channels)


STEPS = (turned, turned, unary, with_constant, two, joined, joined, padded, sliced, mean, flattened, of_sequences)


def model(seed: int) -> tuple[Any, dict[str, Array]]:
    drawn = Drawn(np.random.default_rng(seed), 17 + seed % 2)
    images, channels = 1 + drawn.chance(0.2), drawn.below(4, 1)
    height, width = (1, 5) if drawn.chance(0.3) else (4, 5)
    inputs = {"x": (images, height, width, channels), "z": (images, height, width, 1)}
    drawn.tensors |= inputs
    drawn.tensors[drawn.node("Transpose", drawn.node("Transpose", "x", perm=FIRST), perm=LAST)] = drawn.tensors["x"]
    for _ in range(drawn.below(14, 5)):
        STEPS[drawn.below(len(STEPS))](drawn)
    read = {name for node in drawn.nodes for name in node.input}
    outputs = [name for name in [*drawn.tensors, *drawn.ends] if name not in read and name not in inputs]
    made = model_of(drawn.nodes, inputs, drawn.constants, outputs=outputs, opset=drawn.opset)
    return made, {name: drawn.random.normal(0, 1, shape).astype(np.float32) for name, shape in inputs.items()}


def held(made: Any, feeds: dict[str, Array]) -> Counter[str]:
    """Hold the canonical form against the model in ONNX Runtime; return how often it has each operator."""
    graph = canonical(made)
    given = list(Runner(graph, graph.outputs).run(feeds).values())
    for first, second in zip(run_float(made, feeds), given, strict=True):
        assert first.shape == second.shape
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)
    return Counter(node.op for node in graph.nodes)


@pytest.mark.parametrize("seed", range(40))
def test_moving_transposes_leaves_the_function(seed: int) -> None:
    held(*model(seed))


def test_a_function_of_a_tensor_that_is_joined_with_itself_is_computed_once() -> None:
    """Two nodes of one name were, and Transposes that were moved behind them made one tensor twice."""
    drawn = Drawn(np.random.default_rng(1), 17)
    drawn.tensors["x"] = (1, 4, 5, 3)
    turned(drawn)
    layer = f"t{len(drawn.nodes) - 1}"
    made = drawn.node("Sigmoid", drawn.node("Concat", layer, layer, axis=1))
    feeds = {"x": drawn.random.normal(0, 1, (1, 4, 5, 3)).astype(np.float32)}
    assert held(model_of(drawn.nodes, {"x": (1, 4, 5, 3)}, drawn.constants, [made]), feeds)["Sigmoid"] == 1
