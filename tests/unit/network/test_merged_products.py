"""Two products in turn are one where that multiplies less, with ONNX Runtime's results."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import helper

from .models import model_of
from .test_canonical_form import assert_same, normal


def pair(first: int, middle: int, last: int, between: list[Any], shape: tuple[int, ...], **more: Any) -> Any:
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"]),
        *between,
        helper.make_node("MatMul", ["q", "b"], ["y"]),
    ]
    constants = {"a": normal(first, middle), "b": normal(middle, last), **more}
    used = {name for node in nodes for name in node.input}
    return model_of(nodes, {"x": shape}, {name: value for name, value in constants.items() if name in used})


SAME = [helper.make_node("Identity", ["p"], ["q"])]
BIASED = [helper.make_node("Add", ["p", "c"], ["q"])]
SQUARED = [helper.make_node("Mul", ["p", "p"], ["q"])]
TURNED = [helper.make_node("Transpose", ["p"], ["q"], perm=[1, 0, 2])]


@pytest.mark.parametrize(
    ("sizes", "between", "shape", "gemms"),
    [
        ((32, 30, 6), SAME, (2, 5, 32), 1),
        ((32, 30, 6), BIASED, (7, 32), 1),
        ((32, 4, 32), SAME, (7, 32), 2),  # of low rank: 2 * 32 * 4 products a row are fewer than 32 * 32
        ((32, 30, 6), SQUARED, (7, 32), 2),
        ((32, 30, 6), TURNED, (2, 5, 32), 2),
    ],
)
def test_a_product_of_a_product_is_one(
    sizes: tuple[int, int, int], between: list[Any], shape: tuple[int, ...], gemms: int
) -> None:
    model = pair(*sizes, between, shape, c=normal(sizes[1]))
    assert assert_same(model, {"x": normal(*shape)})["Gemm"] == gemms


def test_a_product_that_others_read_stays() -> None:
    model = pair(32, 30, 6, SAME, (7, 32))
    model.graph.output.append(helper.make_tensor_value_info("p", 1, None))
    assert assert_same(model, {"x": normal(7, 32)})["Gemm"] == 2


def test_three_products_are_one_with_all_biases() -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "a", "f"], ["p"]),
        helper.make_node("Gemm", ["p", "b", "g"], ["q"]),
        helper.make_node("Gemm", ["q", "c", "h"], ["y"]),
    ]
    constants = {"a": normal(40, 30), "b": normal(30, 20), "c": normal(20, 3)}
    constants |= {"f": normal(30), "g": normal(20), "h": normal(3)}
    assert list(assert_same(model_of(nodes, {"x": (4, 40)}, constants), {"x": normal(4, 40)})) == ["Gemm"]
