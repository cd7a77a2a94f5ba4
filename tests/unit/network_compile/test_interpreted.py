"""Poolings, products, gates and upsamplings of a few elements: every schedule is right by an interpreter in numpy.

The golden model and the RTL run larger ones (test_lower_pool, test_lower_product, test_lower_moves), and heed tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.lower_gate import added_input, unit_blocks
from hilt.network.lower_tiles import Tiled, lower_tiles, tile_knobs
from hilt.network.lower_upsample import Upsampling
from hilt.network.pool_tiles import Averaging, PoolingLayer, own_position
from hilt.network.product_tiles import Product
from hilt.network.tile_writer import ADDED, FACTOR, ROWS, UNITS
from hilt.schedule import Rejected
from hilt.schedule.fused import alone
from hilt.schedule.residual import IDENTITY, identity_block
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.isa import Opcode
from hilt.vta.parameters import VTAParameters

from .graphs import BATCHED, PYNQ, SMALL
from .interpreter import interpreted

Array = NDArray[np.int8]
TINY = "1x8_i8w8a32_10_10_12_11"
"""Buffers of 128 input elements, 64 weight blocks and 64 accumulators: many tiles, and rings that turn."""


def of(parameters: str, isa: IsaRevision | None = None) -> Accelerator:
    return Accelerator.for_parameters(VTAParameters.from_name(parameters), isa)


def elements(accelerator: Accelerator) -> tuple[int, int]:
    return accelerator.parameters.batch, accelerator.parameters.block


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(-128, 128, shape).astype(np.int8)


def all_are(expected: Array, work: Tiled, inputs: Mapping[str, NDArray[Any]], accelerator: Accelerator) -> int:
    """Run every schedule that fits and compare it; return how many did. None saves the micro-ops of the bound."""
    sizes = {"out": expected.nbytes} | {name: array.nbytes for name, array in inputs.items()}
    ran = 0
    for knobs in tile_knobs(work):
        try:
            code = lower_tiles(work, knobs, accelerator)
        except Rejected:
            continue
        given = {name: array for name, array in inputs.items() if name in code.names}
        got = interpreted(alone(code, sizes, accelerator), given, accelerator)
        assert np.array_equal(got, expected.ravel()), knobs
        assert micro_ops(code.records) >= work.micro_ops, knobs
        ran += 1
    return ran


def micro_ops(records: NDArray[np.void]) -> int:
    """Return the micro-ops that a program runs, a cycle each at least."""
    runs = records[np.isin(records["opcode"], (Opcode.GEMM, Opcode.ALU))]
    each = [runs[name].astype(np.int64) for name in ("uop_bgn", "uop_end", "iter_out", "iter_in")]
    return int(((each[1] - each[0]) * each[2] * each[3]).sum())


def windows(data: Array, pool: PoolingLayer, value: int) -> NDArray[np.int64]:
    """Return the windows (planes, rows, columns, ..., kernel) of data with padding of one value."""
    behind = [
        max((out - 1) * stride + kernel - before - size, 0)
        for out, stride, kernel, before, size in zip(
            pool.out, pool.stride, pool.kernel, pool.pads, pool.size, strict=True
        )
    ]
    pads = [(0, 0), *((before, after) for before, after in zip(pool.pads, behind, strict=True)), (0, 0), (0, 0)]
    padded = np.pad(data.astype(np.int64), pads, constant_values=value)
    found = np.lib.stride_tricks.sliding_window_view(padded, pool.kernel, axis=(1, 2))
    return found[:, :: pool.stride[0], :: pool.stride[1]][:, : pool.out[0], : pool.out[1]]


MAXIMA = {
    "2x2": PoolingLayer(2, (4, 6), (2, 2), (2, 2), (0, 0), (2, 3)),
    "3x3, stride 2": PoolingLayer(1, (7, 7), (3, 3), (2, 2), (0, 0), (3, 3)),
    "3x3, stride 2, zeros before": PoolingLayer(2, (5, 6), (3, 3), (2, 2), (1, 1), (3, 3)),
    "3x3, stride 2, zeros behind": PoolingLayer(1, (6, 6), (3, 3), (2, 2), (0, 0), (3, 3)),
    "4x3, strides 3 and 2": PoolingLayer(1, (10, 7), (4, 3), (3, 2), (0, 1), (3, 4)),
    "3x3, stride 1": PoolingLayer(1, (4, 5), (3, 3), (1, 1), (1, 1), (4, 5)),
    "1x2, stride 3": PoolingLayer(2, (4, 8), (1, 2), (3, 3), (0, 0), (2, 3)),
    "one window": PoolingLayer(1, (3, 2), (3, 2), (1, 1), (0, 0), (1, 1)),
    "3x2, no column its own": PoolingLayer(1, (2, 9), (3, 2), (4, 1), (2, 1), (1, 9)),
    "4x3, zeros around": PoolingLayer(1, (9, 4), (4, 3), (4, 1), (2, 2), (3, 4)),
}


@pytest.mark.parametrize("parameters", [PYNQ, SMALL, TINY, BATCHED])
@pytest.mark.parametrize("name", MAXIMA)
def test_every_schedule_of_a_maximum_is_right(name: str, parameters: str) -> None:
    pool, accelerator = MAXIMA[name], of(parameters)
    data = numbers(pool.planes, *pool.size, *elements(accelerator))
    expected = windows(data, pool, -128).max(axis=(-2, -1)).astype(np.int8)
    inputs = {"inp": data, IDENTITY: identity_block(0, accelerator)}
    ran = all_are(expected, pool, inputs, accelerator)
    in_place = 1 if own_position(pool) is None else 2
    assert ran == pool.out[0] * in_place if parameters != TINY else ran > 0


AVERAGES = {
    "2x2": PoolingLayer(1, (4, 4), (2, 2), (2, 2), (0, 0), (2, 2), Averaging(2, (-128, 127))),
    "whole planes": PoolingLayer(4, (2, 4), (2, 4), (1, 1), (0, 0), (1, 1), Averaging(3, (-100, 90))),
    "zeros": PoolingLayer(3, (5, 6), (4, 2), (3, 1), (1, 1), (2, 6), Averaging(3, (-128, 127))),
    "no shift": PoolingLayer(2, (3, 5), (1, 1), (2, 2), (0, 0), (2, 3), Averaging(0, (-7, 7))),
    "a tall window": PoolingLayer(3, (6, 2), (6, 2), (1, 1), (0, 0), (1, 1), Averaging(3, (0, 127))),
}


@pytest.mark.parametrize("parameters", [PYNQ, TINY, BATCHED])
@pytest.mark.parametrize("name", AVERAGES)
def test_every_schedule_of_an_average_is_right(name: str, parameters: str) -> None:
    pool, accelerator = AVERAGES[name], of(parameters)
    assert pool.averaging is not None
    data = numbers(pool.planes, *pool.size, *elements(accelerator))
    sums, shift = windows(data, pool, 0).sum(axis=(-2, -1)), pool.averaging.shift
    expected = np.clip((sums + ((1 << shift) >> 1)) >> shift, *pool.averaging.clip).astype(np.int8)
    inputs = {"inp": data, IDENTITY: identity_block(0, accelerator)}
    ran = all_are(expected, pool, inputs, accelerator)
    assert ran == len(tile_knobs(pool)) if parameters != TINY else ran > 0


@pytest.mark.parametrize(
    "product",
    [
        Product(1, 1, 0, (-128, 127)),
        Product(5, 1, 7, (-128, 127)),
        Product(3, 7, 6, (-100, 90)),
        Product(7, 5, 14, (-3, 3)),
        Product(4, 3, 7, (0, 127), (120, -116)),
        Product(2, 1, 0, (-128, 127), (-254, 0)),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("parameters", "isa"),
    [(PYNQ, IsaRevision.A), (PYNQ, IsaRevision.B), (SMALL, IsaRevision.A), (BATCHED, IsaRevision.B)],
)
def test_every_schedule_of_a_product_is_right(product: Product, parameters: str, isa: IsaRevision | None) -> None:
    accelerator = of(parameters, isa)
    data = numbers(product.factors, product.pixels, *elements(accelerator))
    factor = numbers(product.factors, 1, *elements(accelerator))
    data.ravel()[:4], factor.ravel()[:4] = (-128, -128, 127, 127), (-128, 127, 127, -128)
    front, behind = product.offsets
    sums = (data.astype(np.int64) + front) * factor
    rounded = ((sums + ((1 << product.shift) >> 1)) >> product.shift) + behind
    expected = np.clip(rounded, *product.clip).astype(np.int8)
    rows = np.zeros((product.factors, *unit_blocks(accelerator).shape[1:]), np.int8)
    inputs = {"inp": data, FACTOR: factor, ROWS: rows, UNITS: unit_blocks(accelerator)}
    inputs |= {IDENTITY: identity_block(0, accelerator)}
    if front:
        inputs[ADDED] = added_input(front, accelerator)
    assert all_are(expected, product, inputs, accelerator) == len(tile_knobs(product))


@pytest.mark.parametrize("parameters", [PYNQ, TINY, BATCHED])
@pytest.mark.parametrize(
    "work",
    [
        *(Upsampling(1, (3, 4), (2, 3)), Upsampling(2, (2, 3), (1, 2)), Upsampling(3, (2, 2), (3, 1))),
        *(Upsampling(1, (1, 1), (2, 2)), Upsampling(2, (3, 2), (2, 2), sources=4)),
        Upsampling(1, (2, 5), (1, 2), sources=2),
    ],
    ids=str,
)
def test_every_schedule_of_an_upsampling_is_right(work: Upsampling, parameters: str) -> None:
    accelerator = of(parameters)
    high, wide = work.factors
    data = numbers(work.sources, work.planes, *work.size, *elements(accelerator))
    if work.sources == 1:
        expected = data[0].repeat(high, axis=1).repeat(wide, axis=2)
    else:
        places = data.reshape(high, wide, *data.shape[1:]).transpose(2, 3, 0, 4, 1, 5, 6)
        expected = places.reshape(work.planes, work.size[0] * high, work.size[1] * wide, *data.shape[4:])
    inputs = {"inp": data, IDENTITY: identity_block(0, accelerator)}
    ran = all_are(np.ascontiguousarray(expected), work, inputs, accelerator)
    assert ran == len(tile_knobs(work)) if parameters != TINY else ran > 0


def test_a_gate_of_more_elements_than_are_made_at_once_is_right() -> None:
    """A quarter of 64 accumulators holds the rows of two elements of eight values."""
    accelerator, product = of(TINY, IsaRevision.A), Product(5, 2, 6, (-128, 127), (3, 1))
    data, factor = numbers(5, 2, *elements(accelerator)), numbers(5, 1, *elements(accelerator))
    rounded = (((data.astype(np.int64) + 3) * factor + 32) >> 6) + 1
    rows = np.zeros((5, 8, 8), np.int8)
    inputs = {"inp": data, FACTOR: factor, ROWS: rows, UNITS: unit_blocks(accelerator)}
    inputs |= {IDENTITY: identity_block(0, accelerator), ADDED: added_input(3, accelerator)}
    assert all_are(np.clip(rounded, -128, 127).astype(np.int8), product, inputs, accelerator) > 0


def test_a_gate_whose_blocks_do_not_fit_is_refused() -> None:
    accelerator = of("1x8_i8w8a32_10_10_9_11", IsaRevision.A)
    assert accelerator.parameters.wgt_depth == 8, "the unit blocks alone fill it"
    with pytest.raises(Rejected, match="a tile takes 1 blocks of 8"):
        lower_tiles(Product(1, 1, 0, (-128, 127)), {"factors": 1, "pixels": 1}, accelerator)


@pytest.mark.parametrize(
    ("work", "least"),
    [
        (Product(3, 7, 6, (-100, 90)), 3 * 7 + 3),
        (Upsampling(2, (3, 4), (5, 6)), 2 * 3 * 4 * 5 * 6),
        (MAXIMA["2x2"], 2 * (4 * 6 + 4 * 3 + 2 * 3)),
        (MAXIMA["1x2, stride 3"], 2 * (2 * 8 + 2 * 3)),
        (MAXIMA["3x3, stride 1"], 4 * 5 + (3 + 4 + 3) * (4 + 5 + 4)),
        (AVERAGES["2x2"], 4 * 2 * 2),
        (AVERAGES["zeros"], 3 * (1 + 2 + 2 + 1) * (5 + 6)),
    ],
    ids=str,
)
def test_the_bound_counts_what_is_copied_and_what_is_added_to_an_output(work: Tiled, least: int) -> None:
    """Elements outside the input, and rows between the windows, are not counted: a schedule saves them."""
    assert work.micro_ops == least
