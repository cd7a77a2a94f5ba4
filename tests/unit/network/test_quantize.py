"""Quantised models: their results and their cost in time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from hilt.cli.main import run
from hilt.network import zoo
from hilt.network.calibration import Calibration, Runner, make_calibration
from hilt.network.graph import Graph
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import to_model
from hilt.network.onnx_import import import_model, import_proto
from hilt.network.onnx_simplify import fixed_model
from hilt.network.quantize.counting import uncounted
from hilt.network.quantize.files import write_model
from hilt.network.quantize.opset import lower_opset
from hilt.network.quantize.quantizer import Quantisation, quantise
from hilt.network.reference import evaluate

from . import digits
from .models import Array, canonical, model_of, quantised, samples_for, saved

RANDOM = np.random.default_rng(5)
_FIRST = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def _same_numbers_alone() -> None:
    """Give each test the same numbers whether or not others ran before it."""
    RANDOM.bit_generator.state = _FIRST


def normal(*shape: int) -> Array:
    return RANDOM.normal(0, 0.5, shape).astype(np.float32)


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def assert_agrees(result: Quantisation) -> None:
    """Assert that all int8 values equal ONNX Runtime's but for ties, which VTA rounds up and ONNX to even."""
    assert result.agreement.unexplained == 0
    assert result.agreement.largest <= 1


def inner_ops(graph: Graph) -> list[str]:
    """Return the operators but for those that leave the integers, by a table of floats or without one."""
    leaving = [node for node in graph.nodes if node.op in ("dequantize", "table")]
    floats = {node.name for node in leaving if graph.tensors[node.outputs[0]].dtype == "float32"}
    return [node.op for node in graph.nodes if node.name not in floats]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet8", "ds_cnn", "mobilenet_v1", "autoencoder"])
def test_mlperf_tinys_networks_quantise(name: str) -> None:
    graph = fixed_model(zoo.make(name), name)
    canonicalise(graph)
    result = quantise(graph, make_calibration({"input": zoo.calibration_data(name, 4)}, graph), search=False)
    assert_agrees(result)
    assert result.costs.decibels > 20
    kinds = set(inner_ops(result.graph))
    assert kinds <= {"quantize", "conv2d", "dense", "global_average_pool", "reshape", "softmax"}
    residuals = [node for node in result.graph.nodes if "residual_shift" in node.attributes]
    assert len(residuals) == (3 if name == "resnet8" else 0)
    macs = sum(result.graph.macs(node) for node in result.graph.nodes)
    assert macs == {"resnet8": 12_501_632, "ds_cnn": 2_656_768, "mobilenet_v1": 7_489_664, "autoencoder": 264_192}[name]


@pytest.mark.slow
def test_digits_lose_at_most_half_a_point() -> None:
    model, images, _, unseen, labels = digits.trained()
    graph = fixed_model(model, "digits")
    canonicalise(graph)
    calibrating = Calibration(tuple({"x": image[None]} for image in images[:64]))
    from hilt.network.quantize.quantizer import measure_accuracy

    result = quantise(graph, calibrating)
    accuracy = measure_accuracy(
        graph,
        result.model,
        result.graph,
        Calibration(tuple({"x": image[None]} for image in unseen), labels),
        uncounted("", ""),
    )
    assert accuracy is not None
    assert accuracy.float_model > 0.97
    assert accuracy.float_model - accuracy.reference <= 0.005
    assert accuracy.float_model - accuracy.quantised_model <= 0.005
    assert_agrees(result)


@pytest.mark.slow
def test_every_phase_is_counted_from_its_start() -> None:
    graph = fixed_model(zoo.make("resnet8"), "resnet8")
    canonicalise(graph)
    phases: dict[str, list[tuple[int, int]]] = {}

    def counting(phase: str, units: str) -> Callable[[int, int], None]:
        return lambda done, count: phases.setdefault(f"{phase}, {units}", []).append((done, count))

    quantise(graph, make_calibration({"input": zoo.calibration_data("resnet8", 8)}, graph), counting=counting)
    assert list(phases) == [
        "fitting scales, starts", "quantising, steps", "rounding weights, layers", "measuring the loss, samples",
        "comparing with ONNX Runtime, nodes",
    ]  # fmt: skip
    for steps in phases.values():
        assert all(done <= count for done, count in steps) and sorted(steps) == sorted(set(steps))
    assert all(steps[0][0] == 0 for phase, steps in phases.items() if phase != "quantising, steps")


