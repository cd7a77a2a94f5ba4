"""Residuals that are padded with blocks of channels of zeros: layers read the blocks in front, and nothing pads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.compile import Compiled, UnplaceableError, compile_network
from hilt.network.graph import Graph, check
from hilt.network.layers import NotOnVtaError, VtaLayer, layer_of
from hilt.network.lower_layer import bias_constants
from hilt.network.network_view import network_view
from hilt.network.packed_layout import PackedLayout
from hilt.network.predicted import predicted_profile
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.skip_blocks import lacks_blocks, with_given_blocks
from hilt.network.target import CompileTarget
from hilt.network.verify import compare, inside_of
from hilt.schedule.code import Code
from hilt.schedule.fused import alone
from hilt.schedule.residual import IDENTITY, RESIDUAL, identity_blocks
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import Opcode
from hilt.vta.layout import pack_weights
from hilt_runtime import Network, layout, read_bundle

from .graphs import BATCHED, PYNQ, SMALL, Builder, banded, target
from .schedules import schedules_of
from .test_aliases import concat, cut, padded

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs programs on the golden model

_POOL = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
_PROGRAMS = 24
"""Schedules of a layer that are run."""


def added(builder: Builder, skip: str, more: int, **attributes: Any) -> str:
    """Add a layer whose residual is a tensor with channels of zeros; return its output."""
    whole = padded(builder, skip, more)
    return builder.conv("x", builder.tensors[whole].shape[1], 1, residual=whole, **attributes)


def of_a_layer(channels: int, more: int, images: int = 1, size: int = 7, **attributes: Any) -> Graph:
    builder = Builder((images, 16, size, 6))
    return builder.graph(
        builder.conv(added(builder, builder.conv("x", channels), more, **attributes), 24, min(size, 3))
    )


def of_a_maximum(channels: int, more: int) -> Graph:
    """BlazeFace's stride: the skip connection is a maximum with more channels."""
    builder = Builder((1, 16, 8, 8))
    first = builder.conv("x", channels)
    least = builder.add_node("least", "max_pool", [first], (1, channels, 4, 4), _POOL)
    made = builder.conv(first, channels + more, stride=2, residual=padded(builder, least, more))
    return builder.graph(builder.conv(made, 24))


def of_the_input() -> Graph:
    builder = Builder((1, 16, 7, 6))
    return builder.graph(builder.conv(added(builder, "x", 32), 24))


def of_the_input_of_no_whole_blocks() -> Graph:
    builder = Builder((1, 12, 7, 6))
    return builder.graph(builder.conv(added(builder, "x", 32), 24))


def of_the_processor() -> Graph:
    builder = Builder((1, 16, 8, 8))
    mean = {"kernel": [3, 3], "strides": [1, 1], "pads": [1] * 4, "divisor": 9, "shift": 0, "clip": [-128, 127]}
    return builder.graph(added(builder, builder.add_node("mean", "average_pool", ["x"], (1, 16, 8, 8), mean), 20))


def that_several_read() -> Graph:
    """The source has another reader behind all, and the padded tensor is two layers' residual."""
    builder = Builder((1, 16, 7, 6))
    first = builder.conv("x", 32)
    whole = padded(builder, first, 20)
    second, third = builder.conv("x", 52, residual=whole), builder.conv(first, 52, 1, residual=whole, residual_shift=3)
    last = builder.conv(third, 32, residual=builder.conv(second, 32), residual_shift=3)
    return builder.graph(builder.conv(last, 32, residual=first))


def of_a_part() -> Graph:
    """The source is one operand of a Concat, written where that lies; another one is a Slice of it."""
    builder = Builder((1, 16, 7, 6))
    first, second = builder.conv("x", 32), builder.conv("x", 16)
    both = concat(builder, second, first)
    one = added(builder, first, 24)
    two = added(builder, cut(builder, both, 16, 32), 40)
    return builder.graph(builder.conv(both, 16), builder.conv(one, 16), builder.conv(two, 16))


def step_by_step() -> Graph:
    """Channels grow within blocks and beyond them, each sum the next one's skip connection."""
    builder = Builder((1, 16, 7, 6))
    made = builder.conv("x", 22)
    for more in (4, 14, 8, 22):
        made = added(builder, made, more)
    return builder.graph(made)


