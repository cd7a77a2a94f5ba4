"""Which operators a Transpose to channels last moves behind, and which hold it: the nodes, in order, and the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_layouts import cancel_layouts

from .models import operators_after

LAST, FIRST, ROWS = [0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 1]
LARGE = np.iinfo(np.int64).max


def nodes_of(*model: Any, **named: Any) -> list[str]:
    return operators_after(cancel_layouts, *model, **named)


def last(*nodes: tuple[str, str, dict[str, Any]]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the nodes behind a Transpose of x to channels last, t."""
    return [("Transpose", "x -> t", {"perm": LAST}), *nodes]


@pytest.mark.parametrize(
    ("shape", "after", "moves"),
    [
        ((2, 5, 1, 7), (2, 7, 5), True),
        ((2, 5, 7, 1), (2, 7, 5), True),
        ((2, 5, 3, 4), (2, 12, 5), False),  # two sides become one
        ((2, 5, 1, 7), (2, 35), False),  # a row
        ((2, 5, 1, 7), (14, 5, 1), False),  # other images
        ((2, 5, 1, 5), (10, 1, 5), False),
        ((2, 5, 1, 7), (2, 5, 7), False),  # other channels
        ((2, 5, 1, 7), (2, 7, 1, 5), False),  # no side goes or comes
        ((2, 5, 1, 7), (2, 1, 1, 7, 5), False),
    ],
)
def test_a_reshape_moves_that_drops_a_side_of_one(shape: tuple[int, ...], after: tuple[int, ...], moves: bool) -> None:
    found = nodes_of(shape, last(("Reshape", "t s -> r", {}), ("Relu", "r -> y", {})), {"s": after})
    assert found == (["Reshape", "Relu", "Transpose"] if moves else ["Transpose", "Reshape", "Relu"])


@pytest.mark.parametrize("sides", [(1, 7), (7, 1)])
def test_a_side_of_one_comes_back_before_a_convolution(sides: tuple[int, int]) -> None:
    nodes = last(
        ("Reshape", "t s -> r", {}),
        ("Mul", "r k -> m", {}),
        ("Reshape", "m b -> q", {}),
        ("Transpose", "q -> f", {"perm": FIRST}),
        ("Conv", "f w -> y", {}),
    )
    random = np.random.default_rng(5)
    constants = {
        "s": (2, 7, 5), "b": (2, *sides, 5), "k": random.normal(0, 1, (7, 5)).astype(np.float32),
        "w": random.normal(0, 1, (3, 5, 1, 1)).astype(np.float32),
    }  # fmt: skip
    assert nodes_of((2, 5, 1, 7), nodes, constants) == ["Reshape", "Mul", "Reshape", "Conv"]


def test_sequences_that_were_no_images_stay() -> None:
    assert nodes_of((2, 5, 7), [("Transpose", "x -> t", {"perm": ROWS}), ("Relu", "t -> y", {})]) == [
        "Transpose",
        "Relu",
    ]


@pytest.mark.parametrize(
    ("shape", "perms", "left"),
    [
        ((2, 3, 4, 5), [LAST, FIRST], ["Relu"]),
        ((2, 3, 4, 5), [LAST, LAST], ["Transpose", "Relu"]),
        ((2, 3, 4, 5), [LAST, LAST, LAST], ["Relu"]),
        ((2, 3, 4, 5), [[0, 3, 2, 1]], ["Transpose", "Relu"]),
        ((2, 1, 4, 5), [LAST], ["Relu", "Reshape"]),
        ((2, 3, 1, 1), [LAST], ["Relu", "Reshape"]),
        ((1, 3, 4, 1), [[2, 0, 3, 1]], ["Transpose", "Relu"]),
        ((1, 3, 4, 1), [[1, 0, 3, 2]], ["Reshape", "Relu"]),
    ],
)
def test_transposes_join_and_one_that_moves_sizes_of_one_is_a_reshape(
    shape: tuple[int, ...], perms: list[list[int]], left: list[str]
) -> None:
    nodes = [
        ("Transpose", f"{'x' if not place else f't{place}'} -> t{place + 1}", {"perm": perm})
        for place, perm in enumerate(perms)
    ]
    found = nodes_of(shape, [*nodes, ("Relu", f"t{len(perms)} -> y", {})])
    assert found == left


def test_transposes_that_cancel_before_an_output_leave_a_node_for_it() -> None:
    nodes = last(("Transpose", "t -> y", {"perm": FIRST}), ("Abs", "y -> z", {}))
    assert nodes_of((2, 3, 4, 5), nodes, outputs="y z") == ["Identity", "Abs"]