@pytest.mark.slow
def test_the_file_is_plain_qdq(tmp_path: Path) -> None:
    result = quantised(zoo.make("resnet8"))
    write_model(result, tmp_path / "r.onnx")
    model = onnx.load(str(tmp_path / "r.onnx"))
    onnx.checker.check_model(model, full_check=True)
    assert {opset.domain for opset in model.opset_import} == {""}
    scales = [
        onnx.numpy_helper.to_array(part)
        for part in model.graph.initializer
        if part.name.startswith("scale:") or part.name.endswith("bias_scale")
    ]
    assert scales and all(np.frexp(scale)[0] == 0.5 for scale in scales)
    image = zoo.calibration_data("resnet8", 1)
    (wanted,) = onnxruntime.InferenceSession(str(tmp_path / "r.onnx")).run(None, {"input": image})
    graph = import_model(tmp_path / "r.onnx")
    given = evaluate(graph, {"input": image})[graph.outputs[0]]
    np.testing.assert_allclose(wanted, given, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("first", "second", "third"),  # a node with the name of its tensor, as some exporters write them
        ("first_float", "x_int8", "x_dequantized"),
        ("scale:x", "scale:scale:x", "int8_zero"),
        ("first.weight_dq", "first.bias_dq", "second.wi"),
    ],
)
def test_names_of_the_models_own_stay_apart_from_hilts(names: tuple[str, str, str]) -> None:
    tensors, nodes = ["x", *names], ["first", "second", "third"]
    layers = [
        helper.make_node("Conv", [tensors[place], f"w{place}"], [tensors[place + 1]], name=nodes[place])
        for place in range(3)
    ]
    sizes = (0.1, 10, 100)  # of each layer's weights, so that scales cannot be taken for one another
    constants = {f"w{place}": normal(4, 4, 1, 1) * np.float32(size) for place, size in enumerate(sizes)}
    result = quantised(model_of(layers, {"x": (1, 4, 5, 5)}, constants, (tensors[3], tensors[1])), search=True)
    assert result.costs.decibels > 25
    assert result.agreement.unexplained == 0


@pytest.mark.parametrize(("op", "opset"), [("BatchNormalization", 20), ("TensorScatter", 24)])
def test_a_model_of_a_new_opset_is_one_that_onnx_runtime_opens(op: str, opset: int) -> None:
    parts = ["g", "b", "m", "v"] if op == "BatchNormalization" else []
    inputs = ["t", *parts] if parts else ["t", "t"]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Transpose", ["a"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node(op, inputs, ["y"]),
    ]
    constants = {"w": normal(4, 3, 1, 1), **{name: np.abs(normal(4)) + 0.1 for name in parts}}
    graph = fixed_model(model_of(nodes, {"x": (1, 3, 5, 5)}, constants, opset=21 if parts else 24), "test")
    canonicalise(graph)
    lower_opset(graph)
    assert graph.opset == opset
    if parts:
        onnxruntime.InferenceSession(to_model(quantise(graph, samples_for(graph)).model).SerializeToString())


@pytest.mark.slow
def test_the_same_data_gives_the_same_model() -> None:
    first, second = (to_model(quantised(zoo.make("ds_cnn"), search=True).model) for _ in range(2))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)