FORMS: Mapping[str, Graph] = {
    "of whole blocks": of_a_layer(32, 20),
    "of a part of a block": of_a_layer(24, 28),
    "of lanes that are no zeros": of_a_layer(24, 28, clip=[3, 90]),
    "shifted further": of_a_layer(16, 48, residual_shift=8),
    "with shifts by block": of_a_layer(16, 32, shift=[7] * 16 + [9] * 32),
    "of five images": of_a_layer(24, 40, images=5),
    "of one row": of_a_layer(32, 64, size=1),
    "of a maximum": of_a_maximum(32, 12),
    "of a maximum of a part of a block": of_a_maximum(20, 24),
    "of the input": of_the_input(),
    "of the input, of no whole blocks": of_the_input_of_no_whole_blocks(),
    "of the processor": of_the_processor(),
    "that several read": that_several_read(),
    "of a part of another": of_a_part(),
    "step by step": step_by_step(),
}
TARGETS: Mapping[str, CompileTarget] = {
    "1x16": target(PYNQ),
    "1x8, small": target(SMALL),
    "4x8": target(BATCHED),
    "4x8 in bands": replace(banded(target(BATCHED)), bands=True),
}


def ran(graph: Graph, aim: CompileTarget) -> Compiled:
    """Return a network whose tensors all equal the reference's, which really pads."""
    compiled = compile_network(graph, aim)
    inputs = {"x": np.random.default_rng(8).integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)}
    expected, bundle = evaluate(graph, inputs), read_bundle(compiled.data, "m")
    inside = inside_of(bundle.manifest)
    with SimulatedVta(aim) as device:
        inference = Network(bundle, device, keep=True).run(inputs)
        outputs = Network(bundle, device).run(inputs).outputs
    assert compare(inference.tensors, expected, graph, inside).tensors == len(graph.tensors) - len(inside)
    assert all(np.array_equal(outputs[name], expected[name]) for name in graph.outputs)
    return compiled


def pads(compiled: Compiled) -> list[str]:
    """Return the processor's steps that pad."""
    return [step["name"] for step in compiled.manifest["steps"] if step["kind"] == "cpu" and step["op"] == "pad"]


