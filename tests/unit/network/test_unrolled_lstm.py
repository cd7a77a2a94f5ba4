"""An LSTM as its steps: ONNX Runtime's outputs of the layer for any batch, states and outputs; which stay whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network import onnx_unrolled
from hilt.network.calibration import Runner
from hilt.network.onnx_unrolled import Unrolled, unrolled

from .models import Array, canonical, model_of, run_float

INPUTS, HIDDEN = 5, 6


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_unrolled, "_LEAST_BYTES", 0)


def lstm(
    steps: int = 3,
    batch: int = 1,
    direction: str = "forward",
    states: dict[str, Array] | None = None,
    given: tuple[str, ...] = (),
    outputs: tuple[str, ...] = ("s",),
    **attributes: Any,
) -> Any:
    """Return an LSTM; `states` are constant first states, `given` those that are inputs, by h0 and c0."""
    random, count = np.random.default_rng(3), 2 if direction == "bidirectional" else 1
    shapes = {"W": (count, 4 * HIDDEN, INPUTS), "R": (count, 4 * HIDDEN, HIDDEN), "B": (count, 8 * HIDDEN)}
    constants = {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    constants |= states or {}
    begin = [name if name in (states or {}) or name in given else "" for name in ("h0", "c0")]
    results = [name if name in outputs else "" for name in ("s", "h", "c")]
    node = helper.make_node(
        "LSTM", ["x", "W", "R", "B", "", *begin], results, name="layer", hidden_size=HIDDEN, direction=direction,
        **attributes,
    )  # fmt: skip
    inputs = {"x": (steps, batch, INPUTS)} | dict.fromkeys(given, (count, batch, HIDDEN))
    return model_of([node], inputs, constants, outputs)


def assert_same(model: Any) -> Unrolled:
    made = unrolled(canonical(model), ())
    assert made is not None and made.nodes == ("layer",) and "LSTM" not in {node.op for node in made.graph.nodes}
    random = np.random.default_rng(5)
    feeds = {name: random.normal(0, 1, made.graph.shape(name)).astype(np.float32) for name in made.graph.inputs}
    found = Runner(made.graph, made.graph.outputs).run(feeds).values()
    for one, other in zip(found, run_float(model, feeds), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-3)  # gates are clipped where they are within 7e-4 of a bound
    kinds = {node.name: node.op for node in made.graph.nodes}
    assert {kinds[name] for name in made.cells} <= {"Sigmoid", "Tanh", "Mul", "Add"}
    cells = {name for name, op in kinds.items() if op in ("Sigmoid", "Tanh", "Mul")}
    assert cells <= set(made.cells), "they stay in floats"
    return made


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("steps", "batch"), [(1, 1), (1, 3), (4, 1), (3, 2)])
def test_the_steps_of_any_length_and_batch(direction: str, steps: int, batch: int) -> None:
    assert_same(lstm(steps, batch, direction))


@pytest.mark.parametrize("outputs", [("s",), ("s", "h"), ("s", "c"), ("h", "c"), ("s", "h", "c")])
def test_only_the_outputs_that_are_read_are_made(outputs: tuple[str, ...]) -> None:
    if outputs[0] != "s":
        outputs = ("s", *outputs)
    assert_same(lstm(direction="bidirectional", outputs=outputs))


@pytest.mark.parametrize("names", [("h0",), ("c0",), ("h0", "c0")])
@pytest.mark.parametrize("kind", ["inputs", "constants", "zeros"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_first_states_are_inputs_or_constants_or_zero(names: tuple[str, ...], kind: str, direction: str) -> None:
    count = 2 if direction == "bidirectional" else 1
    values = np.random.default_rng(8).normal(0, 1, (2, count, 2, HIDDEN)).astype(np.float32) * (kind != "zeros")
    if kind == "inputs":
        assert_same(lstm(2, 2, direction, given=names, outputs=("s", "h", "c")))
        return
    model = lstm(2, 2, direction, states=dict(zip(names, values, strict=False)), outputs=("s", "h", "c"))
    made = assert_same(model)
    products = [node for node in made.graph.nodes if node.op == "Gemm"]
    gates = 4 if "c0" in names else 3  # nothing is forgotten of a cell state of zeros
    first = gates * count if kind == "constants" and "h0" in names else 0
    assert len(products) == 4 * count + 4 * count + first, "the first step of a state of zeros has no products"


def test_gates_are_clipped_where_they_are_flat() -> None:
    graph = assert_same(lstm()).graph
    for node in graph.nodes:
        if node.op == "Clip":
            low, high = (float(graph.constants[name]) for name in node.inputs[1:])
            (function,) = (each.op for each in graph.nodes if node.outputs[0] in each.inputs)
            assert (low, high) == ((-8.0, 8.0) if function == "Sigmoid" else (-4.0, 4.0))
            assert 1 / (1 + np.exp(-high)) > 1 - 7e-4 or np.tanh(high) > 1 - 7e-4


@pytest.mark.parametrize(("direction", "longest"), [("forward", 6), ("bidirectional", 3)])
def test_a_long_recurrence_stays_whole(monkeypatch: pytest.MonkeyPatch, direction: str, longest: int) -> None:
    """It counts the steps of all directions, and those of each row of a batch."""
    monkeypatch.setattr(onnx_unrolled, "_MOST_STEPS", 6)
    assert unrolled(canonical(lstm(longest, 1, direction)), ()) is not None
    assert unrolled(canonical(lstm(longest + 1, 1, direction)), ()) is None
    assert unrolled(canonical(lstm(longest // 3, 3, direction)), ()) is not None
    assert unrolled(canonical(lstm(longest // 3, 4, direction)), ()) is None


def test_only_weights_above_the_cache_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_unrolled, "_LEAST_BYTES", 4 * HIDDEN * HIDDEN - 1)
    assert unrolled(canonical(lstm()), ()) is not None
    assert unrolled(canonical(lstm()), ("layer",)) is None
    assert unrolled(canonical(lstm()), ("another",)) is not None
    monkeypatch.setattr(onnx_unrolled, "_LEAST_BYTES", 4 * HIDDEN * HIDDEN)
    assert unrolled(canonical(lstm()), ()) is None


def test_an_lstm_with_peepholes_stays_whole() -> None:
    graph = canonical(lstm())
    (layer,) = graph.nodes
    graph.constants["P"] = np.ones((1, 3 * HIDDEN), np.float32)
    layer.inputs += [""] * (7 - len(layer.inputs)) + ["P"]
    assert unrolled(graph, ()) is None


def test_the_graph_that_is_given_stays_as_it_is() -> None:
    graph = canonical(lstm(outputs=("s", "h")))
    before = [(node.op, list(node.inputs), list(node.outputs)) for node in graph.nodes], dict(graph.shapes)
    constants, outputs = set(graph.constants), list(graph.outputs)
    assert unrolled(graph, ()) is not None
    assert ([(node.op, list(node.inputs), list(node.outputs)) for node in graph.nodes], dict(graph.shapes)) == before
    assert set(graph.constants) == constants and graph.outputs == outputs
