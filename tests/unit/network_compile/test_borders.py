"""Convolutions with a constant around their data: VTA pads with zeros and adds the rest; the reference really pads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network.compile import Compiled, UnplaceableError, compile_network
from hilt.network.constant_borders import with_borders
from hilt.network.graph import PAD_VALUE, Graph, Node, check
from hilt.network.layers import VtaLayer, layer_of
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.target import CompileTarget
from hilt.network.verify import compare, inside_of
from hilt.schedule import border, space_for
from hilt.schedule.border import border_of
from hilt.vta.isa import INSTRUCTION, Opcode
from hilt_runtime import Network, read_bundle

from .graphs import BATCHED, PYNQ, SMALL, Builder, banded, target

pytestmark = pytest.mark.usefixtures("quick_search")

_SCHEDULES = 6


def convolution(
    shape: tuple[int, int, int], channels: int, kernel: int, pads: Sequence[int], value: int = -128, **more: Any
) -> Graph:
    """Return a Pad of a layer's output, and a convolution of it."""
    builder = Builder((1, *shape), 3)
    made = builder.conv("x", shape[0], 1)
    whole = padded(builder, made, pads, value)
    return builder.graph(valid(builder, whole, channels, kernel, **more))


def padded(builder: Builder, data: str, pads: Sequence[int], value: int) -> str:
    top, left, bottom, right = pads
    images, channels, height, width = builder.tensors[data].shape
    attributes = {"pads": [0, 0, top, left, 0, 0, bottom, right], "value": value}
    shape = (images, channels, height + top + bottom, width + left + right)
    return builder.add_node(f"pad{len(builder.nodes)}", "pad", [data], shape, attributes)


def valid(builder: Builder, data: str, channels: int, kernel: int, dilation: int = 1, **more: Any) -> str:
    """Add a convolution without pads of its own."""
    output = builder.conv(data, channels, kernel, dilation=dilation, pads=[0] * 4, **more)
    height, width = builder.tensors[data].shape[2:]
    stride, reach = more.get("stride", 1), (kernel - 1) * dilation
    shape = (1, channels, (height - reach - 1) // stride + 1, (width - reach - 1) // stride + 1)
    builder.tensors[output] = replace(builder.tensors[output], shape=shape)
    return output


def with_residual(shift: int) -> Graph:
    builder = Builder((1, 16, 9, 7), 3)
    made = builder.conv("x", 24, 1)
    whole = padded(builder, made, (1, 1, 1, 1), -128)
    return builder.graph(valid(builder, whole, 24, 3, residual=made, residual_shift=shift))


def of_the_input(channels: int, kernel: int, stride: int) -> Graph:
    """Return a first layer, whose data the processor packs: taps become channels."""
    builder = Builder((1, channels, 18, 21), 3)
    whole = padded(builder, "x", (1, 1, 1, 1), 37)
    return builder.graph(valid(builder, whole, 16, kernel, stride=stride))


def with_bias(bias: int, clip: Sequence[int]) -> Graph:
    graph = convolution((16, 12, 10), 24, 3, (1, 1, 1, 1), clip=list(clip))
    graph.constants["conv2.b"][:] = bias
    return graph


FORMS: Mapping[str, Graph] = {
    "of whole edges": convolution((16, 12, 10), 24, 3, (1, 1, 1, 1)),
    "with a stride, padded behind": convolution((16, 12, 12), 16, 3, (0, 0, 1, 1), stride=2),
    "with a stride over odd rows": convolution((8, 9, 13), 16, 3, (1, 1, 1, 1), 100, stride=2),
    "of five": convolution((16, 11, 9), 16, 5, (2, 2, 2, 2), -7),
    "of an even kernel": convolution((8, 10, 6), 8, 2, (1, 1, 0, 0), 5),
    "on one side": convolution((16, 8, 8), 16, 3, (0, 2, 0, 0)),
    "with holes": convolution((16, 12, 9), 16, 3, (2, 2, 2, 2), dilation=2),
    "of one row": convolution((16, 1, 12), 16, 3, (1, 1, 1, 1)),
    "of a kernel that sees all": convolution((16, 2, 2), 16, 3, (1, 1, 1, 1)),
    "of three columns, far apart": convolution((8, 5, 3), 8, 3, (1, 1, 1, 1), -128, stride=2),
    "by channel": convolution((32, 11, 9), 32, 3, (1, 1, 1, 1), groups=32),
    "by channel with a stride": convolution((24, 12, 12), 24, 3, (0, 0, 1, 1), groups=24, stride=2),
    "in groups": convolution((16, 8, 8), 32, 3, (1, 1, 1, 1), groups=2),
    "with shifts by block": convolution((16, 8, 6), 32, 3, (1, 1, 1, 1), shift=[7] * 16 + [9] * 16),
    "with a residual": with_residual(5),
    "with a residual shifted further": with_residual(8),
    "with a bias that is no product": with_bias(-(1 << 18), (0, 127)),
    "with a bias above the clip": with_bias(1 << 18, (-128, 127)),
    "of the input's columns": of_the_input(3, 3, 1),
    "of the input's taps": of_the_input(1, 3, 2),
    "wide, whose product is a bias": convolution((16, 24, 20), 16, 3, (1, 1, 1, 1)),
}
TARGETS: Mapping[str, CompileTarget] = {
    "1x16": target(PYNQ),
    "1x8, small": target(SMALL),
    "4x8": target(BATCHED),
    "4x8 in bands": replace(banded(target(BATCHED)), bands=True),
}


def run(graph: Graph, aim: CompileTarget, compiled: Compiled) -> None:
    """Run a bundle on the golden model and compare each tensor with the reference of the graph, Pads and all."""
    inputs = {"x": np.random.default_rng(8).integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)}
    bundle = read_bundle(compiled.data, "m")
    with SimulatedVta(aim) as device:
        inference = Network(bundle, device, keep=True).run(inputs)
    compare(inference.tensors, evaluate(graph, inputs), graph, inside_of(bundle.manifest))


