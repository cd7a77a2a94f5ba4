"""Maxima and upsamplings on the golden model: every schedule is right, padding included."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.layers import TiledLayer, layer_of
from hilt.network.lower_tiles import Tiled, lower_tiles, tile_knobs
from hilt.network.lower_upsample import Upsampling
from hilt.network.pool_tiles import PoolingLayer
from hilt.network.reference import evaluate
from hilt.schedule.fused import alone
from hilt.schedule.residual import IDENTITY, identity_block
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program

from .graphs import Builder, target

pytestmark = pytest.mark.slow  # runs programs on the golden model


def _alone(work: Tiled, knobs: Mapping[str, int], data: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return a layer's result on an image of 16 channels, int8 (1, 16, H, W), by one of its schedules."""
    accelerator = target().accelerator
    high, wide = _out(work)
    inputs = {"inp": np.ascontiguousarray(data.transpose(0, 2, 3, 1)), IDENTITY: identity_block(0, accelerator)}
    sizes = {name: array.nbytes for name, array in inputs.items()} | {"out": 16 * high * wide}
    program = alone(lower_tiles(work, knobs, accelerator), sizes, accelerator)
    run = run_program(build(accelerator, "golden"), program, inputs, max_cycles=1 << 30)
    assert run.execution.status is DeviceStatus.DONE
    return run.output.reshape(1, high, wide, 16).transpose(0, 3, 1, 2)


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


def test_every_schedule_of_an_upsampling_is_right() -> None:
    builder = Builder((1, 16, 9, 7))
    graph = builder.graph(builder.add_node("larger", "upsample", ["x"], (1, 16, 18, 21), {"factors": [2, 3]}))
    layer = layer_of(graph, graph.nodes[0], target().accelerator)
    assert isinstance(layer, TiledLayer)
    data = builder.input()
    expected = evaluate(graph, {"x": data})["larger.y"]
    for knobs in tile_knobs(layer.work):
        assert np.array_equal(_alone(layer.work, knobs, data), expected), knobs
