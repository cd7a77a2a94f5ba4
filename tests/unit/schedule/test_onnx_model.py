"""ONNX models in: every convolution and dense layer is found, counted once for each shape, or refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto

from hilt.schedule import load_workload
from hilt.schedule.onnx_model import Network, OnnxError, read_network
from tests.unit.schedule.onnx_models import Graph, resnet18


def read(tmp_path: Path, model: Any) -> Network:
    path = tmp_path / "net.onnx"
    onnx.save(model, str(path))
    return read_network(path)


RESNET18 = {
    "autotvm.C1": 1,
    **{"resnet18.C2": 4, "resnet18.C3": 1, "resnet18.C4": 1, "resnet18.C5": 3, "resnet18.C6": 1, "resnet18.C7": 1},
    **{"resnet18.C8": 3, "resnet18.C9": 1, "resnet18.C10": 1, "resnet18.C11": 3},
    "dense:n=1,ci=512,co=1000,bias=1": 1,
}


@pytest.mark.parametrize("batch", [1, "N"])
def test_resnet18_is_the_catalogues(tmp_path: Path, batch: int | str) -> None:
    network = read(tmp_path, resnet18(batch=batch))
    assert {layer.workload: layer.count for layer in network.layers} == RESNET18
    assert not network.unsupported
    assert network.others["Relu"] == 17 and network.others["Add"] == 8 and "Conv" not in network.others
    # torchvision states 1.81 giga multiply-accumulates for ResNet-18
    assert sum(layer.count * layer.macs for layer in network.layers) == pytest.approx(1.814e9, rel=1e-3)


def only(tmp_path: Path, graph: Graph, output: str, *shape: int | str, rank: int = 4) -> Any:
    (layer,) = read(tmp_path, graph.model(output, *shape, rank=rank)).layers
    return layer


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"auto_pad": "VALID"}, (0, 0)),
        ({"auto_pad": "SAME_UPPER"}, (1, 1)),
        ({"auto_pad": "SAME_UPPER", "stride": 2, "kernel": 2}, (0, 0, 1, 1)),
        ({"auto_pad": "SAME_LOWER", "stride": 2, "kernel": 2}, (1, 1, 0, 0)),
        ({"pads": [2, 1, 2, 1]}, (2, 1)),
        ({"pads": [0, 0, 1, 2]}, (0, 0, 1, 2)),
        ({}, (1, 1)),
    ],
)
def test_padding(tmp_path: Path, attributes: dict[str, Any], expected: tuple[int, ...]) -> None:
    graph = Graph()
    kernel = attributes.get("kernel", 3)
    others = {name: value for name, value in attributes.items() if name != "kernel"}
    layer = only(tmp_path, graph, graph.conv("data", 32, 48, kernel, **others), 2, 32, 9, 11)
    workload = load_workload(layer.workload)
    assert workload.padding + workload.pad_end == (expected if len(expected) == 4 else expected * 2)
    assert not workload.bias
    assert (workload.batch, workload.in_channels, workload.height, workload.width) == (2, 32, 9, 11)


@pytest.mark.parametrize(("padding", "added"), [({"pads": [2, 2, 2, 2]}, 4), ({"auto_pad": "SAME_UPPER"}, 4)])
def test_a_dilated_convolution(tmp_path: Path, padding: dict[str, Any], added: int) -> None:
    graph = Graph()
    layer = only(tmp_path, graph, graph.conv("data", 32, 48, 3, dilations=[2, 2], **padding), 1, 32, 9, 11)
    workload = load_workload(layer.workload)
    assert workload.dilation == (2, 2) and workload.padding[0] + workload.pad_end[0] == added
    assert (workload.out_height, workload.out_width) == (9, 11)


def test_bias_makes_another_layer(tmp_path: Path) -> None:
    graph = Graph()
    data = graph.conv("data", 32, 32, 3)
    network = read(tmp_path, graph.model(graph.conv(data, 32, 32, 3, bias=True), 1, 32, 8, 8, rank=4))
    assert [load_workload(layer.workload).bias for layer in network.layers] == [False, True]


def test_a_quantized_convolution(tmp_path: Path) -> None:
    graph = Graph()
    inputs = ["data", graph.weight(), graph.weight(kind=TensorProto.INT8), graph.weight(64, 16, 1, 1)]
    inputs += [graph.weight(), graph.weight(kind=TensorProto.INT8), graph.weight(), graph.weight(kind=TensorProto.INT8)]
    layer = only(tmp_path, graph, graph.add("QLinearConv", *inputs, strides=[2, 2]), 1, 16, 8, 8)
    assert layer.workload == "conv2d:n=1,ci=16,h=8,w=8,co=64,k=1x1,s=2x2,p=0x0"


def test_products(tmp_path: Path) -> None:
    graph = Graph()
    data = graph.add("MatMul", "data", graph.weight(64, 48))
    data = graph.add("MatMul", data, graph.weight(48, 64))
    data = graph.add("MatMul", data, graph.weight(64, 48))
    network = read(tmp_path, graph.model(data, 2, 7, 64, rank=3))
    assert [(layer.count, load_workload(layer.workload).in_channels) for layer in network.layers] == [(2, 64), (1, 48)]
    assert {load_workload(layer.workload).batch for layer in network.layers} == {14}


@pytest.mark.parametrize(
    ("attributes", "shape", "words"),
    [
        ({}, (1, 32, "H", "W"), "'data' is not known"),
        ({}, (0, 32, 9, 9), "'data' is not known"),
        ({"pads": "abcd"}, (1, 32, 9, 9), "its pads are b'abcd', not 4 whole numbers"),
        ({"pads": [1, 1]}, (1, 32, 9, 9), "its pads are [1, 1], not 4 whole numbers"),
        ({"dilations": [2]}, (1, 32, 9, 9), "its dilations are [2], not 2 whole numbers"),
        ({"group": [1, 1]}, (1, 32, 9, 9), "its group is [1, 1]"),
        ({"strides": [0, 0], "auto_pad": "SAME_UPPER"}, (1, 32, 9, 9), "its strides are 0 and 0"),
        ({"auto_pad": "SOME"}, (1, 32, 9, 9), "its auto_pad is b'SOME'"),
        ({}, (1, 48, 9, 9), "48 input channels by weights for 32"),
    ],
)
def test_an_unrunnable_configuration_says_why(
    tmp_path: Path, attributes: dict[str, Any], shape: tuple[int | str, ...], words: str
) -> None:
    graph = Graph()
    layer = only(tmp_path, graph, graph.conv("data", 32, 32, 3, **attributes), *shape)
    assert not layer.workload and layer.reason.startswith("Conv: ") and words in layer.reason
    assert layer.nodes == ["Conv_0"]


def test_a_transposed_convolution(tmp_path: Path) -> None:
    graph = Graph()
    more = {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}
    layer = only(tmp_path, graph, graph.add("ConvTranspose", "data", graph.weight(32, 16, 3, 3), **more), 1, 32, 8, 6)
    expected = load_workload("conv2d_transpose:n=1,ci=32,h=8,w=6,co=16,k=3x3,s=2x2,p=1x1,op=1x1")
    assert replace(load_workload(layer.workload), name="") == replace(expected, name="")
    assert (expected.out_height, expected.out_width) == (16, 12)


def test_a_grouped_convolution(tmp_path: Path) -> None:
    graph = Graph()
    layer = only(tmp_path, graph, graph.conv("data", 64, 64, 3, group=64), 1, 64, 8, 8)
    assert load_workload(layer.workload).groups == 64


def test_other_things_that_cannot_run(tmp_path: Path) -> None:
    graph = Graph()
    graph.add("ConvTranspose", "data", graph.weight(32, 16, 2, 2), output_shape=[16, 16])
    output = graph.add("MatMul", "data", "data")
    network = read(tmp_path, graph.model(output, 1, 32, 8, 8, rank=4))
    assert [layer.reason.split(":")[0] for layer in network.unsupported] == ["ConvTranspose", "MatMul"]
    assert "computed" in network.unsupported[1].reason
    graph = Graph()
    (layer,) = read(tmp_path, graph.model(graph.add("Conv", "data", graph.weight(8, 4, 3)), 1, 4, 9, rank=3)).layers
    assert "1 dimensions" in layer.reason


def test_files_that_are_no_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.onnx"
    for contents in (b"shopping list", b"", b"\x00" * 100):
        path.write_bytes(contents)
        with pytest.raises(OnnxError, match=r"bad\.onnx is no ONNX model"):
            read_network(path)
    with pytest.raises(OnnxError, match=r"cannot read .*gone\.onnx: No such file"):
        read_network(tmp_path / "gone.onnx")


def test_onnx_is_loaded_only_to_read_a_model() -> None:
    code = "import sys, hilt.cli.main, hilt.schedule.onnx_model; print('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
