"""Layers that stay in float on the processor: named ones, and the fewest that bring the outputs to an aim."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from onnx import helper

from hilt.cli.main import run
from hilt.network.onnx_graph import OnnxError
from hilt.network.quantize import fit, keep
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.statistics import signal_to_noise
from hilt.network.reference import evaluate

from .models import Array, canonical, model_of, run_float, samples_for, saved

RANDOM = np.random.default_rng(9)
_FIRST = RANDOM.bit_generator.state
LAYERS = ("first", "wild", "third", "last")


@pytest.fixture(autouse=True)
def _same_numbers_alone() -> None:
    """Give each test the same numbers whether or not others ran before it."""
    RANDOM.bit_generator.state = _FIRST


def wild_model() -> Any:
    """Return four convolutions; the second has weights of very different sizes, which no equalising reaches."""
    weights: dict[str, Array] = {
        name: RANDOM.normal(0, 0.5, (8, 3 if name == "first" else 8, 3, 3)).astype(np.float32) for name in LAYERS
    }
    weights["wild"] *= np.float32(0.003)
    weights["wild"][:, :, 1, 1] += np.where(np.eye(8) > 0, 1, 0).astype(np.float32)
    weights["sum"] = np.array([[1.0] * 8] * 8, np.float32).reshape(8, 8, 1, 1)
    nodes: list[Any] = []
    before = "x"
    for name in LAYERS:
        nodes.append(helper.make_node("Conv", [before, name], [f"{name}_sums"], pads=[1] * 4, name=name))
        nodes.append(helper.make_node("Sigmoid", [f"{name}_sums"], [f"{name}_out"], name=f"{name}_sigmoid"))
        before = f"{name}_out"
    nodes.append(helper.make_node("Conv", [before, "sum"], ["y"], name="sum"))
    return model_of(nodes, {"x": (1, 3, 8, 8)}, weights)


def test_all_phases_of_a_named_transposed_convolution_run_in_float() -> None:
    shapes = {"first": (8, 3, 3, 3), "up": (8, 32, 4, 4), "last": (4, 32, 1, 1)}
    weights = {name: RANDOM.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["f"], name="first"),
        helper.make_node("ConvTranspose", ["f", "up"], ["u"], name="up", strides=[2, 2], pads=[1] * 4),
        helper.make_node("Conv", ["u", "last"], ["y"], name="last"),
    ]
    graph = canonical(model_of(nodes, {"x": (1, 3, 8, 8)}, weights))
    result = quantise(graph, samples_for(graph, 8), search=False, kept=["up"])
    assert [node.name for node in result.kept] == ["up", "up.phase2", "up.phase3", "up.phase4"]
    assert [node.name for node in result.graph.nodes if node.op == "conv2d"] == ["first", "last"]


def test_a_named_layer_runs_in_float_on_the_processor() -> None:
    model = wild_model()
    graph = canonical(model)
    result = quantise(graph, samples_for(graph, 16), search=False, kept=["wild"])
    assert [node.name for node in result.kept] == ["wild"]
    assert result.kept[0].macs == 8 * 8 * 9 * 64 and 0 < result.kept[0].seconds < 1
    layers = {node.name: node.op for node in result.graph.nodes}
    assert layers["wild"] == "Conv" and layers["first"] == "conv2d"
    feeds = samples_for(graph, 1, seed=5).samples[0]
    (wanted,), given = run_float(model, feeds), evaluate(result.graph, feeds)[result.graph.outputs[0]]
    np.testing.assert_allclose(given, wanted, atol=0.05 * float(np.abs(wanted).max()))


@pytest.mark.slow
def test_the_form_that_chose_the_layers_is_tried_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With layers in float another form may start better and end worse than the one that reached the aim."""
    graph = canonical(wild_model())
    samples = samples_for(graph, 24)
    decibels = quantise(graph, samples, search=False).costs.outputs[0].decibels
    tried: list[tuple[Any, Any]] = []
    again = fit._Candidates.again

    def noted(self: Any, candidate: Any) -> Any:
        tried.append((candidate, again(self, candidate)))
        return tried[-1][1]

    monkeypatch.setattr(fit._Candidates, "again", noted)
    kept = quantise(graph, samples, search=False, least_decibels=decibels + 3).kept
    ((before, made),) = tried
    assert made.start.graph is before.start.graph and made.centred == before.centred
    layers = [len(each.start.regions.layers) for each in (before, made)]
    assert layers[0] - layers[1] == len(kept) > 0


@pytest.mark.slow
def test_the_fewest_layers_that_reach_the_aim_stay_in_float() -> None:
    graph = canonical(wild_model())
    samples = samples_for(graph, 24)
    plain = quantise(graph, samples, search=False)
    decibels = plain.costs.outputs[0].decibels
    assert not plain.kept
    better = quantise(graph, samples, search=False, least_decibels=decibels + 3)
    assert better.costs.outputs[0].decibels > decibels + 2.5
    assert 0 < len(better.kept) < len(LAYERS)
    fewer = quantise(graph, samples, search=False, kept=[node.name for node in better.kept][1:])
    assert fewer.costs.outputs[0].decibels < better.costs.outputs[0].decibels
    # The choice has a margin, and does not know the gain of rounding by effect
    assert not quantise(graph, samples, search=False, least_decibels=decibels - 6).kept


