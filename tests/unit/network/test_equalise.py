"""Channels of neighbouring layers, equalised: the same function, and the accuracy of skewed networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from hilt.network.calibration import Calibration, Runner, hold_out
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize import channel_classes
from hilt.network.quantize.channel_classes import FIXED, find_classes
from hilt.network.quantize.equalise import RULES, equalised, scaled
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.regions import find_regions
from hilt.network.quantize.statistics import observe
from hilt.network.reference import evaluate

from . import digits
from .models import Array, canonical, model_of, samples_for

RANDOM = np.random.default_rng(8)
_FIRST = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def _same_numbers_alone() -> None:
    """Give each test the same numbers whether or not others ran before it."""
    RANDOM.bit_generator.state = _FIRST


def normal(*shape: int) -> Array:
    return RANDOM.normal(0, 0.5, shape).astype(np.float32)


def skewed(model: Any, spread: float) -> Any:
    """Return the digits' network with each hidden channel scaled by 2^N(0, spread) and scaled back behind its Relu."""
    random, made = np.random.default_rng(3), onnx.ModelProto()
    made.CopyFrom(model)
    values = {part.name: numpy_helper.to_array(part).astype(np.float64) for part in made.graph.initializer}
    first, second = (2 ** random.normal(0, spread, len(values[name])) for name in ("b1", "b2"))
    values["w1"] *= first[:, None, None, None]
    values["b1"] *= first
    values["w2"] *= second[:, None, None, None] / first[:, None, None]
    values["b2"] *= second
    values["w3"] /= np.repeat(second, 16)
    for part in made.graph.initializer:
        part.CopyFrom(numpy_helper.from_array(values[part.name].astype(np.float32), part.name))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("channel_block", [0, 16])
def test_a_skewed_network_is_as_good_as_the_plain_one(channel_block: int) -> None:
    model, images, _, unseen, labels = digits.trained()
    results: list[tuple[float, float]] = []
    for spread in (0.0, 3.0):
        graph = canonical(skewed(model, spread))
        samples = Calibration(tuple({"x": image[None]} for image in images[:32]))
        result = quantise(graph, samples, channel_block=channel_block)
        runner, name = Runner(graph, ["y"]), result.graph.outputs[0]
        wanted = np.concatenate([runner.run({"x": image[None]})["y"] for image in unseen])
        given = np.concatenate([evaluate(result.graph, {"x": image[None]})[name] for image in unseen])
        noise = float(np.mean((wanted - given) ** 2) / np.mean(wanted**2))
        results.append((float(np.mean(given.argmax(axis=1) == labels)), -10 * np.log10(noise)))
        assert result.equalised
    (plain, plain_decibels), (hit, hit_decibels) = results
    assert hit >= plain - 0.005
    assert hit_decibels >= plain_decibels - 1
    assert plain > 0.98


def clipped_at_six(model: Any, images: Array, loudest: float, spread: float) -> Any:
    """Return the digits' network with Relu6, whose channels peak at `loudest` * 2^-|N(0, spread)|."""
    runner, random = Runner(canonical(model), ["r1", "r2"]), np.random.default_rng(3)
    seen = [runner.run({"x": image[None]}) for image in images[:400]]
    made = onnx.ModelProto()
    made.CopyFrom(model)
    values = {part.name: numpy_helper.to_array(part).astype(np.float64) for part in made.graph.initializer}
    factors = []
    for name in ("r1", "r2"):
        peaks = np.max([each[name].max(axis=(0, 2, 3)) for each in seen], axis=0)
        factors.append(loudest * 2.0 ** -np.abs(random.normal(0, spread, len(peaks))) / np.where(peaks > 0, peaks, 1))
    first, second = factors
    values["w1"] *= first[:, None, None, None]
    values["b1"] *= first
    values["w2"] *= second[:, None, None, None] / first[:, None, None]
    values["b2"] *= second
    values["w3"] /= np.repeat(second, 16)
    values |= {"low": np.array(0.0), "high": np.array(6.0)}
    del made.graph.initializer[:]
    made.graph.initializer.extend(numpy_helper.from_array(each.astype(np.float32), n) for n, each in values.items())
    for node in made.graph.node:
        if node.op_type == "Relu":
            node.op_type = "Clip"
            node.input.extend(["low", "high"])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("loudest", [2.5, 9.0], ids=["nothing is clipped", "the loudest are clipped"])
