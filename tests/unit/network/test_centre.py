"""Centred tensors: the same function in floats, and int8's steps where the values are."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from hilt.network.calibration import Calibration, Runner, hold_out
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.qdq_view import mean_offset_steps
from hilt.network.quantize import fit
from hilt.network.quantize.centre import centred
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.regions import Regions, find_regions
from hilt.network.quantize.scales import initial_scales
from hilt.network.quantize.shifts import Borders, Shift, WeightLosses, _few_steps, choose_shifts
from hilt.network.quantize.statistics import observe, signal_to_noise
from hilt.network.reference import evaluate

from .models import Array, canonical, model_of

SAMPLES = 32


def images(count: int, seed: int) -> tuple[dict[str, Array], ...]:
    random = np.random.default_rng(seed)
    return tuple({"x": random.normal(0, 1, (1, 8, 6, 6)).astype(np.float32)} for _ in range(count))


def network(*middle: tuple[str, Sequence[str], str] | tuple[str, Sequence[str], str, dict[str, Any]]) -> Any:
    """Return a model of a layer from x to s, the given operators from s to t, and a layer from t to y."""
    random = np.random.default_rng(3)
    constants = {
        name: random.normal(0, 0.4, shape).astype(np.float32)
        for name, shape in (
            *(
                ("u", (8, 8, 1, 1)),
                ("v", (8, 8, 1, 1)),
                ("w", (4, 8, 1, 1)),
                ("wide", (4, 16, 1, 1)),
                ("b", (8,)),
                ("e", (8,)),
            ),
            *(("k", (8, 8, 3, 3)), ("d", (8, 1, 1, 1)), ("m", (4, 72)), ("p4", (8, 4, 2, 2)), ("side", (8, 1, 3, 3))),
        )
    }
    constants["e"] *= 5
    constants |= {"two": np.array(0.7, np.float32), "zero": np.array(0, np.float32), "flat": np.array([1, -1])}
    constants |= {"slopes": np.linspace(0, 0.2, 8, dtype=np.float32)[:, None, None]}
    constants |= {"parted": np.array([1, 2, 8, 6, 6]), "whole": np.array([1, 16, 6, 6])}
    made = [("Conv", ["x", "u", "b"], "s"), *middle]
    nodes = [helper.make_node(op, inputs, [out], **(more[0] if more else {})) for op, inputs, out, *more in made]
    used = {name for node in nodes for name in node.input}
    return model_of(nodes, {"x": (1, 8, 6, 6)}, {name: np.asarray(constants[name]) for name in used & constants.keys()})


LAST = ("Conv", ["t", "w"], "y")
NETWORKS = {
    "Relu": network(("Relu", ["s"], "t"), LAST),
    "Relu6": network(("Clip", ["s", "zero", "two"], "t"), LAST),
    "HardSwish": network(("HardSwish", ["s"], "t"), LAST),
    "SiLU": network(("Sigmoid", ["s"], "g"), ("Mul", ["s", "g"], "t"), LAST),
    "Tanh": network(("Tanh", ["s"], "t"), LAST),
    "linear": network(("Conv", ["s", "v", "e"], "t"), LAST),
    "depthwise": network(("Relu", ["s"], "r"), ("Conv", ["r", "d", "b"], "t", {"group": 8}), LAST),
    "valid": network(("Relu", ["s"], "r"), ("Conv", ["r", "k"], "t"), LAST),
    "dense": network(
        ("Relu", ["s"], "r"), ("MaxPool", ["r"], "p", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Reshape", ["p", "flat"], "t"), ("Gemm", ["t", "m"], "y", {"transB": 1}),
    ),
    "skip": network(
        ("Relu", ["s"], "r"), ("Conv", ["r", "v", "b"], "c"), ("Add", ["c", "r"], "a"), ("Relu", ["a"], "t"), LAST
    ),
    "linear skip": network(("Conv", ["s", "v", "e"], "c"), ("Add", ["s", "c"], "t"), LAST),
    "joined": network(
        ("Relu", ["s"], "r"), ("Conv", ["x", "v", "b"], "h"), ("HardSwish", ["h"], "i"),
        ("Concat", ["r", "i"], "t", {"axis": 1}), ("Conv", ["t", "wide"], "y"),
    ),
    "shuffled": network(
        ("Relu", ["s"], "r"), ("Conv", ["x", "v", "b"], "h"), ("HardSwish", ["h"], "i"),
        ("Concat", ["r", "i"], "j", {"axis": 1}), ("Reshape", ["j", "parted"], "p"),
        ("Transpose", ["p"], "q", {"perm": [0, 2, 1, 3, 4]}), ("Reshape", ["q", "whole"], "t"),
        ("Conv", ["t", "wide"], "y"),
    ),
    "summed": network(
        ("Relu", ["s"], "r"), ("Conv", ["x", "v", "b"], "h"), ("HardSwish", ["h"], "i"), ("Add", ["r", "i"], "t"), LAST
    ),
    "moved in front of a function": network(
        ("Transpose", ["s"], "r", {"perm": [0, 1, 3, 2]}), ("Sigmoid", ["r"], "t"), LAST
    ),
    "transposed, in groups": network(
        ("Relu", ["s"], "r"), ("ConvTranspose", ["r", "p4", "b"], "h", {"group": 2, "strides": [2, 2]}),
        ("HardSwish", ["h"], "t"), LAST,
    ),
    "read by a layer and a function": network(
        ("Conv", ["s", "v"], "c"), ("HardSwish", ["s"], "h"), ("Add", ["c", "h"], "t"), LAST
    ),
    "PRelu": network(("PRelu", ["s", "slopes"], "t"), LAST),
}  # fmt: skip


def parts(model: Any) -> tuple[OnnxGraph, Regions, dict[str, Shift], OnnxGraph | None]:
    graph = canonical(model)
    regions = find_regions(graph)
    statistics = observe(graph, regions.tensors, hold_out(Calibration(images(SAMPLES, 0))).fitted)
    scales = initial_scales(graph, regions, statistics, 0)
    return (
        *(graph, regions, choose_shifts(graph, regions, statistics, scales)),
        centred(graph, regions, statistics, scales),
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_a_centred_network_computes_the_same(name: str) -> None:
    graph, _, _, made = parts(NETWORKS[name])
    assert made is not None
    before, after = Runner(graph, ["y"]), Runner(made, ["y"])
    for feeds in images(4, 7):
        wanted, given = before.run(feeds)["y"], after.run(feeds)["y"]
        # Of nearly flat ends a quarter of a step may be lost
        np.testing.assert_allclose(given, wanted, atol=0.01 * np.abs(wanted).max())


def decibels(graph: OnnxGraph) -> float:
    result = quantise(graph, Calibration(images(SAMPLES, 0)), search=False)
    assert result.agreement.unexplained == 0
    runner, output = Runner(graph, ["y"]), result.graph.outputs[0]
    unseen = [(runner.run(feeds), {"y": evaluate(result.graph, feeds)[output]}) for feeds in images(16, 9)]
    return float(np.mean([signal_to_noise(wanted, given) for wanted, given in unseen]))


@pytest.mark.slow
def test_int8_loses_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network loses a decibel, and the mean of sixteen gains half a one."""
    graphs = {name: canonical(model) for name, model in NETWORKS.items()}
    centred_ones = {name: decibels(graph) for name, graph in graphs.items()}
    monkeypatch.setattr(fit, "centred", lambda *_, **__: None)
    gains = {name: centred_ones[name] - decibels(graph) for name, graph in graphs.items()}
    assert min(gains.values()) > -1, gains
    assert np.mean(list(gains.values())) > 0.5, gains
    assert min(gains[name] for name in ("HardSwish", "SiLU", "Tanh")) > 1, gains


