"""A large softmax of floats reads int8 where the outputs stay as good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hilt.network.calibration import make_calibration
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_simplify import fixed_model
from hilt.network.quantize.quantizer import Quantisation, quantise

from .models import Array, model_of
from .test_powers import node

RANDOM = np.random.default_rng(3)
CONSTANTS: dict[str, Array] = {
    "w": RANDOM.normal(0, 0.3, (8, 8, 1, 1)).astype(np.float32),
    "v": RANDOM.normal(0, 0.3, (8, 8, 1, 1)).astype(np.float32),
    "scale": np.array(8**-0.5, np.float32),
    "mask": np.where(np.tri(36) > 0, 0, -1e9).astype(np.float32),
}
SCORES = [
    node("Conv", "x,w", "c"), node("Reshape", "c,rows", "k"), node("Transpose", "k", "q", perm=[0, 2, 1]),
    node("MatMul", "q,k", "m"), node("Mul", "m,scale", "s"),
]  # fmt: skip
MASKED = [*SCORES[:4], node("Mul", "m,scale", "u"), node("Add", "u,mask", "s")]
ATTENTION = [
    node("Softmax", "s", "p", axis=-1), node("MatMul", "p,q", "a"), node("Transpose", "a", "b", perm=[0, 2, 1]),
    node("Reshape", "b,image", "i"), node("Conv", "i,v", "y"),
]  # fmt: skip


def quantised(nodes: list[Any], size: float = 1.0, side: int = 6, **options: Any) -> Quantisation:
    """Return the quantisation for normal data of a standard deviation; a softmax has side**2 tokens."""
    named = {**CONSTANTS, "rows": np.array([1, 8, side**2]), "image": np.array([1, 8, side, side])}
    read = {name for each in nodes for name in each.input}
    constants = {name: value for name, value in named.items() if name in read}
    graph = fixed_model(model_of(nodes, {"x": (1, 8, side, side)}, constants), "test")
    canonicalise(graph)
    data = np.random.default_rng(1).normal(0, size, (16, 8, side, side)).astype(np.float32)
    return quantise(graph, make_calibration({"x": data}, graph), **options)


def operators(result: Quantisation) -> list[str]:
    return [each.op for each in result.graph.nodes if each.op.lower() == "softmax"]


def test_scores_of_an_attention_are_int8() -> None:
    result = quantised([*SCORES, *ATTENTION])
    assert operators(result) == ["softmax"]
    assert result.agreement.unexplained == 0 and not result.notes
    assert result.costs.outputs[0].decibels > 20


def test_a_softmax_that_is_kept_reads_floats() -> None:
    assert operators(quantised([*SCORES, *ATTENTION], kept=["p"])) == ["Softmax"]


@pytest.mark.parametrize(("nodes", "size"), [([*MASKED, *ATTENTION], 1.0), ([*SCORES, *ATTENTION], 16.0)])
def test_it_reads_floats_where_the_outputs_lose(nodes: list[Any], size: float) -> None:
    """A mask of -1e9 and scores of several hundreds leave the others too few steps."""
    result = quantised(nodes, size)
    assert operators(result) == ["Softmax"]
    assert result.notes == ("p reads floats: int8 would cost an output 0.5 dB and more",)


def test_a_small_softmax_reads_floats() -> None:
    result = quantised([*SCORES, *ATTENTION], side=5)
    assert operators(result) == ["Softmax"] and result.notes == ()


@pytest.mark.parametrize(("kept", "op"), [((), "softmax"), (("c",), "Softmax")])
def test_a_softmax_of_a_layer_times_a_number_reads_the_layers_int8_or_its_floats(kept: Sequence[str], op: str) -> None:
    nodes = [
        node("Conv", "x,w", "c"), node("Mul", "c,scale", "s"), node("Softmax", "s", "p", axis=1),
        node("Conv", "p,v", "y"),
    ]  # fmt: skip
    result = quantised(nodes, side=12, kept=kept)
    assert operators(result) == [op]
    assert sum(each.op == "quantize" for each in result.graph.nodes) == (1 if kept else 2)
