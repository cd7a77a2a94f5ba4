"""Steps in pieces: which are cut, that pieces cover a step, and that threads and forks do not change results."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network.core_speed import CORTEX_A9, StepWork, node_work, step_seconds
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.processor_time import modelled_time
from hilt_runtime import operators
from hilt_runtime.native import library as libraries
from hilt_runtime.native import split as split_module
from hilt_runtime.native.inference import InferencePlan
from hilt_runtime.native.library import MOST_THREADS, engine
from hilt_runtime.native.plans import execute, plan_operator
from hilt_runtime.native.split import AWAKE_MICROSECONDS, LEAST, split
from hilt_runtime.native.steps import KERNELS, Builder, NotNativeError
from tests.native.cases import OPERATORS
from tests.unit.network.engines import assert_native_equals_numpy, library


def integers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)


def pieces_of(op: str, inputs: list[Any], attributes: Any, threads: int) -> int:
    """Return the pieces that an operator's largest step is cut in."""
    builder = Builder(threads)
    for constant in inputs[1:]:
        builder.constant(constant)
    plan_operator(builder, op, inputs, attributes)
    steps, _ = builder.encoded()
    return int(steps["together"].max())


@pytest.mark.parametrize("name", OPERATORS)
def test_the_model_counts_the_cores_that_a_step_is_cut_for(name: str) -> None:
    op, inputs, attributes, _ = OPERATORS[name]
    if any(array is None for array in inputs):
        pytest.skip("it has an input that is left out")
    kinds = [Tensor(f"i{place}", array.shape, str(array.dtype), 1.0) for place, array in enumerate(inputs)]
    made = operators.run(op, inputs, attributes)
    kinds += [Tensor(f"o{place}", array.shape, str(array.dtype), 1.0) for place, array in enumerate(made)]
    names = tuple(kind.name for kind in kinds)
    node = Node("n", op, names[: len(inputs)], names[len(inputs) :], attributes)
    constants = {f"i{place}": array for place, array in enumerate(inputs) if place}
    tensors = {kind.name: kind for kind in kinds if kind.name not in constants}
    graph = Graph("g", ("i0",), node.outputs, (node,), tensors, constants)
    try:
        found = pieces_of(op, inputs, attributes, 2)
    except NotNativeError:
        pytest.skip("numpy's")
    work = node_work(graph, node)
    if op in ("LSTM", "GRU", "RNN"):
        assert (found, work.parts) == (2, 1), "the data's product is cut, the recurrence is not"
        return
    work = replace(work, bytes=0)
    one, two = (step_seconds(core, "native", work) for core in (replace(CORTEX_A9, cores=1), CORTEX_A9))
    if one * CORTEX_A9.clock_hz > 4 * LEAST:  # twice as many as two pieces have: both count roughly
        assert (found > 1) == (two < one)