@pytest.mark.parametrize(
    ("constant", "moves"),
    [((), True), ((1, 1), True), ((3,), True), ((4, 1, 3), True), ((2, 4, 5, 3), True), ((1, 2, 4, 5, 3), False),
     ((1, 1, 1, 1, 1), False)],
)  # fmt: skip
@pytest.mark.parametrize("order", ["t k", "k t"])
def test_a_constant_of_no_more_axes_is_turned(constant: tuple[int, ...], moves: bool, order: str) -> None:
    values = np.random.default_rng(4).normal(0, 1, constant).astype(np.float32)
    found = nodes_of((2, 3, 4, 5), last(("Sub", f"{order} -> y", {})), {"k": values})
    assert found == (["Sub", "Transpose"] if moves else ["Transpose", "Sub"])


def test_tensors_move_together_or_not_at_all() -> None:
    turned = ("Transpose", "z -> u", {"perm": LAST})
    others = {"z": (2, 3, 4, 5)}
    both = nodes_of((2, 3, 4, 5), last(turned, ("Add", "t u -> y", {})), others=others)
    assert both == ["Add", "Transpose"]
    one = nodes_of((2, 3, 4, 5), last(("Add", "t z -> y", {})), others={"z": (2, 4, 5, 3)})
    assert one == ["Transpose", "Add"]
    joined = nodes_of((2, 3, 4, 5), last(turned, ("Concat", "t u t -> y", {"axis": -2})), others=others)
    assert joined == ["Concat", "Transpose"]
    half = nodes_of((2, 3, 4, 5), last(("Concat", "t z -> y", {"axis": 3})), others={"z": (2, 4, 5, 2)})
    assert half == ["Transpose", "Concat"]


def test_an_operator_of_another_domain_stays() -> None:
    nodes = last(("Gelu", "t -> y", {"domain": "com.microsoft"}))
    assert nodes_of((2, 3, 4, 5), nodes) == ["Transpose", "Gelu"]


@pytest.mark.parametrize(
    ("names", "moves"),
    [("t p", True), ("t p v", True), ("t p v -", True), ("t p - -", True), ("t h - a", False), ("t q", False)],
)
def test_a_pad_moves_whose_pads_are_known_and_of_all_axes(names: str, moves: bool) -> None:
    constants = {
        "p": [0, 1, 2, 0, 0, 3, 0, 1], "h": [1, 2, 3, 0], "a": [1, 2], "v": np.float32(0.5),
        "o": np.zeros(8, np.int64),
    }  # fmt: skip
    nodes = [
        ("ReduceMax", "x -> m", {"keepdims": 0}),
        ("Cast", "m -> i", {"to": 7}),
        ("Mul", "i o -> e", {}),
        ("Add", "e p -> q", {}),
    ]
    before = nodes if " q" in names else []
    found = nodes_of((2, 3, 4, 5), [*before, *last(("Pad", f"{names} -> y", {}))], constants)
    assert found[-2:] == (["Pad", "Transpose"] if moves else ["Transpose", "Pad"])


@pytest.mark.parametrize("names", ["t s e", "t s e -", "t b c a", "t b c a k", "t s e - l"])
def test_a_slice_moves_with_or_without_axes_and_steps(names: str) -> None:
    constants = {
        "s": [0, 1, 2], "e": [2, LARGE, 4], "b": [1, 0], "c": [3, -1], "a": [-1, 1], "k": [2, 1], "l": [1, 2, 1],
    }  # fmt: skip
    found = nodes_of((2, 3, 4, 5), last(("Slice", f"{names} -> y", {})), constants)
    has_sides = names != "t b c a k"  # else one row is left, and one column
    assert found == ["Slice", "Transpose" if has_sides else "Reshape"]


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax"])
@pytest.mark.parametrize(
    ("axes", "keep", "turned", "left"),
    [
        ([1, 2], 0, False, []),
        ([-2, 1], 0, False, []),
        ([1], 0, True, []),
        ([1, 3], 0, True, []),
        ([1, 2], 1, False, ["Reshape"]),
    ],
)
def test_a_mean_or_maximum_over_the_sides_needs_no_transpose(
    op: str, axes: list[int], keep: int, turned: bool, left: list[str]
) -> None:
    found = nodes_of((2, 3, 4, 5), last((op, "t a -> y", {"keepdims": keep})), {"a": axes})
    assert found == [*(["Transpose"] if turned else []), op, *left]


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax"])
@pytest.mark.parametrize(("axis", "keep", "left"), [(1, 0, []), (1, 1, ["Reshape"]), (2, 0, None)])
def test_a_mean_or_maximum_along_a_line_needs_none_either(
    op: str, axis: int, keep: int, left: list[str] | None
) -> None:
    nodes = last(("Reshape", "t s -> r", {}), ("Relu", "r -> q", {}), (op, "q a -> y", {"keepdims": keep}))
    found = nodes_of((2, 5, 1, 7), nodes, {"s": (2, 7, 5), "a": [axis]})
    assert found == ["Reshape", "Relu", *(["Transpose", op] if left is None else [op, *left])]


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax"])
def test_a_pool_of_a_whole_image_with_channels_last_is_one_of_vta(op: str) -> None:
    nodes = [("Conv", "x w -> c", {}), *[("Transpose", "c -> t", {"perm": LAST}), (op, "t a -> y", {"keepdims": 0})]]
    weights = np.random.default_rng(5).normal(0, 1, (4, 3, 1, 1)).astype(np.float32)
    found = operators_after(canonicalise, (1, 3, 8, 8), nodes, {"w": weights, "a": [1, 2]})
    assert found == ["Conv", "GlobalMaxPool" if op == "ReduceMax" else "GlobalAveragePool", "Reshape"]