def test_a_relus_zero_is_the_least_step() -> None:
    graph, _, shifts, _ = parts(NETWORKS["Relu"])
    assert shifts["t"].taken > 0
    result = quantise(graph, Calibration(images(SAMPLES, 0)), search=False)
    layer = next(node for node in result.graph.nodes if node.op == "conv2d")
    assert layer.attributes["clip"] == [-128, 127]


def test_values_that_a_function_makes_alike_take_no_steps() -> None:
    """All below -3 is zero behind a HardSwish."""
    shift = parts(NETWORKS["HardSwish"])[2]["s"]
    assert -3.1 < shift.low < -2.5
    assert shift.high == np.inf


@pytest.mark.parametrize("reader", [{"pads": [1] * 4}, {"auto_pad": "SAME_UPPER"}])
def test_no_constant_is_taken_off_what_a_layer_pads(reader: dict[str, Any]) -> None:
    """A factor may be: zeros stay zeros."""
    graph, _, shifts, made = parts(network(("Relu", ["s"], "r"), ("Conv", ["r", "k"], "y", reader)))
    assert not shifts["r"].taken.any()
    assert made is not None
    assert shifts["r"].factor != 1
    (feeds,) = images(1, 7)
    np.testing.assert_allclose(
        Runner(made, ["y"]).run(feeds)["y"], Runner(graph, ["y"]).run(feeds)["y"], rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize(
    "reader",
    [{"pads": [1] * 4}, {"pads": [0, 0, 1, 1], "strides": [2, 2]}, {"auto_pad": "SAME_UPPER"}],
)
def test_with_borders_a_constant_lies_around_a_padded_input(reader: dict[str, Any]) -> None:
    graph, regions, _, _ = parts(network(("Relu", ["s"], "r"), ("Conv", ["r", "k"], "y", reader)))
    statistics = observe(graph, regions.tensors, hold_out(Calibration(images(SAMPLES, 0))).fitted)
    scales = initial_scales(graph, regions, statistics, 0)
    made = centred(graph, regions, statistics, scales, borders=Borders.ALL)
    assert made is not None
    (pad,) = (node for node in made.nodes if node.op == "Pad")
    assert made.constants[pad.inputs[2]] < 0
    (feeds,) = images(1, 7)
    wanted, given = Runner(graph, ["y"]).run(feeds)["y"], Runner(made, ["y"]).run(feeds)["y"]
    np.testing.assert_allclose(given, wanted, rtol=1e-3, atol=1e-4)
    assert len(find_regions(made).layers) == len(regions.layers)


PADDED = network(
    ("Relu", ["s"], "r"), ("Conv", ["r", "k", "b"], "f", {"pads": [1] * 4}), ("Relu", ["f"], "g"),
    ("Conv", ["g", "k", "b"], "h", {"pads": [1] * 4}), ("Relu", ["h"], "t"),
    ("Conv", ["t", "k"], "y", {"pads": [1] * 4}),
)  # fmt: skip


@pytest.mark.slow
def test_borders_lie_among_int8s_least_values_and_bring_decibels() -> None:
    """Three layers of three by three between Relus, whose 127 steps become 255."""
    graph = canonical(PADDED)
    results = {
        asked: quantise(graph, Calibration(images(SAMPLES, 0)), borders=asked, search=False) for asked in (False, True)
    }
    assert [results[asked].bordered for asked in (False, True)] == [0, 3]
    assert results[True].agreement.unexplained == 0
    assert all(node.attributes["value"] < -64 for node in results[True].graph.nodes if node.op == "pad")
    runner = Runner(graph, ["y"])
    found = {}
    for asked, result in results.items():
        output = result.graph.outputs[0]
        pairs = [(runner.run(feeds), {"y": evaluate(result.graph, feeds)[output]}) for feeds in images(16, 9)]
        found[asked] = np.mean([signal_to_noise(wanted, given) for wanted, given in pairs])
    assert found[True] > found[False] + 1, found


DEPTHWISE = network(
    ("Relu", ["s"], "r"), ("Conv", ["r", "side", "b"], "f", {"pads": [1] * 4, "group": 8}), ("Relu", ["f"], "g"),
    ("Conv", ["g", "side", "b"], "h", {"pads": [1] * 4, "group": 8}), ("Relu", ["h"], "t"), LAST,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "least", "bordered"), [(PADDED, -100.0, 3), (DEPTHWISE, -100.0, 0), (DEPTHWISE, 100.0, 2)]
)
def test_depthwise_layers_of_a_network_of_enough_decibels_have_no_borders(
    model: Any, least: float, bordered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "_ENOUGH_DECIBELS", least)
    assert quantise(canonical(model), Calibration(images(SAMPLES, 0)), search=False).bordered == bordered


