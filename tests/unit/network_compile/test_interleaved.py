"""A first layer that computes neighbouring outputs as channels of one pixel: the same integers, fewer bytes to fold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.layers import VtaLayer, folded, layer_of, outputs_beside
from hilt.network.lower_layer import bias_constants, layer_code
from hilt.network.reference import evaluate
from hilt.schedule import Rejected
from hilt.schedule.fused import alone
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.isa import Opcode
from hilt.vta.layout import pack_data, pack_weights
from hilt_runtime.layout import fold

from .graphs import BATCHED, PYNQ, SMALL, Builder, target

KNOBS = {"tile_b": 1, "tile_h": 4, "tile_w": 6, "tile_ci": 1, "tile_co": 2, "oc_nthread": 1, "h_nthread": 1}


def first_layer(
    channels: int = 40, kernel: int = 3, stride: int = 2, size: tuple[int, int] = (16, 48), bias: int = 0
) -> tuple[Builder, Graph]:
    builder = Builder((1, 3, *size))
    output = builder.conv("x", channels, kernel, stride=stride, clip=[0, 127])
    builder.constants["conv0.b"][:] += bias
    return builder, builder.graph(output)


def of_several(graph: Graph, outputs: int, parameters: str = PYNQ) -> VtaLayer:
    accelerator = target(parameters).accelerator
    layer = layer_of(graph, graph.nodes[0], accelerator)
    assert isinstance(layer, VtaLayer)
    made = folded(layer, accelerator.parameters.block, outputs)
    assert made is not None
    return made


def assert_exact(builder: Builder, graph: Graph, layer: VtaLayer, knobs: dict[str, int], parameters: str) -> None:
    """Run the layer's code on the golden model; compare all of its output."""
    aim = target(parameters)
    geometry = aim.accelerator.parameters
    code = layer_code(layer, knobs, aim.accelerator)
    data, fold_of = builder.input(), layer.fold
    assert fold_of is not None
    read = np.zeros(pack_data(np.zeros(layer.data_shape, np.int8), geometry).shape, np.int8)
    fold(data, read, fold_of.kernel, fold_of.stride, fold_of.left)
    expected = pack_data(evaluate(graph, {"x": data})[layer.output], geometry)
    inputs = {
        "inp": read,
        "wgt": pack_weights(layer.weights, geometry),
        **bias_constants(layer, code, aim.accelerator),
    }
    sizes = {name: array.nbytes for name, array in inputs.items()} | {"out": expected.nbytes}
    program = alone(code, sizes, aim.accelerator)
    done = run_program(build(aim.accelerator, "golden"), program, inputs, memory=aim.memory, max_cycles=1_000_000)
    assert done.execution.status is DeviceStatus.DONE
    made = done.output.reshape(expected.shape)
    lanes = np.arange(geometry.batch) < 1  # the others hold no image
    assert np.array_equal(made[..., lanes, :], expected[..., lanes, :])


