"""Random float graphs, centred or equalised: the function stays, whatever operators read a tensor beside int8's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration, Feeds, Runner, hold_out
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize import shifts
from hilt.network.quantize.centre import centred
from hilt.network.quantize.equalise import equalised
from hilt.network.quantize.regions import find_regions
from hilt.network.quantize.scales import initial_scales
from hilt.network.quantize.statistics import observe

from .models import Array, canonical, model_of

SAMPLES = 24


@dataclass
class Drawn:
    """A graph that is being drawn: nodes, constants, and the tensors (8 channels, 6 x 6) that further ones may read."""

    random: np.random.Generator
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    tensors: list[str] = field(default_factory=lambda: ["x"])

    def constant(self, values: Any) -> str:
        self.constants[f"c{len(self.constants)}"] = np.asarray(values)
        return f"c{len(self.constants) - 1}"

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def one(self) -> str:
        return str(self.random.choice(self.tensors[-4:]))

    def layer(self, data: str, channels: int = 8) -> str:
        weights = self.random.normal(0, 0.5, (8, channels, 1, 1)).astype(np.float32)
        bias = self.random.normal(0, 1, 8).astype(np.float32)
        return self.node("Conv", data, self.constant(weights), self.constant(bias))

    def sizes(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))


def enlarged(drawn: Drawn) -> str:
    """Halved and enlarged again, between pixels or by the nearest."""
    small = drawn.node("MaxPool", drawn.one(), kernel_shape=[2, 2], strides=[2, 2])
    mode = str(drawn.random.choice(["linear", "nearest"]))
    scales = drawn.constant(np.array([1, 1, 2, 2], np.float32))
    coordinates = "half_pixel" if mode == "linear" else "asymmetric"
    attributes = {"nearest_mode": "floor"} if mode == "nearest" else {}
    return drawn.node("Resize", small, "", scales, mode=mode, coordinate_transformation_mode=coordinates, **attributes)


def padded(drawn: Drawn) -> str:
    """A border of a constant or of the image, cut off again at another place."""
    mode = str(drawn.random.choice(["constant", "reflect"]))
    fill = [drawn.constant(np.array(drawn.random.choice([0, 0.7]), np.float32))] if mode == "constant" else []
    wide = drawn.node("Pad", drawn.one(), drawn.sizes(0, 0, 1, 1, 0, 0, 1, 1), *fill, mode=mode)
    return drawn.node("Slice", wide, drawn.sizes(0, 1), drawn.sizes(6, 7), drawn.sizes(2, 3))


OPERATORS: dict[str, Callable[[Drawn], str]] = {
    "layer": lambda drawn: drawn.layer(drawn.one()),
    "Relu": lambda drawn: drawn.node("Relu", drawn.one()),
    "HardSwish": lambda drawn: drawn.node("HardSwish", drawn.one()),
    "Sigmoid": lambda drawn: drawn.node("Sigmoid", drawn.one()),
    "Softmax": lambda drawn: drawn.node("Softmax", drawn.one(), axis=1),
    "Add": lambda drawn: drawn.node("Add", drawn.one(), drawn.one()),
    "Mul": lambda drawn: drawn.node("Mul", drawn.one(), drawn.one()),
    "joined": lambda drawn: drawn.layer(drawn.node("Concat", drawn.one(), drawn.one(), axis=1), 16),
    "turned": lambda drawn: drawn.node("Transpose", drawn.one(), perm=[0, 1, 3, 2]),
    "enlarged": enlarged,
    "padded": padded,
}


def drawn_model(seed: int) -> Any:
    drawn = Drawn(np.random.default_rng(seed))
    for _ in range(int(drawn.random.integers(5, 12))):
        drawn.tensors.append(OPERATORS[str(drawn.random.choice(list(OPERATORS)))](drawn))
    drawn.tensors.append(drawn.layer(drawn.tensors[-1]))
    outputs = [drawn.tensors[-1], *([drawn.tensors[-3]] if seed % 3 == 0 and drawn.tensors[-3] != "x" else [])]
    return model_of(drawn.nodes, {"x": (1, 8, 6, 6)}, drawn.constants, list(dict.fromkeys(outputs)), opset=18)


def forms(graph: OnnxGraph, feeds: tuple[Feeds, ...]) -> Iterator[OnnxGraph]:
    """Yield the graph centred, and equalised by the activations' ranges, where that changes it."""
    regions = find_regions(graph)
    statistics = observe(graph, regions.tensors, hold_out(Calibration(feeds)).fitted)
    scales = initial_scales(graph, regions, statistics, 0)
    for made in (centred(graph, regions, statistics, scales), equalised(graph, regions.ends, statistics, 1.0)):
        if made is not None:
            yield made


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 160, 40))
def test_another_form_of_a_graph_computes_the_same(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the clip of nearly flat ends, which may lose a quarter of a step."""
    monkeypatch.setattr(shifts, "_LEAST_FLAT", shifts._GRID)
    changed = 0
    for seed in range(first, first + 40):
        graph = canonical(drawn_model(seed))
        random = np.random.default_rng(seed)
        feeds = tuple({"x": random.normal(0.3, 1, (1, 8, 6, 6)).astype(np.float32)} for _ in range(SAMPLES))
        before = [Runner(graph, graph.outputs).run(each) for each in feeds[:2]]
        for made in forms(graph, feeds):
            changed += 1
            after = Runner(made, graph.outputs)
            for each, wanted in zip(feeds, before, strict=False):
                given = after.run(each)
                for name in graph.outputs:
                    largest = np.abs(wanted[name]).max()
                    np.testing.assert_allclose(given[name], wanted[name], atol=1e-4 * largest, err_msg=f"seed {seed}")
    assert changed >= 20
