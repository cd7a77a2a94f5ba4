"""Chains of steps in strips: which steps they take, that the bits stay, their costs, and the refusals of C."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.network.chain_time import chains_of
from hilt.network.core_speed import CORTEX_A9, StepWork, chain_seconds, node_work, step_seconds
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.processor_time import modelled_time
from hilt_runtime import operators
from hilt_runtime.native.inference import InferencePlan
from hilt_runtime.native.plans import execute
from hilt_runtime.native.steps import NotNativeError
from hilt_runtime.native.strips import STRIP_BYTES, KnownTensors, chains, strip_shape
from tests.unit.network.engines import bits, library

Step = dict[str, Any]
AXIS = np.array([-1], np.int64)
MOST_VALUES = 1 << 20
"""Largest random tensor: a sum of a flat tensor with a column is an outer product, of 12 GB and more."""


def step(op: str, inputs: list[str], output: str, **attributes: Any) -> Step:
    return {"kind": "cpu", "name": output, "op": op, "inputs": inputs, "outputs": [output], "attributes": attributes}


def norm(shape: tuple[int, ...]) -> tuple[list[Step], dict[str, np.ndarray[Any, Any]]]:
    """Return a layer norm, a function and a quantisation as steps, and their constants."""
    rows = int(np.prod(shape[:-1]))
    steps = [
        step("ReduceMean", ["x", "axis"], "mean"),
        step("Sub", ["x", "mean"], "centred"),
        step("Mul", ["centred", "centred"], "squares"),
        step("ReduceMean", ["squares", "axis"], "variance"),
        step("Add", ["variance", "small"], "above"),
        step("Sqrt", ["above"], "deviation"),
        step("Div", ["centred", "deviation"], "normal"),
        step("Reshape", ["bias", "one"], "flat bias"),
        step("Mul", ["normal", "scale"], "scaled"),
        step("Add", ["scaled", "flat bias"], "moved"),
        step("Reshape", ["moved", "flat"], "lines"),
        step("Gelu", ["lines"], "curved"),
        step("quantize", ["curved"], "y", scale=2.0**-4),
    ]
    random = np.random.default_rng(0)
    constants = {
        "axis": AXIS,
        "small": np.full((), 1e-5, np.float32),
        "scale": random.normal(0, 1, shape[-1]).astype(np.float32),
        "one": np.array([1, -1]),
        "flat": np.array([rows, shape[-1]]),
    }
    return steps, constants


def by_numpy(steps: list[Step], values: dict[str, Any]) -> dict[str, Any]:
    values = dict(values)
    with np.errstate(all="ignore"):
        for each in steps:
            values[each["outputs"][0]] = operators.run(
                each["op"], [values[name] for name in each["inputs"]], each["attributes"]
            )[0]
    return values


def planned(
    steps: list[Step], constants: dict[str, Any], inputs: dict[str, Any], kept: set[str], threads: int = 1
) -> InferencePlan:
    plan = InferencePlan(library(), constants, {}, threads)
    plan.begin(inputs)
    for each in steps:
        plan.add_operator(each, lambda given, each=each: operators.run(each["op"], given, each["attributes"]))
    plan.finish(steps, kept)
    return plan


def chained(plan: InferencePlan) -> list[int]:
    return [record.chain for record in plan.builder.records if record.chain > 1]


def known(values: dict[str, Any], constants: dict[str, Any]) -> KnownTensors:
    return KnownTensors(lambda name: values[name].shape, lambda name: values[name].itemsize, constants.get)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 300, 256), (7, 50, 96), (997, 40)])
@pytest.mark.parametrize("every", [False, True])
def test_a_chain_has_the_bits_of_its_steps(shape: tuple[int, ...], threads: int, every: bool) -> None:
    steps, constants = norm(shape)
    random = np.random.default_rng(1)
    given = [
        {"x": random.normal(0, 3, shape).astype(np.float32), "bias": random.normal(0, 1, shape[-1]).astype(np.float32)}
        for _ in range(2)
    ]
    names = {each["outputs"][0] for each in steps}
    plan = planned(steps, constants, given[0], names if every else {"y", "scaled"}, threads)
    assert chained(plan) == [11] * len(chained(plan)) and len(chained(plan)) in (1, threads)
    plan.run(given[1])
    wanted = by_numpy(steps, {**constants, **given[1]})
    for name in sorted(names) if every else ("y", "scaled", "flat bias"):
        np.testing.assert_array_equal(bits(plan.values[name]), bits(wanted[name]), err_msg=name)
    times = plan.step_times(*plan.times())
    assert len(times) == len(steps) and all(began <= ended for began, ended, _ in times)


@pytest.mark.parametrize(("shape", "axis"), [((196, 192), -1), ((3, 50, 6, 40), 2)])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_layer_normalization_runs_with_its_neighbours(shape: tuple[int, ...], axis: int, threads: int) -> None:
    random = np.random.default_rng(1)
    inner = shape[axis:]
    constants = {name: random.normal(0, 1, inner).astype(np.float32) for name in ("factors", "added")}
    steps = [
        step("Add", ["x", "skip"], "sum"),
        step("LayerNormalization", ["sum", "factors", "added"], "norm", axis=axis),
        step("quantize", ["norm"], "y", scale=2.0**-5),
    ]
    given = {name: random.normal(0, 3, shape).astype(np.float32) for name in ("x", "skip")}
    plan = planned(steps, constants, given, {"sum", "y"}, threads)
    assert chained(plan) == [3] * len(chained(plan)) and chained(plan)
    plan.run(given)
    wanted = by_numpy(steps, {**constants, **given})
    for name in ("sum", "y"):
        np.testing.assert_array_equal(bits(plan.values[name]), bits(wanted[name]), err_msg=name)


def random_steps(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[list[Step], dict[str, Any]]:
    """Return steps of any kind, each on any tensors before it that fit."""
    values: dict[str, tuple[int, ...]] = {"x": shape, "line": shape[-1:], "column": (*shape[:-1], 1)}
    steps: list[Step] = []
    for place in range(int(random.integers(2, 9))):
        name = f"t{place}"
        data = str(random.choice(list(values)))
        kind = int(random.integers(5))
        if kind == 0:
            steps.append(step(str(random.choice(["Relu", "Sqrt", "Tanh", "Abs"])), [data], name))
            values[name] = values[data]
        elif kind == 1 and values[data]:
            steps.append(step(str(random.choice(["ReduceMean", "ReduceMax", "ReduceSumSquare"])), [data, "axis"], name))
            values[name] = (*values[data][:-1], 1)
        elif kind == 2:
            steps.append(step("Reshape", [data, "flat"], name))
            values[name] = (int(np.prod(values[data])),)
        else:
            fitting = [
                each
                for each, size in values.items()
                if all(a == b or 1 in (a, b) for a, b in zip(size[::-1], values[data][::-1], strict=False))
                and np.prod(np.broadcast_shapes(size, values[data]), dtype=np.int64) <= MOST_VALUES
            ]
            other = str(random.choice(fitting))
            steps.append(step(str(random.choice(["Add", "Sub", "Mul", "Max"])), [data, other], name))
            values[name] = np.broadcast_shapes(values[data], values[other])
    return steps, {"axis": AXIS, "flat": np.array([-1])}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_any_steps_have_the_bits_of_numpy(seed: int, threads: int) -> None:
    random = np.random.default_rng(seed)
    shape = (*random.integers(1, 9, 2), int(random.integers(20, 60)), int(random.integers(1, 200)))
    shape = tuple(int(size) for size in shape)[-int(random.integers(2, 5)) :]
    steps, constants = random_steps(random, shape)
    shapes = {"x": shape, "line": shape[-1:], "column": (*shape[:-1], 1)}
    inputs = [{name: random.normal(0, 1, size).astype(np.float32) for name, size in shapes.items()} for _ in range(2)]
    kept = {steps[-1]["outputs"][0], *random.choice([each["outputs"][0] for each in steps], 2)}
    with np.errstate(all="ignore"):
        plan = planned(steps, constants, inputs[0], kept, threads)
        plan.run(inputs[1])
        wanted = by_numpy(steps, {**constants, **inputs[1]})
    for name in kept:
        np.testing.assert_array_equal(bits(plan.values[name]), bits(wanted[name]), err_msg=name)


def test_a_strip_keeps_within_the_cache_and_names_what_moves() -> None:
    steps, constants = norm((512, 256))
    values = by_numpy(steps, {**constants, "x": np.ones((512, 256), np.float32), "bias": np.ones(256, np.float32)})
    (chain,) = chains(steps, known(values, constants), lambda each: True, {"y"})
    assert (chain.first, chain.last, chain.rows) == (0, 13, 512)
    assert chain.moved == {"x", "y"} and "centred" in chain.inside and "y" not in chain.inside
    assert STRIP_BYTES // 2 < chain.height * 2 * 1024 <= STRIP_BYTES, "two lines are alive at once"
    assert strip_shape((1, 512, 256), 512, 5) == (1, 5, 256)


def test_a_chain_ends_at_a_sum_over_its_rows_and_at_numpys_steps() -> None:
    steps = [
        step("Exp", ["x"], "powers"),
        step("Relu", ["powers"], "positive"),
        step("ReduceSum", ["positive", "axis"], "sum"),
        step("Sub", ["positive", "sum"], "y"),
    ]
    constants = {"axis": np.array([0])}
    values = by_numpy(steps, {**constants, "x": np.ones((512, 64), np.float32)})
    tensors = known(values, constants)
    assert [(each.first, each.last) for each in chains(steps, tensors, lambda each: True, {"y"})] == [(0, 2)]
    assert chains(steps, tensors, lambda each: each["op"] != "Relu", {"y"}) == []
    small = by_numpy(steps, {**constants, "x": np.ones((32, 64), np.float32)})
    assert chains(steps, known(small, constants), lambda each: True, {"y"}) == [], "it fits the cache as it is"


def test_the_model_counts_the_chains_that_the_engine_makes() -> None:
    shape = (1, 300, 256)
    steps, constants = norm(shape)
    given = {"x": np.ones(shape, np.float32), "bias": np.ones(256, np.float32)}
    values = by_numpy(steps, {**constants, **given})
    tensors = {
        name: Tensor(name, array.shape, str(array.dtype), 1.0)
        for name, array in values.items()
        if name not in constants
    }
    nodes = tuple(
        Node(each["name"], each["op"], tuple(each["inputs"]), (each["name"],), each["attributes"]) for each in steps
    )
    graph = Graph("g", ("x", "bias"), ("y",), nodes, tensors, constants)
    manifest = {
        "steps": steps,
        "outputs": [{"name": "y"}],
        "programs": [],
        "buffers": {},
        "target": {"parameters": "1x16_i8w8a32_15_15_18_17"},
    }
    (chain,) = chains_of(graph, manifest, {})
    plan = planned(steps, constants, given, {"y"})
    assert chained(plan) == [11] and plan.builder.records[0].height == chain.height
    assert plan.builder.records[0].rows == chain.rows
    whole = sum(modelled_time(CORTEX_A9, graph, manifest, {}).steps.values())
    alone = sum(step_seconds(CORTEX_A9, "native", node_work(graph, node)) for node in nodes)
    assert whole < alone


def test_a_chain_moves_its_ends_once_and_computes_as_much() -> None:
    works = [StepWork("Add", 1 << 18, 3 << 20)] * 4
    chain = sum(chain_seconds(CORTEX_A9, works, 64, 2 << 20))
    alone = sum(step_seconds(CORTEX_A9, "native", work) for work in works)
    assert alone - chain > (10 << 20) / CORTEX_A9.memory_bytes_per_second - 4 * (3 << 20) / (8 * 650e6)
    assert chain > (2 << 20) / CORTEX_A9.memory_bytes_per_second + 4 * (1 << 18) * 2.02 / (650e6 * 0.8 * 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [("rows", 0), ("rows", 301), ("rows", 2**62), ("height", 0), ("height", 301), ("chain", 12), ("chain", 2**62)],
)
def test_c_refuses_a_chain_that_reaches_outside(field: str, value: int) -> None:
    steps, constants = norm((300, 256))
    given = {"x": np.ones((300, 256), np.float32), "bias": np.ones(256, np.float32)}
    plan = planned(steps, constants, given, {"y"})
    records, buffers = plan.builder.encoded()
    assert execute(library(), records, buffers) == 0
    records[field][0] = value
    with pytest.raises(NotNativeError):
        execute(library(), records, buffers)


@pytest.mark.parametrize("value", [-4, 1025 * 4, 2**62, 2**33])
def test_c_refuses_a_pitch_that_reaches_outside(value: int) -> None:
    steps, constants = norm((300, 256))
    given = {"x": np.ones((300, 256), np.float32), "bias": np.ones(256, np.float32)}
    records, buffers = planned(steps, constants, given, {"y"}).builder.encoded()
    records["pitch"][0, 0] = value
    with pytest.raises(NotNativeError):
        execute(library(), records, buffers)


def test_threads_share_nothing_of_a_chain() -> None:
    steps, constants = norm((400, 128))
    random = np.random.default_rng(0)
    inputs = [
        {"x": random.normal(0, 1, (400, 128)).astype(np.float32), "bias": np.ones(128, np.float32)} for _ in range(2)
    ]
    plans = [planned(steps, constants, each, {"y"}, 2) for each in inputs]
    for _ in range(20):
        runs = [threading.Thread(target=plan.run, args=(each,)) for plan, each in zip(plans, inputs, strict=True)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        for plan, each in zip(plans, inputs, strict=True):
            np.testing.assert_array_equal(plan.values["y"], by_numpy(steps, {**constants, **each})["y"])