def block(extra: list[Any], constants: dict[str, Array] | None = None, shape: tuple[int, ...] = (1, 4, 8, 8)) -> Any:
    """Return a model with a layer, further nodes from s to t, and a last layer."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"], pads=[1] * 4),
        *extra,
        helper.make_node("Conv", ["t", "v"], ["y"]),
    ]
    weights = {"w": normal(8, shape[1], 3, 3), "v": normal(8, 8, 1, 1)}
    return model_of(nodes, {"x": shape}, {**weights, **(constants or {})})


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([("Relu", ["s"], "t", {})], ["conv2d", "conv2d"]),
        ([("Clip", ["s", "zero", "six"], "t", {})], ["conv2d", "conv2d"]),
        ([("HardSigmoid", ["s"], "t", {})], ["conv2d", "conv2d"]),
        ([("HardSwish", ["s"], "t", {})], ["conv2d", "table", "conv2d"]),
        ([("Sigmoid", ["s"], "g", {}), ("Mul", ["s", "g"], "t", {})], ["conv2d", "table", "conv2d"]),
        ([("LeakyRelu", ["s"], "t", {"alpha": 0.1})], ["conv2d", "table", "conv2d"]),
        ([("MaxPool", ["s"], "t", {"kernel_shape": [2, 2], "strides": [2, 2]})], ["conv2d", "max_pool", "conv2d"]),
        ([("AveragePool", ["s"], "t", {"kernel_shape": [2, 2]})], ["conv2d", "average_pool", "conv2d"]),
        ([("GlobalAveragePool", ["s"], "t", {})], ["conv2d", "global_average_pool", "conv2d"]),
        (
            [("Sigmoid", ["s"], "g", {}), ("GlobalAveragePool", ["s"], "p", {}), ("Mul", ["g", "p"], "t", {})],
            ["conv2d", "table", "global_average_pool", "multiply", "conv2d"],
        ),
        ([("Relu", ["s"], "r", {}), ("Add", ["r", "s"], "t", {})], ["conv2d", "table", "conv2d"]),
        (
            [("MaxPool", ["s"], "r", {"kernel_shape": [3, 3], "pads": [1] * 4}), ("Add", ["r", "s"], "t", {})],
            ["conv2d", "max_pool", "add", "conv2d"],
        ),
        (
            [("Slice", ["s", "zero_i", "four", "one"], "a", {}), ("Concat", ["a", "a"], "t", {"axis": 1})],
            ["conv2d", "slice", "concat", "conv2d"],
        ),
        ([("Transpose", ["s"], "t", {"perm": [0, 1, 3, 2]})], ["conv2d", "transpose", "conv2d"]),
        ([("Resize", ["s", "", "twice"], "t", {"mode": "nearest"})], ["conv2d", "upsample", "conv2d"]),
        ([("Resize", ["s", "", "twice"], "t", {"mode": "linear"})], ["conv2d", "interpolate", "conv2d"]),
        ([("Pad", ["s", "ring"], "t", {})], ["conv2d", "pad", "conv2d"]),
        ([("PRelu", ["s", "slopes"], "t", {})], ["conv2d", "prelu", "conv2d"]),
        (
            [("PRelu", ["s", "slopes"], "a", {}), ("MaxPool", ["a"], "t", {"kernel_shape": [2, 2]})],
            ["conv2d", "prelu", "max_pool", "conv2d"],
        ),
        ([("Add", ["s", "slopes"], "a", {}), ("Tanh", ["a"], "t", {})], ["conv2d", "table", "conv2d"]),
        ([("InstanceNormalization", ["s", "g8", "g8"], "t", {})], ["conv2d", "normalization", "conv2d"]),
    ],
)
def test_operators_between_layers_become_integers(nodes: list[Any], expected: list[str]) -> None:
    made = [helper.make_node(op, inputs, [output], **attributes) for op, inputs, output, attributes in nodes]
    constants = {
        "zero": np.float32(0), "six": np.float32(1.5), "zero_i": np.array([0]), "four": np.array([4]),
        "one": np.array([1]), "twice": np.array([1, 1, 2, 2], np.float32), "g8": normal(8),
        "ring": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "slopes": np.linspace(-0.1, 0.4, 8, dtype=np.float32)[:, None, None],
    }  # fmt: skip
    used = {name for _, inputs, _, _ in nodes for name in inputs}
    result = quantised(block(made, {name: np.asarray(value) for name, value in constants.items() if name in used}))
    assert_agrees(result)
    middle = [op for op in inner_ops(result.graph) if op != "quantize"]
    assert middle == expected
    assert result.costs.decibels > 20


def test_two_branches_that_onnx_runtime_fuses_are_observed() -> None:
    """FastViT's: with the first branch's result as an output, ONNX Runtime's session cannot be made at full level."""
    nodes = [
        helper.make_node("Conv", ["s", "u", "b"], ["c"], pads=[1] * 4, group=8),
        helper.make_node("Conv", ["s", "z", "b"], ["d"], group=8),
        helper.make_node("Add", ["c", "d"], ["a"]),
        helper.make_node("Conv", ["a", "o"], ["t"]),
    ]
    weights = {"u": normal(16, 1, 3, 3), "z": normal(16, 1, 1, 1), "b": normal(16), "o": normal(8, 16, 1, 1)}
    result = quantised(block(nodes, weights))
    assert_agrees(result)
    assert ops(result.graph).count("conv2d") == 5


