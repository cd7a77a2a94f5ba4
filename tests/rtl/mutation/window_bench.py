"""The bench of mutants of window GEMMs, which need blocks of 16: random programs, and windows that fault."""

from __future__ import annotations

from pathlib import Path

from hilt.simulator.driver import Execution
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters
from hilt.vta.isa import MemoryType
from tests.rtl.assembly import UOP_POOL, Fields, finish, gemm, load, micro_ops, run, window
from tests.rtl.mutation.simulation import Bench, compare_random

WINDOWS = Accelerator(VTAParameters(3, 3, 5, 0, 4, 13, 12, 15, 14), IsaRevision.B, instruction_queue_depth=16)
"""1x16: 256 inputs, 128 weights, 256 accumulators, 2,048 micro-ops."""
PROGRAMS, INSTRUCTIONS = 12, 400
_POOL = [(0, 0, 0), (200, 100, 3), (0, 255, 127)]
_UOPS = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, len(_POOL))
_RISING = {"dst_factor_out": 9, "dst_factor_in": 1}
SINGLE: dict[str, list[Fields]] = {
    "waits for none": [window(0, 9, 10, (0, 1), **_RISING)],
    "rows that overlap by one": [window(0, 9, 10, **_RISING)],
    "columns two apart": [window(0, 9, 10, (0, 1), dst_factor_out=20, dst_factor_in=2)],
    "the same accumulator": [window(0, 3, 9, dst_factor_out=1)],
    "one after another": [window(0, 3, 5, **_RISING), window(1, 2, 7), gemm(0, 1, 1, 20, dst_factor_in=1, reset=1)],
    "after a reset": [gemm(0, 1, 1, 20, dst_factor_in=1, reset=1), window(0, 2, 10, (0, 1), **_RISING)],
    "of one column": [window(0, 2, 1)],
    "of no columns": [window(0, 2, 0)],
    "of more columns than a line": [window(0, 2, 129)],
    "of two micro-ops": [window(0, 1, 2) | {"uop_end": 2}],
    "input past its buffer": [window(2, 1, 9, (0, 9), src_factor_in=1)],
    "accumulator past its buffer that is not written": [window(1, 2, 9, (9, 9), dst_factor_out=99)],
}
"""Programs of a few GEMMs, by their special traits."""


def _compare(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    return compare_random(WINDOWS, PROGRAMS, INSTRUCTIONS, rtl, golden, ends) or _compare_single(rtl, golden, ends)


def _compare_single(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    pool = {UOP_POOL: micro_ops(WINDOWS, *_POOL)}
    for name, program in SINGLE.items():
        shown, expected = (run(each, WINDOWS, [_UOPS, *program, finish()], pool).execution for each in (rtl, golden))
        ends.append(shown)
        if (shown.status, shown.fault) != (expected.status, expected.fault):
            return f"window {name}: {shown.fault} and {expected.fault}"
    return None


BENCH = Bench(WINDOWS, _compare)