def test_relu6_with_skewed_channels_is_as_good_as_in_float(loudest: float) -> None:
    """Without a factor on the channels below the clip it was right in 47 % of the digits."""
    model, images, _, unseen, labels = digits.trained()
    graph = canonical(clipped_at_six(model, images, loudest, 3.0))
    result = quantise(graph, Calibration(tuple({"x": image[None]} for image in images[:32])), search=False)
    runner, name = Runner(graph, ["y"]), result.graph.outputs[0]
    wanted = np.concatenate([runner.run({"x": image[None]})["y"] for image in unseen]).argmax(axis=1)
    given = np.concatenate([evaluate(result.graph, {"x": image[None]})[name] for image in unseen]).argmax(axis=1)
    assert result.equalised
    assert np.mean(given == labels) >= np.mean(wanted == labels) - 0.005


def equal_graphs(model: Any, fixed: list[str] | None = None) -> tuple[OnnxGraph, list[OnnxGraph]]:
    """Return a canonical graph, and its equalised forms; assert that they compute the same."""
    graph = canonical(model)
    samples = hold_out(samples_for(graph, 6))
    regions = find_regions(graph)
    found = observe(graph, regions.tensors, samples.fitted)
    forms = [equalised(graph, fixed or regions.ends, found, rule) for rule in RULES]
    made = [form for form in forms if form is not None]
    runners = [Runner(form, graph.outputs) for form in (graph, *made)]
    for feeds in samples.deciding:
        wanted, *given = (runner.run(feeds) for runner in runners)
        for results in given:
            for name, values in results.items():
                np.testing.assert_allclose(values, wanted[name], atol=2e-5 * float(np.abs(wanted[name]).max()))
    return graph, made


def conv(data: str, weights: str, result: str, **attributes: Any) -> Any:
    return helper.make_node("Conv", [data, weights, f"{weights}b"], [result], **attributes)


def weights_of(name: str, *shape: int) -> dict[str, Array]:
    factors = np.exp2(RANDOM.normal(0, 3, shape[0])).astype(np.float32)
    return {name: normal(*shape) * factors[:, None, None, None], f"{name}b": normal(shape[0]) * factors}


