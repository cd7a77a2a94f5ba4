"""`hilt eval` on a board that answers by the reference: scores, throughput, and the float model beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.cli import eval as command
from hilt.network import board_run, float_model
from hilt.network.board_run import Inferences
from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.reference import evaluate
from hilt_runtime import Bundle
from hilt_runtime.arrays import decode_arrays
from tests.unit.network_compile.graphs import SMALL, Builder, target

IMAGES = 11


@cache
def network() -> Graph:
    builder = Builder((1, 2, 4, 4), 3)
    flat = builder.add_node("flat", "reshape", [builder.conv("x", 8)], (1, 128), {"shape": [1, 128]})
    return builder.graph(builder.dense(flat, 10))


@cache
def compiled() -> bytes:
    return compile_network(network(), target(SMALL)).data


class Board:
    """A board that computes by the reference; each inference's steps take the time that its bundle expects."""

    graph: Graph
    asked: list[int]

    def __init__(self, name: str, listen: object, *, wait: bool) -> None:
        assert (name, wait) == ("virtual:pynq", True)
        self.asked.clear()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, bundle: Bundle, contents: bytes, inputs: bytes, *, images: int) -> Inferences:
        self.asked.append(images)
        arrays, _ = decode_arrays(inputs)
        given = arrays["x"] if images > 1 else arrays["x"][None]
        answers = [evaluate(self.graph, {"x": image})[self.graph.outputs[0]] for image in given]
        name = bundle.outputs[0]["name"]
        named = {name: answers[0]} if images == 1 else {f"{at}/{name}": each for at, each in enumerate(answers)}
        steps = [
            [step["kind"], step["name"], 1e-3 * at, 1e-3 * (at + 1), 5e-4, 1000 if step["kind"] == "vta" else None]
            for at, step in enumerate(bundle.manifest["steps"])
        ]
        runs: list[dict[str, Any]] = [{"seconds": 1e-3 * len(steps), "steps": steps}]
        engines = {step["name"]: "native" for step in bundle.manifest["steps"]}
        return Inferences(named, runs, "native", engines, (images - 1, 0.25 * (images - 1)))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a bundle and its data. The last two images have wrong labels."""
    graph = network()
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setattr(Board, "graph", graph, raising=False)
    monkeypatch.setattr(Board, "asked", [], raising=False)
    monkeypatch.setattr(board_run, "BoardRunner", Board)
    bundle, data = tmp_path / "m.hilt", tmp_path / "d.npz"
    bundle.write_bytes(compiled())
    images = np.random.default_rng(1).integers(-128, 128, (IMAGES, 1, 2, 4, 4)).astype(np.int8)
    classes = np.array([int(evaluate(graph, {"x": image})[graph.outputs[0]].argmax()) for image in images])
    classes[-2:] = (classes[-2:] + 1) % 10
    np.savez(data, x=images, y=classes)
    return bundle, data


def test_every_image_counts_once_and_the_first_request_is_small(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command.evaluate_network(*files, wait=True, as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert sum(Board.asked) == IMAGES and len(Board.asked) > 1
    assert (facts["images"], facts["right"], facts["metric"]) == (IMAGES, IMAGES - 2, "classes")
    assert facts["accuracy"] == pytest.approx((IMAGES - 2) / IMAGES) == facts["scores"]["accuracy"]
    assert (facts["network"], facts["board"]) == ("small", "virtual:pynq")
    assert facts["images_per_second"] > 0 and facts["wall_seconds"] > 0
    assert facts["latency"]["warm"] == len(Board.asked) - 1, "the first is cold"
    assert "float" not in facts


@pytest.mark.parametrize(("limit", "asked", "right"), [(1, [1], 1), (4, [4], 4), (10, [4, 6], 9)])
def test_a_limit_takes_the_first_images(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], limit: int, asked: list[int], right: int
) -> None:
    command.evaluate_network(*files, limit=limit, wait=True, as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert (Board.asked, facts["images"], facts["right"]) == (asked, limit, right)


class Float:
    """A float model that is right on all images."""

    def __init__(self, path: Path, images: Any) -> None:
        self._images = images

    def outputs(self, advance: object) -> dict[str, Any]:
        name = Board.graph.outputs[0]
        return {name: np.stack([evaluate(Board.graph, {"x": image})[name] for image in self._images])}

    def decibels(self, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
        ((_, first), (_, second)) = (*given.items(), *wanted.items())
        np.testing.assert_array_equal(first, second)
        return 31.25


def test_the_text_names_what_is_right_beside_the_float_model(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(float_model, "FloatModel", Float)
    command.evaluate_network(*files, wait=True, float_model=Path("m.onnx"))
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(f"small on virtual:pynq: {IMAGES - 2} of {IMAGES} right (81.82%); ")
    assert "float model on the same images: accuracy 0.8182; the board's outputs are 31.2 dB above their error" in said


def test_other_metrics_are_listed_with_their_images(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command.evaluate_network(*files, metric="top5", wait=True)
    said = " ".join(capsys.readouterr().out.split())
    assert f" on {IMAGES} images; " in said and said.startswith("small on virtual:pynq: ")
