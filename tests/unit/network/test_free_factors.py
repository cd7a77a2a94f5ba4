"""Factors on inputs and behind tables: int8 is used to its end, and the float network stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hilt.network.calibration import Calibration, Runner
from hilt.network.graph import Node
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize import fit
from hilt.network.quantize.free_factors import FreeFactors
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.regions import find_regions
from hilt.network.quantize.statistics import observe, signal_to_noise
from hilt.network.reference import evaluate, evaluate_node

from .models import Array, canonical, model_of

SILU = (helper.make_node("Sigmoid", ["h"], ["s"]), helper.make_node("Mul", ["h", "s"], ["t"]))
SHAPE = (1, 4, 12, 12)
STEP = 0.045
"""Factors are tried in steps of a sixteenth of an octave."""


def weights(*shape: int, seed: int = 1) -> Array:
    """Return weights of one magnitude, which int8 holds with any factor: those of tensors alone count."""
    made = np.random.default_rng(seed).choice((-1.0, 1.0), shape) / np.sqrt(np.prod(shape[1:]))
    return made.astype(np.float32)


def convolution(data: str, name: str, result: str) -> Any:
    return helper.make_node("Conv", [data, name], [result], pads=[1, 1, 1, 1])


def samples(largest: float = 1.1, count: int = 24, steps: float = 0.0) -> tuple[dict[str, Array], ...]:
    random = np.random.default_rng(2)
    made = [random.uniform(-1, 1, SHAPE).astype(np.float32) * np.float32(largest) for _ in range(count)]
    return tuple(
        {"x": np.rint(each / steps).astype(np.float32) * np.float32(steps) if steps else each} for each in made
    )


def factored(model: Any, data: tuple[dict[str, Array], ...]) -> tuple[OnnxGraph, dict[str, float]]:
    """Return a model with free factors, which computes the same, and these by the tensors that they are behind."""
    graph = canonical(model)
    regions = find_regions(graph)
    made = FreeFactors(graph, regions, observe(graph, regions.tensors, data)).together() or graph
    for feeds in data[:3]:
        for given, wanted in zip(Runner(made, made.outputs).run(feeds).values(), run_plain(graph, feeds), strict=True):
            np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)
    products = [node for node in made.nodes if node.outputs[0].endswith(".full")]
    return made, {node.inputs[0]: float(made.constants[node.inputs[1]]) for node in products}


def run_plain(graph: OnnxGraph, feeds: dict[str, Array]) -> list[Array]:
    return list(Runner(graph, graph.outputs).run(feeds).values())


TAIL = (helper.make_node("Relu", ["i"], ["r"]), convolution("r", "u", "y"))
"""Channels that take a factor each, so that the weights in front of them can have any scale."""
TAIL_WEIGHTS = {"u": weights(8, 8, 3, 3, seed=3)}


def of_input() -> Any:
    return model_of([convolution("x", "w", "i"), *TAIL], {"x": SHAPE}, {"w": weights(8, 4, 3, 3), **TAIL_WEIGHTS})


def test_an_input_reaches_the_end_of_int8_and_its_error_falls() -> None:
    """1.1 is 71 steps of 1/64: with a factor of 1.8 it is 127."""
    _, factors = factored(of_input(), samples())
    assert factors == {"x": pytest.approx(127 / 64 / 1.1, rel=STEP)}
    found = quantise(canonical(of_input()), Calibration(samples()), channel_block=0, search=False)
    (steps,) = (node for node in found.graph.nodes if node.op == "quantize")
    assert steps.attributes["factor"] == pytest.approx(factors["x"])
    assert "Mul" not in {node.op for node in found.graph.nodes}  # the processor does no other work
    feeds = samples()[-1]
    wanted, given = steps_of(feeds["x"], 1.0, 2.0**-6), steps_of(feeds["x"], factors["x"], 2.0**-6)
    assert np.square(given - feeds["x"]).mean() < 0.4 * np.square(wanted - feeds["x"]).mean()


def test_alone_an_input_reaches_the_end_whatever_the_weights_are() -> None:
    random = np.random.default_rng(7)
    kernels = {
        name: random.normal(0, 0.3, size).astype(np.float32)
        for name, size in (("w", (8, 4, 3, 3)), ("u", (8, 8, 3, 3)))
    }
    graph = canonical(model_of([convolution("x", "w", "i"), *TAIL], {"x": SHAPE}, kernels))
    regions = find_regions(graph)
    made = FreeFactors(graph, regions, observe(graph, regions.tensors, samples())).alone()
    assert made is not None
    (product,) = (node for node in made.nodes if node.op == "Mul")
    assert made.constants[product.inputs[1]] == pytest.approx(127 / 64 / 1.1, rel=STEP)
    assert made.constants[made.nodes[-1].inputs[1]] is graph.constants["u"]


def steps_of(data: Array, factor: float, scale: float) -> Array:
    (made,) = evaluate_node(Node("q", "quantize", ("x",), ("y",), {"scale": scale, "factor": factor}), [data])
    return (made * np.float32(scale / factor)).astype(np.float32)


def test_a_product_of_an_input_is_not_shifted_by_a_pass_of_its_own() -> None:
    """Layers without pads let a constant be taken off their data: of an input it would be a table."""
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v"], ["y"], transB=1),
    ]
    model = model_of(nodes, {"x": (1, 24)}, {"w": weights(32, 24), "v": weights(32, 32, seed=2)})
    random = np.random.default_rng(4)
    data = tuple({"x": random.uniform(0, 1.3, (1, 24)).astype(np.float32)} for _ in range(24))
    first, second, *_ = quantise(canonical(model), Calibration(data), search=False).graph.nodes
    assert (first.op, second.op) == ("quantize", "dense")
    assert first.attributes["factor"] == pytest.approx(127 / 64 / 1.3, rel=STEP)


def silu() -> Any:
    nodes = [convolution("x", "w", "h"), *SILU, convolution("t", "v", "i"), *TAIL]
    constants = {"w": weights(8, 4, 3, 3), "v": weights(8, 8, 3, 3, seed=2), **TAIL_WEIGHTS}
    return model_of(nodes, {"x": SHAPE}, constants)


def test_a_table_multiplies_what_it_makes() -> None:
    graph = canonical(silu())
    largest = observe(graph, ["t"], samples(1.7))["t"].largest
    _, factors = factored(silu(), samples(1.7))
    octaves = np.log2(127 / (largest * factors["t"]))
    assert octaves == pytest.approx(round(octaves), abs=0.2)  # some may be clipped
    ops = {node.op for node in quantise(canonical(silu()), Calibration(samples(1.7)), search=False).graph.nodes}
    assert ops <= {"quantize", "conv2d", "table", "dequantize", "pad"}


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_noise_of_a_tensor_of_one_value_is_a_number() -> None:
    """Around the middle of its range it is zero."""
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["h"]), *SILU, helper.make_node("Conv", ["t", "v"], ["y"])]
    constants = {"w": np.zeros((8, 4, 1, 1), np.float32), "b": np.full(8, 0.3, np.float32), "v": weights(8, 8, 1, 1)}
    _, factors = factored(model_of(nodes, {"x": SHAPE}, constants), samples())
    assert factors and np.isfinite(list(factors.values())).all()


def test_counts_that_int8_holds_stay() -> None:
    """0, 1/8, 2/8 ... lie on steps of 1/64; 1.4 times as much would not."""
    _, factors = factored(of_input(), samples(steps=1 / 8))
    assert factors == {}


def test_tensors_that_are_added_have_one_factor() -> None:
    nodes = [
        convolution("x", "w", "h"),
        *SILU,
        convolution("t", "v", "i"),
        helper.make_node("Tanh", ["i"], ["u"]),
        helper.make_node("Add", ["t", "u"], ["a"]),
        convolution("a", "v", "y"),
    ]
    model = model_of(nodes, {"x": SHAPE}, {"w": weights(8, 4, 3, 3), "v": weights(8, 8, 3, 3, seed=2)})
    _, factors = factored(model, samples(2.2))
    assert factors["t"] == factors["u"] != factors.get("x")


GATED = [
    helper.make_node("GlobalAveragePool", ["x"], ["p"]),
    helper.make_node("Conv", ["p", "v"], ["g"]),
    helper.make_node("Sigmoid", ["g"], ["s"]),
    convolution("x", "w", "h"),
    helper.make_node("Mul", ["h", "s"], ["m"]),
    convolution("m", "u", "y"),
]


def test_what_no_layer_takes_up_has_no_factor() -> None:
    """A gate's factor would reach the data's channels; an input that an addition reads with others is not a layer's."""
    constants = {"v": weights(8, 4, 1, 1), "w": weights(8, 4, 3, 3), "u": weights(8, 8, 3, 3, seed=2)}
    _, factors = factored(model_of(GATED, {"x": SHAPE}, constants), samples())
    assert "s" not in factors
    beside = [convolution("x", "w", "h"), helper.make_node("Add", ["h", "x"], ["y"])]
    _, factors = factored(model_of(beside, {"x": SHAPE}, {"w": weights(4, 4, 3, 3)}), samples())
    assert factors == {}


