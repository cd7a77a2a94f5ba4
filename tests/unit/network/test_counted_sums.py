"""Sums of looked-up rows by their counts: both engines' bits, which sums are counted, and look-ups in strips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network.counted_sums import with_counted_sums
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.reference import evaluate
from hilt_runtime import operators
from hilt_runtime.native.inference import ForbiddenError
from hilt_runtime.native.plans import run_operator
from tests.unit.network.engines import assert_native_equals_numpy, bits, library
from tests.unit.network.test_strips import by_numpy, chained, planned, step

RANDOM = np.random.default_rng(3)
TABLE = (RANDOM.normal(0, 1, (20, 8)) * 10.0 ** RANDOM.integers(-8, 8, (20, 8))).astype(np.float32)
TAKEN = "look up.taken"
"""The table's name, which a new tensor must not get."""
PLACES = RANDOM.integers(-20, 20, 3 * 40)


@pytest.mark.parametrize("columns", [1, 8, 16, 21, 64])
@pytest.mark.parametrize("groups", [1, 3, 4])
def test_both_engines_count_alike(columns: int, groups: int) -> None:
    table = np.resize(TABLE, (20, columns))
    attributes = {"rows": PLACES.size // groups, "shape": [1, groups * columns]}
    assert assert_native_equals_numpy("counted_sum", [PLACES, table], attributes)
    given = operators.run("counted_sum", [PLACES, table], attributes)[0]
    wanted = table.astype(np.float64)[PLACES.reshape(-1, groups)].sum(axis=0).reshape(1, -1)
    np.testing.assert_allclose(given, wanted, rtol=1e-6)


@pytest.mark.parametrize("place", [20, -21])
def test_a_place_that_is_not_there_is_refused(place: int) -> None:
    places = np.where(np.arange(120) == 77, place, PLACES)
    for run in (operators.run, lambda *words: run_operator(library(), *words)):
        with pytest.raises(IndexError):
            run("counted_sum", [places, TABLE], {"rows": 40, "shape": [24]})


def embedded(op: str = "ReduceSum", axis: int = 1) -> Graph:
    """Return a graph that looks 120 rows up, as 40 of 24 values, sums them, and takes the sums off."""
    shapes = {
        "g": (120, 8),
        "f": (1, 120, 8),
        "x": (1, 40, 24),
        "s": (1, 1, 24) if axis == 1 else (1, 40, 1),
        "y": (1, 40, 24),
    }
    tensors = {name: Tensor(name, shape, "float32") for name, shape in shapes.items()}
    nodes = (
        Node("look up", "Gather", (TAKEN, "p"), ("g",), {"axis": 0}),
        Node("flat", "Reshape", ("g", "all"), ("f",)),
        Node("shape", "Reshape", ("f", "rows"), ("x",)),
        Node("sum", op, ("x", "axes"), ("s",), {"keepdims": 1}),
        Node("less", "Sub", ("x", "s"), ("y",)),
    )
    constants = {TAKEN: TABLE, "all": np.array([1, 120, 8]), "rows": np.array([1, 40, 24]), "axes": np.array([axis])}
    return Graph("g", ("p",), ("y",), nodes, {**tensors, "p": Tensor("p", (120,), "int64")}, constants)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceSumSquare"])
def test_sums_of_a_look_up_are_counted(op: str) -> None:
    graph = embedded(op)
    made = with_counted_sums(graph)
    assert [node.op for node in made.nodes] == ["counted_sum", "Reshape", "Gather", "Reshape", "Sub"]
    (counted,) = (node for node in made.nodes if node.op == "counted_sum")
    assert counted.inputs[0] == "p" and made.tensors[made.nodes[2].outputs[0]].shape == (1, 40, 3, 8)
    given, wanted = (evaluate(each, {"p": PLACES}) for each in (made, graph))
    np.testing.assert_allclose(given["s"], wanted["s"], rtol=1e-6)
    np.testing.assert_array_equal(given["x"], wanted["x"])


@pytest.mark.parametrize("change", ["few rows", "another axis", "a mean", "a computed table", "no number", "int32"])
def test_others_are_added_one_by_one(change: str) -> None:
    graph = embedded("ReduceMean" if change == "a mean" else "ReduceSum", 2 if change == "another axis" else 1)
    if change == "few rows":
        graph = replace(graph, constants={**graph.constants, TAKEN: np.resize(TABLE, (41, 8))})
    if change == "a computed table":
        constants = {name: value for name, value in graph.constants.items() if name != TAKEN}
        tensors = {**graph.tensors, TAKEN: Tensor(TAKEN, TABLE.shape, "float32")}
        graph = replace(graph, inputs=("p", TAKEN), constants=constants, tensors=tensors)
    if change == "no number":
        graph = replace(
            graph, constants={**graph.constants, TAKEN: np.where(np.eye(20, 8) > 0, np.float32(np.inf), TABLE)}
        )
    if change == "int32":
        graph = replace(graph, tensors={**graph.tensors, "p": Tensor("p", (120,), "int32")})
    assert "counted_sum" not in {node.op for node in with_counted_sums(graph).nodes}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_look_up_is_a_step_of_a_chain(threads: int) -> None:
    """What is looked up for a strip stays in the cache; a place that is not there ends the chain."""
    table = RANDOM.normal(0, 1, (30, 64)).astype(np.float32)
    constants = {"t": table, "flat": np.array([1, 512, 256]), "gain": RANDOM.normal(0, 1, (512, 1)).astype(np.float32)}
    steps = [
        step("Gather", ["t", "p"], "g", axis=0),
        step("Reshape", ["g", "flat"], "x"),
        step("Mul", ["x", "gain"], "scaled"),
        step("quantize", ["scaled"], "y", scale=2.0**-4),
    ]
    given = [{"p": RANDOM.integers(-30, 30, (1, 512, 4))} for _ in range(2)]
    plan = planned(steps, constants, given[0], {"y"}, threads)
    assert chained(plan) == [3] * threads
    plan.run(given[1])
    np.testing.assert_array_equal(bits(plan.values["y"]), bits(by_numpy(steps, {**constants, **given[1]})["y"]))
    wrong: dict[str, Any] = {"p": np.where(np.arange(2048).reshape(1, 512, 4) == 1999, 30, given[1]["p"])}
    with pytest.raises(ForbiddenError):
        plan.run(wrong)
