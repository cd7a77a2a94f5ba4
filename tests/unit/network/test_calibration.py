"""Samples cut from arrays: whose arrays they are, how many there are, their labels, and each refusal in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import CalibrationError, Runner, make_calibration
from hilt.network.onnx_graph import OnnxGraph, graph_of
from hilt.schedule.onnx_model import OnnxError

from .models import model_of


def network(batch: int = 1, inputs: tuple[str, ...] = ("x",)) -> OnnxGraph:
    """Return a network of five answers to an image."""
    nodes = [helper.make_node("Add", [inputs[0], inputs[-1]], ["sum"]), helper.make_node("MatMul", ["sum", "w"], ["y"])]
    graph = graph_of(model_of(nodes, dict.fromkeys(inputs, (batch, 3)), {"w": np.ones((3, 5), np.float32)}), "net")
    graph.shapes["y"] = (batch, 5)
    return graph


def samples_of(graph: OnnxGraph, labels: str = "", **arrays: Any) -> list[dict[str, Any]]:
    made = make_calibration({name: np.asarray(array) for name, array in arrays.items()}, graph, labels)
    return [dict(sample) for sample in made.samples]


def test_the_first_axis_counts_the_samples() -> None:
    rows = np.arange(12.0).reshape(4, 3)
    for graph, cut in (
        (network(), [rows[place : place + 1] for place in range(4)]),
        (network(2), [rows[:2], rows[2:]]),
    ):
        made = samples_of(graph, x=rows)
        assert [each["x"].tolist() for each in made] == [each.tolist() for each in cut]
        assert all(each["x"].dtype == np.float32 for each in made)
    assert [len(each["x"]) for each in samples_of(network(2), x=rows[:3])] == [2], "the last one is no whole sample"
    whole = samples_of(network(2), x=rows.reshape(2, 2, 3))
    assert [each["x"].tolist() for each in whole] == [rows[:2].tolist(), rows[2:].tolist()]
    assert len(samples_of(network(4), x=rows)) == 1


def test_a_single_array_may_have_any_name_and_labels_are_none_of_the_inputs() -> None:
    rows, classes = np.ones((2, 3)), np.array([0, 4])
    assert len(samples_of(network(), images=rows)) == 2
    made = make_calibration({"images": rows, "y": classes}, network(), "y")
    assert made.labels is not None and made.labels.tolist() == [0, 4] and made.labels.dtype == np.int64
    assert make_calibration({"x": rows, "y": classes}, network()).labels is None
    with pytest.raises(CalibrationError, match="has no array x, only images, y; name it as the input"):
        samples_of(network(), images=rows, y=classes)
    with pytest.raises(CalibrationError, match="has no array a, only images"):
        samples_of(network(inputs=("a", "b")), images=rows)
    with pytest.raises(CalibrationError, match="has no array x, only none"):
        samples_of(network())


@pytest.mark.parametrize(
    ("array", "words"),
    [
        ([["a", "b", "c"]], "the calibration data for x is of type <U1; give numbers"),
        ([[1.0, np.nan, 0.0]], "the calibration data for x holds NaN or infinity"),
        ([[1e39, 0.0, 0.0]], "the calibration data for x holds NaN or infinity"),
        (np.zeros((0, 3)), "the calibration data holds no sample of x; give at least one"),
        (np.zeros((2, 4)), r"the calibration data for x is \(2, 4\), but the model reads nx3"),
        (np.zeros(3), r"the calibration data for x is \(3,\), but the model reads nx3"),
    ],
)
def test_other_arrays_are_refused(array: Any, words: str) -> None:
    with pytest.raises(CalibrationError, match=words):
        samples_of(network(2) if np.shape(array) == (3,) else network(), x=array)
    with pytest.raises(CalibrationError, match=r"is \(1, 3\), but the model reads nx3"):
        samples_of(network(2), x=np.zeros((1, 3)))


def test_each_input_has_as_many_samples() -> None:
    graph = network(inputs=("a", "b"))
    assert len(samples_of(graph, a=np.ones((2, 3)), b=np.ones((2, 3)))) == 2
    with pytest.raises(CalibrationError, match="the calibration data has 2 of a, 3 of b; give as many of each"):
        samples_of(graph, a=np.ones((2, 3)), b=np.ones((3, 3)))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1, 2], "y has 3 values of int64 for 2 samples; give one integer a sample"),
        ([0], "y has 1 values of int64 for 2 samples"),
        ([0.0, 1.0], "y has 2 values of float64 for 2 samples"),
        ([-1, 4], "y has classes -1 to 4; the model tells 0 to 4 apart"),
        ([0, 5], "y has classes 0 to 5; the model tells 0 to 4 apart"),
    ],
)
def test_labels_are_one_class_a_sample(labels: list[float], words: str) -> None:
    with pytest.raises(CalibrationError, match=words):
        samples_of(network(), "y", x=np.ones((2, 3)), y=labels)
    with pytest.raises(CalibrationError, match="has no array z, only x, y; --labels names it"):
        samples_of(network(), "z", x=np.ones((2, 3)), y=labels)
    assert len(samples_of(network(), "y", x=np.ones((2, 3)), y=np.array([[4], [0]], np.uint8))) == 2


def test_a_network_without_inputs_is_refused() -> None:
    graph = network()
    graph.inputs = []
    with pytest.raises(OnnxError, match="net has no inputs: all that it gives out is constant, and there is nothing"):
        samples_of(graph, x=np.ones((2, 3)))


def test_scales_that_a_kernel_of_int8_refuses_are_computed() -> None:
    weights = {"wide": np.float32(2.0**20), "fine": np.float32(2.0**-5), "zero": np.int8(0)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "wide", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "wide", "zero"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["mean"]),
        helper.make_node("QuantizeLinear", ["mean", "fine", "zero"], ["int8"]),
        helper.make_node("DequantizeLinear", ["int8", "fine", "zero"], ["y"]),
    ]
    runner = Runner(graph_of(model_of(nodes, {"x": (1, 2, 2, 2)}, weights), "net"), ["y"])
    for sample in (np.full((1, 2, 2, 2), 2.0**20, np.float32), np.zeros((1, 2, 2, 2), np.float32)):
        assert np.array_equal(runner.run({"x": sample})["y"], np.minimum(sample[:, :, :1, :1], 127 / 32))


def test_sums_of_int8_are_exact_on_every_processor() -> None:
    """Two products of 127 * 127 and an offset of 128 do not fit the 16 bits of a processor without VNNI."""
    weights = {"fine": np.float32(1.0), "coarse": np.float32(2.0**8), "zero": np.int8(0)}
    weights["w"] = np.full((4, 8, 1, 1), 127, np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "fine", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "fine", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "fine", "zero"], ["v"]),
        helper.make_node("Conv", ["d", "v"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "coarse", "zero"], ["int8"]),
        helper.make_node("DequantizeLinear", ["int8", "coarse", "zero"], ["y"]),
    ]
    runner = Runner(graph_of(model_of(nodes, {"x": (1, 8, 1, 1)}, weights), "net"), ["y"])
    given = np.array([127, 127, -40, 3, 127, 0, -90, -128], np.float32).reshape(1, 8, 1, 1)
    assert np.all(runner.run({"x": given})["y"] == np.rint(127 * given.sum() / 2**8) * 2**8)