class Judge:
    """Stands for the measurements: a function of the layers in int8, by their places, gives the noise."""

    noise_of: ClassVar[Callable[[frozenset[int]], float]]
    count: ClassVar[int]
    asked: ClassVar[list[frozenset[int]]]

    def __init__(self, *_: object) -> None:
        pass

    def noise(self, kept: Collection[str]) -> float:
        assert "user" in kept
        in_int8 = frozenset(place for place in range(self.count) if f"n{place}" not in kept)
        self.asked.append(in_int8)
        return type(self).noise_of(in_int8)


def chosen_of(
    monkeypatch: pytest.MonkeyPatch,
    noise_of: Callable[[frozenset[int]], float],
    macs: Sequence[float],
    decibels: float,
) -> list[int]:
    """Return the places of the layers that are chosen for an aim, of layers with these sizes."""
    layers = [SimpleNamespace(node=SimpleNamespace(name=f"n{place}"), macs=each) for place, each in enumerate(macs)]
    for name, value in {"noise_of": noise_of, "count": len(macs), "asked": []}.items():
        monkeypatch.setattr(Judge, name, value, raising=False)
    monkeypatch.setattr(keep, "_Judge", Judge)
    monkeypatch.setattr(keep, "find_regions", lambda graph, kept: SimpleNamespace(layers=layers))
    monkeypatch.setattr(keep, "layer_macs", lambda graph, layer: layer.macs)
    nothing: Any = None
    found = keep.choose_kept(nothing, nothing, nothing, decibels, kept=["user"], channel_block=1)
    return [int(name[1:]) for name in found]