@pytest.mark.parametrize("threads", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("tile", list(itertools.product((1, 4), (1, 3, 12))))
def test_all_tiles_store_what_a_convolution_makes(tile: tuple[int, int], threads: tuple[int, int]) -> None:
    builder, graph = first_layer(channels=30)
    knobs = {**KNOBS, "tile_h": tile[0], "tile_w": tile[1], "h_nthread": threads[0], "oc_nthread": threads[1]}
    for order in (1, 4):
        assert_exact(builder, graph, of_several(graph, 2), {**knobs, "loop_order": order}, PYNQ)


@pytest.mark.parametrize("threads", [(1, 1), (1, 2)])
@pytest.mark.parametrize("tile", list(itertools.product((1, 4), (1, 3, 9))))
def test_rows_that_no_whole_pixels_fill_are_cut(tile: tuple[int, int], threads: tuple[int, int]) -> None:
    """25 columns are 9 pixels of 3 outputs; a tile with the last pixel has a STORE for each row."""
    builder, graph = first_layer(channels=30, size=(16, 50))
    assert graph.tensors["conv0.y"].shape[3] == 25
    knobs = {**KNOBS, "tile_h": tile[0], "tile_w": tile[1], "tile_co": 3, "h_nthread": threads[0]}
    knobs |= {"tile_ci": 2, "oc_nthread": threads[1], "loop_order": 1}
    layer = of_several(graph, 3)
    assert layer.workload.out_width == 9
    records = layer_code(layer, knobs, target().accelerator).records
    stores = records[records["opcode"] == Opcode.STORE]
    assert (stores["x_size"].astype(int) * stores["y_size"]).sum() == 2 * 8 * 25, "each output once"
    assert_exact(builder, graph, layer, knobs, PYNQ)


def test_accumulators_that_no_store_takes_are_the_layer_s_all_the_same() -> None:
    _, graph = first_layer(channels=16, size=(16, 50))
    knobs = {**KNOBS, "tile_h": 8, "tile_w": 9, "tile_ci": 2, "tile_co": 3, "loop_order": 1}
    code = layer_code(of_several(graph, 3), knobs, target().accelerator)
    stores = code.records[code.records["opcode"] == Opcode.STORE]
    assert int((stores["sram_base"] + stores["x_size"]).max()) == code.accumulators - 2


def test_a_tile_of_a_whole_plane_is_one_store() -> None:
    builder, graph = first_layer(channels=16)
    knobs, layer = {**KNOBS, "tile_h": 8, "tile_w": 12, "loop_order": 1}, of_several(graph, 2)
    records = layer_code(layer, knobs, target().accelerator).records
    assert [int(store["x_size"]) for store in records if store["opcode"] == Opcode.STORE] == [8 * 24]
    assert_exact(builder, graph, layer, knobs, PYNQ)


@pytest.mark.parametrize("parameters", [PYNQ, SMALL, BATCHED])
@pytest.mark.parametrize(
    ("kernel", "stride", "outputs"), [(3, 1, 4), (3, 2, 3), (7, 2, 2), (2, 3, 4), (3, 1, 5), (3, 2, 7)]
)
@pytest.mark.parametrize("bias", [0, 1 << 20])
def test_kernels_strides_and_biases(parameters: str, kernel: int, stride: int, outputs: int, bias: int) -> None:
    builder, graph = first_layer(12, kernel, stride, (9, 24 * stride), bias)
    made = graph.tensors["conv0.y"].shape[3]
    assert made == 24
    layer = of_several(graph, outputs, parameters)
    blocks = -(-layer.workload.in_channels // target(parameters).accelerator.parameters.block)
    tile = {"tile_h": 1, "tile_w": -(-made // outputs), "tile_ci": blocks, "tile_co": outputs}
    knobs = {**KNOBS, **tile, "loop_order": 1}
    assert_exact(builder, graph, layer, knobs, parameters)


def test_a_tile_of_other_blocks_is_refused() -> None:
    _, graph = first_layer()
    layer = of_several(graph, 2)
    for blocks in (1, 6):
        with pytest.raises(Rejected, match="channel blocks"):
            layer_code(layer, {**KNOBS, "tile_co": blocks, "loop_order": 1}, target().accelerator)


@pytest.mark.parametrize(
    ("kernel", "stride", "columns", "tried"),
    [
        (3, 2, 48, [1, 2]),
        (3, 1, 32, [1, 3]),
        (3, 1, 33, [1, 3]),
        (7, 2, 64, [1, 2]),
        (5, 1, 32, [1]),
        (3, 2, 49, [1, 2]),
        (3, 1, 2, [1, 2]),
    ],
)
def test_as_many_outputs_as_fill_the_blocks_of_one(kernel: int, stride: int, columns: int, tried: list[int]) -> None:
    _, graph = first_layer(16, kernel, stride, (9, columns * stride))
    layer = layer_of(graph, graph.nodes[0], target().accelerator)
    assert isinstance(layer, VtaLayer)
    assert layer.workload.out_width == columns
    assert outputs_beside(layer, 16) == tried


def test_the_compiler_takes_them_where_they_are_faster() -> None:
    _, graph = first_layer(16, 3, 2, (64, 64))
    step = compile_network(graph, target()).manifest["steps"][0]
    assert step["fold"] == {"kernel": 5, "stride": 4, "left": 1}


def test_the_compiler_takes_as_many_as_fit_where_the_processor_writes_less() -> None:
    _, graph = first_layer(16, 3, 1, (32, 32))
    step = compile_network(graph, target()).manifest["steps"][0]
    assert step["fold"] == {"kernel": 5, "stride": 3, "left": 1}
