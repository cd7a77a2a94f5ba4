"""Recurrent layers with int8 weights: from the quantiser's decision to the file and back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from hilt.network.calibration import Calibration, Runner
from hilt.network.core_speed import CORTEX_A9, node_work, step_seconds
from hilt.network.graph import Graph, Node
from hilt.network.onnx_graph import load_graph
from hilt.network.onnx_import import import_model
from hilt.network.onnx_simplify import fix_float
from hilt.network.quantize import recurrence
from hilt.network.quantize.files import write_model
from hilt.network.quantize.judge import is_as_good
from hilt.network.quantize.quantizer import Quantisation, quantise
from hilt.network.quantize.statistics import signal_to_noise
from hilt.network.reference import evaluate

from .models import canonical, model_of, samples_for

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
INPUTS, HIDDEN, STEPS = 12, 24, 7


def recurrent_model(op: str, direction: str, *, steps: int = STEPS, feedback: float = 0.25, **attributes: Any) -> Any:
    """Return a recurrent layer on the input, with weights of the state of this size, and a dense layer behind it."""
    random, count = np.random.default_rng(3), 2 if direction == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    constants = {
        "W": random.normal(0, 0.4, (count, rows, INPUTS)),
        "R": random.normal(0, feedback, (count, rows, HIDDEN)),
        "B": random.normal(0, 0.3, (count, 2 * rows)),
        "v": random.normal(0, 0.3, (10, count * HIDDEN)),
    }
    nodes = [
        helper.make_node(
            op, ["x", "W", "R", "B"], ["s"], name="layer", hidden_size=HIDDEN, direction=direction, **attributes
        ),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"], transB=1),
    ]
    arrays = {name: value.astype(np.float32) for name, value in constants.items()}
    arrays["shape"] = np.array([steps, count * HIDDEN])
    return model_of(nodes, {"x": (steps, 1, INPUTS)}, arrays)


def layer_of(graph: Graph) -> Node:
    (node,) = (node for node in graph.nodes if node.op in GATES)
    return node


def is_int8(graph: Graph) -> bool:
    node = layer_of(graph)
    kinds = {str(graph.constants[name].dtype) for name in node.inputs[1:3]}
    assert kinds in ({"int8"}, {"float32"})
    return kinds == {"int8"}


def decibels(result: Quantisation, model: Any) -> float:
    """Return the decibels of the integer reference's output above its error, on samples that it was not fitted to."""
    floats = canonical(model)
    unseen = samples_for(floats, 16, seed=8).samples
    wanted = [values for made in Runner(floats, floats.outputs).over(unseen) for values in made.values()]
    given = [evaluate(result.graph, feeds)[result.graph.outputs[0]] for feeds in unseen]
    return float(np.mean([signal_to_noise({"y": one}, {"y": other}) for one, other in zip(wanted, given, strict=True)]))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_a_layer_has_int8_weights_in_the_file_and_read_back(op: str, direction: str, tmp_path: Path) -> None:
    model = recurrent_model(op, direction, **({"linear_before_reset": 1} if op == "GRU" else {}))
    floats = canonical(model)
    samples = samples_for(floats, 16)
    result = quantise(floats, samples, search=False)
    plain = quantise(canonical(model), samples, search=False, kept=["layer"])
    assert is_int8(result.graph) and not is_int8(plain.graph)
    assert not result.kept and [node.name for node in plain.kept] == ["layer"]
    assert any(note.startswith("layer has int8 weights") for note in result.notes)
    assert 25 < decibels(result, model) < decibels(plain, model) + 1
    write_model(result, tmp_path / "int8.onnx")
    again = import_model(tmp_path / "int8.onnx")
    for place in (1, 2, 8, 9):
        one, other = (each.constants[layer_of(each).inputs[place]] for each in (result.graph, again))
        np.testing.assert_array_equal(one, other)
    works = [node_work(each.graph, layer_of(each.graph)) for each in (plain, result)]
    assert step_seconds(CORTEX_A9, "native", works[1]) < step_seconds(CORTEX_A9, "native", works[0])
    assert works[1].macs == works[0].macs and works[1].bytes < works[0].bytes


def test_a_state_whose_rounding_grows_is_no_other_form_of_the_operator() -> None:
    model = recurrent_model("GRU", "forward", steps=40, feedback=0.7)
    result = quantise(canonical(model), samples_for(canonical(model), 16))
    assert is_int8(result.graph)
    assert decibels(result, model) > 25


def test_a_file_with_int8_weights_can_be_quantised_again(tmp_path: Path) -> None:
    model = recurrent_model("LSTM", "forward")
    floats = canonical(model)
    write_model(quantise(floats, samples_for(floats), search=False), tmp_path / "int8.onnx")
    again = load_graph(tmp_path / "int8.onnx")
    assert fix_float(again, {}, {})
    (layer,) = (node for node in again.nodes if node.op == "LSTM")
    wanted = floats.constants["R"]
    step = np.abs(wanted).max(axis=2, keepdims=True) / 127
    assert np.all(np.abs(again.constants[layer.inputs[2]] - wanted) <= 0.51 * step)


