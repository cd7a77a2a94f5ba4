"""Convolutions as the network runs them, by an interpreter in numpy: borders, shifts by block, residuals and biases.

The reference really pads, and computes the network's operators. A few schedules of each layer are run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hilt.network.constant_borders import with_borders
from hilt.network.graph import Graph
from hilt.network.layers import VtaLayer, layer_of
from hilt.network.lower_layer import bias_constants
from hilt.network.reference import evaluate
from hilt.schedule.fused import alone
from hilt.schedule.residual import IDENTITY, RESIDUAL, identity_block
from hilt.vta.layout import pack_data, pack_weights, unpack_data

from .graphs import BATCHED, PYNQ, Builder, target
from .interpreter import interpreted
from .schedules import schedules_of
from .test_borders import convolution, padded, valid

_SCHEDULES = 2


def with_residual(shift: int, shifts: Sequence[int] = (7,), given: int = 24, channels: int = 24) -> Graph:
    builder = Builder((1, 16, 5, 4), 3)
    made = builder.conv("x", given, 1)
    whole = padded(builder, made, (1, 1, 1, 1), -128)
    more = {"residual": made, "residual_shift": shift, "shift": list(shifts)}
    return builder.graph(valid(builder, whole, channels, 3, **more))


def with_bias(bias: int, clip: Sequence[int]) -> Graph:
    graph = convolution((16, 6, 5), 24, 3, (1, 1, 1, 1), clip=list(clip))
    graph.constants["conv2.b"][:] = bias
    return graph


def plain(channels: int = 24, **attributes: object) -> Graph:
    builder = Builder((1, 16, 6, 5), 3)
    return builder.graph(builder.conv(builder.conv("x", 16, 1), channels, 3, **attributes))  # type: ignore[arg-type]


FORMS = {
    "plain": plain(),
    "plain, with a stride": plain(stride=2),
    "with shifts by block": plain(32, shift=[7] * 16 + [9] * 16),
    "with a border": convolution((16, 6, 5), 24, 3, (1, 1, 1, 1)),
    "with a border behind, and a stride": convolution((16, 6, 6), 16, 3, (0, 0, 1, 1), stride=2),
    "with a border of five": convolution((16, 7, 6), 16, 5, (2, 2, 2, 2), -7),
    "with a border of an even kernel": convolution((16, 5, 6), 40, 2, (1, 1, 0, 0), 5),
    "with a border on one side": convolution((16, 4, 4), 16, 3, (0, 2, 0, 0)),
    "with a border and holes": convolution((16, 6, 7), 16, 3, (2, 2, 2, 2), dilation=2),
    "with a border and a kernel that sees all": convolution((16, 2, 2), 32, 3, (1, 1, 1, 1)),
    "with a border and shifts by block": convolution((16, 5, 4), 32, 3, (1, 1, 1, 1), shift=[7] * 16 + [9] * 16),
    "with a residual": with_residual(5),
    "with a residual shifted further": with_residual(8),
    "with a residual of fewer blocks": with_residual(5, given=16, channels=40),
    "with a residual of fewer blocks, shifted further": with_residual(8, (7,) * 16 + (9,) * 32, 32, 48),
    "with a bias that is no product": with_bias(-(1 << 18), (0, 127)),
    "with a bias above the clip": with_bias(1 << 18, (-128, 127)),
}


@pytest.mark.parametrize("parameters", [PYNQ, BATCHED])
@pytest.mark.parametrize("name", FORMS)
def test_a_layer_computes_what_the_reference_does(name: str, parameters: str) -> None:
    graph, accelerator = FORMS[name], target(parameters).accelerator
    known = with_borders(graph)
    layer = layer_of(known, known.nodes[-1], accelerator)
    assert isinstance(layer, VtaLayer) and layer.fold is None
    assert (layer.border is not None) is ("border" in name or "residual" in name or "bias" in name)
    inputs = {"x": np.random.default_rng(8).integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)}
    tensors = {**inputs, **evaluate(graph, inputs)}
    wanted = tensors[graph.outputs[0]]
    given = {
        "inp": pack_data(tensors[layer.data], accelerator.parameters),
        "wgt": pack_weights(layer.weights, accelerator.parameters),
    }
    if layer.residual:
        given[RESIDUAL] = pack_data(tensors[layer.residual], accelerator.parameters)
        given[IDENTITY] = identity_block(layer.residual_shift, accelerator)
    shape = pack_data(wanted, accelerator.parameters).shape
    ran = 0
    for knobs, code in schedules_of(layer, accelerator, _SCHEDULES):
        buffers = {**given, **bias_constants(layer, code, accelerator)}
        sizes = {each: array.nbytes for each, array in buffers.items()} | {"out": int(np.prod(shape))}
        got = interpreted(alone(code, sizes, accelerator), buffers, accelerator)
        assert np.array_equal(unpack_data(got.reshape(shape), 1, wanted.shape[1]), wanted), knobs
        ran += 1
    assert ran == _SCHEDULES