NODES: dict[str, list[Any]] = {
    "relu": [helper.make_node("Relu", ["s"], ["t"])],
    "leaky": [helper.make_node("LeakyRelu", ["s"], ["t"], alpha=0.1)],
    "slope": [helper.make_node("PRelu", ["s", "slope"], ["t"])],
    "depthwise": [helper.make_node("Relu", ["s"], ["r"]), conv("r", "d", "t", group=8, pads=[1] * 4)],
    "grouped": [helper.make_node("Relu", ["s"], ["r"]), conv("r", "g", "t", group=2, pads=[1] * 4)],
    "residual": [
        conv("s", "u", "c", pads=[1] * 4),
        helper.make_node("Add", ["s", "c"], ["a"]),
        helper.make_node("Relu", ["a"], ["t"]),
    ],
    "concat": [
        conv("s", "u", "c", pads=[1] * 4),
        helper.make_node("Slice", ["s", "zero", "four", "one"], ["e"]),
        helper.make_node("Slice", ["c", "four", "eight", "one"], ["f"]),
        helper.make_node("Concat", ["f", "e"], ["t"], axis=1),
    ],
    "gate": [
        helper.make_node("GlobalAveragePool", ["s"], ["p"]),
        conv("p", "k", "q"),
        helper.make_node("Sigmoid", ["q"], ["h"]),
        helper.make_node("Mul", ["s", "h"], ["t"]),
    ],
    "pool": [helper.make_node("MaxPool", ["s"], ["t"], kernel_shape=[2, 2], strides=[2, 2])],
    "turn": [
        helper.make_node("Transpose", ["s"], ["n"], perm=[0, 2, 3, 1]),
        helper.make_node("Transpose", ["n"], ["t"], perm=[0, 3, 1, 2]),
    ],
    "shuffle": [
        helper.make_node("Reshape", ["s", "parted"], ["n"]),
        helper.make_node("Transpose", ["n"], ["o"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["o", "joined"], ["t"]),
    ],
    "resize": [helper.make_node("Resize", ["s", "", "twice"], ["t"], mode="linear")],
    "pad": [helper.make_node("Pad", ["s", "ring"], ["t"])],
    "expand": [
        helper.make_node("GlobalMaxPool", ["s"], ["n"]),
        helper.make_node("Expand", ["n", "whole"], ["o"]),
        helper.make_node("Concat", ["o", "s"], ["p"], axis=2),
        helper.make_node("Slice", ["p", "four", "twelve", "two"], ["t"]),
    ],
    "gather": [
        helper.make_node("Gather", ["s", "places"], ["n"], axis=1),
        helper.make_node("Gather", ["n", "places"], ["t"], axis=3),
    ],
    "clip": [helper.make_node("Clip", ["s", "low", "high"], ["t"])],
    "clip on both sides": [helper.make_node("Clip", ["s", "lower", "high"], ["t"])],
}


@pytest.mark.parametrize("kind", [*NODES, "raised clip", "sigmoid", "filled", "pool of channels"])
def test_equalising_changes_no_result(kind: str) -> None:
    others: dict[str, list[Any]] = {
        "raised clip": [helper.make_node("Clip", ["s", "one_up", "high"], ["t"])],
        "sigmoid": [helper.make_node("Sigmoid", ["s"], ["t"])],
        "filled": [helper.make_node("Pad", ["s", "ring", "high"], ["t"])],
        "pool of channels": [
            helper.make_node("Reshape", ["s", "rows"], ["n"]),
            helper.make_node("MaxPool", ["n"], ["o"], kernel_shape=[2, 1], pads=[0, 0, 1, 0]),
            helper.make_node("Reshape", ["o", "joined"], ["t"]),
        ],
    }
    middle = NODES.get(kind) or others[kind]
    constants: dict[str, Array] = {
        **weights_of("u", 8, 8, 3, 3), **weights_of("d", 8, 1, 3, 3), **weights_of("g", 8, 4, 3, 3),
        **weights_of("k", 8, 8, 1, 1), "zero": np.array([0]), "four": np.array([4]), "eight": np.array([8]),
        "one": np.array([1]), "slope": np.abs(normal(8, 1, 1)), "low": np.array(0, np.float32),
        "high": np.array(6, np.float32), "lower": np.array(-5, np.float32), "one_up": np.array(1, np.float32),
        "twice": np.array([1, 1, 2, 2], np.float32),
        "ring": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "parted": np.array([1, 2, 4, 8, 8]),
        "joined": np.array([1, 8, 8, 8]), "rows": np.array([1, 1, 8, 64]),
        "whole": np.array([1, 8, 8, 8]), "places": np.array([5, 3, 0, -1, 2, 1, 4, 6]), "twelve": np.array([12]),
        "two": np.array([2]),
    }  # fmt: skip
    used = {name for node in middle for name in node.input}
    nodes = [conv("x", "w", "s", pads=[1] * 4), *middle, conv("t", "v", "y")]
    model = model_of(
        nodes,
        {"x": (1, 3, 8, 8)},
        {
            **weights_of("w", 8, 3, 3, 3),
            **weights_of("v", 4, 8, 1, 1),
            **{name: value for name, value in constants.items() if name in used},
        },
    )
    graph, made = equal_graphs(model)
    assert bool(made) == (kind in NODES)
    for form in made:
        changed = [place for place, node in enumerate(graph.nodes) if form.nodes[place].inputs != node.inputs]
        assert changed


@pytest.mark.parametrize("order", [[0, 2, 1, 3, 4], [0, 1, 3, 4, 2], [0, 3, 1, 2, 4]])
def test_classes_of_parted_channels_move_with_their_values(order: list[int]) -> None:
    """A class that two axes tell apart is lost where another axis comes between them."""
    nodes = [
        conv("x", "w", "s"),
        helper.make_node("Reshape", ["s", "parted"], ["n"]),
        helper.make_node("Transpose", ["n"], ["o"], perm=order),
        helper.make_node("Reshape", ["o", "whole"], ["y"]),
    ]
    constants = {**weights_of("w", 6, 3, 1, 1), "parted": np.array([1, 2, 3, 4, 5]), "whole": np.array([1, -1, 4, 5])}
    if order[-1] == 2:
        constants["whole"] = np.array([1, 2, 20, 3])
    graph = canonical(model_of(nodes, {"x": (1, 3, 4, 5)}, constants))
    finder = channel_classes._Finder(graph, {})
    for node in graph.nodes:
        made = finder._layer(node) if node.op == "Conv" else finder._passed(node)
        if made is None:
            assert node.op == "Transpose" and order == [0, 1, 3, 4, 2]
            return
        finder._channels[node.outputs[0]] = made
    channels = np.broadcast_to(np.arange(1, 7)[:, None], (6, 20)).reshape(1, 2, 3, 4, 5).transpose(order)
    shape = graph.shape(graph.nodes[-1].outputs[0])
    np.testing.assert_array_equal(np.broadcast_to(made.whole(len(shape)), shape), channels.reshape(shape))


@pytest.mark.parametrize(("shape", "keeps"), [((1, 6, 4, 5), True), ((2, 6, 1, 5), True), ((3, 1, 6, 4, 5), False)])
def test_channels_that_are_repeated_along_other_axes_keep_their_classes(shape: tuple[int, ...], keeps: bool) -> None:
    nodes = [conv("x", "w", "s"), helper.make_node("Expand", ["s", "size"], ["y"])]
    constants = {**weights_of("w", 6, 3, 1, 1), "size": np.array(shape)}
    graph = canonical(model_of(nodes, {"x": (1, 3, 1, 1)}, constants))
    layer, expand = graph.nodes
    finder = channel_classes._Finder(graph, {})
    made = finder._layer(layer)
    assert made is not None and expand.op in ("Expand", "Resize")
    finder._channels[layer.outputs[0]] = made
    assert finder._passed(expand) == (made if keeps else None)


def test_shared_weights_become_each_layers_own() -> None:
    nodes = [conv("x", "w", "a"), helper.make_node("Relu", ["a"], ["b"]), conv("b", "w", "c"), conv("c", "w", "y")]
    equal_graphs(model_of(nodes, {"x": (1, 8, 6, 6)}, weights_of("w", 8, 8, 1, 1)))


def test_shared_weights_with_the_same_factors_stay_shared() -> None:
    nodes = [conv("x", "w", "a"), conv("x", "w", "b"), helper.make_node("Add", ["a", "b"], ["s"]), conv("s", "v", "y")]
    constants = {**weights_of("w", 8, 3, 1, 1), **weights_of("v", 4, 8, 1, 1)}
    graph = canonical(model_of(nodes, {"x": (1, 3, 6, 6)}, constants))
    classes = find_classes(graph, [])
    factors = np.where(np.arange(classes.count) == FIXED, 1.0, 1.5)
    first, second = (node.inputs[1] for node in scaled(graph, classes, factors).nodes if node.inputs[0] == "x")
    assert first == second != graph.nodes[0].inputs[1]


def test_a_bias_takes_its_factor_up_where_the_weights_stay() -> None:
    """Data and results of the second layer have one factor."""
    nodes = [conv("x", "w", "a"), conv("a", "v", "b"), conv("b", "u", "y")]
    constants = {**weights_of("w", 8, 3, 1, 1), **weights_of("v", 8, 8, 1, 1), **weights_of("u", 4, 8, 1, 1)}
    graph = canonical(model_of(nodes, {"x": (1, 3, 6, 6)}, constants))
    classes = find_classes(graph, [])
    made = scaled(graph, classes, np.where(np.arange(classes.count) == FIXED, 1.0, 1.5))
    (feeds,) = samples_for(graph, 1).samples
    wanted, given = (Runner(each, ["y"]).run(feeds)["y"] for each in (graph, made))
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)


