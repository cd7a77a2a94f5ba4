"""Resets that end unexecuted, because the GEMM after them clears their accumulators in passing (vta_fold).

The tests cover which ones do and their cost. Accumulators, outputs, counters and faults equal those of instructions
one after another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from hilt.simulator.build import build, quick_build
from hilt.simulator.device import DeviceStatus, MemoryModel
from hilt.simulator.driver import Execution
from hilt.simulator.twin import Twin
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, MemoryType
from tests.rtl.assembly import (
    BASE,
    DATA,
    INSN,
    RESULT,
    UOP_POOL,
    Fields,
    alu,
    finish,
    gemm,
    load,
    micro_ops,
    words,
)
from tests.rtl.beside_twin import run_beside_twin
from tests.rtl.numpy_interpreter import NumpyInterpreter
from tests.rtl.random_resets import MEMORY, ResetProgram, difference, show_all
from tests.rtl.twin_comparison import differences
from tests.rtl.variants import IN_EACH_RUN, VARIANTS

PYNQ = VARIANTS["pynq A"]
ROWS, COLUMNS = 4, 100
COUNT = ROWS * COLUMNS
FIRST = 300
UOPS = [(0, 0, 0), (FIRST, 1, 2), (FIRST, 3, 4), (FIRST + COUNT, 5, 6), (2048 - COUNT, 2, 2), (2049 - COUNT, 2, 2)]
ZERO, RESET, ADD, NEXT, LAST, PAST = range(len(UOPS))
EXECUTED, FOLDED = COUNT // 2 + 7, 6  # busy cycles
LOADS = [
    load(MemoryType.UOP, 0, UOP_POOL // 4, 1, len(UOPS)),
    load(MemoryType.INP, 0, DATA // 16, 1, 64),
    load(MemoryType.WGT, 0, DATA // 256, 1, 64, push_next=1),
    load(MemoryType.ACC, 0, DATA // 64, 1, 2048, pop_prev=1),
]
_TILE = {"dst_factor_out": COLUMNS, "dst_factor_in": 1}


def reset(uop: int = RESET, **more: int) -> Fields:
    return gemm(uop, uop + 1, ROWS, COLUMNS, **_TILE, reset=1) | more


def add(uop: int = ADD, **more: int) -> Fields:
    return gemm(uop, uop + 1, ROWS, COLUMNS, **_TILE, src_factor_in=1, src_factor_out=3, wgt_factor_out=1) | more


SHOW = show_all(RESULT, 2048, 16)
TOKEN = [load(MemoryType.INP, 60, DATA // 16, 0, 0, push_next=1)]
CASES: dict[str, tuple[list[Fields], int]] = {
    "all of its accumulators": ([reset(), add()], FOLDED),
    "each twice": ([reset(), add() | {"uop_bgn": RESET, "uop_end": ADD + 1}], FOLDED),
    "again and again": ([reset(), gemm(ADD, ADD + 1, 9, COUNT, dst_factor_in=1, src_factor_out=1)], FOLDED),
    "one at a time, backwards in rows": (
        [reset(), gemm(ADD, ADD + 1, COLUMNS, ROWS, dst_factor_out=1, dst_factor_in=COLUMNS)],
        FOLDED,
    ),
    "more than its own": ([reset(), gemm(ZERO, ZERO + 1, 1, 2048, dst_factor_in=1)], FOLDED),
    "two at a time": ([reset(), gemm(ADD, ADD + 1, 1, COUNT, dst_factor_in=1)], FOLDED),
    "one row": ([reset(iter_out=1, iter_in=COUNT, dst_factor_out=9), add()], FOLDED),
    "one column": ([reset(iter_out=COUNT, iter_in=1, dst_factor_out=1, dst_factor_in=9), add()], FOLDED),
    "to the last accumulator": ([reset(LAST), add(LAST)], FOLDED),
    "a token before either": ([*TOKEN, *TOKEN, reset(pop_prev=1), add(pop_prev=1)], FOLDED),
    "a GEMM that pushes": ([reset(), add(push_prev=1)], FOLDED),
    "after another": ([reset(), add(), reset(NEXT), add(NEXT), reset(), add()], 3 * FOLDED),
    "some of its accumulators": ([reset(), add(iter_out=1, iter_in=COLUMNS - 1)], FOLDED + EXECUTED),
    "none of its accumulators": ([reset(), add(NEXT)], FOLDED + EXECUTED),
    "every other one": ([reset(), add(dst_factor_in=2)], FOLDED + EXECUTED),
    "a GEMM of nothing": ([reset(), add(iter_in=0)], FOLDED + EXECUTED),
    "left twice, one after another": (
        [reset(), add(NEXT), reset(NEXT), add(), reset(), add()],
        3 * FOLDED + 2 * EXECUTED,
    ),
    "rows apart": ([reset(dst_factor_out=COLUMNS + 1), add()], EXECUTED),
    "rows that meet": ([reset(dst_factor_out=COLUMNS - 1), add()], EXECUTED),
    "an input that moves": ([reset(src_factor_in=1), add()], 2 * EXECUTED - 7),
    "two micro-ops": ([reset(uop_end=ADD + 1, iter_out=2), add()], 2 * COUNT + 7),
    "a token after": ([reset(push_prev=1), add()], EXECUTED),
    "another reset next": ([reset(), reset()], 2 * EXECUTED),
    "an ALU next": (
        [reset(), alu(AluOpcode.ADD, ADD, ADD + 1, ROWS, COLUMNS, **_TILE, use_imm=1, imm=5)],
        EXECUTED,
    ),
}


@pytest.mark.parametrize("hazards", ["interlock", "none"])
@pytest.mark.parametrize("name", CASES)
def test_these_operators_fold(name: str, hazards: Literal["interlock", "none"]) -> None:
    if hazards == "none" and name in ("each twice", "two micro-ops"):
        return  # updates are lost: test_micro_op_pairs.py
    instructions, cycles = CASES[name]
    accelerator = replace(PYNQ, hazards=hazards)
    execution = _compare(accelerator, [*LOADS, *instructions, *SHOW])
    if hazards == "none":
        return
    others = [fields for fields in instructions if not fields.get("reset")]
    rest = _compare(accelerator, [*LOADS, *others, *SHOW]).counters.compute.busy
    took = execution.counters.compute.busy - rest
    slack = 8 * sum(fields.get("reset", 0) for fields in instructions)  # a GEMM's end; the launch of what was left
    assert cycles - slack <= took <= cycles + slack


def test_a_slow_memory_changes_nothing() -> None:
    program = [*LOADS, reset(), add(), reset(NEXT), add(), *SHOW]
    _compare(PYNQ, program, read_latency=90, bandwidth=(1, 1))


def test_the_first_program_after_power_on() -> None:
    """The marks of accumulators are wiped before the first reset can be folded."""
    _compare(PYNQ, [LOADS[0], reset(), add(), finish()], read_latency=1)


@pytest.mark.parametrize("variant", IN_EACH_RUN)
def test_random_tiles(variant: str) -> None:
    """Resets of any tile, and GEMMs that come to all of it, to some or to none, in any order, once or more."""
    statuses = {_random(VARIANTS[variant], seed, faulty=False) for seed in range(8 if variant == "pynq A" else 3)}
    assert statuses == {DeviceStatus.DONE}


def test_random_faults() -> None:
    """A GEMM that ends in a fault leaves the accumulators that it did not come to as the reset does."""
    statuses = {_random(PYNQ, seed, faulty=True) for seed in range(40)}
    assert statuses == {DeviceStatus.DONE, DeviceStatus.FAULT}


def _compare(accelerator: Accelerator, instructions: list[Fields], **timing: Any) -> Execution:
    """Run them on the RTL; memory equals the numpy interpreter's, cycles and counters the twin's."""
    program, pool = words(accelerator, instructions), micro_ops(accelerator, *UOPS)
    data = np.random.default_rng(3).integers(-128, 128, 0x2_0000, dtype=np.int8)
    run = run_beside_twin(accelerator, program, pool, data, MemoryModel(**timing))
    expected = run.before.copy()
    NumpyInterpreter(accelerator, BASE, expected).run(INSN, len(program))
    assert run.execution.status is DeviceStatus.DONE, run.execution
    assert np.array_equal(run.after, expected)
    return run.execution


# ---- Random programs, on the golden model too ------------------------------------------------------------------------


def _random(accelerator: Accelerator, seed: int, *, faulty: bool) -> DeviceStatus:
    """Compare the RTL with the golden model and the twin; return how the program ends."""
    program = ResetProgram(accelerator, seed, faulty=faulty)
    rtl = program.run(quick_build(accelerator, "rtl"))
    assert difference(rtl, program.run(build(accelerator, "golden"))) is None, seed
    assert differences(rtl[0], Twin(accelerator), program.placed, MemoryModel(0, MEMORY)) == [], seed
    return rtl[0].status
