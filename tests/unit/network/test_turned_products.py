"""Products of pixels in front of a Transpose to channels first are convolutions behind one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Runner

from .models import Array, canonical, model_of, run_float

node = helper.make_node


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 1, shape).astype(np.float32)


def same(nodes: list[Any], shape: tuple[int, ...], constants: dict[str, Array]) -> list[str]:
    """Assert that the canonical form computes as the model does; return its operators."""
    model = model_of(nodes, {"x": shape}, constants)
    graph, feeds = canonical(model), {"x": normal(*shape)}
    (given,) = Runner(graph, graph.outputs).run(feeds).values()
    np.testing.assert_allclose(given, run_float(model, feeds)[0], rtol=1e-4, atol=1e-4)
    return [each.op for each in graph.nodes]


SEQUENCE: dict[str, Array] = {"w": normal(6, 8), "b": normal(8), "k": normal(4, 8, 3)}


def along_time(*between: Any) -> list[Any]:
    """Return a product of each step of (1, 10, 6), `between` from "p" to "q", and a convolution along time."""
    return [
        node("MatMul", ["x", "w"], ["p"]),
        *between,
        node("Transpose", ["q"], ["t"], perm=[0, 2, 1]),
        node("Conv", ["t", "k"], ["y"]),
    ]


@pytest.mark.parametrize(
    "between",
    [
        [node("Relu", ["p"], ["q"])],
        [node("Add", ["p", "b"], ["r"]), node("Sigmoid", ["r"], ["q"])],
        [node("Mul", ["p", "b"], ["r"]), node("Clip", ["r", "low", "high"], ["q"])],
    ],
)
def test_a_product_of_each_step_is_a_convolution(between: list[Any]) -> None:
    constants = SEQUENCE | {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    operators = same(along_time(*between), (1, 10, 6), constants)
    assert operators.count("Conv") == 2 and "Gemm" not in operators
    assert operators.index("Transpose") < operators.index("Conv")


def test_two_products_between_convolutions_need_no_transpose() -> None:
    """Those of channels last between two of channels first, as networks of images with linear layers have them."""
    nodes = [
        node("Conv", ["x", "k"], ["c"], pads=[1] * 4, group=6),
        node("Transpose", ["c"], ["l"], perm=[0, 2, 3, 1]),
        node("MatMul", ["l", "w"], ["p"]),
        node("Add", ["p", "b"], ["r"]),
        node("Relu", ["r"], ["s"]),
        node("MatMul", ["s", "v"], ["q"]),
        node("Transpose", ["q"], ["t"], perm=[0, 3, 1, 2]),
        node("Add", ["x", "t"], ["y"]),
    ]
    constants = {"k": normal(6, 1, 3, 3), "w": normal(6, 24), "b": normal(24), "v": normal(24, 6)}
    assert same(nodes, (1, 6, 5, 4), constants) == ["Conv", "Conv", "Relu", "Conv", "Add"]


@pytest.mark.parametrize("change", ["no convolution", "another reader", "a term of each step", "an output"])
def test_other_products_stay(change: str) -> None:
    term = {"a term of each step": normal(10, 8)}.get(change, SEQUENCE["b"])
    nodes = along_time(node("Add", ["p", "b"], ["q"]))
    if change == "no convolution":
        nodes[-1] = node("Neg", ["t"], ["y"])
    elif change == "another reader":
        nodes[-1:] = [node("Conv", ["t", "k"], ["z"]), node("ReduceMean", ["q"], ["m"]), node("Add", ["z", "m"], ["y"])]
    elif change == "an output":
        model = model_of(nodes, {"x": (1, 10, 6)}, SEQUENCE, outputs=("y", "q"))
        assert any(each.op == "Gemm" for each in canonical(model).nodes)
        return
    assert "Gemm" in same(nodes, (1, 10, 6), SEQUENCE | {"b": term})
