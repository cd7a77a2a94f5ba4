"""Maxima and upsamplings on the golden model: every schedule is right, padding included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.graph import Graph
from hilt.network.layers import NotOnVtaError, TiledLayer, layer_of
from hilt.network.lower_tiles import Tiled, lower_tiles, tile_knobs
from hilt.network.lower_upsample import Upsampling
from hilt.network.pool_tiles import PoolingLayer, own_position
from hilt.network.reference import evaluate
from hilt.schedule.fused import alone
from hilt.schedule.residual import IDENTITY, identity_block
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.isa import Opcode

from .graphs import Builder, target

pytestmark = pytest.mark.slow  # runs programs on the golden model


def _alone(work: Tiled, knobs: Mapping[str, int], data: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return a layer's result on an image of blocks of 16 channels, int8 (1, C, H, W), by one of its schedules."""
    accelerator = target().accelerator
    high, wide = _out(work)
    packed = data.reshape(-1, 16, *data.shape[2:]).transpose(0, 2, 3, 1)
    inputs = {"inp": np.ascontiguousarray(packed), IDENTITY: identity_block(0, accelerator)}
    sizes = {name: array.nbytes for name, array in inputs.items()} | {"out": 16 * work.planes * high * wide}
    program = alone(lower_tiles(work, knobs, accelerator), sizes, accelerator)
    run = run_program(build(accelerator, "golden"), program, inputs, max_cycles=1 << 30)
    assert run.execution.status is DeviceStatus.DONE
    return run.output.reshape(-1, high, wide, 16).transpose(0, 3, 1, 2).reshape(1, -1, high, wide)


def _out(work: Tiled) -> tuple[int, int]:
    if isinstance(work, PoolingLayer):
        return work.out
    assert isinstance(work, Upsampling)
    return work.size[0] * work.factors[0], work.size[1] * work.factors[1]


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "size"),
    [
        ((2, 2), (2, 2), (0, 0, 0, 0), (8, 8)),
        ((3, 3), (2, 2), (1, 1, 1, 1), (8, 9)),
        ((3, 3), (2, 2), (0, 0, 1, 1), (12, 8)),
        ((4, 2), (3, 2), (1, 0, 1, 1), (13, 9)),
        ((1, 3), (2, 2), (0, 1, 0, 0), (6, 7)),
        ((5, 5), (1, 1), (2, 2, 2, 2), (10, 10)),
        ((5, 3), (1, 1), (4, 2, 0, 0), (6, 7)),
        ((13, 13), (1, 1), (6, 6, 6, 6), (5, 4)),
    ],
)
def test_max_pooling_of_negative_values_leaves_the_padding_out(
    kernel: tuple[int, int], stride: tuple[int, int], pads: tuple[int, ...], size: tuple[int, int]
) -> None:
    builder = Builder((1, 16, *size))
    out = [(size[axis] + pads[axis] + pads[axis + 2] - kernel[axis]) // stride[axis] + 1 for axis in (0, 1)]
    attributes = {"kernel": list(kernel), "strides": list(stride), "pads": list(pads)}
    graph = builder.graph(builder.add_node("pool", "max_pool", ["x"], (1, 16, *out), attributes))
    layer = layer_of(graph, graph.nodes[0], target().accelerator)
    assert isinstance(layer, TiledLayer)
    data = np.minimum(builder.input(), -3)
    expected = evaluate(graph, {"x": data})["pool.y"]
    for knobs in tile_knobs(layer.work):
        assert np.array_equal(_alone(layer.work, knobs, data), expected), knobs


def test_windows_that_overlap_by_less_than_a_stride_are_pooled_rows_first() -> None:
    """With windows of 3 x 3 each output column takes two maxima in every input row, and each output two more."""
    pool = PoolingLayer(1, (57, 112), (3, 3), (2, 2), (0, 1), (28, 56))
    assert own_position(pool) == (1, 1)
    code = lower_tiles(pool, {"rows": 2, "in_place": 1}, target().accelerator)
    maxima = code.records[code.records["opcode"] == Opcode.ALU]
    taken = int((maxima["iter_out"].astype(np.int64) * maxima["iter_in"]).sum())
    assert taken == 57 * (56 + 55) + 28 * 2 * 56
    assert pool.micro_ops == 57 * 112 + taken
    assert not (code.added_by_alu & code.multiplied).any()  # in a chain their sources move apart


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "size", "out"),
    [
        ((3, 3), (1, 1), (1, 1), (8, 8), (8, 8)),  # each element lies in several windows
        ((2, 2), (2, 2), (1, 0), (6, 8), (4, 4)),  # the padding has a row of the first window, and one of the last
        ((3, 3), (2, 1), (1, 1), (9, 8), (5, 8)),
    ],
)
def test_other_windows_have_no_position_of_their_own(
    kernel: tuple[int, int], stride: tuple[int, int], pads: tuple[int, int], size: tuple[int, int], out: tuple[int, int]
) -> None:
    assert own_position(PoolingLayer(1, size, kernel, stride, pads, out)) is None


def test_every_schedule_of_an_upsampling_is_right() -> None:
    builder = Builder((1, 16, 9, 7))
    graph = builder.graph(builder.add_node("larger", "upsample", ["x"], (1, 16, 18, 21), {"factors": [2, 3]}))
    layer = layer_of(graph, graph.nodes[0], target().accelerator)
    assert isinstance(layer, TiledLayer)
    data = builder.input()
    expected = evaluate(graph, {"x": data})["larger.y"]
    for knobs in tile_knobs(layer.work):
        assert np.array_equal(_alone(layer.work, knobs, data), expected), knobs


@pytest.mark.parametrize(
    ("channels", "block", "size"), [(16, (2, 2), (9, 7)), (48, (2, 3), (5, 6)), (32, (1, 2), (3, 40))]
)
def test_every_schedule_of_channels_that_become_pixels_is_right(
    channels: int, block: tuple[int, int], size: tuple[int, int]
) -> None:
    layer, graph, data = _spread(channels, block, size, "DCR")
    expected = evaluate(graph, {"x": data})["spread.y"]
    assert len(tile_knobs(layer.work)) > 1
    for knobs in tile_knobs(layer.work):
        assert np.array_equal(_alone(layer.work, knobs, data), expected), knobs


@pytest.mark.parametrize(("channels", "mode"), [(8, "DCR"), (16, "CRD")])
def test_channels_that_become_pixels_but_part_no_blocks_are_no_layer(channels: int, mode: str) -> None:
    with pytest.raises(NotOnVtaError, match="part no blocks"):
        _spread(channels, (2, 2), (4, 4), mode)


def _spread(
    channels: int, block: tuple[int, int], size: tuple[int, int], mode: str
) -> tuple[TiledLayer, Graph, np.ndarray[Any, Any]]:
    """Return a DepthToSpace to so many channels, its graph and its data."""
    builder = Builder((1, channels * block[0] * block[1], *size))
    shape = (1, channels, size[0] * block[0], size[1] * block[1])
    attributes = {"block": list(block), "mode": mode}
    graph = builder.graph(builder.add_node("spread", "depth_to_space", ["x"], shape, attributes))
    layer = layer_of(graph, graph.nodes[0], target().accelerator)
    assert isinstance(layer, TiledLayer)
    return layer, graph, builder.input()