def test_the_caller_and_floats_read_a_tensor_as_it_was() -> None:
    model = network(
        ("Relu", ["s"], "t"), LAST, ("MatMul", ["t", "t"], "square"), ("Concat", ["t", "t"], "joined", {"axis": 1})
    )
    model.graph.output.extend(helper.make_tensor_value_info(name, 1, None) for name in ("t", "square", "joined"))
    graph, _, shifts, made = parts(model)
    assert shifts["t"].changes and shifts["y"].changes
    assert made is not None
    (feeds,) = images(1, 7)
    wanted, given = Runner(graph, graph.outputs).run(feeds), Runner(made, graph.outputs).run(feeds)
    for name in graph.outputs:
        np.testing.assert_allclose(given[name], wanted[name], atol=1e-3 * np.abs(wanted[name]).max())


def test_an_output_far_from_zero_has_all_steps_where_its_values_are() -> None:
    """A regression of 100 degrees with a range of some: one step of 2^0 were as large as half of them."""
    model = network(("Relu", ["s"], "t"), ("Conv", ["t", "w", "far"], "z"), ("Softmax", ["z"], "y", {"axis": 1}))
    model.graph.output.append(helper.make_tensor_value_info("z", 1, None))
    model.graph.initializer.append(numpy_helper.from_array(np.full(4, 100, np.float32), "far"))
    graph = canonical(model)
    result = quantise(graph, Calibration(images(SAMPLES, 0)), search=False)
    assert result.agreement.unexplained == 0
    by_name = dict(zip(graph.outputs, result.costs.outputs, strict=True))
    assert by_name["z"].decibels > 55, by_name
    softmax = next(node for node in result.graph.nodes if node.op == "softmax")
    assert np.log2(softmax.attributes["scale"]) % 1 != 0, "the softmax takes the steps up"
    (feeds,) = images(1, 7)
    wanted = Runner(result.model, ["y"]).run(feeds)["y"]
    alike = np.isclose(evaluate(result.graph, feeds)[result.graph.outputs[0]], wanted, atol=1e-5)
    assert alike.all(axis=1).mean() > 0.95, "but for ties, which VTA rounds up and ONNX to even"


