"""Compiled networks on the golden model and on the RTL: every tensor is the reference's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network import packed_steps
from hilt.network.compile import UnplaceableError, compile_network
from hilt.network.graph import Graph, GraphError, Node, Tensor
from hilt.network.images_at_once import with_images
from hilt.network.layers import VtaLayer, layer_of
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import WrongTensorError, compare
from hilt.simulator.build import Form
from hilt_runtime import InferenceError, InputError, MemoryNeededError, Network, TargetError, read_bundle
from hilt_runtime.manifest import PACKED
from hilt_runtime.native.library import Engine

from .graphs import BATCHED, PYNQ, SMALL, Builder, residual_network, target

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs networks on the golden model


def verified(graph: Graph, data: np.ndarray, parameters: str = PYNQ, form: Form = "golden") -> list[str]:
    """Compile, run with all tensors kept, compare; the nodes that VTA ran."""
    aim = target(parameters)
    compiled = compile_network(graph, aim)
    with SimulatedVta(aim, form) as device:
        inference = Network(read_bundle(compiled.data, "model.hilt"), device, keep=True).run({"x": data})
    assert compare(inference.tensors, evaluate(graph, {"x": data}), graph).tensors == len(graph.tensors)
    return [placement.node.name for placement in compiled.placements if placement.on_vta]


@pytest.mark.parametrize("parameters", [PYNQ, SMALL, BATCHED])
def test_a_residual_network_is_exact_on_each_geometry(parameters: str) -> None:
    builder = residual_network()
    graph = builder.graph(builder.nodes[-1].outputs[0])
    on_vta = verified(graph, builder.input(), parameters)
    assert on_vta == [node.name for node in graph.nodes if node.op != "reshape"]


def test_both_engines_give_the_same_bits_in_every_inference() -> None:
    builder = residual_network()
    aim = target()
    bundle = read_bundle(compile_network(builder.graph(builder.nodes[-1].outputs[0]), aim).data, "m")
    with SimulatedVta(aim) as device:
        native, numpy = Network(bundle, device), Network(bundle, device, engine=Engine(None, "numpy: asked for"))
        for seed in range(3):
            inputs = {"x": np.random.default_rng(seed).integers(-128, 128, builder.input().shape).astype(np.int8)}
            given, wanted = native.run(inputs), numpy.run(inputs)
            assert [step.name for step in given.steps] == [step.name for step in wanted.steps]
            assert all(step.began <= step.ended for step in given.steps)
            for name, value in wanted.outputs.items():
                np.testing.assert_array_equal(given.outputs[name], value)
        assert set(numpy.engines().values()) == {"numpy: asked for"}


def test_layers_beyond_an_instruction_buffer_are_several_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fallback schedules of a large network have more instructions than VTA reads from one address."""
    builder = residual_network()
    graph = builder.graph(builder.nodes[-1].outputs[0])
    (whole,) = compile_network(graph, target()).manifest["programs"]
    monkeypatch.setattr("hilt.network.linked.MAX_IMAGE_BYTES", 16 * whole["count"] // 2)
    counts = [program["count"] for program in compile_network(graph, target()).manifest["programs"]]
    assert len(counts) > 1 and max(counts) <= whole["count"] // 2
    verified(graph, builder.input())


@pytest.mark.rtl
def test_the_rtl_counts_the_twins_cycles() -> None:
    builder = residual_network()
    graph = builder.graph(builder.nodes[-1].outputs[0])
    aim = target(SMALL)
    compiled = compile_network(graph, aim)
    data = builder.input()
    with SimulatedVta(aim, "rtl") as device:
        inference = Network(read_bundle(compiled.data, "m"), device, keep=True).run({"x": data})
    compare(inference.tensors, evaluate(graph, {"x": data}), graph)
    counted = [step.cycles for step in inference.steps if step.kind == "vta"]
    assert counted == [program["cycles"] for program in compiled.manifest["programs"]]


@pytest.mark.parametrize("shift", [0, 3, 6, 7, 10, 16])
def test_a_residual_of_any_shift_is_added_exactly(shift: int) -> None:
    builder = Builder((1, 32, 9, 7), seed=shift)
    first = builder.conv("x", 32)
    last = builder.conv(first, 32, residual=first, residual_shift=shift)
    assert verified(builder.graph(last), builder.input()) == ["conv0", "conv1"]


@pytest.mark.parametrize(("channels", "groups"), [(16, 16), (24, 24), (8, 8), (32, 4), (32, 2), (40, 5), (36, 9)])
def test_grouped_convolutions_are_exact(channels: int, groups: int) -> None:
    builder = Builder((1, channels, 8, 8))
    graph = builder.graph(builder.conv(builder.conv("x", channels, groups=groups), channels, 1))
    assert verified(graph, builder.input()) == ["conv0", "conv1"]


def test_dilated_kernels_are_exact() -> None:
    builder = Builder((1, 16, 11, 11))
    assert verified(builder.graph(builder.conv("x", 16, dilation=2)), builder.input()) == ["conv0"]


@pytest.mark.parametrize(("left", "right"), [(0, 0), (2, 0), (1, 7), (6, 3)])
def test_an_add_is_an_identity_convolution_with_a_residual(left: int, right: int) -> None:
    builder = Builder((1, 20, 24, 24))
    first = builder.conv("x", 20, 1)
    attributes = {"left_shifts": [left, right], "shift": 2, "clip": [-128, 127]}
    added = builder.add_node("sum", "add", ["x", first], (1, 20, 24, 24), attributes)
    graph = builder.graph(builder.conv(added, 20, 1))  # behind the last layer the processor would add
    assert verified(graph, builder.input()) == ["conv0", "sum", "conv2"]


@pytest.mark.parametrize("parameters", [PYNQ, SMALL, BATCHED])
@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "size"),
    [
        ((3, 3), (2, 2), (1, 1, 1, 1), (14, 14)),
        ((2, 2), (2, 2), (0, 0, 0, 0), (9, 11)),
        ((3, 2), (1, 2), (1, 0, 1, 0), (7, 8)),
        ((5, 5), (3, 3), (2, 2, 2, 2), (13, 10)),
    ],
)
def test_max_pooling_is_exact(
    parameters: str, kernel: tuple[int, int], stride: tuple[int, int], pads: tuple[int, ...], size: tuple[int, int]
) -> None:
    builder = Builder((1, 24, *size))
    positive = builder.conv("x", 24, 1, clip=[0, 127])
    out = [(size[axis] + pads[axis] + pads[axis + 2] - kernel[axis]) // stride[axis] + 1 for axis in (0, 1)]
    attributes = {"kernel": list(kernel), "strides": list(stride), "pads": list(pads)}
    graph = builder.graph(builder.add_node("pool", "max_pool", [positive], (1, 24, *out), attributes))
    assert verified(graph, builder.input(), parameters) == ["conv0", "pool"]


def test_a_pooling_of_one_tile_takes_no_more_than_its_place() -> None:
    builder = Builder((1, 16, 1, 40))
    pooled = builder.conv("x", 16, 1)
    attributes = {"kernel": [1, 2], "strides": [1, 2], "pads": [0, 0, 0, 0]}
    pooled = builder.add_node("pool", "max_pool", [pooled], (1, 16, 1, 20), attributes)
    graph = builder.graph(builder.conv(pooled, 16, 1))
    assert verified(graph, builder.input()) == ["conv0", "pool", "conv2"]


def test_a_mean_whose_row_does_not_fit_on_chip_is_a_convolution_of_ones() -> None:
    builder = Builder((1, 16, 2, 4096))
    attributes = {"kernel": [2, 2], "strides": [2, 2], "pads": [0] * 4, "divisor": 1, "shift": 2, "clip": [-128, 127]}
    attributes["offset"] = -60
    graph = builder.graph(builder.add_node("pool", "average_pool", ["x"], (1, 16, 1, 2048), attributes))
    assert isinstance(layer_of(graph, graph.nodes[0], target().accelerator), VtaLayer)
    assert verified(graph, builder.input()) == ["pool"]


@pytest.mark.parametrize("parameters", [PYNQ, SMALL])
def test_a_mean_without_its_padding_is_computed_where_its_data_lies(parameters: str) -> None:
    builder = Builder((1, 40, 9, 7))
    attributes = {"kernel": [3, 3], "strides": [1, 1], "pads": [1] * 4, "divisor": 0, "shift": 0, "clip": [-128, 127]}
    pooled = builder.add_node("pool", "average_pool", [builder.conv("x", 40, 1)], (1, 40, 9, 7), attributes)
    graph = builder.graph(builder.conv(pooled, 8, 1))
    assert verified(graph, builder.input(), parameters) == ["conv0", "conv2"]


@pytest.mark.parametrize("parameters", [PYNQ, SMALL])
@pytest.mark.parametrize(
    ("size", "factors"), [((5, 7), (2, 2)), ((1, 9), (3, 1)), ((4, 1), (1, 4)), ((20, 20), (2, 2))]
)
def test_upsampling_is_exact(parameters: str, size: tuple[int, int], factors: tuple[int, int]) -> None:
    builder = Builder((1, 40, *size))
    shape = (1, 40, size[0] * factors[0], size[1] * factors[1])
    larger = builder.add_node("larger", "upsample", [builder.conv("x", 40, 1)], shape, {"factors": list(factors)})
    graph = builder.graph(builder.conv(larger, 8, 1))
    assert verified(graph, builder.input(), parameters) == ["conv0", "larger", "conv2"]


@pytest.mark.parametrize("parameters", [PYNQ, SMALL])
@pytest.mark.parametrize(
    ("size", "factors", "centred"), [((5, 7), (2, 2), 1), ((1, 9), (2, 1), 0), ((4, 1), (1, 4), 1), ((9, 8), (4, 2), 1)]
)
def test_an_interpolation_is_exact(
    parameters: str, size: tuple[int, int], factors: tuple[int, int], centred: int
) -> None:
    builder = Builder((1, 40, *size))
    shape = (1, 40, size[0] * factors[0], size[1] * factors[1])
    attributes = {"factors": list(factors), "centred": centred}
    larger = builder.add_node("larger", "interpolate", [builder.conv("x", 40, 1)], shape, attributes)
    graph = builder.graph(builder.conv(larger, 8, 1))
    assert verified(graph, builder.input(), parameters) == ["conv0", "larger", "conv2"]


@pytest.mark.parametrize(("kernel", "stride", "channels"), [(7, 2, 3), (3, 1, 3), (5, 3, 1), (3, 2, 5)])
def test_a_first_layer_with_its_kernels_columns_as_channels_is_exact(kernel: int, stride: int, channels: int) -> None:
    builder = Builder((1, channels, 19, 22))
    graph = builder.graph(builder.conv("x", 16, kernel, stride=stride))
    compiled = compile_network(graph, target())
    assert [step["name"] for step in compiled.manifest["steps"]] == ["fold x", "vta 0", "unpack conv0.y"]
    assert verified(graph, builder.input()) == ["conv0"]


@pytest.mark.parametrize(("channels", "more"), [(24, 12), (32, 16), (12, 40)])
@pytest.mark.parametrize("parameters", [PYNQ, SMALL])
def test_data_with_more_blocks_of_zeros_stays_packed(channels: int, more: int, parameters: str) -> None:
    builder = Builder((1, 16, 9, 7))
    first = builder.conv("x", channels)
    pads = {"pads": [0, 0, 0, 0, 0, more, 0, 0], "value": 0}
    wide = builder.add_node("wide", "pad", [first], (1, channels + more, 9, 7), pads)
    graph = builder.graph(builder.conv(wide, channels))
    steps = [step["kind"] for step in compile_network(graph, target(parameters)).manifest["steps"]]
    assert steps == ["pack", "vta", "cpu", "vta", "unpack"]
    verified(graph, builder.input(), parameters)


@pytest.mark.parametrize("parameters", [PYNQ, BATCHED])
@pytest.mark.parametrize("residual", [False, True])
def test_each_channel_block_may_have_a_shift_of_its_own(parameters: str, residual: bool) -> None:
    builder = Builder((8, 48, 10, 6))
    shifts = [7] * 16 + [9] * 16 + [8] * 16
    extra = {"residual": "x", "residual_shift": 7} if residual else {}
    graph = builder.graph(builder.conv("x", 48, shift=shifts, **extra))
    assert verified(graph, builder.input(), parameters) == ["conv0"]


def test_shifts_that_differ_within_a_block_are_left_to_the_processor_and_said() -> None:
    builder = Builder((1, 16, 6, 6))
    graph = builder.graph(builder.conv("x", 4, shift=[7, 8, 7, 8]))
    assert verified(graph, builder.input()) == []
    (placement,) = compile_network(graph, target()).placements
    assert placement.reason == "its shift differs within 16 channels, which VTA shifts as one"


def test_memory_is_shared_between_tensors_that_are_never_alive_together() -> None:
    builder = Builder((1, 16, 16, 16))
    name = "x"
    for _ in range(6):
        name = builder.conv(name, 16)
    graph = builder.graph(name)
    aim = target()
    compiled = compile_network(graph, aim)
    assert compiled.manifest["memory"]["activations"] == 2 * 16 * 16 * 16
    assert compiled.manifest["memory"]["separate"] == 7 * 16 * 16 * 16
    data = builder.input()
    with SimulatedVta(aim) as device:
        output = Network(read_bundle(compiled.data, "m"), device)(data)
    assert np.array_equal(output, evaluate(graph, {"x": data})[name])


def test_the_same_network_makes_the_same_bytes() -> None:
    builder = residual_network()
    graph = builder.graph(builder.nodes[-1].outputs[0])
    assert compile_network(graph, target()).data == compile_network(graph, target()).data


def test_a_wrong_tensor_is_named_with_both_values() -> None:
    expected = {"a": np.zeros((2, 2), np.int8), "b": np.zeros(3, np.int8)}
    tensors = {name: Tensor(name, array.shape, "int8") for name, array in expected.items()}
    graph = Graph("two", ("a",), ("b",), (), tensors, {})
    with pytest.raises(
        WrongTensorError,
        match=r"tensor b differs .* in 1 of 3 elements, the first at \(1,\): the board has 4, the reference 0",
    ):
        compare({"a": expected["a"], "b": np.array([0, 4, 0], np.int8)}, expected, graph)
    with pytest.raises(WrongTensorError, match="no tensor b"):
        compare({"a": expected["a"]}, expected, graph)


# --- refusals ---


def small_network(parameters: str = PYNQ) -> tuple[bytes, Builder]:
    builder = Builder((1, 16, 8, 8))
    graph = builder.graph(builder.conv("x", 16))
    return compile_network(graph, target(parameters)).data, builder


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"x": np.zeros((1, 16, 8, 9), np.int8)},
            r"input x is int8 \(1, 16, 8, 9\), the network takes int8 \(1, 16, 8, 8\)",
        ),
        ({"x": np.zeros((1, 16, 8, 8), np.float32)}, r"input x is float32 .*, the network takes int8"),
        ({}, "input x was not given"),
        ({"x": np.zeros((1, 16, 8, 8), np.int8), "z": np.zeros(1)}, "has no input z"),
    ],
)
def test_another_input_is_refused(given: dict[str, np.ndarray], message: str) -> None:
    data, _ = small_network()
    with SimulatedVta(target()) as device, pytest.raises(InputError, match=message):
        Network(read_bundle(data, "m"), device).run(given)


