"""The limits of VTA's shifts and sums on the scales of a quantised model, by arithmetic on small graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration, Runner, hold_out
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.qdq import Scales, write_qdq
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.regions import Regions, find_regions
from hilt.network.quantize.scales import ScaleSearch, is_gain, layer_macs, make_feasible
from hilt.network.quantize.statistics import Reference, signal_to_noise

from .models import canonical, model_of, samples_for

CHANNELS = 4


def graph_of(bias: float | None = None, residual: bool = False) -> tuple[OnnxGraph, Regions]:
    """Return a convolution of x (1, 4, 6, 6) with a largest bias; `residual` adds a tensor r to its sums."""
    weights = np.ones((CHANNELS, CHANNELS, 3, 3), dtype=np.float32)
    constants = {"w": weights}
    if bias is not None:
        constants["b"] = np.array([0, bias, -bias / 2, 0], dtype=np.float32)
    node = helper.make_node("Conv", ["x", *constants], ["y"], name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    graph = canonical(model_of([node], {"x": (1, CHANNELS, 6, 6)}, constants))
    regions = find_regions(graph)
    (layer,) = regions.layers
    assert (layer.data, layer.output, layer.residual) == ("x", "y", "")
    if residual:
        regions.layers = [replace(layer, residual="r")]
        regions.groups["r"] = "r"
    return graph, regions


def fitted(
    graph: OnnxGraph, regions: Regions, weights: list[int], **exponents: int
) -> tuple[list[int], dict[str, int]]:
    """Return the exponents of the weights and of x and y after `make_feasible`."""
    (layer,) = regions.layers
    scales = Scales({regions.groups[name]: value for name, value in exponents.items()}, {layer.node.name: weights})
    make_feasible(graph, regions, scales)
    once = scales.copy()
    make_feasible(graph, regions, once)
    assert once == scales, "the second time finds nothing to change"
    return scales.weights[layer.node.name], {name: scales.groups[regions.groups[name]] for name in exponents}


@pytest.mark.parametrize("bias", [1.0, 1.5, 2.0, 1000.0, 2.0**20, 0.3])
def test_a_bias_keeps_below_28_bits_of_its_sums(bias: float) -> None:
    graph, regions = graph_of(bias)
    (finest, *others), _ = fitted(graph, regions, [60, 60, 60, 60], x=5, y=0)
    assert others == [finest] * 3
    integer = bias * 2.0 ** (finest + 5)
    assert 2**27 < integer <= 2**28, "the next finer scale is over the limit, and this one is not"


def test_only_the_weights_over_the_limit_change() -> None:
    graph, regions = graph_of(2.0)
    weights, _ = fitted(graph, regions, [3, 60, 21, 22], x=6, y=0)
    assert weights == [3, 21, 21, 21], "28 bits less 6 of the data less 1 of the bias"


@pytest.mark.parametrize("bias", [None, 0.0])
def test_weights_without_a_bias_have_no_limit_of_its(bias: float | None) -> None:
    graph, regions = graph_of(bias)
    weights, found = fitted(graph, regions, [26, 26, 26, 26], x=5, y=3)
    assert weights == [26] * 4 and found == {"x": 5, "y": 3}


def test_an_output_is_no_finer_than_its_coarsest_sum() -> None:
    graph, regions = graph_of()
    assert fitted(graph, regions, [2, 3, 4, 5], x=1, y=7) == ([2, 3, 4, 5], {"x": 1, "y": 3})
    assert fitted(graph, regions, [2, 3, 4, 5], x=1, y=3)[1]["y"] == 3
    assert fitted(graph, regions, [2, 3, 4, 5], x=1, y=2)[1]["y"] == 2


def test_sums_are_at_most_31_shifts_finer_than_their_output() -> None:
    graph, regions = graph_of()
    assert fitted(graph, regions, [20, 30, 20, 20], x=6, y=3) == ([20, 28, 20, 20], {"x": 6, "y": 3})
    assert fitted(graph, regions, [20, 30, 20, 20], x=6, y=5)[0] == [20, 30, 20, 20]


def test_sums_are_at_most_20_shifts_finer_than_a_residual() -> None:
    graph, regions = graph_of(residual=True)
    assert fitted(graph, regions, [10, 26, 10, 10], x=4, r=0, y=0) == ([10, 16, 10, 10], {"x": 4, "r": 0, "y": 0})
    assert fitted(graph, regions, [10, 26, 10, 10], x=4, r=10, y=0)[0] == [10, 26, 10, 10]
    regions.groups["y"] = regions.groups["r"]
    assert fitted(graph, regions, [10, 26, 10, 10], x=4, r=1) == ([10, 17, 10, 10], {"x": 4, "r": 1})


@pytest.mark.parametrize("scale", [1e-6, 1e-9, 0.0])
def test_a_branch_next_to_nothing_leaves_its_residual_as_it_is(scale: float) -> None:
    """ConvNeXt's blocks begin with a factor of 1e-6: the residual's scale met the sums', and nothing was left of it."""
    random = np.random.default_rng(3)
    constants = {
        "first": random.normal(0, 0.3, (CHANNELS, CHANNELS, 3, 3)).astype(np.float32),
        "branch": (scale * random.normal(0, 0.3, (CHANNELS, CHANNELS, 1, 1))).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["made"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["made", "branch"], ["small"], name="small"),
        helper.make_node("Add", ["made", "small"], ["y"]),
    ]
    shape = (1, CHANNELS, 8, 8)
    graph = canonical(model_of(nodes, {"x": shape}, constants))
    samples = [{"x": random.normal(0, 1, shape).astype(np.float32)} for _ in range(16)]
    made = quantise(graph, Calibration(samples), search=False).model
    for wanted, given in zip(Runner(graph, ["y"]).over(samples), Runner(made, ["y"]).over(samples), strict=True):
        assert signal_to_noise(wanted, given) > 30


