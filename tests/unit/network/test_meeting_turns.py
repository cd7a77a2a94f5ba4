"""Transposes that undo each other behind functions and sums go, and the values stay; others stay, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from .models import Array, model_of
from .test_parting import operators

SHAPE = (2, 3, 4, 5)
RANDOM = np.random.default_rng(3)


def model(perm: list[int], back: list[int], axis: int, keep: int, **change: Any) -> Any:
    factors: Array = RANDOM.normal(0, 1, change.get("factors", [SHAPE[place] for place in perm])).astype(np.float32)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=perm),
        helper.make_node("Mul", ["k", "t"], ["m"]),
        helper.make_node("ReduceSum", ["m", "a"], ["s"], keepdims=keep),
        helper.make_node("Exp", ["s"], ["e"]),
        helper.make_node("Transpose", ["e"], ["b"], perm=back),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    if "end" in change:
        nodes = [*nodes[:-2], helper.make_node("Transpose", ["e"], ["y"], perm=back)]
    if "other" in change:
        nodes.append(helper.make_node("Abs", ["s"], ["z"]))
    constants = {"k": factors, "a": np.array([axis], np.int64)}
    return model_of(nodes, {"x": SHAPE}, constants, ("y", "z") if "other" in change else ("y",))


@pytest.mark.parametrize("factors", [[], [1], [5], [2, 1, 1, 5]])
def test_time_and_bins_are_not_turned_and_turned_back(factors: list[int]) -> None:
    found = operators(model([0, 2, 1, 3], [0, 2, 1], 3, 0, factors=factors))
    assert found["Transpose"] == 0 and found["ReduceSum"] == 1


@pytest.mark.parametrize(
    ("perm", "back", "axis", "keep"),
    [
        ([3, 1, 0, 2], [1, 0, 2], 0, 0),
        ([3, 1, 0, 2], [2, 1, 0], -1, 0),
        ([1, 2, 3, 0], [3, 0, 1, 2], 1, 1),
        ([1, 2, 3, 0], [2, 0, 1], -2, 0),
    ],
)
@pytest.mark.parametrize("end", [{}, {"end": True}])
def test_any_order_that_comes_back_goes(
    perm: list[int], back: list[int], axis: int, keep: int, end: dict[str, bool]
) -> None:
    assert operators(model(perm, back, axis, keep, **end))["Transpose"] == 0


def test_an_order_that_does_not_come_back_stays() -> None:
    assert operators(model([0, 2, 1, 3], [1, 2, 0], 3, 0))["Transpose"] == 2


def test_what_something_else_reads_stays() -> None:
    assert operators(model([0, 2, 1, 3], [0, 2, 1], 3, 0, other=True))["Transpose"] == 2