def on_processor(compiled: Compiled) -> list[str]:
    return [placement.node.op for placement in compiled.placements if not placement.on_vta]


@pytest.mark.slow
@pytest.mark.parametrize("aim", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_every_tensor_is_that_of_a_real_pad(form: str, aim: str) -> None:
    compiled = compile_network(FORMS[form], TARGETS[aim])
    assert "pad" not in on_processor(compiled)
    run(FORMS[form], TARGETS[aim], compiled)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["of whole edges", "with a residual", "of five", "with shifts by block"])
@pytest.mark.parametrize("aim", ["1x16", "4x8"])
def test_whatever_the_schedule(form: str, aim: str) -> None:
    graph, accelerator = FORMS[form], TARGETS[aim].accelerator
    node = with_borders(graph).nodes[-1]
    layer = layer_of(graph, node, accelerator)
    assert isinstance(layer, VtaLayer)
    space = space_for(layer.workload, accelerator)
    tried = 0
    for index in np.random.default_rng(2).permutation(len(space)).tolist():
        knobs = space.knobs_at(index)
        compiled = compile_network(graph, TARGETS[aim], by_node={node.name: [knobs]})
        schedule = compiled.placements[-1].schedule
        if schedule is not None and schedule.origin == "tuned":
            run(graph, TARGETS[aim], compiled)
            tried += 1
        if tried == _SCHEDULES:
            break
    assert tried == _SCHEDULES


@pytest.mark.slow
def test_a_border_without_room_on_chip_stays_a_pad() -> None:
    """The border takes 24 parts for each of 64 blocks of channels: more accumulators than there are."""
    graph = convolution((8, 8, 8), 512, 5, (2, 2, 2, 2))
    compiled = compile_network(graph, TARGETS["1x8, small"])
    assert on_processor(compiled) == ["pad"]


def test_another_reader_of_the_padded_tensor_keeps_it() -> None:
    builder = Builder((1, 8, 6, 6), 3)
    whole = padded(builder, "x", (1, 1, 1, 1), 3)
    made = valid(builder, whole, 8, 3)
    for graph in (builder.graph(made, whole), builder.graph(made, valid(builder, made, 8, 3))):
        kept = [node.op for node in with_borders(graph).nodes]
        assert ("pad" in kept) == (whole in graph.outputs)
    pool = {"kernel": [2, 2], "strides": [2, 2], "pads": [0] * 4}
    graph = builder.graph(made, builder.add_node("pool", "max_pool", [whole], (1, 8, 4, 4), pool))
    assert with_borders(graph) is graph