ROW: tuple[str, str, dict[str, Any]] = ("Reshape", "t s -> f", {})


@pytest.mark.parametrize(
    ("nodes", "outputs", "folds"),
    [
        ([ROW, ("Gemm", "f w -> y", {"transB": 1})], "y", True),
        ([ROW, ("Gemm", "f w -> y", {"transB": 1}), ("Gemm", "f w -> z", {"transB": 1})], "y z", True),
        ([ROW, ("Gemm", "f v -> y", {})], "y", False),  # its columns are not the weights'
        ([ROW, ("Gemm", "f w -> y", {"transB": 1}), ("Relu", "f -> z", {})], "y z", False),  # another reader
        ([ROW, ("Gemm", "f w -> y", {"transB": 1})], "y f", False),
        ([ROW, ("Gemm", "g f -> y", {})], "y", False),  # weights that are computed
        ([("Reshape", "t o -> f", {}), ("Gemm", "f u -> y", {"transB": 1})], "y", False),  # a row of another image
    ],
)
def test_a_dense_layer_behind_a_flattened_image_takes_its_columns_in_order(
    nodes: list[Any], outputs: str, folds: bool
) -> None:
    random = np.random.default_rng(6)
    constants = {
        "s": (2, 60), "o": (4, 30), "w": random.normal(0, 1, (4, 60)).astype(np.float32),
        "v": random.normal(0, 1, (60, 4)).astype(np.float32), "u": random.normal(0, 1, (4, 30)).astype(np.float32),
        "g": random.normal(0, 1, (3, 2)).astype(np.float32),
    }  # fmt: skip
    found = nodes_of((2, 3, 4, 5), last(*nodes), constants, outputs=outputs)
    assert ("Transpose" not in found) is folds


@pytest.mark.parametrize(
    ("shape", "axis", "between", "left"),
    [
        ((1, 4, 5, 1), 3, [], ["Reshape", "Reshape", "Concat"]),
        ((1, 4, 5, 1), -1, [("Pad", "j p -> r", {})], ["Reshape", "Reshape", "Concat", "Pad"]),
        ((1, 4, 5, 1), 1, [], ["Concat", "Reshape"]),  # channels are not joined
        ((1, 4, 5, 1), 3, [("Softmax", "j -> r", {"axis": 3})], ["Concat", "Softmax", "Transpose"]),
    ],
)
def test_images_of_one_channel_are_joined_first_where_a_transpose_follows(
    shape: tuple[int, ...], axis: int, between: list[Any], left: list[str]
) -> None:
    nodes = [
        ("Abs", "x -> a", {}), ("Concat", "a x -> j", {"axis": axis}), *between,
        ("Transpose", "r -> f" if between else "j -> f", {"perm": FIRST}), ("Neg", "f -> y", {}),
    ]  # fmt: skip
    assert nodes_of(shape, nodes, {"p": [0, 1, 0, 0, 0, 2, 1, 0]}) == ["Abs", *left, "Neg"]


@pytest.mark.parametrize("pool", ["AveragePool", "ReduceMean"])
def test_a_gate_of_a_few_numbers_meets_its_image_with_channels_first(pool: str) -> None:
    """Squeeze and excite as converters from TensorFlow write it: a Transpose around each window."""
    mean: list[tuple[str, str, dict[str, Any]]] = [("ReduceMean", "t a -> m", {"keepdims": 1})]
    if pool == "AveragePool":
        mean = [
            ("Transpose", "t -> f", {"perm": FIRST}),
            ("AveragePool", "f -> p", {"kernel_shape": [5, 6]}),
            ("Transpose", "p -> m", {"perm": LAST}),
        ]
    nodes = last(
        *mean,
        ("Relu", "m -> r", {}),
        ("Transpose", "r -> c", {"perm": FIRST}),
        ("Conv", "c w -> g", {}),
        ("Transpose", "g -> l", {"perm": LAST}),
        ("Sigmoid", "l -> s", {}),
        ("Mul", "t s -> y", {}),
    )
    constants = {"w": np.ones((4, 4, 1, 1), np.float32)} | ({"a": np.array([1, 2])} if pool == "ReduceMean" else {})
    found = nodes_of((1, 4, 5, 6), nodes, constants)
    assert found == [pool, "Relu", "Conv", "Sigmoid", "Mul", "Transpose"]
