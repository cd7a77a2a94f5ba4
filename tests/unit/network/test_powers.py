"""Powers stay float where their square root or logarithm is taken: int8 would lose the small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration, Runner, make_calibration
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.onnx_simplify import fixed_model
from hilt.network.quantize.powers import find_powers
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.regions import MOVES, find_regions
from hilt.network.quantize.statistics import signal_to_noise

from .models import Array, model_of

BINS = 8
IMAGE = (1, 2 * BINS, 1, 6)
CONSTANTS = {
    "w": np.eye(2 * BINS, dtype=np.float32).reshape(2 * BINS, 2 * BINS, 1, 1),
    "v": np.full((4, BINS, 1, 1), 0.5, np.float32),
    "v_wide": np.full((4, 2 * BINS, 1, 1), 0.5, np.float32),
    "zero": np.array([0]),
    "half": np.array([BINS]),
    "end": np.array([2 * BINS]),
    "axis": np.array([1]),
    "eps": np.array(1e-3, np.float32),
    "quarter": np.array(0.25, np.float32),
    "three": np.array(3, np.float32),
    "third": np.array(1 / 3, np.float32),
}


def node(op: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(","), [output], name=output, **attributes)


HALVES = [node("Slice", "c,zero,half,axis", "re"), node("Slice", "c,half,end,axis", "im")]
SQUARES = [*HALVES, node("Mul", "re,re", "p"), node("Mul", "im,im", "q")]
ROOT = [node("Sqrt", "s", "m"), node("Conv", "m,v", "y")]
GEM = [
    node("Pow", "c,three", "p"), node("GlobalAveragePool", "p", "s"), node("Pow", "s,third", "m"),
    node("Conv", "m,v_wide", "y"),
]  # fmt: skip


def graph_of(nodes: list[Any]) -> OnnxGraph:
    nodes = [node("Conv", "x,w", "c"), *nodes]
    read = {name for each in nodes for name in each.input}
    constants: dict[str, Array] = {name: value for name, value in CONSTANTS.items() if name in read}
    return fixed_model(model_of(nodes, {"x": IMAGE}, constants), "test")


@pytest.mark.parametrize(
    ("nodes", "powers"),
    [
        ([*SQUARES, node("Add", "p,q", "s"), *ROOT], {"p", "q", "s"}),
        ([*SQUARES, node("Add", "p,q", "t"), node("Add", "t,eps", "s"), *ROOT], {"p", "q", "t"}),
        ([*SQUARES, node("Add", "p,q", "s"), node("Log", "s", "m"), ROOT[1]], {"p", "q", "s"}),
        ([*HALVES, node("Mul", "re,im", "s"), *ROOT], {"s"}),
        ([*SQUARES, node("Add", "p,q", "s"), node("Relu", "s", "m"), ROOT[1]], set()),
        ([*HALVES, node("Add", "re,im", "s"), *ROOT], set()),
        ([node("Mul", "c,c", "p"), node("Add", "p,eps", "s"), ROOT[0], node("Conv", "m,v_wide", "y")], set()),
        (GEM, {"p", "s"}),
        ([*GEM[:2], node("Relu", "s", "m"), GEM[3]], set()),
        ([GEM[0], node("Pow", "p,third", "m"), GEM[3]], set()),
    ],
    ids=[
        "root of a sum", "beside a constant", "logarithm", "two factors", "no root", "no power", "of one tensor",
        "generalized mean", "mean of cubes", "cube root of a cube",
    ],
)  # fmt: skip
def test_powers_are_between_products_and_a_root(nodes: list[Any], powers: set[str]) -> None:
    graph = graph_of(nodes)
    assert find_powers(graph, MOVES) == powers
    assert not powers & set(find_regions(graph).tensors)


def test_a_scaled_and_moved_power_is_one() -> None:
    """Whatever lies between: a constant factor, a mean of pixels, another order."""
    pool = node("AveragePool", "a", "b", kernel_shape=[1, 2], strides=[1, 2])
    turned = [node("Mul", "p,quarter", "a"), pool, node("Transpose", "b", "s", perm=[0, 1, 3, 2])]
    graph = graph_of([*SQUARES[:1], SQUARES[2], *turned, *ROOT])
    assert find_powers(graph, MOVES) == {"a", "b", "p", "s"}


def test_a_spectrum_keeps_its_quiet_bins() -> None:
    """One bin is six times as loud as the others. As int8 their powers would be a step or two."""
    random = np.random.default_rng(5)
    loud = np.where(np.arange(2 * BINS) % BINS == 0, 6.0, 1.0).reshape(1, -1, 1, 1)
    data = (random.normal(size=(32, *IMAGE[1:])) * loud).astype(np.float32)
    weights = {"v": random.normal(size=(4, BINS, 1, 1)).astype(np.float32) / loud[:, :BINS].astype(np.float32)}
    nodes = [node("Conv", "x,w", "c"), *SQUARES, node("Add", "p,q", "s"), *ROOT]
    read = {name for each in nodes for name in each.input}
    constants = {name: value for name, value in {**CONSTANTS, **weights}.items() if name in read}
    graph = fixed_model(model_of(nodes, {"x": IMAGE}, constants), "test")
    canonicalise(graph)
    samples = make_calibration({"x": data}, graph).samples
    wanted = list(Runner(graph, ["y"]).over(samples[16:]))
    given = list(Runner(quantise(graph, Calibration(samples[:16])).model, ["y"]).over(samples[16:]))
    assert np.mean([signal_to_noise(*pair) for pair in zip(wanted, given, strict=True)]) > 20
