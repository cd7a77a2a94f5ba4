"""Spaces and explanations of a model's layers, by the node's name."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from hilt.cli.main import run as hilt
from hilt.schedule.onnx_model import read_network
from tests.unit.schedule.onnx_models import toy


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "toy.onnx"
    onnx.save(toy(), str(path))
    return str(path)


def test_a_model_gets_a_row_for_each_layer_by_its_node(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [layer.nodes[0] for layer in read_network(Path(model)).supported]
    assert hilt(["space", model, "--orders", "1", "--checks", "compiler", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["kind"] == "spaces" and [row["workload"] for row in said["workloads"]] == nodes


def test_one_layer_is_named_by_any_of_its_nodes(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    layer = next(layer for layer in read_network(Path(model)).supported if layer.count > 1)
    sizes = []
    for node in layer.nodes:
        assert hilt(["space", f"{model}:{node}", "--checks", "compiler", "--json"]) == 0
        sizes.append(json.loads(capsys.readouterr().out)["size"])
    assert len(set(sizes)) == 1
    assert hilt(["explain", f"{model}:{layer.nodes[0]}", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "explanation"


def test_a_layer_that_is_not_there_gets_the_names(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    node = read_network(Path(model)).supported[0].nodes[0]
    assert hilt(["explain", f"{model}:{node}x", "0"]) == 2
    assert f"did you mean {node}" in capsys.readouterr().err
    assert hilt(["explain", model, "0"]) == 2
    assert f"name one as {model}:{node}" in capsys.readouterr().err