def test_skips_add_into_the_sums_of_the_layer() -> None:
    nodes = [
        helper.make_node("Conv", ["s", "u", "b"], ["c"], pads=[1] * 4),
        helper.make_node("Add", ["s", "c"], ["a"]),
        helper.make_node("Relu", ["a"], ["t"]),
    ]
    graph = canonical(block(nodes, {"u": normal(8, 8, 3, 3), "b": normal(8)}))
    result = quantise(graph, samples_for(graph, 16), search=False)
    fused = [node for node in result.graph.nodes if "residual_shift" in node.attributes]
    assert len(fused) == 1 and "add" not in ops(result.graph)
    low, high = fused[0].attributes["clip"]
    assert -128 <= low < -64 and high == 127  # the Relu's zero is far below int8's: the tensor is centred
    assert_agrees(result)


def test_scales_by_channel_block() -> None:
    weights = normal(32, 4, 3, 3) * np.repeat([1, 0.02], 16).reshape(-1, 1, 1, 1).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"])]
    model = model_of(nodes, {"x": (1, 4, 8, 8)}, {"w": weights.astype(np.float32), "b": normal(32)})
    result = quantised(model, channel_block=16)
    (layer,) = (node for node in result.graph.nodes if node.op == "conv2d")
    shifts = layer.attributes["shift"]
    assert len(shifts) == 32 and len(set(shifts[:16])) == len(set(shifts[16:])) == 1 and shifts[16] - shifts[0] >= 5
    assert_agrees(result)
    for _ in range(1):
        onnx.checker.check_model(to_model(result.model), full_check=True)


def two_kinds_of_weights(large: float) -> Any:
    """Return a layer, half of whose channels have many small weights, the other half a large one for a small input."""
    weights = normal(64, 64, 3, 3) / 24
    weights[:32] = 0
    weights[:32, 0, 1, 1] = large
    nodes = [helper.make_node("Softsign", ["x"], ["s"]), helper.make_node("Conv", ["s", "w"], ["y"])]
    return model_of(nodes, {"x": (1, 64, 8, 8)}, {"w": weights})


def of_a_small_first_channel() -> list[Array]:
    samples = [normal(1, 64, 8, 8) for _ in range(16)]
    for sample in samples:
        sample[:, 0] /= 4
    return samples


def test_blocks_have_scales_of_their_own_where_the_network_has_few_decibels_else() -> None:
    samples = Calibration(tuple({"x": each} for each in of_a_small_first_channel()))
    few, enough = canonical(two_kinds_of_weights(6.0)), canonical(two_kinds_of_weights(0.2))
    alike = quantise(few, samples, channel_block=0)
    apart = quantise(few, samples)
    assert (alike.channel_block, apart.channel_block) == (0, 32)
    assert alike.costs.decibels < 15 and apart.costs.decibels > 25
    assert quantise(enough, samples).channel_block == 0
    assert_agrees(apart)


def test_a_convolution_with_unequal_strides_transposed_runs_as_a_layer_of_phases() -> None:
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[2, 3], pads=[1, 0, 0, 1], group=2)
    result = quantised(model_of([node], {"x": (1, 4, 5, 5)}, {"w": normal(4, 3, 3, 3), "b": normal(6)}))
    (layer,) = (node for node in result.graph.nodes if node.op == "conv2d")
    assert "input_dilation" not in layer.attributes
    assert result.graph.tensors[layer.outputs[0]].shape == (1, 2 * 3 * 6, 6, 5), "its phases are channels"
    assert_agrees(result)


