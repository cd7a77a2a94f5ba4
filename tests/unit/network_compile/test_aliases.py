"""Concat and Slice of whole blocks of channels move nothing, nor a Pad within one: tensors lie within others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.aliases import Aliases
from hilt.network.compile import Compiled, compile_network
from hilt.network.graph import Graph
from hilt.network.packed_layout import PackedLayout
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import compare, inside_of
from hilt.vta.parameters import VTAParameters
from hilt_runtime import Network, read_bundle
from hilt_runtime.bundle import BundleError

from .graphs import BATCHED, PYNQ, Builder, target
from .test_hostile_bundle import Parts

pytestmark = pytest.mark.usefixtures("quick_search")


def concat(builder: Builder, *names: str, axis: int = 1) -> str:
    shape = list(builder.tensors[names[0]].shape)
    shape[axis] = sum(builder.tensors[name].shape[axis] for name in names)
    return builder.add_node(f"concat{len(builder.nodes)}", "concat", list(names), tuple(shape), {"axis": axis})


def cut(builder: Builder, name: str, first: int, end: int) -> str:
    images, _, height, width = builder.tensors[name].shape
    attributes = {"starts": [first], "ends": [end], "axes": [1], "steps": [1]}
    return builder.add_node(
        f"cut{len(builder.nodes)}", "slice", [name], (images, end - first, height, width), attributes
    )


def padded(builder: Builder, name: str, more: int, value: int = 0) -> str:
    images, channels, height, width = builder.tensors[name].shape
    attributes = {"pads": [0, 0, 0, 0, 0, more, 0, 0], "value": value}
    return builder.add_node(
        f"pad{len(builder.nodes)}", "pad", [name], (images, channels + more, height, width), attributes
    )


def split_and_joined(images: int = 1, size: int = 7) -> Builder:
    """YOLO's block: both halves of a layer, and two more layers behind the second half, joined."""
    builder = Builder((images, 16, size, size))
    whole = builder.conv("x", 32)
    first, second = cut(builder, whole, 0, 16), cut(builder, whole, 16, 32)
    third = builder.conv(second, 16)
    builder.conv(concat(builder, first, second, third, builder.conv(third, 16, residual=third)), 24)
    return builder


def compiled(graph: Graph, parameters: str = PYNQ) -> Compiled:
    """Return a compiled network whose tensors all equal the reference's."""
    aim = target(parameters)
    made = compile_network(graph, aim)
    random = np.random.default_rng(1)
    inputs = {"x": random.integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)}
    with SimulatedVta(aim) as device:
        tensors = Network(read_bundle(made.data, "m"), device, keep=True).run(inputs).tensors
        outputs = Network(read_bundle(made.data, "m"), device).run(inputs).outputs
    expected, inside = evaluate(graph, inputs), inside_of(made.manifest)
    assert compare(tensors, expected, graph, inside).tensors == len(graph.tensors) - len(inside)
    assert all(np.array_equal(outputs[name], expected[name]) for name in graph.outputs)
    return made


def kinds(made: Compiled) -> list[str]:
    return [step["kind"] for step in made.manifest["steps"]]


@pytest.mark.slow
@pytest.mark.parametrize(("images", "parameters"), [(1, PYNQ), (4, BATCHED)])
def test_a_layer_that_is_split_and_joined_is_one_program(images: int, parameters: str) -> None:
    builder = split_and_joined(images)
    made = compiled(builder.graph(builder.nodes[-1].outputs[0]), parameters)
    assert kinds(made) == ["pack", "vta", "unpack"]
    assert len(made.manifest["programs"]) == 1


def test_the_twin_knows_where_a_tensor_lies_within_another() -> None:
    builder = split_and_joined()
    graph = builder.graph(builder.nodes[-1].outputs[0])
    aim = target()
    data = compile_network(graph, aim).data
    with SimulatedVta(aim, "rtl") as device:
        run = Network(read_bundle(data, "m"), device).run({"x": builder.input()})
    (program,) = read_bundle(data, "m").manifest["programs"]
    assert [step.cycles for step in run.steps if step.kind == "vta"] == [program["cycles"]]


def reshaped(builder: Builder, name: str, shape: tuple[int, ...]) -> str:
    return builder.add_node(f"reshape{len(builder.nodes)}", "reshape", [name], shape, {"shape": list(shape)})


@pytest.mark.parametrize(
    ("images", "parameters", "channels", "shape"),
    [(1, PYNQ, 32, (64, 1)), (1, PYNQ, 24, (4, 16)), (2, PYNQ, 16, (1, 64)), (4, BATCHED, 32, (2, 32))],
)
def test_rows_and_a_line_lie_in_one_memory(images: int, parameters: str, channels: int, shape: tuple[int, int]) -> None:
    builder = Builder((images, 16, 8, 8))
    line = reshaped(builder, builder.conv("x", channels), (images, channels, *shape))
    made = compiled(builder.graph(builder.conv(line, 16)), parameters)
    assert kinds(made) == ["pack", "vta", "unpack"]


def test_channels_that_become_rows_are_moved() -> None:
    builder = Builder((1, 16, 8, 8))
    made = compiled(builder.graph(builder.conv(reshaped(builder, builder.conv("x", 32), (1, 16, 8, 16)), 16)))
    assert kinds(made).count("cpu") == 1


@pytest.mark.parametrize("bands", [False, True])
def test_rows_of_bands_do_not_follow_one_another(bands: bool) -> None:
    """Lanes hold parts of one image then."""
    builder = Builder((1, 16, 8, 8))
    graph = builder.graph(reshaped(builder, builder.conv("x", 32), (1, 32, 16, 4)))
    aliases = Aliases(graph, PackedLayout(VTAParameters.from_name(BATCHED), bands))
    assert aliases.join(graph.nodes[-1]) is not bands