@pytest.mark.parametrize("few", [1, 2, 3, 4, 5, 7, 8, 9, 16])
def test_as_few_of_the_noisiest_as_reach_the_aim_are_chosen(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Noises are powers of two; the aim is reached, a decibel of margin included, without the `few` largest.

    All in int8 and each layer alone are measured, numbers by doubling and halving, and each chosen layer once more.
    """
    order = np.random.default_rng(few).permutation(20)
    noises = 2.0 ** -order.astype(float)

    def noise_of(in_int8: frozenset[int]) -> float:
        return float(noises[sorted(in_int8)].sum())

    decibels = -10 * np.log10(np.sort(noises)[: 20 - few].sum())
    assert chosen_of(monkeypatch, noise_of, [1.0] * 20, decibels - 1.001) == np.flatnonzero(order < few).tolist()
    assert len(Judge.asked) <= 1 + 20 + max(2 * math.ceil(math.log2(few)), 1) + few
    assert len(chosen_of(monkeypatch, noise_of, [1.0] * 20, decibels - 0.999)) > few


def test_none_is_chosen_where_the_aim_is_reached_and_all_but_the_quietest_where_it_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noises = [1e-3, 4e-3, 2e-3]

    def noise_of(in_int8: frozenset[int]) -> float:
        return sum(noises[place] for place in in_int8)

    assert chosen_of(monkeypatch, noise_of, [1.0] * 3, -10 * np.log10(7.1e-3) - 1) == []
    assert len(Judge.asked) == 1
    assert chosen_of(monkeypatch, noise_of, [1.0] * 3, 60) == [1, 2]


@pytest.mark.parametrize(("macs", "kept"), [([5.0, 2.0, 9.0, 1.0], [1, 2]), ([2.0, 5.0, 9.0, 1.0], [0, 2])])
def test_chosen_layers_that_are_not_needed_go_back_the_largest_first(
    monkeypatch: pytest.MonkeyPatch, macs: list[float], kept: list[int]
) -> None:
    """Beside the last layer in int8 either of the first two may be there, not both; the third never."""

    def noise_of(in_int8: frozenset[int]) -> float:
        first = {0, 1} <= in_int8 or (3 not in in_int8 and in_int8 & {0, 1})
        return 9.0 * bool(first) + 3e-3 * (2 in in_int8) + 1e-3 * (3 in in_int8)

    assert chosen_of(monkeypatch, noise_of, macs, -10 * np.log10(2e-3) - 1) == kept


def test_no_more_than_24_chosen_layers_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen_of(monkeypatch, lambda in_int8: float(len(in_int8)), [float(place) for place in range(40)], 60)
    again = {min(in_int8) for in_int8 in Judge.asked if len(in_int8) == 2 and 39 in in_int8}
    assert again == set(range(39 - 24, 39))


def skewed_model() -> Any:
    """Return three convolutions and a dense layer; int8 serves their channels only once these are equalised."""
    sizes = {"a": (16, 3, 3, 3), "b": (16, 16, 3, 3), "c": (16, 16, 1, 1), "d": (4, 16, 1, 1)}
    weights: dict[str, Array] = {name: RANDOM.normal(0, 0.3, size).astype(np.float32) for name, size in sizes.items()}
    for first, second in ("ab", "bc", "cd"):
        factors = np.exp2(RANDOM.normal(0, 3, 16)).astype(np.float32)
        weights[first] *= factors[:, None, None, None]
        weights[second] /= factors[:, None, None]
    nodes = []
    for before, name in zip("xabc", "abcd", strict=True):
        read = before if before == "x" else f"{before}_out"
        made = "y" if name == "d" else f"{name}_sums"
        nodes.append(helper.make_node("Conv", [read, name], [made], pads=[weights[name].shape[2] // 2] * 4, name=name))
        if name != "d":
            nodes.append(helper.make_node("Relu", [made], [f"{name}_out"], name=f"{name}_relu"))
    return model_of(nodes, {"x": (1, 3, 8, 8)}, weights)


@pytest.mark.slow
def test_channels_are_equalised_through_layers_in_float() -> None:
    graph = canonical(skewed_model())
    samples = samples_for(graph, 24)
    plain = quantise(graph, samples, search=False)
    assert plain.equalised
    for kept in ("b", "d"):
        assert quantise(graph, samples, search=False, kept=[kept]).costs.decibels > plain.costs.decibels


@pytest.mark.slow
def test_the_aim_is_reached_beside_the_users_model_with_channels_equalised() -> None:
    model = skewed_model()
    graph = canonical(model)
    samples = samples_for(graph, 24)
    aim = quantise(graph, samples, search=False).costs.decibels + 4
    result = quantise(graph, samples, search=False, least_decibels=aim)
    assert result.equalised and 0 < len(result.kept) < 4
    reached = []
    for feeds in samples_for(graph, 16, seed=5).samples:
        (wanted,), given = run_float(model, feeds), evaluate(result.graph, feeds)[result.graph.outputs[0]]
        reached.append(signal_to_noise({"y": wanted}, {"y": given}))
    assert np.median(reached) > aim - 1


def test_an_aim_out_of_reach_leaves_one_layer_on_vta() -> None:
    weights = {
        "a": RANDOM.normal(0, 1, (8, 3, 1, 1)).astype(np.float32),
        "b": np.eye(8, dtype=np.float32)[..., None, None],
    }
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["s"], name="a"),
        helper.make_node("Sigmoid", ["s"], ["t"]),
        helper.make_node("Conv", ["t", "b"], ["y"], name="b"),
    ]
    graph = canonical(model_of(nodes, {"x": (1, 3, 8, 8)}, weights))
    result = quantise(graph, samples_for(graph, 16), search=False, least_decibels=60)
    assert len(result.costs.layers) == len(result.kept) == 1


def test_a_node_that_is_not_there_is_refused() -> None:
    graph = canonical(wild_model())
    with pytest.raises(OnnxError, match=r"test has no node firts to keep in float; did you mean first"):
        quantise(graph, samples_for(graph, 8), kept=["firts"])
    with pytest.raises(OnnxError, match="beside those kept in float: nothing for VTA to run"):
        quantise(graph, samples_for(graph, 8), kept=[*LAYERS, "sum"])


def test_the_command_names_the_layers_the_price_and_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph_path = saved(wild_model(), tmp_path / "wild.onnx")
    np.savez(tmp_path / "data.npz", x=RANDOM.normal(0, 1, (16, 3, 8, 8)).astype(np.float32))
    command = ["quantize", str(graph_path), "--calibration", str(tmp_path / "data.npz"), "--no-search"]
    assert run([*command, "-o", str(tmp_path / "q.onnx"), "--float", "wild"]) == 0
    printed = capsys.readouterr().out
    assert "in float on the processor: wild;" in printed and "ms on a Cortex-A9" in printed
    assert "measured on 4 held-out samples" in printed
    assert run([*command, "-o", str(tmp_path / "q.onnx"), "--float", "auto", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["outputs"][0]["name"] == "y" and figures["samples"] == {"measured": 4, "unseen": True}


def test_a_poor_output_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = {"a": RANDOM.normal(0, 1, (4, 3, 1, 1)).astype(np.float32), "b": np.full((4, 4, 1, 1), 4, np.float32)}
    weights["b"][:, 1::2] = -4
    weights["b"][:, 0, 0, 0] += 0.01
    weights["a"][1] = weights["a"][0]
    weights["a"][3] = weights["a"][2]
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["s"], name="a"),
        helper.make_node("Conv", ["s", "b"], ["y"], name="b"),
    ]
    path = saved(model_of(nodes, {"x": (1, 3, 8, 8)}, weights), tmp_path / "difference.onnx")
    np.savez(tmp_path / "data.npz", x=RANDOM.normal(0, 1, (16, 3, 8, 8)).astype(np.float32))
    assert (
        run(["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(tmp_path / "q.onnx")]) == 0
    )
    error = capsys.readouterr().err
    assert error.startswith("warning: output y is only ") and "--min-db 20, or --float " in error