GATED = network(
    ("HardSwish", ["s"], "h"), ("GlobalAveragePool", ["h"], "a"), ("Conv", ["a", "v", "b"], "g"),
    ("Sigmoid", ["g"], "o"), ("Mul", ["h", "o"], "n"), ("Conv", ["n", "v"], "c"), ("Add", ["c", "n"], "t"), LAST,
)  # fmt: skip


def test_what_is_added_averaged_or_gated_has_one_factor() -> None:
    model = copy.deepcopy(GATED)
    for constant in (each for each in model.graph.initializer if each.name in "ub"):
        constant.CopyFrom(numpy_helper.from_array(np.float32(1.25) * numpy_helper.to_array(constant), constant.name))
    graph, regions, shifts, made = parts(model)
    factors = {shifts[name].factor for name in ("h", "a", "n", "t")}
    assert len(factors) == 1 and factors != {1.0}
    assert made is not None
    (feeds,) = images(1, 7)
    wanted, given = Runner(graph, ["y"]).run(feeds)["y"], Runner(made, ["y"]).run(feeds)["y"]
    np.testing.assert_allclose(given, wanted, atol=0.01 * np.abs(wanted).max())
    assert len(find_regions(made).layers) == len(regions.layers)
    assert quantise(graph, Calibration(images(SAMPLES, 0)), search=False).agreement.unexplained == 0