def test_a_tensor_in_two_concats_is_copied_for_the_second() -> None:
    builder = Builder((1, 16, 8, 8))
    first, second, third = (builder.conv("x", 16) for _ in range(3))
    one, two = concat(builder, first, second), concat(builder, third, first)
    made = compiled(builder.graph(builder.conv(one, 16), builder.conv(two, 16)))
    assert [step["name"] for step in made.manifest["steps"] if step["kind"] == "cpu"] == [two.removesuffix(".y")]


def test_a_concat_within_a_concat_lies_in_it() -> None:
    builder = Builder((1, 16, 8, 8))
    parts = [builder.conv("x", 16) for _ in range(3)]
    inner = concat(builder, parts[0], parts[1])
    builder.conv(concat(builder, parts[2], inner), 16)
    made = compiled(builder.graph(inner, builder.nodes[-1].outputs[0]))
    assert "cpu" not in kinds(made)


def test_a_concat_of_one_tensor_twice_is_a_copy() -> None:
    builder = Builder((1, 16, 8, 8))
    first = builder.conv("x", 16)
    made = compiled(builder.graph(concat(builder, first, first)))
    assert kinds(made).count("cpu") == 1


def test_the_first_blocks_of_a_longer_tensor_find_no_place_before_another() -> None:
    """The rest of it would lie where the other tensor lies."""
    builder = Builder((1, 16, 8, 8))
    longer, other = builder.conv("x", 32), builder.conv("x", 16)
    made = compiled(builder.graph(builder.conv(concat(builder, cut(builder, longer, 0, 16), other), 16)))
    assert kinds(made).count("cpu") == 1


def test_channels_that_fill_no_block_are_copied() -> None:
    builder = Builder((1, 16, 8, 8))
    made = compiled(builder.graph(concat(builder, builder.conv("x", 24), builder.conv("x", 24))))
    assert kinds(made).count("cpu") == 1


@pytest.mark.parametrize(("size", "joined"), [(8, True), (5, False)])
def test_what_the_processor_writes_shares_no_cache_line_with_vta(size: int, joined: bool) -> None:
    builder = Builder((1, 16, size, size))
    by_vta = builder.conv("x", 16)
    by_processor = builder.add_node("n", "upsample", ["x"], (1, 16, size, size), {"factors": [1, 1]})
    graph = builder.graph(concat(builder, by_vta, by_processor))
    assert Aliases(graph, PackedLayout(VTAParameters.from_name(PYNQ)), {by_vta}).join(graph.nodes[-1]) is joined
    assert Aliases(graph, PackedLayout(VTAParameters.from_name(PYNQ)), {by_vta, by_processor}).join(graph.nodes[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "message"),
    [
        ({"within": "tensor x"}, "is no part of the buffer that it lies within"),
        ({"within": "nothing"}, "lies within no buffer"),
        ({"within": 7}, "lies within no buffer"),
        ({"offset": 1 << 20}, "is no part of the buffer"),
        ({"separate": 0}, "is no part of the buffer"),
    ],
)
def test_a_tensor_that_lies_elsewhere_is_refused(window: dict[str, Any], message: str) -> None:
    builder = split_and_joined()
    parts = Parts(compile_network(builder.graph(builder.nodes[-1].outputs[0]), target()).data)
    (name, *_) = (name for name, buffer in parts.manifest["buffers"].items() if "within" in buffer)
    parts.manifest["buffers"][name].update(window)
    with pytest.raises(BundleError, match=message):
        read_bundle(parts.file(), "m")


def test_a_tensor_within_a_buffer_of_no_lanes_is_refused() -> None:
    builder = split_and_joined()
    parts = Parts(compile_network(builder.graph(builder.nodes[-1].outputs[0]), target()).data)
    buffers = parts.manifest["buffers"]
    within = next(buffer for buffer in buffers.values() if "within" in buffer)
    whole = buffers.pop(within["within"])
    buffers[within["within"]] = {**whole, "shape": [*whole["shape"][:4], 0, 0]}  # it comes behind the tensor
    with pytest.raises(BundleError, match="has shape"):
        read_bundle(parts.file(), "m")


def test_channels_of_zeros_are_there_as_far_as_the_last_block_goes() -> None:
    """BlazeFace's residuals: 22 channels become 26 and 30, a maximum between, and data more than the block has."""
    builder = Builder((1, 16, 8, 8))
    first = builder.conv("x", 22)
    second = builder.conv(first, 26, residual=padded(builder, first, 4))
    attributes = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    least = builder.add_node("least", "max_pool", [second], (1, 26, 4, 4), attributes)
    third = builder.conv(second, 30, stride=2, residual=padded(builder, least, 4))
    deeper = padded(builder, third, 18)
    graph = builder.graph(builder.conv(deeper, 48, residual=deeper))
    steps = [step["name"] for step in compiled(graph).manifest["steps"] if step["kind"] == "cpu"]
    assert steps == [deeper.removesuffix(".y")]


@pytest.mark.parametrize("changes", [{"clip": [3, 90]}, {"residual": "x", "clip": [-128, 127]}, {"value": 1}])
def test_lanes_that_may_be_no_zeros_are_written(changes: dict[str, Any]) -> None:
    builder = Builder((1, 24, 5, 6))
    value = changes.pop("value", 0)
    first = builder.conv("x", 24, **changes)
    graph = builder.graph(builder.conv(first, 28, residual=padded(builder, first, 4, value)))
    assert "cpu" in [step["kind"] for step in compiled(graph).manifest["steps"]]
