"""Which means, parts of joins and functions behind pixels a rewrite changes, and which stay: the nodes, the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network import onnx_fused
from hilt.network.onnx_affine import fold_affine
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.onnx_means import means_by_powers, pool_means
from hilt.network.onnx_slices import part_joined
from hilt.network.onnx_transposed import activate_before_shuffle

from .models import operators_after

Step = tuple[str, str, dict[str, Any]]
Nodes = list[Step]
IMAGE = (2, 4, 3, 5)


def floats(*shape: int) -> Any:
    return np.random.default_rng(4).uniform(0.1, 1, shape).astype(np.float32)


def pool_each(graph: OnnxGraph) -> None:
    made = [pool_means(graph, node) or [node] for node in graph.nodes]
    graph.nodes = [node for nodes in made for node in nodes]


@pytest.mark.parametrize(
    ("axes", "keep", "left"),
    [
        ([2, 3], 1, ["GlobalAveragePool"]),
        ([3, -2], 1, ["GlobalAveragePool"]),
        ([-1, 2], 0, ["GlobalAveragePool", "Reshape"]),
        ([2], 1, ["AveragePool"]),
        ([3], 1, ["AveragePool"]),
        ([-1], 0, ["AveragePool", "Reshape"]),
        ([2], 0, ["AveragePool", "Reshape"]),
        ([1], 1, ["ReduceMean"]),
        ([1, 2], 0, ["ReduceMean"]),
        ([1, 2, 3], 0, ["ReduceMean"]),
    ],
)
def test_a_mean_over_the_sides_is_a_pool(axes: list[int], keep: int, left: list[str]) -> None:
    nodes: Nodes = [("ReduceMean", "x a -> y", {"keepdims": keep})]
    assert operators_after(pool_each, IMAGE, nodes, {"a": axes}) == left


def test_a_mean_of_other_ranks_is_no_pool() -> None:
    nodes: Nodes = [("ReduceMean", "x a -> y", {"keepdims": 0})]
    assert operators_after(pool_each, (2, 4, 5), nodes, {"a": [2]}) == ["ReduceMean"]


MEAN: Step = ("GlobalAveragePool", "x -> a", {})
DENSE: Step = ("Gemm", "f w -> y", {"transB": 1})
FLAT: Step = ("Reshape", "a s -> f", {})
WINDOW: Step = ("AveragePool", "x -> a", {"kernel_shape": [3, 1]})


@pytest.mark.parametrize(
    ("shape", "nodes", "outputs", "changes"),
    [
        (IMAGE, [MEAN, FLAT, DENSE], "y", True),
        (IMAGE, [MEAN, FLAT, ("Relu", "f -> g", {}), ("Gemm", "g w -> y", {"transB": 1})], "y", True),
        (IMAGE, [MEAN, ("Conv", "a k -> y", {}), ("Conv", "a k -> z", {})], "y z", True),
        (IMAGE, [WINDOW, ("Conv", "a k -> y", {})], "y", True),
        ((2, 4, 4, 8), [MEAN, FLAT, DENSE], "y", False),  # a power of two already
        (IMAGE, [MEAN, FLAT, DENSE], "y a", False),
        (IMAGE, [MEAN, FLAT, DENSE, ("Abs", "a -> z", {})], "y z", False),
        (IMAGE, [MEAN, FLAT, ("Tanh", "f -> g", {}), ("Gemm", "g w -> y", {"transB": 1})], "y", False),
        (IMAGE, [MEAN, FLAT, ("Gemm", "f w -> y", {"transB": 1, "alpha": 0.5})], "y", False),
        (IMAGE, [MEAN, FLAT, ("Gemm", "w f -> y", {"transB": 1})], "y", False),  # weights that are computed
        (IMAGE, [("AveragePool", "x -> a", {"kernel_shape": [2, 1]}), ("Conv", "a k -> y", {})], "y", False),
        (
            IMAGE,
            [("AveragePool", "x -> a", {"kernel_shape": [3, 1], "pads": [1, 0, 0, 0]}), ("Conv", "a k -> y", {})],
            "y",
            False,
        ),
        (
            IMAGE,
            [("AveragePool", "x -> a", {"kernel_shape": [3, 1], "strides": [1, 2]}), ("Conv", "a k -> y", {})],
            "y",
            False,
        ),
    ],
)
def test_a_mean_that_constant_weights_alone_read_divides_by_a_power_of_two(
    shape: tuple[int, ...], nodes: Nodes, outputs: str, changes: bool
) -> None:
    windows = []

    def rewrite(graph: OnnxGraph) -> None:
        means_by_powers(graph)
        attributes = graph.nodes[0].attributes
        windows.append((attributes.get("count_include_pad", 0), attributes.get("kernel_shape")))

    constants = {"s": (2, 4), "w": floats(6, 4), "k": floats(6, 4, 1, 1)}
    found = operators_after(rewrite, shape, nodes, constants, outputs=outputs)
    assert found == [op if place or not changes else "AveragePool" for place, (op, _, _) in enumerate(nodes)]
    if changes:
        assert windows == [(1, [4, 1] if nodes[0] is WINDOW else [4, 8])]
    else:
        assert windows[0][0] == 0


SHUFFLE: Step = ("DepthToSpace", "x -> a", {"blocksize": 2})


@pytest.mark.parametrize(
    ("nodes", "outputs", "left"),
    [
        ([SHUFFLE, ("Relu", "a -> y", {})], "y", ["Relu", "DepthToSpace"]),
        ([SHUFFLE, ("Clip", "a l h -> b", {}), ("Tanh", "b -> y", {})], "y", ["Clip", "Tanh", "DepthToSpace"]),
        ([SHUFFLE, ("Relu", "a -> y", {})], "y a", ["DepthToSpace", "Relu"]),
        ([SHUFFLE, ("Relu", "a -> y", {}), ("Abs", "a -> z", {})], "y z", ["DepthToSpace", "Relu", "Abs"]),
        ([SHUFFLE, ("Mul", "a l -> y", {})], "y", ["DepthToSpace", "Mul"]),
        ([("Transpose", "x -> a", {}), ("Relu", "a -> y", {})], "y", ["Transpose", "Relu"]),
    ],
)
def test_functions_of_one_tensor_move_in_front_of_pixels(nodes: Nodes, outputs: str, left: list[str]) -> None:
    constants = {"l": np.float32(-0.5), "h": np.float32(0.5)}
    assert operators_after(activate_before_shuffle, IMAGE, nodes, constants, outputs=outputs) == left


JOIN: Nodes = [("Sin", "x -> a", {}), ("Cos", "x -> b", {}), ("Concat", "a b -> c", {"axis": 1})]


def cut(result: str, start: int, end: int, *, of: str = "c", axis: int = 1) -> Step:
    return ("Slice", f"{of} i{start} i{end} i{axis} -> {result}", {})


@pytest.mark.parametrize(
    ("nodes", "outputs", "left"),
    [
        ([cut("d", 0, 4), cut("e", 4, 8)], "y z", []),
        ([cut("d", 0, 4), cut("e", 4, 9)], "y z", []),  # to the end
        ([cut("d", 0, 3), cut("e", 4, 8)], "y z", ["Concat", "Slice", "Slice"]),  # within an operand
        ([cut("d", 0, 4), cut("e", 0, 2, axis=2)], "y z", ["Concat", "Slice", "Slice"]),
        ([cut("d", 0, 4), cut("e", 4, 8)], "y z c", ["Concat", "Slice", "Slice"]),
        ([cut("d", 0, 4), cut("e", 4, 8), ("Neg", "c -> w", {})], "y z w", ["Concat", "Slice", "Slice"]),
        ([("Reshape", "c s -> f", {}), cut("d", 0, 4, of="f"), cut("e", 4, 8, of="f")], "y z", ["Reshape"] * 2),
        (
            [("Reshape", "c u -> f", {}), cut("d", 0, 4, of="f"), cut("e", 4, 8, of="f")],
            "y z",
            ["Concat", "Reshape", "Slice", "Slice"],  # another axis
        ),
    ],
)
def test_whole_operands_of_a_join_are_taken_from_in_front_of_it(nodes: Nodes, outputs: str, left: list[str]) -> None:
    constants: dict[str, Any] = {f"i{value}": [value] for value in (0, 1, 2, 3, 4, 8, 9)}
    constants |= {"s": (2, 8, 15), "u": (1, 16, 15)}
    ends: Nodes = [("Relu", "d -> y", {}), ("Abs", "e -> z", {})]
    found = operators_after(part_joined, IMAGE, [*JOIN, *nodes, *ends], constants, outputs=outputs)
    assert sorted(found) == sorted(["Sin", "Cos", *left, "Relu", "Abs", *(["Neg"] if "w" in outputs else [])])


CONV: Step = ("Conv", "x k -> a", {})


@pytest.mark.parametrize(
    ("nodes", "outputs", "left"),
    [
        ([CONV, ("Add", "a c -> y", {})], "y", ["Conv"]),
        ([CONV, ("Div", "a c -> y", {})], "y", ["Conv"]),
        ([CONV, ("Div", "c a -> y", {})], "y", ["Conv", "Div"]),
        ([CONV, ("Div", "a o -> y", {})], "y", ["Conv", "Div"]),  # by a 0
        ([CONV, ("Mul", "a a -> y", {})], "y", ["Conv", "Mul"]),
        ([CONV, ("Mul", "a v -> y", {})], "y", ["Conv", "Mul"]),  # along a line
        ([CONV, ("Mul", "a p -> y", {})], "y", ["Conv", "Mul"]),  # of each image
        ([CONV, ("Mul", "a q -> y", {})], "y", ["Conv", "Mul"]),  # of more axes
        ([CONV, ("Add", "a c -> y", {})], "y a", ["Conv", "Add"]),
        ([CONV, ("Add", "a c -> y", {}), ("Abs", "a -> z", {})], "y z", ["Conv", "Add", "Abs"]),
        ([("Conv", "x k d -> a", {}), ("Sub", "c a -> y", {})], "y", ["Conv"]),
        ([CONV, ("Pow", "a two -> y", {})], "y", ["Conv", "Pow"]),
    ],
)
def test_a_factor_or_term_of_each_channel_goes_into_the_layer_alone(
    nodes: Nodes, outputs: str, left: list[str]
) -> None:
    constants = {
        "k": floats(6, 4, 1, 1), "c": floats(1, 6, 1, 1), "o": np.arange(6, dtype=np.float32).reshape(6, 1, 1),
        "v": floats(5), "p": floats(2, 1, 1, 1), "q": floats(1, 1, 6, 1, 1), "d": floats(6), "two": np.float32(2),
    }  # fmt: skip
    assert operators_after(fold_affine, IMAGE, nodes, constants, outputs=outputs) == left


@pytest.mark.parametrize(
    ("equation", "transposed"),
    [
        *(("bij,jk->bik", False), ("bij,kj->bik", True), ("ij,jk->ik", False), ("i,ik->k", False)),
        *(("bij,jk", None), ("...ij,jk->...ik", None), ("bij->bi", None), ("ij,jk,kl->il", None)),
        *(("bij,bjk->bik", None), ("bij,j->bi", None), ("bij,ik->bjk", None), ("ij,ji->ii", None)),
        *(("bij,jk->bki", None), ("bij,jj->bi", None), ("bik,jk->bik", None)),
    ],
)
def test_an_equation_of_a_matrix_product_is_known(equation: str, transposed: bool | None) -> None:
    assert onnx_fused._of_product(equation) is transposed
