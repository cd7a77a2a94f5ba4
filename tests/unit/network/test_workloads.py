"""The layers that are tuned are those that are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.cli.main import run
from hilt.network import zoo
from hilt.network.workloads import coverage, coverage_text, read_layers
from hilt.schedule.onnx_model import OnnxError, read_network

from .models import Array, model_of, saved


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def test_batch_norms_become_biases(tmp_path: Path) -> None:
    path = saved(zoo.make("resnet8"), tmp_path / "resnet8.onnx")
    layers = read_layers(path).supported
    assert sum(layer.count for layer in layers) == 10 and all("bias=1" in layer.workload for layer in layers)
    before = read_network(path).supported
    assert (
        sum(layer.macs * layer.count for layer in layers)
        == sum(layer.macs * layer.count for layer in before)
        == 12_501_632
    )


def test_an_open_input_is_given_by_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = helper.make_node("Conv", ["image", "w"], ["y"])
    path = saved(model_of([node], {"image": (1, 3, "h", "w")}, {"w": ones(4, 3, 3, 3)}), tmp_path / "open.onnx")
    with pytest.raises(OnnxError, match="input image of open has the open shape 1x3x"):
        read_layers(path)
    (layer,) = read_layers(path, {"image": (1, 3, 10, 12)}).supported
    assert layer.macs == 4 * 8 * 10 * 27
    for command in (["tune", str(path)], ["campaign", str(path), "--budget", "9"]):
        assert run(command) == 2
        error = capsys.readouterr().err
        assert "--shape image=1,3,?,?" in error and len(error.splitlines()) == 1


def test_shapes_are_for_models_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", "resnet18.C5", "--shape", "x=1,2"]) == 2
    assert "--shape and --value are for a model.onnx; resnet18.C5 has its sizes" in capsys.readouterr().err
    assert run(["campaign", "resnet18", "--budget", "9", "--value", "x=1"]) == 2
    assert "--shape and --value are for a model.onnx; resnet18 has its sizes" in capsys.readouterr().err


def test_inserted_zeros_are_no_work(tmp_path: Path) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    path = saved(model_of([node], {"x": (1, 16, 20, 20)}, {"w": ones(16, 16, 2, 2)}), tmp_path / "up.onnx")
    (layer,) = read_layers(path).supported
    assert layer.macs == 40 * 40 * 16 * 16 and layer.workload.startswith("conv2d:") and "co=64" in layer.workload


def test_layers_on_the_processor_are_counted(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Reshape", ["a", "flat"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[1, 0]),
        helper.make_node("MatMul", ["b", "c"], ["y"]),
    ]
    constants = {"w": ones(4, 2, 1, 1), "flat": np.array([4, 64])}
    network = read_layers(saved(model_of(nodes, {"x": (1, 2, 8, 8)}, constants), tmp_path / "n.onnx"))
    (product,) = network.unsupported
    assert product.macs == 4 * 4 * 64
    assert coverage(network) == pytest.approx(512 / 1536)
    assert coverage_text(network).startswith("VTA can run 33.3 % of the 1,536 multiply-accumulates of n; 1 layers stay")


def test_dilation_without_effect_is_none(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], dilations=[3, 2])
    path = saved(model_of([node], {"x": (1, 2, 9, 9)}, {"w": ones(3, 2, 1, 3)}), tmp_path / "d.onnx")
    (layer,) = read_layers(path).supported
    assert "kernel=1x5" in layer.workload or "k=1x5" in layer.workload


@pytest.mark.parametrize(
    ("op", "weights", "attributes", "macs"),
    [
        ("Conv", (6, 2, 3, 5), {"group": 2}, 6 * 6 * 4 * 2 * 15),
        ("Conv", (6, 4, 3, 3), {"strides": [2, 2]}, 6 * 3 * 3 * 4 * 9),
        ("ConvTranspose", (4, 3, 2, 3), {"strides": [2, 2]}, 4 * 8 * 8 * 3 * 6),
        ("ConvTranspose", (4, 3, 2, 2), {"group": 2}, 4 * 8 * 8 * 3 * 4),
    ],
)
def test_a_convolution_by_computed_weights_is_the_processors_with_its_work(
    op: str, weights: tuple[int, ...], attributes: dict[str, Any], macs: int, tmp_path: Path
) -> None:
    nodes = [helper.make_node("Relu", ["k"], ["w"]), helper.make_node(op, ["x", "w"], ["y"], **attributes)]
    network = read_layers(saved(model_of(nodes, {"x": (1, 4, 8, 8), "k": weights}), tmp_path / "n.onnx"))
    (layer,) = network.unsupported
    assert layer.macs == macs and layer.reason == f"{op}: both of its operands are computed"
