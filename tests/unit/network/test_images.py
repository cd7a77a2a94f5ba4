"""Images of bytes as input: layout, mean and scale are the network's first nodes, on the board too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.cli.main import run
from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.images import Images, take_images
from hilt.network.onnx_graph import OnnxError
from hilt.network.onnx_import import import_model
from hilt.network.onnx_simplify import fixed_model
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt_runtime import Network, read_bundle

from ..network_compile.runs import target
from .models import Array, model_of, run_float, saved

MEAN, SCALE = (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)


def model(last: bool) -> Any:
    random = np.random.default_rng(2)
    nodes = [helper.make_node("Conv", ["f" if last else "x", "w"], ["y"], pads=[1] * 4)]
    if last:
        nodes.insert(0, helper.make_node("Transpose", ["x"], ["f"], perm=[0, 3, 1, 2]))
    shape = ("n", 8, "w", 3) if last else ("n", 3, 8, "w")
    return model_of(nodes, {"x": shape}, {"w": random.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32)})


def quantised(tmp_path: Path, original: Any, images: Array, *options: str) -> Graph:
    path = saved(original, tmp_path / "m.onnx")
    np.savez(tmp_path / "data.npz", x=images)
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(tmp_path / "q.onnx")]
    assert run([*command, "--mean", ",".join(map(str, MEAN)), "--scale", ",".join(map(str, SCALE)), *options]) == 0
    return import_model(tmp_path / "q.onnx")


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("last", [False, True])
def test_bytes_give_what_normalised_floats_give(layout: str, last: bool, tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (24, 8, 12, 3)).astype(np.uint8)
    given = images if layout == "nhwc" else images.transpose(0, 3, 1, 2)
    original = model(last)
    graph = quantised(tmp_path, original, given[:16], "--layout", layout)
    (name,) = graph.inputs
    assert graph.tensors[name].dtype == "uint8" and graph.tensors[name].shape == (1, *given.shape[1:])
    floats = ((images - np.array(MEAN)) / np.array(SCALE)).astype(np.float32)
    floats = floats if last else floats.transpose(0, 3, 1, 2)
    for number in range(16, 24):
        (wanted,) = run_float(original, {"x": floats[number : number + 1]})
        made = evaluate(graph, {name: given[number : number + 1]})[graph.outputs[0]]
        assert np.mean((made - wanted) ** 2) < 1e-3 * np.mean(wanted**2)


def test_a_board_reads_the_bytes(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (8, 8, 12, 3)).astype(np.uint8)
    graph = quantised(tmp_path, model(False), images)
    aim = target()
    with SimulatedVta(aim) as device:
        made = Network(read_bundle(compile_network(graph, aim).data, "m"), device)(images[:1])
    assert np.array_equal(made, evaluate(graph, {"x": images[:1]})[graph.outputs[0]])


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("last", [False, True])
def test_layout_mean_and_scale_are_one_look_up(layout: str, last: bool, tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (8, 8, 12, 3)).astype(np.uint8)
    given = images if layout == "nhwc" else images.transpose(0, 3, 1, 2)
    graph = quantised(tmp_path, model(last), given, "--layout", layout)
    found = [node.op for node in graph.nodes]
    assert found[0] == "pixel_table" and set(found[1:-2]) <= {"transpose", "pad"} and found[-2] == "conv2d"
    assert found[-1] in ("dequantize", "table"), "the output's floats"
    (first,) = [node for node in graph.nodes if node.op == "pixel_table"]
    scale = graph.tensors[first.outputs[0]].scale
    floats = (np.arange(256, dtype=np.float32)[None] - np.float32(MEAN)[:, None]) / np.float32(SCALE)[:, None]
    steps = graph.constants[first.inputs[1]].astype(np.float64)
    inside = np.abs(steps) < 127
    factor, constant = np.polyfit(floats[inside], steps[inside], 1)
    assert 0.5 <= factor * scale <= 2, "the number that brings values to the ends of int8, beside a constant"
    assert np.abs(np.clip(floats * factor + constant, -128, 127) - steps).max() < 0.55, "both are one for all channels"
    assert first.attributes["axis"] == (3 if layout == "nhwc" else 1)


def test_one_mean_for_all_channels_is_one_table(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (8, 8, 12, 3)).astype(np.uint8)
    path = saved(model(False), tmp_path / "m.onnx")
    np.savez(tmp_path / "data.npz", x=images)
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(tmp_path / "q.onnx")]
    assert run([*command, "--scale", "255"]) == 0
    graph = import_model(tmp_path / "q.onnx")
    (first,) = [node for node in graph.nodes if node.op == "pixel_table"]
    assert graph.constants[first.inputs[1]].shape == (1, 256)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mean", "1,2"], "--mean has 2 values, x has 3 channels"),
        (["--scale", "0"], "--scale holds 0"),
        (["--scale", "much"], "--scale much is no list of numbers"),
        (["--layout", "hwc"], "--layout hwc is neither nhwc nor nchw"),
    ],
)
def test_wrong_options_are_one_line(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(model(False), tmp_path / "m.onnx")
    np.savez(tmp_path / "data.npz", x=np.zeros((2, 8, 12, 3), np.uint8))
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(tmp_path / "q.onnx")]
    assert run([*command, *options]) == 2
    assert message in capsys.readouterr().err


def test_floats_are_no_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(model(False), tmp_path / "m.onnx")
    np.savez(tmp_path / "data.npz", x=np.zeros((2, 8, 12, 3), np.float32))
    command = ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(tmp_path / "q.onnx")]
    assert run([*command, "--scale", "255"]) == 2
    assert "give images of uint8" in capsys.readouterr().err


@pytest.mark.parametrize(
    "inputs",
    [{"x": (1, 8)}, {"x": (1, 8, 8)}, {"x": (1, 8, 1, 1), "z": (1, 8, 1, 1)}],
    ids=["two axes", "three axes", "two inputs"],
)
def test_images_are_the_only_input_of_four_axes(inputs: dict[str, Any]) -> None:
    nodes = [helper.make_node("Sum", list(inputs), ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    graph = fixed_model(model_of(nodes, inputs, {}), "test")
    with pytest.raises(OnnxError, match=r"has no single float input of four axes, as --mean, --scale and --layout"):
        take_images(graph, Images())