def test_a_product_adds_what_was_taken_off_its_data_and_takes_a_constant_off_its_result() -> None:
    """Both lie on one side of zero, where int8 has 127 steps."""
    graph, _, shifts, made = parts(GATED)
    assert made is not None
    assert shifts["h"].taken > 0 and shifts["n"].taken > 0
    result = quantise(graph, Calibration(images(SAMPLES, 0)), search=False)
    (product,) = (node for node in result.graph.nodes if node.op == "multiply")
    front, behind = product.attributes["offsets"]
    assert front > 32 and behind < -32
    assert not {"Mul", "Add"} & {node.op for node in result.graph.nodes}


def test_slopes_of_channels_take_a_constant_off_their_result_and_keep_that_of_their_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, regions, shifts, _ = parts(NETWORKS["PRelu"])
    assert regions.bends == {"t": "s"}
    assert shifts["t"].taken > 0 and not shifts["s"].taken.any()
    assert shifts["t"].factor == shifts["s"].factor
    monkeypatch.setattr(fit, "equalised", lambda *given: None)
    monkeypatch.setattr(fit._Candidates, "_factored", lambda *given: iter(()))
    result = quantise(canonical(NETWORKS["PRelu"]), Calibration(images(SAMPLES, 0)), search=False)
    assert [node.op for node in result.graph.nodes][:4] == ["quantize", "conv2d", "prelu", "conv2d"]
    assert result.graph.nodes[2].attributes["offset"] < -32


def test_a_gate_keeps_its_constant() -> None:
    _, _, shifts, _ = parts(GATED)
    assert not shifts["o"].taken.any()


def test_a_mean_of_centred_values_lacks_their_constant() -> None:
    """The mean of 6 x 6 is written as one of 8 x 8 with zeros beside them, which have no constant."""
    graph, _, shifts, made = parts(network(("Relu", ["s"], "r"), ("GlobalAveragePool", ["r"], "t"), LAST))
    assert shifts["r"].taken > 0 and made is not None
    np.testing.assert_allclose(shifts["t"].taken, shifts["r"].taken * 36 / 64 + shifts["t"].own)
    (feeds,) = images(1, 7)
    wanted, given = Runner(graph, ["y"]).run(feeds)["y"], Runner(made, ["y"]).run(feeds)["y"]
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)


def test_a_mean_of_values_far_from_zero_has_steps_of_its_own() -> None:
    """Means differ less than the values, and lie far from the middle of these."""
    model = network(("Conv", ["s", "v", "e"], "r"), ("GlobalAveragePool", ["r"], "t"), LAST)
    (bias,) = (each for each in model.graph.initializer if each.name == "e")
    bias.CopyFrom(numpy_helper.from_array(np.full(8, 20, np.float32), "e"))
    graph, regions, shifts, made = parts(model)
    assert regions.means == {"t"} and made is not None
    assert abs(shifts["t"].taken.mean() - 20 * 36 / 64) < 3 and shifts["t"].factor == shifts["r"].factor
    result = quantise(graph, Calibration(images(SAMPLES, 0)), search=False)
    (mean,) = (node for node in result.graph.nodes if node.op == "global_average_pool")
    steps = [result.graph.tensors[name].scale for name in (mean.inputs[0], mean.outputs[0])]
    assert steps[1] <= steps[0] / 2
    assert result.agreement.unexplained == 0
    assert decibels(graph) > 30


@pytest.mark.parametrize(
    ("value", "exponent", "steps"), [(-2.5, 4, -40), (2.5, 0, None), (1024, 4, 1 << 14), (1025, 4, None)]
)
def test_a_mean_adds_whole_steps_of_some_bits(value: float, exponent: int, steps: int | None) -> None:
    assert mean_offset_steps(value, exponent) == steps


def test_a_mean_adds_few_steps_that_stay_whole_in_finer_and_in_coarser_scales() -> None:
    for middle, reach in ((20.3, 0.07), (-1e4, 3.0), (1e-3, 1.0), (5.0, 0.0), (0.0, 0.0)):
        taken = _few_steps(middle, reach)
        exponents = [k for k in range(-20, 40) if mean_offset_steps(taken, k) is not None]
        fits = np.floor(np.log2(127 / reach)) if reach else 0
        assert abs(taken - middle) <= max(abs(middle) / 512, 4 * 2.0**-fits)
        assert len(exponents) >= 4 and (not reach or min(exponents) <= fits)