def test_a_residual_is_no_finer_than_its_coarsest_sum() -> None:
    graph, regions = graph_of(residual=True)
    assert fitted(graph, regions, [2, 3, 4, 5], x=1, r=9, y=0)[1] == {"x": 1, "r": 3, "y": 0}


def test_a_layer_counts_its_multiply_accumulates() -> None:
    graph, regions = graph_of()
    assert layer_macs(graph, regions.layers[0]) == CHANNELS * 6 * 6 * CHANNELS * 9


def test_a_change_must_gain_more_than_chance_makes_of_it() -> None:
    steady, lucky = np.array([0.3, 0.5, 0.4, 0.6]), np.array([-0.4, -0.3, 3.0, -0.2])
    assert is_gain(steady)
    assert not is_gain(-steady)
    assert np.mean(lucky) > np.mean(steady) and not is_gain(lucky), "one sample of four gains"


def test_a_scale_makes_an_offset_of_a_product_whole_steps() -> None:
    graph, regions = graph_of()
    regions.offsets = {"y": 3.5}
    assert fitted(graph, regions, [9] * 4, x=5, y=0)[1]["y"] == 1
    assert fitted(graph, regions, [9] * 4, x=5, y=4)[1]["y"] == 4
    assert fitted(graph, regions, [9] * 4, x=5, y=9)[1]["y"] == 6, "two inputs of int8 make up 224 steps"


def softmax_graph() -> tuple[OnnxGraph, Regions, Scales]:
    """Return a convolution in front of a softmax, with scales."""
    weights = np.random.default_rng(4).normal(0, 4, (CHANNELS, CHANNELS, 1, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["sums"], name="conv"),
        helper.make_node("Softmax", ["sums"], ["y"], axis=1),
    ]
    graph = canonical(model_of(nodes, {"x": (1, CHANNELS, 6, 6)}, {"w": weights}))
    return graph, find_regions(graph), Scales({"x": 5, "sums": 2}, {"conv": [3]})


def test_outputs_count_beside_the_ends_of_the_int8_part_and_less_if_they_differ_more() -> None:
    graph, regions, scales = softmax_graph()
    held_out = hold_out(samples_for(graph, 4))
    reached = ScaleSearch(graph, regions, scales, held_out, graph, regions.ends).measure(scales)
    runners = [Runner(each, ["sums", "y"]) for each in (graph, write_qdq(graph, regions, scales))]
    apart = np.array(
        [
            [signal_to_noise({name: wanted[name]}, given) for name in ("sums", "y")]
            for wanted, given in zip(*(runner.over(held_out.deciding) for runner in runners), strict=True)
        ]
    )
    weights = 1 / (apart.std(axis=0) + 0.1)
    assert reached == pytest.approx(np.mean(apart * weights / weights.mean()), abs=0.01)
    assert abs(np.mean(apart, axis=0) - reached).min() > 0.1


def test_searches_of_one_model_are_compared_on_the_same_samples_with_noise() -> None:
    graph, regions, scales = softmax_graph()
    held_out = hold_out(samples_for(graph, 16))
    first = ScaleSearch(graph, regions, scales, held_out, graph, regions.ends)
    second = ScaleSearch(graph, regions, replace(scales, groups={"x": 2, "sums": 0}), held_out, graph, [], first)
    assert second.measure_shaken(scales) == first.measure_shaken(scales)
    plain = [first.measure(scales), first.measure_shaken(scales)]
    assert plain[0] != plain[1], "the copies count"


@pytest.mark.parametrize(("exponent", "least_gain"), [(5, 0.0), (2, 6.0)])
def test_a_search_mends_a_bad_scale_and_makes_no_other_worse(exponent: int, least_gain: float) -> None:
    graph, regions, scales = softmax_graph()
    start = replace(scales, groups={"x": exponent, "sums": 2})
    search = ScaleSearch(graph, regions, start, hold_out(samples_for(graph, 16)), graph, regions.ends)
    found = search.improve(start)
    assert search.measure(found) >= search.measure(start) + least_gain
    assert search.measure_shaken(found) >= search.measure_shaken(start) + least_gain


def test_decibels_are_those_of_the_mean_of_relative_errors() -> None:
    random = np.random.default_rng(0)
    wanted = {name: random.normal(size=size).astype(np.float32) for name, size in (("a", (2, 3)), ("b", 50), ("c", 0))}
    given = {name: (each * 1.1 + 0.01).astype(np.float32) for name, each in wanted.items()}

    def error(name: str) -> float:
        exact = wanted[name].astype(np.float64)
        return float(np.mean((exact - given[name]) ** 2) / np.mean(exact**2))

    groups = [["a"], ["a", "b", "c"], ["c"]]
    errors = [error("a"), (error("a") + error("b")) / 3, 1e-30]
    assert Reference(wanted, groups).decibels(given) == pytest.approx([-10 * np.log10(each) for each in errors])
    given["a"] = np.full((2, 3), np.inf, np.float32)
    assert Reference(wanted, groups).decibels(given)[::2] == pytest.approx([-300.0, 300.0])