def test_another_accelerator_is_refused_with_both_values() -> None:
    data, _ = small_network(PYNQ)
    with (
        SimulatedVta(target(SMALL)) as device,
        pytest.raises(TargetError, match=f"m is for parameters {PYNQ}, this board has {SMALL}"),
    ):
        Network(read_bundle(data, "m"), device)


@pytest.mark.parametrize(("feature", "name"), [("table", "a table before the store"), ("window", "window GEMMs")])
def test_a_bundle_that_names_a_feature_is_refused_where_there_is_none(feature: str, name: str) -> None:
    data, _ = small_network()
    aim = target()
    public = replace(aim, accelerator=replace(aim.accelerator, **{feature: False}))
    plain, using = read_bundle(data, "m"), read_bundle(data, "m")
    using.manifest["target"][feature] = True
    assert feature not in plain.manifest["target"]
    with SimulatedVta(public) as device:
        Network(plain, device)
        with pytest.raises(TargetError, match=f"m is for an accelerator with {name}, this board has none"):
            Network(using, device)
    with SimulatedVta(aim) as device:
        Network(using, device)


def test_another_bitstream_is_refused_with_both_values() -> None:
    builder = Builder((1, 16, 8, 8))
    aim = target()
    data = compile_network(builder.graph(builder.conv("x", 16)), type(aim)(**{**vars(aim), "bitstream": "a" * 64})).data
    with SimulatedVta(aim) as device:
        device.bitstream = "b" * 64
        with pytest.raises(TargetError, match="m is for bitstream aaaaaaaaaaaa, this board has bbbbbbbbbbbb"):
            Network(read_bundle(data, "m"), device)


