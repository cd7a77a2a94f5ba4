"""Inputs with channels of different units: the float network stays the same, int8 gains, and even ones stay alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration, Runner
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.even_inputs import with_even_inputs
from hilt.network.quantize.quantizer import quantise

from .models import Array, canonical, model_of, run_float

UNITS = np.array([1, 1000, 0.02, 30, 5, 0.3], np.float32)


def weights(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(0, 0.3, shape).astype(np.float32)


def samples(shape: tuple[int, ...], axis: int, units: Array, count: int = 24) -> tuple[dict[str, Array], ...]:
    random, place = np.random.default_rng(2), [1] * len(shape)
    place[axis] = len(units)
    return tuple({"x": (random.uniform(-1, 1, shape) * units.reshape(place)).astype(np.float32)} for _ in range(count))


def dense(units: Array = UNITS) -> Any:
    """Return two dense layers whose first has weights for inputs of these units."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v"], ["y"], transB=1),
    ]
    constants = {"w": weights(32, len(units)) / units, "b": weights(32), "v": weights(8, 32, seed=3)}
    return model_of(nodes, {"x": (1, len(units))}, constants)


def convolution(*before: Any, kernel: tuple[int, ...] = (16, 6, 3, 3), data: str = "x", group: int = 1) -> Any:
    """Return a convolution with weights for inputs of these units, from the second on if it reads three."""
    nodes = [*before, helper.make_node("Conv", [data, "w"], ["y"], group=group, pads=[1, 1, 1, 1])]
    units = UNITS[1:4] if kernel[1] == 3 else UNITS
    return nodes, {"w": weights(*kernel) / units.reshape(*((-1, 1) if group > 1 else (1, -1)), 1, 1)}


IMAGE, LAST = (1, 6, 8, 8), (1, 8, 8, 6)
TURNED = helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2])
SLICED = helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["t"])
FORMS = {
    "a convolution": (*convolution(), IMAGE, 1),
    "a convolution by channel": (*convolution(kernel=(6, 1, 3, 3), group=6), IMAGE, 1),
    "channels that are last": (*convolution(TURNED, data="t"), LAST, 3),
    "some of the channels": (*convolution(SLICED, data="t", kernel=(4, 3, 3, 3)), IMAGE, 1),
    "behind a Relu": (*convolution(helper.make_node("Relu", ["x"], ["t"]), data="t"), IMAGE, 1),
}


def product_of(graph: OnnxGraph) -> Array:
    (node,) = (node for node in graph.nodes if node.outputs[0] == "x.even")
    assert node.op == "Mul" and graph.nodes[0] is node
    return graph.constants[node.inputs[1]]


@pytest.mark.parametrize("form", FORMS)
def test_the_float_network_stays_the_same(form: str) -> None:
    nodes, constants, shape, axis = FORMS[form]
    constants = {**constants, "starts": np.array([1]), "ends": np.array([4]), "axes": np.array([1])}
    model, feeds = model_of(nodes, {"x": shape}, constants), samples(shape, axis, UNITS)
    graph, uneven = with_even_inputs(canonical(model), feeds)
    assert uneven == ["x"]
    factors = product_of(graph)
    assert factors.shape == tuple(6 if place == axis else 1 for place in range(4))
    exponents, _ = np.frexp(factors)
    assert np.all(exponents == 0.5) and factors.min() >= 1, "a power of two is exact"
    peaks = np.max([np.abs(feed["x"]).max(axis=tuple({0, 1, 2, 3} - {axis})) for feed in feeds], axis=0)
    assert np.all(peaks * factors.reshape(-1) <= peaks.max()) and factors.reshape(-1)[2] > 1
    for feed in feeds[:3]:
        (given,), (wanted,) = Runner(graph, ["y"]).run(feed).values(), run_float(model, feed)
        np.testing.assert_array_equal(given, wanted)


def test_the_graph_that_is_given_stays_as_it_is() -> None:
    graph = canonical(dense())
    before = {name: array.copy() for name, array in graph.constants.items()}
    made, _ = with_even_inputs(graph, samples((1, 6), 1, UNITS))
    assert made is not graph and [node.op for node in graph.nodes] == ["Gemm", "Relu", "Gemm"]
    assert graph.nodes[0].inputs[0] == "x" and graph.constants.keys() == before.keys()
    assert all(np.array_equal(graph.constants[name], array) for name, array in before.items())


def test_numbers_of_a_table_keep_their_accuracy() -> None:
    """With one scale for all six the four smallest would be one or two steps."""
    found = {}
    for units in (UNITS, np.ones(6, np.float32)):
        graph = canonical(dense(units))
        result = quantise(graph, Calibration(samples((1, 6), 1, units, 64)), search=False)
        found[float(units[1])] = result.costs.outputs[0].decibels
        note = "the channels of x differ in range: each has a factor before it becomes int8"
        assert (note in result.notes) is (units is UNITS)
    assert found[1000.0] > 30 and found[1000.0] > found[1.0] - 5


@pytest.mark.parametrize("units", [np.ones(6, np.float32), np.array([1, 3, 1, 2, 1, 1], np.float32)])
def test_even_channels_stay_alone(units: Array) -> None:
    graph = canonical(dense(units))
    assert with_even_inputs(graph, samples((1, 6), 1, units)) == (graph, [])


def test_a_channel_without_values_has_no_factor() -> None:
    units = np.array([1, 1000, 0.02, 0, 5, 0.3], np.float32)
    factors = product_of(with_even_inputs(canonical(dense()), samples((1, 6), 1, units))[0])
    assert factors[0, 3] == 1 and factors[0, 0] > 1


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_values_that_are_no_numbers_have_no_range(value: float) -> None:
    graph, feeds = canonical(dense()), samples((1, 6), 1, UNITS)
    feeds[3]["x"][0, 2] = value
    assert with_even_inputs(graph, feeds) == (graph, [])


@pytest.mark.parametrize("op", ["Sigmoid", "Softmax"])
def test_an_input_that_a_function_reads_too_stays_alone(op: str) -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"], transB=1),
        helper.make_node(op, ["x"], ["s"]),
        helper.make_node("Add", ["h", "s"], ["y"]),
    ]
    graph = canonical(model_of(nodes, {"x": (1, 6)}, {"w": weights(6, 6)}))
    assert with_even_inputs(graph, samples((1, 6), 1, UNITS)) == (graph, [])


def test_an_input_that_is_an_output_stays_alone() -> None:
    nodes = [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)]
    graph = canonical(model_of(nodes, {"x": (1, 6)}, {"w": weights(6, 6)}))
    graph.outputs.append("x")
    assert with_even_inputs(graph, samples((1, 6), 1, UNITS)) == (graph, [])


def test_weights_that_would_become_uneven_stop_it_halfway() -> None:
    """Small inputs with weights like the others' hardly count: evened fully, these would have few bits."""
    feeds = samples((1, 6), 1, UNITS)
    whole, half = (
        product_of(with_even_inputs(canonical(dense(units)), feeds)[0])[0, 2] for units in (UNITS, UNITS**0.25)
    )
    assert 1 < half < whole
