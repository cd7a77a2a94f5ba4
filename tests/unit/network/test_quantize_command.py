"""`hilt quantize`, and the models and data that are refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hilt.cli.main import run
from hilt.network.calibration import CalibrationError, make_calibration
from hilt.network.onnx_graph import OnnxError, graph_of
from hilt.network.onnx_import import import_proto
from hilt.network.quantize.quantizer import quantise

from . import digits
from .models import Array, canonical, model_of, samples_for, saved

RANDOM = np.random.default_rng(6)
_FIRST = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def _same_numbers_alone() -> None:
    """Give each test the same numbers whether or not others ran before it."""
    RANDOM.bit_generator.state = _FIRST


def normal(*shape: int) -> Array:
    return RANDOM.normal(0, 0.5, shape).astype(np.float32)


@pytest.mark.slow
def test_the_command_prints_its_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, images, labels, _, _ = digits.trained()
    path = saved(model, tmp_path / "digits.onnx")
    np.savez(tmp_path / "data.npz", x=images[:40], classes=labels[:40])
    arguments = ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "--no-search"]
    assert run([*arguments, "-o", str(tmp_path / "q.onnx"), "--labels", "classes", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [layer["name"] for layer in printed["layers"]] == ["conv1", "conv2"]
    assert [layer["name"] for layer in printed["float"]] == ["dense"]
    assert all(layer["decibels"] > 20 for layer in printed["layers"])
    assert printed["accuracy"]["samples"] == 40
    assert printed["agreement"]["largest"] <= 1


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"x": (4, 1, 8, 9)}, [], r"the calibration data for x is \(4, 1, 8, 9\), but the model reads nx1x8x8"),
        ({"a": (4, 1, 8, 8), "b": (4,)}, [], "the calibration data has no array x, only a, b"),
        ({"x": (0, 1, 8, 8)}, [], "the calibration data holds no sample of x; give at least one"),
        ({"x": (4, 1, 8, 8)}, ["--labels", "y"], "the calibration data has no array y, only x"),
        ({"x": (4, 1, 8, 8)}, ["--shape", "x=1,a"], "--shape x=1,a is no shape"),
        ({"x": (4, 1, 8, 8)}, ["--value", "x=much"], "--value x=much is no number"),
        ({"x": (4, 1, 8, 8)}, ["--shape", "z=1,2"], "test has no input z; its inputs are x"),
    ],
)
def test_data_that_does_not_fit_is_refused_and_nothing_written(
    arrays: dict[str, tuple[int, ...]],
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = saved(digits.untrained(), tmp_path / "test.onnx")
    np.savez(tmp_path / "data.npz", **{name: normal(*shape) for name, shape in arrays.items()})
    output = tmp_path / "out" / "q.onnx"
    output.parent.mkdir()
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(output), *options]
    assert run(command) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert message.replace("\\", "") in error
    assert not list(output.parent.iterdir())


def test_a_single_input_takes_a_plain_array(tmp_path: Path) -> None:
    path = saved(digits.untrained(), tmp_path / "digits.onnx")
    np.save(tmp_path / "data.npy", normal(8, 1, 8, 8))
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npy"), "-o", str(tmp_path / "q.onnx")]
    assert run([*command, "--no-search"]) == 0
    assert (tmp_path / "q.onnx").exists()


def test_data_with_holes_is_refused() -> None:
    graph = canonical(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, 4, 8, 8)}))
    bad = normal(2, 4, 8, 8)
    bad[1, 0, 0, 0] = np.nan
    with pytest.raises(CalibrationError, match="NaN or infinity"):
        make_calibration({"x": bad}, graph)


def test_a_model_without_layers_is_refused() -> None:
    graph = canonical(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, 4)}))
    with pytest.raises(OnnxError, match="no convolution or dense layer with constant weights"):
        quantise(graph, samples_for(graph))


def test_import_refuses_models_that_are_not_hilts() -> None:
    with pytest.raises(OnnxError, match="test is not quantised; run `hilt quantize` on it first"):
        import_proto(digits.untrained(), "test")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="entry"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    for scale, zero, message in (
        (0.1, np.int8(0), r"node entry \(QuantizeLinear\) has the scale 0.1, which is no power of two"),
        (
            0.5,
            np.uint8(128),
            r"node entry \(QuantizeLinear\) has the zero point uint8 \[128\], and VTA needs int8 and 0",
        ),
    ):
        constants = {"scale": np.array(scale, np.float32), "zero": np.asarray(zero)}
        with pytest.raises(OnnxError, match=message):
            import_proto(model_of(nodes, {"x": (1, 4)}, constants), "test")


def test_an_operator_that_nobody_computes_is_named() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"]),
        helper.make_node("RandomNormalLike", ["s"], ["y"], name="dice"),
    ]
    model = model_of(nodes, {"x": (1, 4, 4, 4)}, {"w": normal(4, 4, 1, 1)})
    graph = canonical(model)
    with pytest.raises(
        OnnxError, match="node dice is RandomNormalLike, which neither VTA nor the processor's operators compute"
    ):
        quantise(graph, samples_for(graph), search=False)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (helper.make_node("MyOp", ["s"], ["t"], name="odd", domain="mine"), "node odd is mine.MyOp, whose result t"),
        (helper.make_node("NonZero", ["s"], ["t"], name="odd"), "node odd is NonZero, whose result t has no shape"),
        (helper.make_node("Relu", ["s"], ["t"]), r"node Conv_0 \(Conv\) has NaN or infinity in w"),
        (helper.make_node("Log", ["s"], ["t"]), "tensor t of the float model takes NaN or infinity"),
        (
            helper.make_node("Resize", ["s", "", "half"], ["t"], name="odd", mode="linear", antialias=1),
            r"node odd \(Resize\) has a form that hilt computes otherwise than ONNX Runtime",
        ),
    ],
)
def test_the_node_at_fault_is_named(node: Any, message: str) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"]),
        node,
        *([helper.make_node("Cast", ["t"], ["u"], to=1)] if node.op_type == "NonZero" else []),
        helper.make_node("Flatten", ["u" if node.op_type == "NonZero" else "t"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["y"]),
    ]
    weights = normal(4, 4, 1, 1) * (np.float32(np.inf) if node.op_type == "Relu" else np.float32(1))
    constants = {"w": weights, "v": normal(64, 8), "half": np.array([1, 1, 0.5, 0.5], np.float32)}
    if node.op_type == "Resize":
        constants["v"] = constants["v"][:16]
    model = model_of(nodes, {"x": (1, 4, 4, 4)}, constants, opset=18)
    with pytest.raises((OnnxError, CalibrationError), match=message):
        graph = canonical(model)
        quantise(graph, samples_for(graph), search=False)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([helper.make_node("Conv", ["x", "w3"], ["y"], name="odd", group=2)], r"node odd \(Conv\) has 3 dimensions"),
        (
            [helper.make_node("MaxPool", ["x"], ["y"], name="odd", kernel_shape=[2] * 3, auto_pad="SAME_UPPER")],
            r"node odd \(MaxPool\) has 3 dimensions",
        ),
        (
            [helper.make_node("BatchNormalization", ["x", *"abcd"], ["y", "m", "v"], name="odd", training_mode=1)],
            r"node odd \(BatchNormalization\) is in training mode; export the model for inference",
        ),
        (
            [
                helper.make_node("Squeeze", ["x", "one"], ["s"]),
                helper.make_node("MaxPool", ["s"], ["p", "y"], name="odd", kernel_shape=[2, 2]),
            ],
            r"node odd \(MaxPool\) has a further output y, which hilt does not compute",
        ),
        ([helper.make_node("Dropout", ["x"], ["s", "y"], name="odd")], "node odd is Dropout, which neither"),
    ],
)
def test_a_form_that_nobody_computes_is_named_before_any_work(nodes: list[Any], message: str) -> None:
    constants = {"w3": normal(4, 2, 1, 1, 1), "one": np.array([2]), **{name: normal(4) for name in "abcd"}}
    graph = canonical(model_of(nodes, {"x": (1, 4, 1, 4, 4)}, constants))
    with pytest.raises(OnnxError, match=message):
        quantise(graph, samples_for(graph), search=False)


def test_places_that_are_not_there_are_the_datas_fault() -> None:
    nodes = [helper.make_node("Gather", ["e", "x"], ["g"]), helper.make_node("MatMul", ["g", "w"], ["y"])]
    types = {"x": TensorProto.INT64}
    graph = canonical(model_of(nodes, {"x": (1, 6)}, {"e": normal(5, 8), "w": normal(8, 3)}, types=types))
    data = make_calibration({"x": np.full((2, 6), 9)}, graph)
    with pytest.raises(CalibrationError, match=r"cannot compute test on the calibration data: .*idx=9 must be within"):
        quantise(graph, data, search=False)


def test_a_model_without_inputs_has_nothing_to_run() -> None:
    graph = canonical(model_of([helper.make_node("Relu", ["k"], ["y"])], {}, {"k": normal(2, 3)}))
    with pytest.raises(OnnxError, match="test has no inputs"):
        make_calibration({}, graph)


def test_a_size_of_zero_is_an_open_size() -> None:
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": (0, 4, 4, 4)}, {"w": normal(4, 4, 1, 1)})
    assert canonical(model).shape("y") == (1, 4, 4, 4)


def test_without_onnx_runtime_it_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(digits.untrained(), tmp_path / "digits.onnx")
    np.save(tmp_path / "data.npy", normal(2, 1, 8, 8))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npy"), "-o", str(tmp_path / "q.onnx")]
    assert run(command) == 2
    assert capsys.readouterr().err == ("hilt: onnxruntime is not installed; `pip install hilt[networks]` brings it\n")
    assert not (tmp_path / "q.onnx").exists()


def test_the_datas_shape_answers_open_sizes() -> None:
    from hilt.network.calibration import shapes_from

    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    graph = graph_of(model_of(nodes, {"x": (None, 3, None, None)}, {"w": normal(4, 3, 1, 1)}), "test")
    assert shapes_from({"x": normal(5, 3, 8, 6)}, graph, "") == {"x": (1, 3, 8, 6)}
    assert shapes_from({"x": normal(5, 2, 3, 8, 6)}, graph, "") == {"x": (2, 3, 8, 6)}
    assert shapes_from({"x": normal(3, 8, 6)}, graph, "") == {}
    for declared, of_four, of_five in (
        ((None, 3, 8, 6), {}, {"x": (4, 3, 8, 6)}),  # the samples say nothing of the images of one
        ((2, 3, None, 6), {"x": (2, 3, 8, 6)}, {"x": (4, 3, 8, 6)}),
        ((2, 3, 8, None), {"x": (2, 3, 8, 6)}, {"x": (4, 3, 8, 6)}),
        ((2, None, 8, 6), {"x": (2, 3, 8, 6)}, {"x": (4, 3, 8, 6)}),
        ((2, 3, 8, 6), {}, {}),
    ):
        graph.shapes["x"] = declared
        assert shapes_from({"x": normal(5, 3, 8, 6)}, graph, "") == of_four
        assert shapes_from({"x": normal(5, 4, 3, 8, 6)}, graph, "") == of_five


def test_fewer_samples_are_spread_over_all() -> None:
    from hilt.network.calibration import spread

    samples: list[Any] = [{"x": np.array(number)} for number in range(10)]
    for count, places in ((1, [0]), (2, [0, 9]), (4, [0, 3, 6, 9]), (9, [0, 1, 2, 3, 4, 6, 7, 8, 9])):
        assert [int(each["x"]) for each in spread(samples, count)] == places
    for count in (10, 11):
        assert list(spread(samples, count)) == samples