@pytest.mark.parametrize("aim", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_every_tensor_is_that_of_a_real_pad(form: str, aim: str) -> None:
    graph = FORMS[form]
    if "images" in form and "bands" in aim:
        pytest.skip("lanes hold bands of one image")
    compiled = ran(graph, TARGETS[aim])
    if "no" not in form.split():
        assert pads(compiled) == []


@pytest.mark.parametrize("form", FORMS)
def test_the_padded_tensor_takes_no_memory(form: str) -> None:
    compiled = compile_network(FORMS[form], TARGETS["1x16"])
    gone = {node.outputs[0] for node in FORMS[form].nodes if node.op == "pad"} & {*compiled.manifest["inside"]}
    assert gone and not gone & {*compiled.manifest["packed"]}
    assert not {f"tensor {name}" for name in gone} & {*compiled.manifest["buffers"]}


def test_the_view_says_that_a_pad_that_is_gone_runs_nowhere() -> None:
    graph = FORMS["of whole blocks"]
    manifest = compile_network(graph, TARGETS["1x16"]).manifest
    nodes = {
        node["name"]: node for node in network_view(graph, manifest, predicted_profile(graph, manifest), {})["nodes"]
    }
    pad = nodes["pad1"]
    assert (pad["where"], pad["engine"], pad["microseconds"]) == ("view", "", 0)
    assert "nothing makes its output" in pad["reason"] and nodes["conv0"]["where"] == "vta"


@pytest.mark.parametrize(
    ("form", "steps"),
    [("of the input, of no whole blocks", 1), ("of lanes that are no zeros", 0), ("of five images", 0)],
)
def test_a_source_is_padded_to_the_end_of_its_block_where_its_lanes_are_no_zeros(form: str, steps: int) -> None:
    compiled = compile_network(FORMS[form], TARGETS["1x16"])
    assert len(pads(compiled)) == steps


def test_another_reader_keeps_the_padded_tensor() -> None:
    builder = Builder((1, 16, 7, 6))
    whole = padded(builder, builder.conv("x", 16), 20)
    made = builder.conv("x", 36, residual=whole)
    for graph in (builder.graph(made, whole), builder.graph(made, builder.conv(whole, 16))):
        form = with_given_blocks(graph, 16)
        assert any(node.op == "pad" for node in form.nodes)
        assert lacks_blocks(form, next(node for node in form.nodes if node.outputs == (made,)))
        assert len(pads(ran(graph, TARGETS["1x16"]))) == 1


@pytest.mark.parametrize(
    ("place", "value"), [([0, 16, 0, 0, 0, 0, 0, 0], 0), ([0, 0, 0, 0, 0, 16, 0, 0], 1), ([0, 4, 0, 0, 0, 12, 0, 0], 0)]
)
def test_other_pads_stay(place: list[int], value: int) -> None:
    builder = Builder((1, 16, 7, 6))
    whole = builder.add_node("pad", "pad", ["x"], (1, 32, 7, 6), {"pads": place, "value": value})
    graph = builder.graph(builder.conv("x", 32, residual=whole))
    assert with_given_blocks(graph, 16) is graph
    assert pads(ran(graph, TARGETS["1x16"])) == ["pad"]


def test_zeros_within_the_last_block_are_there_already() -> None:
    graph = of_a_layer(36, 8)
    assert with_given_blocks(graph, 16) is graph
    assert pads(ran(graph, TARGETS["1x16"])) == []


def test_one_pad_to_the_end_of_the_block_is_for_all_readers() -> None:
    builder = Builder((1, 16, 7, 6))
    first = builder.conv("x", 24)
    made = [added(builder, first, 28), added(builder, first, 60)]
    form = with_given_blocks(builder.graph(*made), 16)
    check(form)
    assert [form.tensors[node.outputs[0]].shape[1] for node in form.nodes] == [24, 32, 52, 84]
    assert [node.inputs[3] for node in form.nodes[2:]] == [form.nodes[1].outputs[0]] * 2


def test_a_layer_that_the_processor_runs_gets_its_pad_back() -> None:
    """VTA shifts a block of the residual as one."""
    graph = of_a_layer(16, 32, residual_shift=5)
    node = graph.nodes[2]
    mixed = replace(node, attributes={**node.attributes, "residual_shift": [5] * 24 + [4] * 24})
    compiled = ran(replace(graph, nodes=(*graph.nodes[:2], mixed, *graph.nodes[3:])), TARGETS["1x16"])
    placed = {each["node"]: each["where"] for each in compiled.manifest["placements"]}
    assert (placed["pad1"], placed[node.name]) == ("processor", "processor")


def test_a_residual_of_other_shape_is_vtas_only_where_it_has_whole_blocks() -> None:
    graph = with_given_blocks(of_a_layer(32, 20), 16)
    node, accelerator = graph.nodes[1], TARGETS["1x16"].accelerator
    for shape in ((1, 24, 7, 6), (1, 64, 7, 6), (1, 32, 6, 6)):
        tensor = replace(graph.tensors[node.inputs[3]], shape=shape)
        with pytest.raises(NotOnVtaError, match="its residual has shape"):
            layer_of(replace(graph, tensors={**graph.tensors, tensor.name: tensor}), node, accelerator)


def test_what_the_caller_wrote_for_vta_alone_has_no_place_beside_it() -> None:
    graph = with_given_blocks(of_a_layer(32, 20), 16)
    node = replace(graph.nodes[1], attributes={**graph.nodes[1].attributes, "residual_shift": [5] * 26 + [4] * 26})
    with pytest.raises(UnplaceableError, match="no other processor runs it"):
        compile_network(replace(graph, nodes=(graph.nodes[0], node, *graph.nodes[2:])), TARGETS["1x16"])


def test_the_twin_counts_the_cycles_of_the_rtl() -> None:
    graph, aim = of_a_layer(32, 20), TARGETS["1x16"]
    data = compile_network(graph, aim).data
    with SimulatedVta(aim, "rtl") as device:
        run = Network(read_bundle(data, "m"), device).run({"x": np.ones((1, 16, 7, 6), np.int8)})
    (program,) = read_bundle(data, "m").manifest["programs"]
    assert [step.cycles for step in run.steps if step.kind == "vta"] == [program["cycles"]]


@pytest.mark.parametrize("residual_shift", [5, 8])
@pytest.mark.parametrize(("aim", "images"), [("1x16", 1), ("1x16", 3), ("1x8, small", 2), ("4x8", 9)])
def test_whatever_the_schedule(aim: str, images: int, residual_shift: int) -> None:
    """Tiles have blocks that are given beside others, or one kind alone, of one image or several."""
    accelerator = TARGETS[aim].accelerator
    block = accelerator.parameters.block
    builder = Builder((images, block, 6, 4), 3)
    whole = padded(builder, builder.conv("x", 2 * block, 1), 2 * block - 3)
    made = builder.conv("x", 4 * block - 3, 1, residual=whole, residual_shift=residual_shift)
    graph = with_given_blocks(builder.graph(made), block)
    layer = layer_of(graph, graph.nodes[-1], accelerator)
    assert isinstance(layer, VtaLayer) and layer.residual_blocks == (2, 4)
    tiles = []
    for knobs, code in schedules_of(layer, accelerator, _PROGRAMS):
        _run(graph, layer, code, accelerator)
        assert _loaded(code) == 2 * 24 * -(-images // accelerator.parameters.batch), knobs
        tiles.append((knobs.get("tile_b", 1), knobs["tile_co"]))
    assert {channels for _, channels in tiles} == {1, 2, 4}
    assert len({several for several, _ in tiles}) == 1 + (images > accelerator.parameters.batch), tiles


@pytest.mark.parametrize("shifts", [(2, 5, 5, 3), (9, 4, 6, 12), (0, 1, 2, 3)])
@pytest.mark.parametrize(
    ("aim", "images", "given"), [("1x16", 1, 4), ("1x16", 3, 2), ("1x8, small", 2, 3), ("4x8", 9, 4)]
)
def test_each_block_is_shifted_by_its_own(aim: str, images: int, given: int, shifts: tuple[int, ...]) -> None:
    """Blocks have identities of their own, and those of more than 2^6 a shift; some may not be given."""
    accelerator = TARGETS[aim].accelerator
    block = accelerator.parameters.block
    builder = Builder((images, block, 6, 4), 3)
    whole = builder.conv("x", given * block, 1)
    if given < 4:
        whole = padded(builder, whole, (4 - given) * block)
    own = [shift for shift in shifts for _ in range(block)]
    made = builder.conv("x", 4 * block, 1, residual=whole, residual_shift=own, shift=[6 + each // 4 for each in own])
    graph = with_given_blocks(builder.graph(made), block)
    layer = layer_of(graph, graph.nodes[-1], accelerator)
    assert isinstance(layer, VtaLayer) and layer.residual_shifts == shifts
    schedules = list(schedules_of(layer, accelerator, _PROGRAMS))
    for _, code in schedules:
        _run(graph, layer, code, accelerator)
    assert len(schedules) == _PROGRAMS


def test_a_network_whose_blocks_are_shifted_by_their_own_runs_on_vta() -> None:
    builder = Builder((1, 16, 7, 6), 3)
    first = builder.conv("x", 40)
    own = [2] * 16 + [7] * 16 + [4] * 8
    made = builder.conv(first, 40, residual=first, residual_shift=own, shift=[8] * 32 + [9] * 8)
    compiled = ran(builder.graph(made), TARGETS["1x16"])
    assert all(each["where"] == "vta" for each in compiled.manifest["placements"])


def _loaded(code: Code) -> int:
    """Return the elements of the residual that a layer's LOADs bring."""
    loads = code.records[(code.records["opcode"] == Opcode.LOAD) & (code.buffers == code.names.index(RESIDUAL))]
    return int((loads["y_size"].astype(np.int64) * loads["x_size"]).sum())


def _run(graph: Graph, layer: VtaLayer, code: Code, accelerator: Accelerator) -> None:
    """Run a layer on the golden model, and compare its output with the reference's."""
    packing, random = PackedLayout(accelerator.parameters), np.random.default_rng(7)
    tensors = evaluate(graph, {"x": random.integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)})

    def packed(name: str) -> NDArray[np.int8]:
        made = np.full(packing.shape(graph.tensors[name].shape), 99, np.int8)
        layout.pack(tensors[name], made)
        return made

    read: dict[str, NDArray[Any]] = {buffer: packed(name) for buffer, name in layer.reads.items()}
    read |= {"wgt": pack_weights(layer.weights, accelerator.parameters)} | bias_constants(layer, code, accelerator)
    assert layer.skip is not None
    read[IDENTITY] = identity_blocks(layer.skip, accelerator)
    shape = packing.shape(graph.tensors[layer.output].shape)
    sizes = {buffer: array.nbytes for buffer, array in read.items()} | {"out": int(np.prod(shape))}
    program = alone(code, sizes, accelerator)
    run = run_program(build(accelerator, "golden"), program, read, max_cycles=1 << 30)
    assert run.execution.status is DeviceStatus.DONE
    found = layout.unpack(run.output.view(np.int8).reshape(shape), graph.tensors[layer.output].shape)
    assert np.array_equal(found, tensors[layer.output])
