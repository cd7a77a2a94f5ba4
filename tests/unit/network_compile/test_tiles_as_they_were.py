"""Schedules of layers without weights: their number, instructions and micro-ops, beside those that were accepted.

Other tests hold on the golden model that each schedule is right. One that is lost, or needs more instructions, shows
here. If it is meant: `build/host-env/bin/pytest tests/unit/network_compile/test_tiles_as_they_were.py
--snapshot-update`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.network.lower_tiles import Tiled, has_schedule, lower_tiles, tile_knobs
from hilt.network.lower_upsample import Upsampling
from hilt.network.pool_tiles import PoolingLayer
from hilt.network.window_layers import windowed
from hilt.schedule import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType

from . import test_lower_depthwise
from .graphs import PYNQ, SMALL
from .test_lower_pool import AVERAGES, average
from .test_lower_product import PRODUCTS, of

pytestmark = pytest.mark.slow  # lowers some hundred schedules

MAXIMA = [
    PoolingLayer(3, (8, 9), (3, 3), (2, 2), (1, 1), (4, 5)),
    PoolingLayer(1, (10, 10), (5, 5), (1, 1), (2, 2), (10, 10)),
    PoolingLayer(40, (6, 7), (5, 3), (1, 1), (4, 2), (6, 7)),
    PoolingLayer(2, (32, 24), (2, 2), (2, 2), (0, 0), (16, 12)),
]
UPSAMPLINGS = [
    *(Upsampling(3, (5, 7), (2, 2)), Upsampling(3, (5, 7), (2, 2), 4)),
    *(Upsampling(1, (1, 9), (3, 1)), Upsampling(20, (7, 14), (2, 4))),
]


def _schedules(work: Tiled, accelerator: Accelerator) -> Iterator[str]:
    """Yield a line for each schedule, or for why there is none."""
    every = tile_knobs(work)
    for knobs in every[:: -(-len(every) // 5)]:
        try:
            code = lower_tiles(work, knobs, accelerator)
        except Rejected as why:
            yield f"  {knobs}: {why}"
            continue
        digest = hashlib.sha256(code.records.tobytes() + code.uops.tobytes() + code.buffers.tobytes()).hexdigest()[:10]
        held = f"INP {code.used(MemoryType.INP)}, UOP {code.used(MemoryType.UOP)}, ACC {code.accumulators}"
        yield f"  {knobs}: {len(code.records)} instructions, {len(code.uops)} micro-ops, {held}, {digest}"


def _lines(works: list[Tiled]) -> Iterator[str]:
    for name in (PYNQ, SMALL):
        accelerator = of(name)
        for work in works:
            fits = f", fits {has_schedule(work, accelerator)}" if isinstance(work, PoolingLayer) else ""
            yield f"{name} {work}: {len(tile_knobs(work))} schedules, {work.micro_ops} micro-ops at least{fits}"
            yield from _schedules(work, accelerator)


def test_averages(snapshot: SnapshotAssertion) -> None:
    works = [average(case, np.zeros((case[0], *case[1], 1), np.int8))[0] for case in AVERAGES]
    assert "\n".join(_lines([*works])) == snapshot


def test_maxima_and_upsamplings(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(_lines([*MAXIMA, *UPSAMPLINGS])) == snapshot


def test_products(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(_lines([*PRODUCTS])) == snapshot


def test_depthwise_convolutions(snapshot: SnapshotAssertion) -> None:
    lines: list[str] = []
    accelerator = test_lower_depthwise.of(PYNQ)
    for name, case in test_lower_depthwise.CASES.items():
        layer, _, _ = test_lower_depthwise.layer(case, accelerator)
        made = windowed(layer, accelerator)
        assert made is not None
        work = replace(made.work, windows=())
        lines += [f"{name}: {work}", *map(str, made.work.windows), *_schedules(made.work, accelerator)]
    assert "\n".join(lines) == snapshot