def test_bytes_of_an_image_are_looked_up_with_their_factor() -> None:
    nodes = [
        helper.make_node("Cast", ["b"], ["f"], to=1),
        helper.make_node("Mul", ["f", "n"], ["x"]),
        convolution("x", "w", "i"),
        *TAIL,
    ]
    model = model_of(
        nodes,
        {"b": SHAPE},
        {"n": np.array(1 / 180, np.float32), "w": weights(8, 4, 3, 3), **TAIL_WEIGHTS},
        types={"b": TensorProto.UINT8},
    )
    random = np.random.default_rng(1)
    data = tuple({"b": random.integers(0, 256, SHAPE).astype(np.uint8)} for _ in range(24))
    _, factors = factored(model, data)
    assert factors.keys() == {"x"} and 110 < factors["x"] * 64 * 255 / 180 <= 127.5
    ops = [node.op for node in quantise(canonical(model), Calibration(data), search=False).graph.nodes]
    assert ops.count("pixel_table") == 1 and "quantize" not in ops


def test_an_image_of_one_channel_with_frames_of_zeros_beside_it_has_a_factor() -> None:
    """A convolution over frames reads zeros before the first one and behind the last one."""
    nodes = [helper.make_node("Pad", ["x", "sides"], ["p"]), convolution("p", "w", "i"), *TAIL]
    constants = {"sides": np.array([0, 1, 0, 0, 0, 1, 0, 0]), "w": weights(8, 3, 3, 3), **TAIL_WEIGHTS}
    data = tuple({"x": feeds["x"][:, :1]} for feeds in samples())
    _, factors = factored(model_of(nodes, {"x": (1, 1, 12, 12)}, constants), data)
    assert factors.keys() == {"x"} and 100 < factors["x"] * 64 * 1.1 <= 127.5


