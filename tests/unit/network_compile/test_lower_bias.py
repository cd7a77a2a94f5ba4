"""Biases as products, and tiles that start with MIN of a lowered bias: the same integers, where they are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.layers import VtaLayer, layer_of
from hilt.network.lower_layer import layer_code, lowered_bias
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import compare
from hilt.schedule import lower
from hilt.schedule.bias_product import bias_blocks, bias_input, fits_product, largest_bias, with_bias_product
from hilt.schedule.code import code_of
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode
from hilt.vta.parameters import VTAParameters
from hilt_runtime import Network, read_bundle

from .graphs import BATCHED, PYNQ, SMALL, Builder, target

pytestmark = pytest.mark.usefixtures("quick_search")

TOO_LARGE = -(1 << 18)
"""A bias that is no product, and lies below the clip's bounds."""
KNOBS = {"tile_b": 1, "tile_h": 4, "tile_w": 16, "tile_ci": 1, "tile_co": 1, "oc_nthread": 1, "h_nthread": 2}


def one_convolution(bias: int, clip: tuple[int, int], channels: int = 24) -> tuple[Builder, Graph]:
    builder = Builder((1, 16, 32, 16))
    output = builder.conv("x", channels, clip=list(clip))
    builder.constants["conv0.b"][:] = bias
    return builder, builder.graph(output)


def resets(graph: Graph) -> tuple[int, bool]:
    """Return how many GEMMs of the layer reset accumulators, and whether its bias is lowered."""
    accelerator = target(SMALL).accelerator
    layer = layer_of(graph, graph.nodes[0], accelerator)
    assert isinstance(layer, VtaLayer)
    records = layer_code(layer, {**KNOBS, "loop_order": 1}, accelerator).records
    count = int(np.count_nonzero((records["opcode"] == Opcode.GEMM) & (records["reset"] == 1)))
    return count, lowered_bias(layer, accelerator) is not None


@pytest.mark.slow
@pytest.mark.parametrize("clip", [(0, 127), (-128, 127), (-5, 90)])
@pytest.mark.parametrize("bias", [TOO_LARGE, -30_000, 0, 30_000, 1 << 18])
@pytest.mark.parametrize("parameters", [PYNQ, SMALL, BATCHED])
def test_the_integers_are_those_of_the_reference(bias: int, clip: tuple[int, int], parameters: str) -> None:
    builder, graph = one_convolution(bias, clip)
    data, aim = builder.input(), target(parameters)
    layer = layer_of(graph, graph.nodes[0], aim.accelerator)
    assert isinstance(layer, VtaLayer)
    knobs = {**KNOBS, "tile_h": 4, "tile_w": 8}
    compiled = compile_network(graph, aim, {layer.workload.schedule_shape: [{**knobs, "loop_order": 1}]})
    with SimulatedVta(aim) as device:
        inference = Network(read_bundle(compiled.data, "m"), device, keep=True).run({"x": data})
    compare(inference.tensors, evaluate(graph, {"x": data}), graph)


def layer_with(bias: int, clip: tuple[int, int], weight: int = 0, **attributes: object) -> VtaLayer:
    """Return a convolution of 24 channels, each with one weight beside zeros; it shifts right by 6."""
    _, graph = one_convolution(bias, clip)
    graph.constants["conv0.w"][:] = 0
    graph.constants["conv0.w"][:, 0, 0, 0] = weight
    node = replace(graph.nodes[0], attributes={**graph.nodes[0].attributes, "shift": [6], **attributes})
    layer = layer_of(replace(graph, nodes=(node,)), node, target(SMALL).accelerator)
    assert isinstance(layer, VtaLayer)
    return layer