def test_too_little_memory_is_said_in_bytes() -> None:
    data, _ = small_network()
    with (
        SimulatedVta(target(), memory_bytes=8192) as device,
        pytest.raises(
            MemoryNeededError, match=r"needs 16384 bytes of contiguous memory, 8192 bytes are free \(\d+ bytes in all\)"
        ),
    ):
        Network(read_bundle(data, "m"), device)


def test_a_program_that_does_not_finish_ends_the_inference() -> None:
    data, builder = small_network()
    bundle = read_bundle(data, "m")
    bundle.manifest["programs"][0]["limit_seconds"] = 1e-6
    with (
        SimulatedVta(target(), "rtl") as device,
        pytest.raises(InferenceError, match="VTA did not finish vta 0: no FINISH") as failed,
    ):
        Network(bundle, device).run({"x": builder.input()})
    assert failed.value.outcome == "timeout"


def test_a_node_that_neither_side_computes_is_refused_by_its_name() -> None:
    builder = Builder((1, 16, 4, 4))
    graph = builder.graph(builder.add_node("odd", "Wavelet", ["x"], (1, 16, 4, 4), {}))
    with pytest.raises(UnplaceableError, match="^node odd is Wavelet, which neither VTA nor hilt's runtime computes"):
        compile_network(graph, target())


def test_the_host_plans_on_packed_tensors_as_the_board_takes_them() -> None:
    assert set(packed_steps.OPERATORS) == PACKED


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("softmax", {"axis": -2, "scale": 1.0, "logarithm": 0, "shape": [1, 16]}),
        ("pad", {"pads": [1, 0, 0, 0], "value": 0}),
        ("concat", {"axis": 0}),
    ],
)
def test_images_that_a_node_mixes_are_not_put_beside_each_other(op: str, attributes: dict[str, Any]) -> None:
    tensors = {name: Tensor(name, (1, 16), "int8", 1.0) for name in ("x", "y")}
    graph = Graph("g", ("x",), ("y",), (Node("n", op, ("x",), ("y",), attributes),), tensors, {})
    with pytest.raises(GraphError, match="works along the images"):
        with_images(graph, 2)
