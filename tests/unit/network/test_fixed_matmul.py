"""Products of two computed matrices in fixed point: both engines' bits, the real product, which nodes become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hilt.network.fixed_products import with_fixed_products
from hilt.network.graph import Graph, Node, Tensor, check
from hilt.network.reference import evaluate, evaluate_node
from hilt_runtime import operators
from hilt_runtime.native.plans import plan_operator
from hilt_runtime.native.steps import Builder, NotNativeError
from tests.unit.network.engines import assert_native_equals_numpy

RANDOM = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(0, 3, shape).astype(np.float32)


def int8(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.integers(-128, 128, shape).astype(np.int8)


def real(data: Any, lines: Any, scale: float, turned: int) -> Any:
    """Return the product of the reals themselves."""
    made = data.astype(np.float64) @ np.swapaxes(lines, -1, -2).astype(np.float64) * scale
    return np.swapaxes(made, -1, -2) if turned else made


def largest_error(data: Any, lines: Any, scale: float) -> float:
    """Return the error of a product, each of whose data is off by half a step, 2^-14 of the largest at most."""
    return float(np.abs(data).max() * 2.0**-14 * np.abs(lines.astype(np.float64)).sum(axis=-1).max() * scale)


@pytest.mark.parametrize("offset", [0, -3, 255])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("step", [0.0, 2.0**-2, 0.3])
@pytest.mark.parametrize(
    ("data", "lines"),
    [
        ((5, 9), (7, 9)), ((2, 33, 40), (2, 20, 40)), ((3, 4, 64), (6, 64)), ((8, 30), (2, 1, 12, 30)),
        ((1, 1), (1, 1)), ((2, 3, 5, 17), (3, 4, 17)), ((3, 1100), (5, 1100)), ((9, 2048), (4, 2048)),
    ],
)  # fmt: skip
def test_both_engines_have_the_same_bits_and_nearly_the_real_product(
    data: tuple[int, ...], lines: tuple[int, ...], step: float, turned: int, offset: int
) -> None:
    left, right = floats(*data), int8(*lines)
    attributes = {"scale": 0.125, "turned": turned} | ({"step": step} if step else {})
    attributes |= {"offset": offset} if offset else {}
    assert assert_native_equals_numpy("fixed_matmul", [left, right], attributes)
    (made,) = operators.run("fixed_matmul", [left, right], attributes)
    node = Node("product", "fixed_matmul", ("a", "b"), ("y",), attributes)
    np.testing.assert_array_equal(evaluate_node(node, [left, right])[0], made)
    moved = right.astype(np.int16) + offset
    wanted, slack = real(left, moved, 0.125, turned), largest_error(left, moved, 0.125)
    if step:
        assert made.dtype == np.int8
        assert np.abs(made - np.clip(wanted / step, -128, 127)).max() <= 0.5 + slack / step
    else:
        np.testing.assert_allclose(made, wanted, rtol=1e-6, atol=slack)


def test_a_row_of_int8_is_multiplied_exactly() -> None:
    left, right = int8(12, 300), int8(10, 300)
    (made,) = operators.run("fixed_matmul", [left.astype(np.float32) * 0.5, right], {"scale": 0.25, "turned": 0})
    np.testing.assert_array_equal(made, left.astype(np.int64) @ right.T.astype(np.int64) * 0.125)


@pytest.mark.parametrize("depth", [335, 336, 337, 1008, 1009])
@pytest.mark.parametrize("offset", [-255, 0, 255])
def test_the_largest_sums_are_exact(depth: int, offset: int) -> None:
    """2^14 steps of one sign, and lines of the largest numbers: more products than these leave 32 bits."""
    left, right = np.full((2, depth), 0.9999, np.float32), np.full((5, depth), 127 if offset >= 0 else -128, np.int8)
    attributes = {"scale": 1.0, "turned": 0, "offset": offset}
    assert assert_native_equals_numpy("fixed_matmul", [left, right], attributes)
    (made,) = operators.run("fixed_matmul", [left, right], attributes)
    np.testing.assert_allclose(made, depth * (int(right[0, 0]) + offset), rtol=1e-3)


def test_each_row_has_steps_of_its_own() -> None:
    left = np.array([[1e-20, 0.5e-20], [1e20, 1e-20], [0, 0]], np.float32)
    (made,) = operators.run("fixed_matmul", [left, np.array([[3, 4]], np.int8)], {"scale": 1.0, "turned": 0})
    np.testing.assert_allclose(made[:, 0], [5e-20, 3e20, 0.0], rtol=1e-4)


def test_no_number_is_0_and_the_endless_is_clipped() -> None:
    left = np.array([[np.nan, 1.0, 2.0, 4.0], [np.inf, 1.0, 2.0, 4.0], [-np.inf, np.nan, 0.0, 4.0]], np.float32)
    right = np.array([[1, 10, 0, 0], [0, 0, 1, 2], [1, 1, 1, 1], [0, 1, 1, 1]], np.int8)
    assert assert_native_equals_numpy("fixed_matmul", [left, right], {"scale": 1.0, "turned": 0})
    (made,) = operators.run("fixed_matmul", [left, right], {"scale": 1.0, "turned": 0})
    node = Node("product", "fixed_matmul", ("a", "b"), ("y",), {"scale": 1.0, "turned": 0})
    np.testing.assert_array_equal(evaluate_node(node, [left, right])[0], made)
    np.testing.assert_array_equal(made[0], [10, 10, 7, 7])
    assert made[1, 0] == 8 + 10 and made[2, 0] == -8  # 2^14 of the row's steps, of which 4 is the half


@pytest.mark.parametrize("exponent", [-149, -140, -101, -20, 100])
def test_the_smallest_and_largest_rows_have_the_same_bits(exponent: int) -> None:
    left = np.ldexp(RANDOM.integers(-9, 9, (6, 21)).astype(np.float32), exponent).astype(np.float32)
    for scale in (2.0**-20, 1.0, 2.0**20):
        assert assert_native_equals_numpy("fixed_matmul", [left, int8(5, 21)], {"scale": scale, "turned": 1})


@pytest.mark.parametrize(
    ("left", "right"),
    [(floats(3, 4), int8(5, 6)), (floats(3, 4), floats(5, 4)), (floats(4), int8(5, 4)), (int8(3, 4), int8(5, 4))],
)
def test_the_engine_leaves_other_operands(left: Any, right: Any) -> None:
    with pytest.raises(NotNativeError):
        plan_operator(Builder(), "fixed_matmul", [left, right], {"scale": 1.0, "turned": 0})


@pytest.mark.parametrize("lines", [int8(5, 6), floats(5, 4)])
def test_lines_that_do_not_fit_are_refused(lines: Any) -> None:
    with pytest.raises(ValueError, match="needs lines of int8 of the data's depth"):
        operators.run("fixed_matmul", [floats(3, 4), lines], {"scale": 1.0, "turned": 0})


# --- which products of a graph are ---


def graph_of(
    nodes: Sequence[Node], outputs: Sequence[str], shapes: dict[str, tuple[int, ...]], **constants: Any
) -> Graph:
    """Return a graph of int8 inputs q (2, 24, 16), k (2, 20, 16) and v (2, 12, 20), and floats p (2, 24, 20)."""
    sizes = {"q": (2, 24, 16), "k": (2, 20, 16), "v": (2, 12, 20)}
    tensors = {name: Tensor(name, size, "int8", 0.5) for name, size in sizes.items()}
    tensors["p"] = Tensor("p", (2, 24, 20), "float32")
    tensors |= {
        name: Tensor(name, size, "int8" if name.startswith("i") else "float32") for name, size in shapes.items()
    }
    return Graph("g", ("q", "k", "v", "p"), tuple(outputs), tuple(nodes), tensors, constants)


def dequantised(name: str) -> Node:
    return Node(f"{name} floats", "dequantize", (name,), (f"f{name}",), {"scale": 0.5})


def rewritten(graph: Graph) -> Graph:
    """Return the graph with fixed products, whose outputs are those of the graph but for rounding."""
    made = with_fixed_products(graph)
    check(made)
    given = {
        name: int8(*graph.tensors[name].shape) if name != "p" else np.abs(floats(2, 24, 20)) for name in graph.inputs
    }
    wanted, found = evaluate(graph, given), evaluate(made, given)
    values = given | found
    products = [node for node in made.nodes if node.op == "fixed_matmul"]
    close = max(largest_error(*(values[each] for each in node.inputs), node.attributes["scale"]) for node in products)
    for name in graph.outputs:
        np.testing.assert_allclose(found[name].astype(np.float64), wanted[name].astype(np.float64), rtol=0, atol=close)
    return made


KEYS = {"fq": (2, 24, 16), "it": (2, 16, 20), "t": (2, 16, 20), "s": (2, 24, 20)}
VALUES = {"fv": (2, 12, 20), "t": (2, 20, 24), "y": (2, 12, 24)}
PRODUCT_OF_KEYS = (
    dequantised("q"),
    Node("turn", "transpose", ("k",), ("it",), {"perm": [0, 2, 1]}),
    Node("keys", "dequantize", ("it",), ("t",), {"scale": 0.5}),
    Node("product", "MatMul", ("fq", "t"), ("s",)),
)


def test_a_transpose_of_int8_lines_is_not_made() -> None:
    made = rewritten(graph_of(PRODUCT_OF_KEYS, ["s"], KEYS))
    assert [(node.op, node.inputs) for node in made.nodes] == [
        ("dequantize", ("q",)), ("fixed_matmul", ("fq", "k")),
    ]  # fmt: skip
    assert made.nodes[-1].attributes == {"scale": 0.5, "turned": 0}


def test_lines_that_lie_otherwise_are_transposed_as_int8() -> None:
    nodes = [
        dequantised("v"),
        Node("cut", "Slice", ("p", "first", "last", "axes"), ("w",)),
        Node("product", "MatMul", ("w", "fv"), ("y",)),
    ]
    bounds = {"first": np.array([0]), "last": np.array([12]), "axes": np.array([2])}
    made = rewritten(graph_of(nodes, ["y"], {"fv": (2, 12, 20), "w": (2, 24, 12), "y": (2, 24, 20)}, **bounds))
    assert [node.op for node in made.nodes] == ["Slice", "transpose", "fixed_matmul"]
    assert made.nodes[1].attributes == {"perm": [0, 2, 1]} and made.nodes[1].inputs == ("v",)


def test_an_int8_matrix_on_the_left_turns_the_product() -> None:
    nodes = [
        dequantised("v"),
        Node("turn", "Transpose", ("p",), ("t",), {"perm": [0, 2, 1]}),
        Node("product", "MatMul", ("fv", "t"), ("y",)),
    ]
    made = rewritten(graph_of(nodes, ["y"], VALUES))
    assert [(node.op, node.inputs) for node in made.nodes] == [("fixed_matmul", ("p", "v"))]
    assert made.nodes[0].attributes == {"scale": 0.5, "turned": 1}


def test_a_table_of_multiples_is_as_good_as_int8() -> None:
    entries = (np.arange(-128, 128) * np.float32(0.177)).astype(np.float32)
    nodes = [
        Node("values", "table", ("v", "entries"), ("fv",)),
        Node("turn", "Transpose", ("p",), ("t",), {"perm": [0, 2, 1]}),
        Node("product", "MatMul", ("fv", "t"), ("y",)),
    ]
    made = rewritten(graph_of(nodes, ["y"], VALUES, entries=entries))
    assert made.nodes[0].attributes["scale"] == pytest.approx(0.177) and not made.constants
    assert "offset" not in made.nodes[0].attributes
    moved = (entries - np.float32(3) * np.float32(0.177)).astype(np.float32)
    assert rewritten(graph_of(nodes, ["y"], VALUES, entries=moved)).nodes[0].attributes["offset"] == -3
    between = (entries + np.float32(0.05)).astype(np.float32)
    assert "table" in [node.op for node in with_fixed_products(graph_of(nodes, ["y"], VALUES, entries=between)).nodes]
    bent = np.where(np.arange(256) < 128, entries, 2 * entries).astype(np.float32)
    assert [node.op for node in with_fixed_products(graph_of(nodes, ["y"], VALUES, entries=bent)).nodes] == [
        "table", "Transpose", "MatMul",
    ]  # fmt: skip


def test_a_quantisation_behind_it_is_done_by_the_product() -> None:
    nodes = [*PRODUCT_OF_KEYS, Node("steps", "quantize", ("s",), ("is",), {"scale": 64.0})]
    made = rewritten(graph_of(nodes, ["is"], {**KEYS, "is": (2, 24, 20)}))
    assert [node.op for node in made.nodes] == ["dequantize", "fixed_matmul"]
    assert made.nodes[-1].attributes["step"] == 64.0 and made.nodes[-1].outputs == ("is",)


def test_a_product_that_others_read_is_quantised_behind_it() -> None:
    nodes = [*PRODUCT_OF_KEYS, Node("steps", "quantize", ("s",), ("is",), {"scale": 64.0})]
    made = rewritten(graph_of(nodes, ["is", "s"], {**KEYS, "is": (2, 24, 20)}))
    assert [node.op for node in made.nodes] == ["dequantize", "fixed_matmul", "quantize"]


@pytest.mark.parametrize(
    ("rows", "columns", "depth"), [(3, 64, 64), (64, 3, 64), (8, 8, 63)], ids=["rows", "columns", "products"]
)
def test_a_product_of_few_numbers_stays(rows: int, columns: int, depth: int) -> None:
    shapes = {"fq": (1, rows, depth), "t": (1, depth, columns), "s": (1, rows, columns), "it": (1, depth, columns)}
    graph = graph_of(PRODUCT_OF_KEYS, ["s"], shapes)
    tensors = dict(graph.tensors)
    tensors["q"], tensors["k"] = (
        Tensor(name, (1, size, depth), "int8", 0.5) for name, size in (("q", rows), ("k", columns))
    )
    made = with_fixed_products(Graph("g", graph.inputs, graph.outputs, graph.nodes, tensors, {}))
    assert [node.op for node in made.nodes] == ["dequantize", "transpose", "dequantize", "MatMul"]


def test_a_product_by_a_constant_stays() -> None:
    nodes = [dequantised("q"), Node("product", "MatMul", ("fq", "w"), ("s",))]
    graph = graph_of(nodes, ["s"], {"fq": (2, 24, 16), "s": (2, 24, 20)}, w=floats(16, 20))
    assert [node.op for node in with_fixed_products(graph).nodes] == ["dequantize", "MatMul"]