def test_a_layer_adds_the_noise_that_its_input_has_not() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Conv", ["c", "v"], ["y"])]
    model = model_of(nodes, {"x": (1, 3, 8, 8)}, {"w": normal(8, 3, 3, 3), "v": normal(4, 8, 1, 1)})
    first, second = quantised(model).costs.layers
    noises = [10 ** (-each.decibels / 10) for each in (first, second)]
    assert second.added == pytest.approx(noises[1] - noises[0]) and 0 < first.added <= noises[0]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_reciprocal_of_a_zero_saturates_without_a_word() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Reciprocal", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 3, 8, 8)}, {"w": normal(8, 3, 3, 3), "v": normal(4, 8, 1, 1)})
    assert_agrees(quantised(model))


def test_a_transposed_convolution_has_one_weight_scale() -> None:
    weights = normal(4, 4, 3, 3) * np.array([1, 20, 1, 20], np.float32).reshape(-1, 1, 1, 1)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 3])
    result = quantised(model_of([node], {"x": (1, 4, 5, 5)}, {"w": weights}), channel_block=1)
    assert_agrees(result)
    assert result.costs.decibels > 25


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["Conv", "MatMul"])
def test_scales_lie_along_the_axis_that_the_model_names(op: str, axis: int) -> None:
    def at(*exponents: int) -> Array:
        return np.array([2.0**-exponent for exponent in exponents], np.float32).reshape(-1 if exponents[1:] else ())

    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["f"], axis=axis - (2 if op == "MatMul" else 4)),
        helper.make_node(op, ["d", "f"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "t", "z"], ["b"]),
        helper.make_node("DequantizeLinear", ["b", "t", "z"], ["y"]),
    ]
    square = (4, 4) if op == "MatMul" else (4, 4, 1, 1)
    constants = {"s": at(5), "z": np.array(0, np.int8), "t": at(3), "ws": at(5, 6, 7, 8), "wz": np.zeros(4, np.int8)}
    constants["w"] = RANDOM.integers(-127, 128, square).astype(np.int8)
    model = model_of(nodes, {"x": (2, 4) if op == "MatMul" else (2, 4, 3, 3)}, constants)
    graph = import_proto(model, "test")
    data = RANDOM.normal(0, 1, graph.tensors["x"].shape).astype(np.float32)
    plain = Runner(fixed_model(model, "test"), ["y"], optimised=False)  # its fused convolution takes any axis for 0
    wanted = plain.run({"x": data})["y"]
    given = evaluate(graph, {"x": data})[graph.outputs[0]]
    np.testing.assert_allclose(given, wanted, atol=2.0**-3)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["QDQ", "QOperator", "dynamic"])
def test_models_that_onnx_runtime_quantised_are_taken_over(form: str, tmp_path: Path) -> None:
    from onnxruntime import quantization

    original = zoo.make("resnet8")
    path, other = saved(original, tmp_path / "float.onnx"), tmp_path / "other.onnx"
    images = zoo.calibration_data("resnet8", 4)
    if form == "dynamic":
        quantization.quantize_dynamic(path, other)
    else:
        samples = iter([{"input": image[None]} for image in images])

        class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, unused-ignore]
            def get_next(self) -> Any:
                return next(samples, None)

        form_of = {"QDQ": quantization.QuantFormat.QDQ, "QOperator": quantization.QuantFormat.QOperator}
        quantization.quantize_static(path, other, Reader(), quant_format=form_of[form], per_channel=form == "QDQ")
    np.savez(tmp_path / "data.npz", input=images)
    assert (
        run(["quantize", str(other), "--calibration", str(tmp_path / "data.npz"), "-o", str(tmp_path / "q.onnx")]) == 0
    )
    graph = import_model(tmp_path / "q.onnx")
    assert sum(node.op in ("conv2d", "dense") for node in graph.nodes) == 10
    (wanted,) = onnxruntime.InferenceSession(str(path)).run(None, {"input": images[:1]})
    given = evaluate(graph, {"input": images[:1]})[graph.outputs[0]]
    assert np.argmax(given) == np.argmax(wanted)
    np.testing.assert_allclose(given, wanted, atol=0.1)


