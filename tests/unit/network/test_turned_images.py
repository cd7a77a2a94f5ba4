"""Dense layers by pixel between Transposes are convolutions of 1 x 1; other nodes stay."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration, Runner
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.onnx_simplify import fixed_model
from hilt.network.onnx_turned_images import keep_channels_second
from hilt.network.quantize.quantizer import quantise

from .models import Array, canonical, model_of, run_float

node = helper.make_node
LAST, SECOND = {4: [0, 2, 3, 1], 3: [0, 2, 1]}, {4: [0, 3, 1, 2], 3: [0, 2, 1]}
SHAPES = {4: (2, 6, 5, 7), 3: (2, 6, 5)}


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(np.float32)


CONSTANTS: dict[str, Array] = {
    "w": normal(6, 8), "v": normal(8, 6, seed=1), "b": normal(8, seed=2), "g": normal(6, seed=3),
    "scale": normal(6, seed=4), "root": np.array(2**0.5, np.float32), "one": np.array(1, np.float32),
    "rows": normal(5, 1, 1, seed=5),
}  # fmt: skip
BLOCK = [
    ("LayerNormalization", ["a", "scale"], "n", {"axis": -1}),
    ("MatMul", ["n", "w"], "p", {}),
    ("Add", ["p", "b"], "h", {}),
    ("Div", ["h", "root"], "d", {}),
    ("Erf", ["d"], "e", {}),
    ("Add", ["e", "one"], "f", {}),
    ("Mul", ["h", "f"], "i", {}),
    ("MatMul", ["i", "v"], "q", {}),
    ("Mul", ["g", "q"], "z", {}),
]
"""A block of ConvNeXt's kind, with a GELU."""


def model(middle: list[Any], rank: int, behind: list[Any], outputs: tuple[str, ...] = ("y",)) -> Any:
    nodes = [
        node("Transpose", ["x"], ["a"], perm=LAST[rank]),
        *(node(op, inputs, [out], **attributes) for op, inputs, out, attributes in middle),
        *(node(op, inputs, [out], **attributes) for op, inputs, out, attributes in behind),
    ]
    used = {name for each in nodes for name in each.input}
    return model_of(nodes, {"x": SHAPES[rank]}, {name: CONSTANTS[name] for name in used & CONSTANTS.keys()}, outputs)


def turned(given: Any, rank: int) -> Counter[str]:
    """Assert that a graph computes as before; return how often it has each operator afterwards."""
    graph: OnnxGraph = fixed_model(given, "turned")
    keep_channels_second(graph)
    feeds = {"x": normal(*SHAPES[rank], seed=9)}
    made = Runner(graph, graph.outputs).run(feeds)
    for name, wanted in zip(graph.outputs, run_float(given, feeds), strict=True):
        np.testing.assert_allclose(made[name], wanted, rtol=1e-4, atol=1e-5)
    return Counter(each.op for each in graph.nodes)


@pytest.mark.parametrize("rank", [3, 4])
def test_products_between_transposes_are_convolutions(rank: int) -> None:
    """A normalization keeps two of them, which integers do without."""
    behind = [("Transpose", ["z"], "t", {"perm": SECOND[rank]}), ("Add", ["x", "t"], "y", {})]
    found = turned(model(BLOCK, rank, behind), rank)
    assert (found["Conv"], found["MatMul"], found["Transpose"]) == (2, 0, 2)
    plain = turned(model([("Relu", ["a"], "n", {}), *BLOCK[1:]], rank, behind), rank)
    assert (plain["Conv"], plain["MatMul"], plain["Transpose"]) == (2, 0, 0)


def test_several_results_are_turned_back() -> None:
    middle = [("MatMul", ["a", "w"], "p", {}), ("Relu", ["p"], "r", {})]
    behind = [
        ("Transpose", ["p"], "y", {"perm": SECOND[4]}), ("Transpose", ["r"], "s", {"perm": SECOND[4]}),
        ("Neg", ["s"], "u", {}),
    ]  # fmt: skip
    assert turned(model(middle, 4, behind, ("y", "u")), 4) == {"Conv": 1, "Relu": 1, "Neg": 1, "Identity": 1}


BACK = ("Transpose", ["z"], "y", {"perm": SECOND[4]})
OTHERS: dict[str, tuple[list[Any], list[Any], tuple[str, ...]]] = {
    "a result with channels last": (BLOCK, [BACK], ("y", "z")),
    "a reader of rows": (BLOCK, [BACK, ("ReduceMax", ["z"], "u", {"axes": [1]})], ("y", "u")),
    "another order": (BLOCK, [("Transpose", ["z"], "y", {"perm": [0, 3, 2, 1]})], ("y",)),
    "a constant of rows": ([*BLOCK[:8], ("Mul", ["rows", "q"], "z", {})], [BACK], ("y",)),
    "no product": ([("Relu", ["a"], "z", {})], [BACK], ("y",)),
    "nothing turned back": (BLOCK, [("Neg", ["z"], "y", {})], ("y",)),
    "a norm of rows": ([("LayerNormalization", ["a", "g2"], "n", {"axis": 2}), *BLOCK[1:]], [BACK], ("y",)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_nodes_stay(name: str) -> None:
    middle, behind, outputs = OTHERS[name]
    CONSTANTS.setdefault("g2", normal(7, 6, seed=6))
    given = model(middle, 4, behind, outputs)
    before = Counter(each.op_type for each in given.graph.node)
    assert turned(given, 4) == before


def test_a_block_of_convnext_turns_nothing_in_integers() -> None:
    nodes = [
        node("Conv", ["x", "k", "kb"], ["c"], pads=[1] * 4, group=6),
        node("Transpose", ["c"], ["a"], perm=LAST[4]),
        *(node(op, inputs, [out], **attributes) for op, inputs, out, attributes in BLOCK),
        node("Transpose", ["z"], ["t"], perm=SECOND[4]),
        node("Add", ["x", "t"], ["y0"]),
        node("Conv", ["y0", "u"], ["y"]),
    ]
    constants = {"k": normal(6, 1, 3, 3, seed=7), "kb": normal(6, seed=8), "u": normal(8, 6, 1, 1, seed=10)}
    used = {name for each in nodes for name in each.input} & CONSTANTS.keys()
    given = model_of(nodes, {"x": (1, 6, 8, 8)}, {**constants, **{name: CONSTANTS[name] for name in used}})
    samples = tuple({"x": normal(1, 6, 8, 8, seed=seed)} for seed in range(20, 44))
    result = quantise(canonical(given), Calibration(samples), search=False)
    operators = Counter(each.op for each in result.graph.nodes)
    assert not {"transpose", "Transpose", "reshape", "Reshape"} & set(operators)
    assert operators["conv2d"] == 4 and operators["normalization"] == 1
    assert result.agreement.unexplained == 0 and result.costs.decibels > 25