def test_no_constant_is_taken_off_what_a_mean_pads() -> None:
    padded = {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0], "count_include_pad": 1}
    _, _, shifts, _ = parts(network(("Relu", ["s"], "r"), ("AveragePool", ["r"], "t", padded), LAST))
    assert not shifts["r"].taken.any()


def test_a_mean_that_leaves_its_padding_out_lacks_the_whole_constant() -> None:
    padded = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    graph, _, shifts, made = parts(network(("Relu", ["s"], "r"), ("AveragePool", ["r"], "t", padded), LAST))
    assert shifts["r"].taken > 0 and made is not None
    np.testing.assert_allclose(shifts["t"].taken, shifts["r"].taken + shifts["t"].own)
    (feeds,) = images(1, 7)
    wanted, given = Runner(graph, ["y"]).run(feeds)["y"], Runner(made, ["y"]).run(feeds)["y"]
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)


def test_joined_tensors_that_are_shuffled_have_one_constant() -> None:
    _, _, shifts, _ = parts(NETWORKS["shuffled"])
    assert {float(shifts[name].taken) for name in "rijpqt"} == {float(shifts["r"].taken)}
    assert shifts["r"].taken > 0


def test_joined_tensors_keep_their_zero_if_one_is_padded() -> None:
    padded = copy.deepcopy(NETWORKS["shuffled"])
    padded.graph.node.append(helper.make_node("Conv", ["r", "k"], ["z"], pads=[1] * 4))
    padded.graph.initializer.append(numpy_helper.from_array(np.ones((4, 8, 3, 3), np.float32), "k"))
    padded.graph.output.append(helper.make_tensor_value_info("z", 1, None))
    _, _, shifts, _ = parts(padded)
    assert not any(shifts[name].taken.any() for name in "rijpqt")


def test_a_sum_lacks_what_its_parts_lack() -> None:
    _, _, shifts, _ = parts(NETWORKS["summed"])
    assert shifts["r"].taken > 0 and shifts["i"].taken > 0
    assert shifts["t"].taken == shifts["r"].taken + shifts["i"].taken


def test_a_mean_of_many_values_has_int8s_steps() -> None:
    """The means lie close together on one side of zero; values in steps around their own middle leave them few."""
    graph = canonical(network(("HardSwish", ["s"], "h"), ("GlobalAveragePool", ["h"], "t"), LAST))
    result = quantise(graph, Calibration(images(SAMPLES, 0)), search=False)
    (mean,) = (node.outputs[0] for node in result.graph.nodes if "average" in node.op)
    integers = np.concatenate([evaluate(result.graph, feeds)[mean] for feeds in images(SAMPLES, 5)])
    assert int(integers.max()) - int(integers.min()) > 150


def test_a_factor_spares_the_weights() -> None:
    """Weights that fill int8 as they are would lose a bit by a factor just above 1."""
    weights = np.linspace(-127, 127, 255, dtype=np.float32) / 128
    graph = canonical(network(("Relu", ["s"], "t"), LAST))
    graph.constants["full"] = weights
    losses = WeightLosses(graph)
    assert losses.of("full", 1.0) == losses.of("full", 4.0) < 1e-9 < losses.of("full", 2**0.25)


def test_weights_that_layers_share_take_no_factor_up() -> None:
    """They lie in memory once, as those of a recurrence's steps do."""
    shared = network(
        ("Relu", ["s"], "h"), ("Conv", ["h", "v"], "c"), ("Relu", ["c"], "i"), ("Conv", ["i", "v"], "t"), LAST
    )
    assert {parts(shared)[2][name].factor for name in "hit"} == {1.0}


def test_few_samples_do_not_show_where_values_end() -> None:
    graph = canonical(NETWORKS["HardSwish"])
    assert not quantise(graph, Calibration(images(7, 0)), search=False).centred
    assert quantise(graph, Calibration(images(8, 0)), search=False).centred