def test_biases_correct_the_mean_shift_of_rounding() -> None:
    from hilt.network.quantize.regions import find_regions
    from hilt.network.quantize.scales import corrected_biases, initial_scales
    from hilt.network.quantize.statistics import observe

    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], group=2)
    graph = canonical(model_of([node], {"x": (1, 4, 6, 6)}, {"w": normal(6, 2, 3, 3), "b": normal(6)}))
    samples = tuple({"x": feeds["x"] + 3} for feeds in samples_for(graph).samples)
    regions = find_regions(graph)
    statistics = observe(graph, regions.tensors, samples)
    scales = initial_scales(graph, regions, statistics, 0)
    scales.weights = {name: [3] for name in scales.weights}  # steps of an eighth: coarse
    (layer,) = regions.layers
    biases = corrected_biases(graph, regions, scales, statistics)[layer.node.name]

    weights = graph.constants[layer.node.inputs[1]]
    coarse = np.rint(weights * 8) / 8
    data = np.concatenate([feeds["x"] for feeds in samples])
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), axis=(2, 3))

    def means(kernels: Array, bias: Array) -> Array:
        parts = [
            np.einsum("nchwij,ocij->o", windows[:, 2 * group : 2 * group + 2], kernels[3 * group : 3 * group + 3])
            for group in range(2)
        ]
        return np.concatenate(parts) / (len(data) * 16) + bias

    wanted, plain = means(weights, graph.constants["b"]), means(coarse, graph.constants["b"])
    assert np.abs(plain - wanted).max() > 0.2
    assert np.abs(means(coarse, biases) - wanted).max() < 0.25 * np.abs(plain - wanted).max()


@pytest.mark.parametrize(("op", "group"), [("Conv", 1), ("Conv", 4), ("Gemm", 1)])
def test_weights_are_rounded_by_their_effect_on_the_sums(op: str, group: int) -> None:
    from hilt.network.quantize.regions import find_regions
    from hilt.network.quantize.rounding import rounded_weights
    from hilt.network.quantize.scales import initial_scales
    from hilt.network.quantize.statistics import observe

    random = np.random.default_rng(4)
    mixing = random.normal(0, 1, (12, 2)).astype(np.float32)  # twelve channels of two sources: errors can cancel
    if op == "Gemm":
        weights, shape = normal(16, 12), (1, 12)
        node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
        images = [(mixing @ random.normal(0, 1, (2, 1))).T.astype(np.float32) for _ in range(400)]
    else:
        weights, shape = normal(16, 12 // group, 3, 3), (1, 12, 8, 8)
        node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4, group=group)
        images = [np.einsum("cs,nshw->nchw", mixing, random.normal(0, 1, (1, 2, 8, 8))) for _ in range(16)]
    graph = canonical(model_of([node], {"x": shape}, {"w": weights}))
    samples = [{"x": image.astype(np.float32)} for image in images]
    regions = find_regions(graph)
    scales = initial_scales(graph, regions, observe(graph, regions.tensors, samples), 0)
    (layer,) = regions.layers
    name, values = layer.node.name, graph.constants[layer.node.inputs[1]].astype(np.float64)
    scales.weights = {name: [3]}  # coarse steps
    made = rounded_weights(graph, regions, scales, samples, uncounted("", ""))[name]
    assert made.shape == values.shape and np.abs(made - values * 8).max() > 0.5

    def noise(integers: Array) -> float:
        error = Runner(_with_weights(graph, layer.node.inputs[1], integers / 8 - values), ["y"])
        return float(np.mean([np.mean(out["y"] ** 2) for out in error.over(samples)]))

    assert noise(made) < 0.6 * noise(np.rint(values * 8))


def _with_weights(graph: Any, name: str, values: Array) -> Any:
    import copy

    made = copy.copy(graph)
    made.constants = {**graph.constants, name: values.astype(np.float32)}
    return made
