"""Numbers by which a quantisation decides: roundings that explain a difference, and where a function is flat."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hilt.network.graph import Node
from hilt.network.quantize import quantizer, shifts
from hilt.network.reference import evaluate_node


def node(op: str, *inputs: str, **attributes: Any) -> Node:
    return Node("n", op, inputs, ("y",), attributes)


@pytest.mark.parametrize("op", ["concat", "reshape", "slice", "transpose"])
def test_a_move_keeps_the_largest_rounding_of_what_it_moves(op: str) -> None:
    assert quantizer._rounding(node(op, "a", "b", "c"), {}, {"a": 0.25, "b": 0.5}) == 0.5
    assert quantizer._rounding(node(op, "c"), {}, {}) == 0.0


def test_other_nodes_round_exactly_as_the_board_does() -> None:
    assert quantizer._rounding(node("conv2d", "a"), {}, {"a": 0.5}) == 0.0
    assert quantizer._rounding(node("normalization", "a", rounded=1), {}, {}) == quantizer._NORMAL_STEPS
    assert quantizer._rounding(node("normalization", "a", rounded=0), {}, {}) == 0.0
    assert quantizer._rounding(node("fixed_matmul", "a", "b", scale=0.5), {}, {}) == 0.0, "its result is float"


@pytest.mark.parametrize("more", [{}, {"offset": 3}])
def test_a_product_in_fixed_point_rounds_its_largest_datum_in_each_of_its_terms(more: dict[str, int]) -> None:
    data = np.array([[1.0, -8.0], [2.0, 4.0]], np.float32)
    lines = np.array([[3, -5], [1, 2], [-7, 0]], np.int8)
    made = node("fixed_matmul", "a", "b", scale=-0.5, step=0.25, **more)
    terms = max(sum(abs(int(each) + more.get("offset", 0)) for each in line) for line in lines)
    assert quantizer._rounding(made, {"a": data, "b": lines}, {}) == 8.0 * 2.0**-14 * terms * 2.0


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([0, 0, 0, 5, 6, 9, 9], (2, 5)),
        ([0, 0.5, 5, 8.5, 9], (1, 3)),
        ([0, 5, 9], (0, 2)),
        ([3, 3, 3], (0, 2)),
        ([0, 9], (0, 1)),
        ([0, 0.5, 9, 0.5, 0], (1, 3)),
    ],
)
def test_a_function_is_flat_up_to_where_it_leaves_its_ends(values: list[float], places: tuple[int, int]) -> None:
    assert shifts._flat_places(np.float32(values), 0.5) == places


@pytest.mark.parametrize("divisor", [1, 3, 9, 49])
@pytest.mark.parametrize("shift", [-2, 0, 1, 3])
def test_a_mean_is_rounded_half_up(divisor: int, shift: int) -> None:
    """Of whole planes and of windows alike."""
    random = np.random.default_rng(divisor)
    for _ in range(20):
        data = random.integers(-128, 128, (1, 2, 2, 3)).astype(np.int8)
        whole = {"divisor": divisor, "shift": shift, "clip": [-100, 120]}
        exact = [Fraction(int(plane.sum()), divisor) / Fraction(2) ** shift for plane in data.astype(int)[0]]
        wanted = [min(max(int((each + Fraction(1, 2)) // 1), -100), 120) for each in exact]
        (planes,) = evaluate_node(node("global_average_pool", "x", **whole), [data])
        (windows,) = evaluate_node(
            node("average_pool", "x", **whole, kernel=[2, 3], strides=[1, 1], pads=[0, 0, 0, 0]), [data]
        )
        assert planes.ravel().tolist() == windows.ravel().tolist() == wanted