def test_a_dense_layer_behind_a_flatten_takes_each_channels_factor() -> None:
    nodes = [
        conv("x", "w", "a"),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "m"], ["y"], transB=1),
    ]
    _, made = equal_graphs(model_of(nodes, {"x": (2, 3, 4, 4)}, {**weights_of("w", 8, 3, 1, 1), "m": normal(5, 128)}))
    assert len(made) == len(RULES)


def test_tensors_that_leave_the_int8_part_keep_their_values() -> None:
    nodes = [conv("x", "w", "s"), helper.make_node("Relu", ["s"], ["r"]), conv("r", "v", "y")]
    model = model_of(
        nodes, {"x": (1, 3, 6, 6)}, {**weights_of("w", 8, 3, 1, 1), **weights_of("v", 4, 8, 1, 1)}, ("y", "r")
    )
    graph, made = equal_graphs(model)
    assert not made
    assert set(find_classes(graph, []).tensors["r"].tolist()) == {FIXED}


def test_half_of_the_samples_are_held_out() -> None:
    samples = tuple({"x": np.full((1, 2), number, np.float32)} for number in range(32))
    uses = hold_out(Calibration(samples))
    assert uses.unseen and [len(part) for part in (uses.fitted, uses.deciding, uses.reported)] == [16, 8, 8]
    seen = [int(feeds["x"][0, 0]) for part in (uses.fitted, uses.deciding, uses.reported) for feeds in part]
    assert sorted(seen) == list(range(32))
    few = hold_out(Calibration(samples[:4]))
    assert not few.unseen and few.fitted == few.deciding == few.reported == samples[:4]