def test_a_lowered_bias_is_256_outputs_lower_in_whole_blocks() -> None:
    accelerator = target(SMALL).accelerator
    lowered = lowered_bias(layer_with(TOO_LARGE, (0, 127)), accelerator)
    assert lowered is not None and lowered.dtype == np.int32
    assert lowered.tolist() == [TOO_LARGE + 32 - 256 * 64] * 24 + [-256 * 64] * (len(lowered) - 24)
    assert len(lowered) == -(-24 // accelerator.parameters.block) * accelerator.parameters.block
    by_block = lowered_bias(layer_with(TOO_LARGE, (0, 127), shift=[5] * 16 + [7] * 8), accelerator)
    assert by_block is not None
    assert by_block[:24].tolist() == [TOO_LARGE + 16 - 256 * 32] * 16 + [TOO_LARGE + 64 - 256 * 128] * 8


@pytest.mark.parametrize("least", [0, -5, -128])
def test_a_lowered_bias_lies_below_the_clips_bounds(least: int) -> None:
    """So a MIN with it, in place of a reset, leaves the bias whatever was there."""
    highest = least - 256 + 256 * 64 - 32
    accelerator = target(SMALL).accelerator
    assert lowered_bias(layer_with(highest, (least, 127)), accelerator) is not None
    assert lowered_bias(layer_with(highest + 1, (least, 127)), accelerator) is None


def test_a_lowered_sum_has_31_bits() -> None:
    accelerator = target(SMALL).accelerator
    lowest = -(1 << 31) + 256 * 64 + 128 * 100 - 32
    assert lowered_bias(layer_with(lowest + 1, (0, 127), weight=-100), accelerator) is not None
    assert lowered_bias(layer_with(lowest, (0, 127), weight=-100), accelerator) is None


def test_a_layer_with_a_residual_or_that_does_not_shift_has_no_lowered_bias() -> None:
    accelerator = target(SMALL).accelerator
    layer = layer_with(TOO_LARGE, (0, 127), shift=[1])
    assert lowered_bias(layer, accelerator) is not None
    assert lowered_bias(layer_with(TOO_LARGE, (0, 127), shift=[0]), accelerator) is None
    assert lowered_bias(replace(layer, residual="x"), accelerator) is None


def test_only_the_first_tile_of_each_place_is_reset() -> None:
    _, graph = one_convolution(TOO_LARGE, (0, 127))
    assert resets(graph) == (2, True)


@pytest.mark.parametrize("largest", [0, 63, 64, 127 * 127, 1 << 30])
@pytest.mark.parametrize("parameters", [PYNQ, SMALL, BATCHED])
def test_products_of_weights_and_the_input_are_the_bias(largest: int, parameters: str) -> None:
    accelerator = target(parameters).accelerator
    most = min(largest, largest_bias(accelerator))
    drawn = np.random.default_rng(5).integers(-most, most + 1, 3 * accelerator.parameters.block - 2)
    bias = np.append(drawn, (most, -most)).astype(np.int32)
    assert fits_product(bias, 4 * accelerator.parameters.block, accelerator)
    for lanes in bias_input(accelerator).astype(np.int64):
        assert np.array_equal((bias_blocks(bias, accelerator) @ lanes).ravel(), bias)


def test_a_bias_that_is_too_large_or_of_few_pixels_is_no_product() -> None:
    accelerator = target(PYNQ).accelerator
    most = largest_bias(accelerator)
    assert fits_product(np.array([-most], np.int32), 64, accelerator)
    assert not fits_product(np.array([most + 1], np.int32), 64, accelerator)
    assert not fits_product(np.array([-(1 << 31)], np.int32), 64, accelerator)
    assert not fits_product(np.array([1], np.int32), 63, accelerator)


@pytest.mark.parametrize(("read_ports", "pixels"), [(1, 128), (2, 64), (4, 24)])
def test_several_ports_bring_the_blocks_of_a_smaller_plane(read_ports: int, pixels: int) -> None:
    parameters = VTAParameters.from_name("2x32_i8w8a32_15_16_19_18")
    accelerator = Accelerator.for_parameters(parameters, bus_bits=128, read_ports=read_ports)
    assert fits_product(np.array([1], np.int32), pixels, accelerator)
    assert not fits_product(np.array([1], np.int32), pixels - 1, accelerator)


def test_a_bias_that_finds_no_room_on_chip_is_no_product() -> None:
    _, graph = one_convolution(0, (0, 127))
    accelerator = target(SMALL).accelerator
    layer = layer_of(graph, graph.nodes[0], accelerator)
    assert isinstance(layer, VtaLayer)
    code = code_of(lower(layer.workload, {**KNOBS, "loop_order": 1}, accelerator), accelerator)
    loads = (code.records["opcode"] == Opcode.LOAD) & (code.records["memory_type"] == MemoryType.INP)
    full = accelerator.parameters.inp_depth - code.used(MemoryType.INP)
    assert with_bias_product(code, accelerator) is not None
    moved = replace(code, records=code.records.copy())
    moved.records["sram_base"][loads] += full
    assert with_bias_product(moved, accelerator) is None


@pytest.mark.slow
def test_a_bias_above_the_clips_bounds_keeps_its_resets_and_is_exact() -> None:
    builder, graph = one_convolution(1 << 20, (0, 127))
    assert resets(graph) == (24, False)
    data, aim = builder.input(), target(SMALL)
    with SimulatedVta(aim) as device:
        inference = Network(read_bundle(compile_network(graph, aim).data, "m"), device, keep=True).run({"x": data})
    compare(inference.tensors, evaluate(graph, {"x": data}), graph)


def test_a_layer_that_does_not_shift_keeps_its_resets() -> None:
    _, graph = one_convolution(TOO_LARGE, (0, 127))
    node = replace(graph.nodes[0], attributes={**graph.nodes[0].attributes, "shift": [0]})
    graph = replace(graph, nodes=(node,))
    assert resets(graph) == (24, False)