def recurrence_of_int8(gates: int, directions: int, hidden: int = 24, depth: int = 40) -> list[Any]:
    random = np.random.default_rng(3)
    rows = gates * hidden
    weights = [random.integers(-128, 128, (directions, rows, size)).astype(np.int8) for size in (depth, hidden)]
    scales = [random.uniform(1e-3, 1e-2, (directions, rows)).astype(np.float32) for _ in range(2)]
    return [random.normal(0, 1, (5, 2, depth)).astype(np.float32), *weights, *[None] * 5, *scales]


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize(("direction", "directions"), [("forward", 1), ("reverse", 1), ("bidirectional", 2)])
def test_products_of_int8_are_cut_in_lines_of_columns(op: str, gates: int, direction: str, directions: int) -> None:
    inputs, attributes = recurrence_of_int8(gates, directions), {"hidden_size": 24, "direction": direction}
    assert assert_native_equals_numpy(op, inputs, attributes)
    builder = Builder(4)
    for constant in filter(lambda each: each is not None, inputs[1:]):
        builder.constant(constant)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_module, "LEAST", 10 * 40 * 16)
        plan_operator(builder, op, inputs, attributes)
    products = [record for record in builder.records if KERNELS[record.kernel - 1] == "product_int8"]
    columns, each = gates * 24, min(4 // directions, gates * 24 // 16)
    assert products[0].together == len(products) == each * directions
    assert [record.numbers[3] for record in products] == [columns] * len(products)
    cut = [record.numbers[2] for record in products[:each]]
    assert sum(cut) == columns and all(size % 16 == 0 for size in cut[:-1])


def test_all_cores_share_the_products_of_a_recurrences_data() -> None:
    """The steps themselves follow one another."""
    alone = StepWork("GRU int8", 1 << 10, 0, 1 << 20, parts=1)
    shared = replace(alone, shared_macs=3 << 18)
    one, two = (step_seconds(CORTEX_A9, "native", work, awake=True) for work in (alone, shared))
    assert two < 0.8 * one
    assert step_seconds(replace(CORTEX_A9, cores=1), "native", shared, awake=True) == pytest.approx(one)
    few = replace(alone, shared_macs=LEAST)
    assert step_seconds(CORTEX_A9, "native", few, awake=True) == pytest.approx(one)


def test_two_cores_halve_the_computing_and_not_the_memory() -> None:
    whole, half = StepWork("table", 1 << 20, 0, parts=1), StepWork("table", 1 << 20, 0)
    one, two = (step_seconds(CORTEX_A9, "native", work) for work in (whole, half))
    assert two - CORTEX_A9.wake_seconds == pytest.approx(one / 2, rel=1e-3)
    moved = [step_seconds(CORTEX_A9, "native", StepWork("table", 1 << 20, 2 << 20, parts=parts)) for parts in (1, 4)]
    assert moved[0] - one == pytest.approx(moved[1] - two)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("least", [0.01, 1, 2, 10])
def test_pieces_cover_a_flat_step_once(threads: int, least: float) -> None:
    elements = int(least * LEAST / 4)  # a table takes about four instructions an element
    source, target = np.zeros(elements, np.int8), np.zeros(elements, np.int8)
    found = split("table", [source, np.zeros(256, np.int8), target], [elements], threads)
    assert len(found) == max(1, min(threads, int(least)))
    for arrays, _ in found:
        arrays[-1][...] += 1
    assert (target == 1).all() and sum(int(numbers[0]) for _, numbers in found) == elements


def channels_last(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return data.transpose(0, 2, 3, 1)


@pytest.mark.parametrize(("images", "channels", "height"), [(1, 40, 33), (1, 16, 64), (1, 3, 96), (2, 40, 33)])
def test_packing_in_pieces(monkeypatch: pytest.MonkeyPatch, images: int, channels: int, height: int) -> None:
    monkeypatch.setattr("hilt_runtime.native.split.LEAST", 64)
    data = integers(images, channels, height, 20)
    made = []
    for threads in (1, 3):
        packed = np.full((images, -(-channels // 16), height, 20, 1, 16), 7, np.int8)
        folded = np.full((images, 1, height, 9, 1, 16), 7, np.int8)
        packed_last, folded_last = np.full_like(packed, 9), np.full_like(folded, 9)
        buffers = {"b": packed, "f": folded, "l": packed_last, "lf": folded_last}
        plan = InferencePlan(library(), {}, buffers, threads)
        tensors = {"t": data, "few": data[:, :3], "last": channels_last(data), "few last": channels_last(data[:, :3])}
        plan.begin({name: np.ascontiguousarray(array) for name, array in tensors.items()})
        plan.add_pack({"tensor": "t", "buffer": "b"})
        fold = {"kernel": 3, "stride": 2, "left": 0}
        plan.add_pack({"tensor": "few", "buffer": "f", "fold": fold})
        plan.add_unpack({"tensor": "u", "buffer": "b", "shape": list(data.shape)})
        np.testing.assert_array_equal(plan.values["u"], data)
        last = {"tensor": "last", "buffer": "l", "channels_last": True}
        plan.add_pack(last)
        plan.add_pack({**last, "buffer": "lf", "tensor": "few last", "fold": fold})
        np.testing.assert_array_equal(packed_last, packed)
        np.testing.assert_array_equal(folded_last, folded)
        made.append((packed, folded))
        assert (max(record[2] for record in plan.builder.records) > 1) == (threads > 1)
    np.testing.assert_array_equal(made[0][0], made[1][0])
    np.testing.assert_array_equal(made[0][1], made[1][1])


def plan_of_a_table(seed: int) -> tuple[Builder, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    data, entries = np.random.default_rng(seed).integers(-128, 128, (2, 1 << 18)).astype(np.int8)
    builder = Builder(3)
    (out,) = plan_operator(builder, "table", [data, entries[:256].copy()], {})
    return builder, out, entries[:256][data.astype(np.int64) + 128]


def test_two_callers_at_once_get_their_own_results() -> None:
    library().hilt_threads(3, AWAKE_MICROSECONDS)
    wrong = []

    def run(seed: int) -> None:
        builder, out, wanted = plan_of_a_table(seed)
        encoded = builder.encoded()
        for _ in range(200):
            out[:] = 0
            assert execute(library(), *encoded) == 0
            if not np.array_equal(out, wanted):
                wrong.append(seed)

    callers = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.parametrize("microseconds", [0, 1, AWAKE_MICROSECONDS])
def test_helpers_that_sleep_or_watch_do_the_same(microseconds: int) -> None:
    library().hilt_threads(3, microseconds)
    builder, out, wanted = plan_of_a_table(0)
    encoded = builder.encoded()
    for turn in range(50):
        out[:] = 0
        assert execute(library(), *encoded) == 0
        np.testing.assert_array_equal(out, wanted)
        if turn % 10 == 0:
            threading.Event().wait(2e-6 * AWAKE_MICROSECONDS)  # behind it all of them sleep


def test_a_step_right_behind_a_shared_one_wakes_nobody() -> None:
    large, small = StepWork("table", 1 << 20, 0), StepWork("table", 16, 0)
    asleep, awake = (step_seconds(CORTEX_A9, "native", large, awake) for awake in (False, True))
    assert 0.9 * CORTEX_A9.wake_seconds < asleep - awake < CORTEX_A9.wake_seconds
    assert step_seconds(CORTEX_A9, "native", small) == step_seconds(CORTEX_A9, "native", small, awake=True)


def test_the_model_knows_when_helpers_sleep() -> None:
    sizes = {"a": 1 << 20, "b": 1 << 20, "few": 64}
    tensors = {name: Tensor(name, (size,), "int8", 1.0) for name, size in sizes.items()}
    tensors |= {f"{name}2": replace(tensor, name=f"{name}2") for name, tensor in tensors.items()}
    nodes = [Node(name, "table", (name, "t"), (f"{name}2",)) for name in ("a", "b")]
    nodes.append(Node("few", "transpose", ("few",), ("few2",), {"perm": [0]}))
    graph = Graph("g", tuple(sizes), tuple(f"{name}2" for name in sizes), tuple(nodes), tensors, {"t": integers(256)})
    steps = {
        node.name: {"kind": "cpu", "name": node.name, "op": node.op, "inputs": list(node.inputs),
                    "outputs": list(node.outputs), "attributes": dict(node.attributes)}
        for node in nodes
    }  # fmt: skip
    vta = {"kind": "vta", "name": "vta", "program": 0}

    def seconds(*order: Any) -> float:
        """Return the last step's."""
        outputs = [{"name": name} for name in graph.outputs]
        manifest = {
            "steps": list(order),
            "outputs": outputs,
            "buffers": {},
            "target": {"parameters": "1x16_i8w8a32_15_15_18_17"},
        }
        return modelled_time(CORTEX_A9, graph, manifest, {}).steps[len(order) - 1]

    first, behind = seconds(steps["a"]), seconds(steps["b"], steps["few"], steps["a"])
    assert first - behind > 0.9 * CORTEX_A9.wake_seconds
    assert seconds(vta, steps["a"]) == behind
    assert seconds(steps["few"], steps["a"]) == first, "nothing woke them"


def test_a_forked_process_makes_its_own_helpers() -> None:
    library().hilt_threads(3, AWAKE_MICROSECONDS)
    builder, out, wanted = plan_of_a_table(1)
    encoded = builder.encoded()
    assert execute(library(), *encoded) == 0
    out[:] = 0
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # conditions count the waiters that a fork leaves behind: a step may wait for ever
        for _ in range(20):
            good = execute(library(), *encoded) == 0 and np.array_equal(out, wanted)
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_group_that_reaches_past_the_steps_or_over_python_is_refused() -> None:
    builder, _, _ = plan_of_a_table(2)
    steps, buffers = builder.encoded()
    for changed, value in (("together", len(steps) + 1), ("together", -1)):
        bad = steps.copy()
        bad[changed][0] = value
        with pytest.raises(NotNativeError, match="step 0"):
            execute(library(), bad, buffers)
    bad = steps.copy()
    bad["kernel"][1] = 0
    with pytest.raises(NotNativeError, match="step 0"):
        execute(library(), bad, buffers)


def test_the_threads_are_the_processes_cores_or_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(libraries.THREADS, raising=False)
    assert libraries.threads() == min(len(os.sched_getaffinity(0)), MOST_THREADS)
    monkeypatch.setenv(libraries.THREADS, "3")
    assert libraries.threads() == 3
    monkeypatch.setenv(libraries.THREADS, "many")
    monkeypatch.setattr(libraries, "_CHOSEN", {})
    assert engine().library is None and "HILT_ENGINE_THREADS is 'many'" in engine().reason