def test_a_layer_that_int8_would_spoil_stays_in_float() -> None:
    """A weight far above the others, of an input that is always 0: int8 with its scale leaves nothing of the others."""
    model = recurrent_model("LSTM", "forward")
    graph = canonical(model)
    graph.constants["W"] = np.where(np.arange(INPUTS) > 0, graph.constants["W"], np.float32(1e5))
    given = samples_for(graph, 16).samples
    samples = Calibration(tuple({"x": feeds["x"] * (np.arange(INPUTS) > 0).astype(np.float32)} for feeds in given))
    result = quantise(graph, samples, search=False)
    assert not is_int8(result.graph) and [node.name for node in result.kept] == ["layer"]
    assert any(note.startswith("layer stays in float: int8 weights would cost") for note in result.notes)


def test_a_state_without_bounds_stays_in_float() -> None:
    graph = canonical(recurrent_model("RNN", "forward", activations=["Relu"]))
    result = quantise(graph, samples_for(graph, 16), search=False)
    assert not is_int8(result.graph) and not any("layer" in note for note in result.notes)


@pytest.mark.parametrize(("reach", "kept"), [(1.0, False), (1.5, True)])
@pytest.mark.parametrize("source", ["input", "constant", "computed"])
def test_a_first_state_beyond_the_fixed_points_range_stays_in_float(source: str, reach: float, kept: bool) -> None:
    """A hidden state lies in (-1, 1), and so do its steps; one that is given may be anything."""
    model = recurrent_model("LSTM", "forward")
    state = np.full((1, 1, HIDDEN), reach, np.float32)
    (node,) = (node for node in model.graph.node if node.op_type == "LSTM")
    node.input.extend(["", "h"])
    if source == "constant":
        model.graph.initializer.append(numpy_helper.from_array(state, "h"))
    else:
        name = "h" if source == "input" else "g"
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, state.shape))
        if source == "computed":
            model.graph.node.insert(0, helper.make_node("Abs", ["g"], ["h"]))
    graph = canonical(model)
    given = [
        {**feeds, **{name: state for name in ("h", "g") if name in graph.inputs}}
        for feeds in samples_for(graph, 16).samples
    ]
    result = quantise(graph, Calibration(tuple(given)), search=False)
    assert is_int8(result.graph) is not kept
    note = "layer stays in float: its first state reaches 1.5, and with int8 weights 1 is the most"
    assert (note in result.notes) is kept


@pytest.mark.parametrize(
    ("reached", "level", "good"),
    [
        ([20.0, 25.0], None, True),
        ([19.9, 25.0], None, False),
        ([19.9, 25.0], [20.0, 99.0], True),  # half a decibel less
        ([19.5, 30.0], [20.0, 30.0], True),
        ([19.4, 30.0], [20.0, 30.0], False),
        ([3.0, 30.0], [3.5, 60.0], True),
        ([2.9, 60.0], [3.5, 30.0], False),  # each output counts
        ([], None, True),
    ],
)
def test_outputs_are_good_from_20_decibels_on_or_half_a_decibel_below_others(
    reached: list[float], level: list[float] | None, good: bool
) -> None:
    assert is_as_good(np.array(reached), None if level is None else np.array(level)) is good


class Judge:
    """Decibels by how many layers have int8 weights."""

    def decibels(self, model: Any) -> Any:
        return {(): np.array([60.0, 50.0]), ("a",): np.array([40.0, 50.0])}.get(model.int8, np.array([12.0, 49.0]))


def test_each_layer_is_judged_beside_the_ones_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(*int8: str) -> Any:
        return SimpleNamespace(
            int8=int8, nodes=[SimpleNamespace(name=name, inputs=[]) for name in ("a", "b", "c", "kept")]
        )

    monkeypatch.setattr(recurrence, "takes_int8", lambda model, node: node.name != "c")
    monkeypatch.setattr(recurrence, "write_int8", lambda given, name: model(*given.int8, name))
    made, floats, notes = recurrence.quantise_recurrences(model(), ["kept"], Judge(), ())  # type: ignore[arg-type]
    assert made.int8 == ("a",)  # type: ignore[attr-defined]
    assert floats == ["b"]
    assert notes == [
        "a has int8 weights, with a scale a row; that costs an output 20.00 dB at most",
        "b stays in float: int8 weights would cost an output 28.0 dB",
    ]
    none, *empty = recurrence.quantise_recurrences(model("x"), ["a", "b", "kept"], Judge(), ())  # type: ignore[arg-type]
    assert none.int8 == ("x",) and empty == [[], []]  # type: ignore[attr-defined]
