"""Poolings on the golden model: every schedule is right against numpy, on each geometry and without an interlock."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.lower_tiles import has_schedule, lower_tiles, tile_knobs
from hilt.network.pool_tiles import Averaging, PoolingLayer
from hilt.network.search import Searcher
from hilt.schedule import Rejected
from hilt.schedule.fused import alone
from hilt.schedule.loops import HAZARD_DISTANCE
from hilt.schedule.residual import IDENTITY, identity_block
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus, MemoryModel
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator, Hazards
from hilt.vta.isa import Opcode, multiplies
from hilt.vta.parameters import VTAParameters

from .graphs import BATCHED, PYNQ, SMALL

pytestmark = pytest.mark.slow  # runs programs on the golden model

# planes, size, kernel, stride, pads before, pads after, shift, clip, and a number that is added
AVERAGES = [
    (4, (8, 8), (8, 8), (1, 1), (0, 0), (0, 0), 6, (-128, 127)),
    (2, (4, 4), (4, 4), (1, 1), (0, 0), (0, 0), 4, (0, 127)),
    (2, (3, 5), (3, 5), (1, 1), (0, 0), (0, 0), 4, (-128, 127)),
    (3, (6, 2), (6, 2), (1, 1), (0, 0), (0, 0), 3, (-128, 127)),
    (7, (2, 4), (2, 4), (1, 1), (0, 0), (0, 0), 3, (-100, 90)),
    (1, (16, 16), (2, 2), (2, 2), (0, 0), (0, 0), 2, (-128, 127)),
    (3, (9, 11), (4, 2), (3, 1), (1, 1), (1, 0), 3, (-128, 127)),
    (5, (3, 5), (1, 1), (2, 2), (0, 0), (0, 0), 0, (-7, 7)),
    (7, (2, 4), (2, 4), (1, 1), (0, 0), (0, 0), 3, (-100, 90), -75),
    (3, (6, 2), (3, 2), (3, 2), (0, 0), (0, 0), 2, (-128, 127), 12000),
]


def of(parameters: str, hazards: Hazards = "interlock") -> Accelerator:
    return Accelerator.for_parameters(VTAParameters.from_name(parameters), hazards=hazards)


def average(case: tuple, data: NDArray[np.int8]) -> tuple[PoolingLayer, NDArray[np.int8]]:
    """Return the pooling of a case and its result on `data`, int8 (planes, height, width, elements)."""
    planes, size, kernel, stride, before, after, shift, clip, offset = (*case, 0)[:9]
    padded = np.pad(data.astype(np.int64), ((0, 0), (before[0], after[0]), (before[1], after[1]), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))[:, :: stride[0], :: stride[1]]
    sums = windows.sum(axis=(-2, -1))
    rounded = ((sums + ((1 << shift) >> 1)) >> shift) + offset
    out = (sums.shape[1], sums.shape[2])
    pool = PoolingLayer(planes, size, kernel, stride, before, out, Averaging(shift, clip, offset))
    return pool, np.clip(rounded, *clip).astype(np.int8)


@pytest.mark.parametrize(
    "case", AVERAGES, ids=lambda case: f"{case[0]}x{case[1][0]}x{case[1][1]}-{case[2][0]}x{case[2][1]}"
)
@pytest.mark.parametrize(
    ("parameters", "hazards"), [(PYNQ, "interlock"), (PYNQ, "none"), (SMALL, "interlock"), (BATCHED, "none")]
)
def test_every_schedule_of_an_average_is_right(case: tuple, parameters: str, hazards: Hazards) -> None:
    accelerator = of(parameters, hazards)
    elements = accelerator.parameters.batch * accelerator.parameters.block
    data = np.random.default_rng(1).integers(-128, 128, (case[0], *case[1], elements)).astype(np.int8)
    pool, expected = average(case, data)
    library = build(accelerator, "golden")
    inputs = {"inp": data, IDENTITY: identity_block(0, accelerator)}
    sizes = {"inp": data.nbytes, "out": expected.nbytes, IDENTITY: inputs[IDENTITY].nbytes}
    ran = 0
    for knobs in tile_knobs(pool):
        try:
            program = alone(lower_tiles(pool, knobs, accelerator), sizes, accelerator)
        except Rejected:
            continue
        run = run_program(library, program, inputs, max_cycles=1 << 30)
        assert run.execution.status is DeviceStatus.DONE, knobs
        assert np.array_equal(run.output, expected.ravel()), knobs
        ran += 1
    assert ran >= len(tile_knobs(pool)) // 2


def test_the_mean_of_an_image_costs_little_more_than_its_additions() -> None:
    """A convolution of ones takes 8,156 cycles: it loads 64 KiB of weights."""
    pool, _ = average(AVERAGES[0], np.zeros((4, 8, 8, 16), np.int8))
    schedule = Searcher(of(PYNQ), MemoryModel(base=0x1000_0000)).tile_schedule("mean", pool)
    assert pool.micro_ops == 256
    assert schedule.cycles < 1200


def test_additions_of_a_few_planes_do_not_wait_for_one_another() -> None:
    """Two planes of 64 positions: 128 micro-ops, of which no two within three cycles add to one sum."""
    pool, _ = average(AVERAGES[0], np.zeros((4, 8, 8, 16), np.int8))
    accelerator = of(PYNQ)
    code = lower_tiles(pool, {"rows": 1, "planes": 2}, accelerator)
    sums = code.records[multiplies(code.records) & (code.records["uop_end"] > code.records["uop_bgn"])]
    for record in sums:
        written = code.uops["dst"][int(record["uop_bgn"]) : int(record["uop_end"])].tolist()
        assert len(set(written)) == len(written) >= HAZARD_DISTANCE
        assert len(written) * int(record["iter_out"]) * int(record["iter_in"]) == 128
    assert len(sums) == 2


@pytest.mark.parametrize("kernel", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("size", [(2, 2), (3, 5), (7, 2)])
def test_a_maximum_that_reads_fewer_columns_than_its_stride_copies_no_others(
    size: tuple[int, int], kernel: tuple[int, int]
) -> None:
    out = ((size[0] - kernel[0]) // 3 + 1, (size[1] - kernel[1]) // 3 + 1)
    pool = PoolingLayer(2, size, kernel, (3, 3), (0, 0), out, None)
    for knobs in tile_knobs(pool):
        code = lower_tiles(pool, knobs, of(PYNQ))
        turns = code.records[np.isin(code.records["opcode"], (Opcode.GEMM, Opcode.ALU))]
        assert turns["iter_in"].all() and turns["iter_out"].all()
        assert code.uops["dst"].max() < code.accumulators


def test_a_row_of_windows_that_does_not_fit_has_no_schedule() -> None:
    wide = PoolingLayer(1, (2, 4096), (2, 2), (2, 2), (0, 0), (1, 2048), Averaging(2, (-128, 127)))
    assert not has_schedule(wide, of(PYNQ))