@pytest.mark.slow
def test_factors_of_all_tensors_and_weights_together_bring_decibels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The input and all weights use little more than half of int8 without a factor."""
    random, nodes, constants, data = np.random.default_rng(5), [], {}, "x"
    for place in range(4):
        kernel = random.uniform(-1, 1, (8, 4 if place == 0 else 8, 3, 3)) * 1.05 / 4
        constants[f"w{place}"] = kernel.astype(np.float32)
        nodes += [convolution(data, f"w{place}", f"s{place}"), helper.make_node("Relu", [f"s{place}"], [f"r{place}"])]
        data = f"r{place}"
    graph = canonical(
        model_of([*nodes, convolution(data, "v", "y")], {"x": SHAPE}, {**constants, "v": weights(4, 8, 3, 3)})
    )
    monkeypatch.setattr(fit, "equalised", lambda *given: None)
    monkeypatch.setattr(fit, "centred", lambda *given, **more: None)
    found = {}
    for used in (True, False):
        if not used:
            monkeypatch.setattr(fit._Candidates, "_factored", lambda *given: iter(()))
        made = quantise(graph, Calibration(samples(1.05)), search=False, borders=False)
        pairs = [(Runner(graph, ["y"]).run(feeds), evaluate(made.graph, feeds)) for feeds in samples(1.05, 40)[24:]]
        found[used] = np.mean([signal_to_noise(wanted, {"y": given[made.graph.outputs[0]]}) for wanted, given in pairs])
    assert found[True] > found[False] + 1, found