def test_pads_of_channels_or_beside_own_pads_stay() -> None:
    builder = Builder((1, 8, 6, 6), 3)
    deep = builder.add_node("deep", "pad", ["x"], (1, 16, 6, 6), {"pads": [0, 8, 0, 0, 0, 0, 0, 0], "value": 1})
    wide = padded(builder, deep, (1, 1, 1, 1), 3)
    graph = builder.graph(builder.conv(wide, 8, 3))
    assert with_borders(graph) is graph


def test_several_layers_read_one_padded_tensor() -> None:
    builder = Builder((1, 8, 6, 6), 3)
    whole = padded(builder, builder.conv("x", 8, 1), (1, 1, 1, 1), -128)
    graph = builder.graph(valid(builder, whole, 8, 3), valid(builder, whole, 16, 3))
    made = with_borders(graph)
    check(made)
    assert [node.attributes.get(PAD_VALUE) for node in made.nodes] == [None, -128, -128]
    assert whole not in made.tensors
    inputs = {"x": builder.input()}
    before, after = evaluate(graph, inputs), evaluate(made, inputs)
    assert all(np.array_equal(before[name], after[name]) for name in graph.outputs)


def test_a_border_that_the_caller_wrote_and_vta_has_no_room_for_has_no_place() -> None:
    graph = with_borders(convolution((8, 8, 8), 512, 5, (2, 2, 2, 2)))
    with pytest.raises(UnplaceableError, match="has no place on VTA, and no other processor runs it"):
        compile_network(graph, TARGETS["1x8, small"])


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_the_parts_are_those_that_an_image_in_a_frame_of_the_constant_makes(lanes: int) -> None:
    """An image of zeros in a frame of the constant: each output is the part that it lacks."""
    graph = with_borders(FORMS["with a stride over odd rows"])
    node = graph.nodes[-1]
    layer = layer_of(graph, node, TARGETS["1x8, small"].accelerator)
    assert isinstance(layer, VtaLayer)
    border = border_of(layer.workload, layer.weights, 100, lanes)
    assert border is not None
    plain = Node(
        "plain", "conv2d", (node.inputs[0], node.inputs[1], ""), node.outputs, {**node.attributes, "shift": [0]}
    )
    zeros = np.zeros(graph.tensors[node.inputs[0]].shape, np.int8)
    wanted = evaluate_sums(graph, plain, zeros)
    found = np.zeros((*border.kinds.shape, lanes, 16), np.int64)
    found[border.kinds >= 0] = border.parts[border.kinds[border.kinds >= 0]].reshape(-1, lanes, 16)
    rows = found.transpose(2, 0, 1, 3).reshape(-1, found.shape[1], 16)[: wanted.shape[1]]
    np.testing.assert_array_equal(rows.transpose(2, 0, 1), wanted)


def evaluate_sums(graph: Graph, node: Node, data: np.ndarray[Any, np.dtype[np.int8]]) -> np.ndarray[Any, Any]:
    """Return the sums (CO, H, W) of a convolution of data with the constant around it."""
    top, left, bottom, right = node.attributes["pads"]
    whole = np.pad(data[0].astype(np.int64), ((0, 0), (top, bottom), (left, right)), constant_values=100)
    weights, stride = graph.constants[node.inputs[1]].astype(np.int64), node.attributes["strides"][0]
    windows = np.lib.stride_tricks.sliding_window_view(whole, weights.shape[2:], axis=(1, 2))
    return np.einsum("chwij,ocij->ohw", windows[:, ::stride, ::stride], weights)


def test_a_tile_begins_with_the_first_shift_or_clip_before_its_stores() -> None:
    """A sum of tensors in front of it has no immediate; a tile that is stored in parts is one."""
    gemm, added, shift, store = (Opcode.GEMM, 0), (Opcode.ALU, 0), (Opcode.ALU, 1), (Opcode.STORE, 0)
    stream = [gemm, added, shift, shift, store, store, gemm, shift, store, added, shift, added, shift, store]
    records = np.zeros(len(stream), INSTRUCTION)
    records["opcode"], records["use_imm"] = np.array(stream).T
    assert list(border._tiles(records)) == [(2, [4, 5]), (7, [8]), (12, [13])]
