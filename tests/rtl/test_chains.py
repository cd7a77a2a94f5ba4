"""MIN and MAX that join an ALU instruction with immediate in one pass (vta_chain).

The tests cover which ones join and their cost. Accumulators, outputs, counters and faults equal those of
instructions one after another.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.simulator.build import quick_build
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Fault, execute
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, MemoryType
from hilt_runtime.registers import START, START_AND_AUTO_RESTART, FaultCode, Register
from tests.rtl.assembly import (
    BASE,
    DATA,
    INSN,
    MEMORY_BYTES,
    RESULT,
    UOP_POOL,
    Fields,
    alu,
    finish,
    load,
    micro_ops,
    store,
    words,
)
from tests.rtl.beside_twin import run_beside_twin
from tests.rtl.numpy_interpreter import NumpyInterpreter
from tests.rtl.variants import VARIANTS

PYNQ = VARIANTS["pynq A"]
UOPS = [(0, 0, 0), (1, 0, 0), (2047, 0, 0), (0, 0, 0)]
ROWS, COLUMNS = 4, 100
PASS = ROWS * COLUMNS // 2  # cycles
VALUES = np.random.default_rng(5).integers(-2000, 2000, 2048 * 16, dtype=np.int32)
SLACK = 7 + 2 * (ROWS - 1)  # cycles that an instruction may take beside its pass: two where a row meets the one before

SHR, ADD, MAX, MIN = AluOpcode.SHR, AluOpcode.ADD, AluOpcode.MAX, AluOpcode.MIN


def over(operation: int, imm: int, **more: int) -> Fields:
    tile = {"dst_factor_out": COLUMNS, "dst_factor_in": 1}
    return alu(operation, 0, 1, ROWS, COLUMNS, **tile, use_imm=1, imm=imm) | more


def chain(*operations: int, **more: int) -> list[Fields]:
    """`more` is of every instruction."""
    return [over(operation, imm, **more) for operation, imm in zip(operations, (3, -90, 80, -70, 60), strict=False)]


def with_last(fields: list[Fields], **more: int) -> list[Fields]:
    return [*fields[:-1], fields[-1] | more]


TOKEN = [load(MemoryType.INP, 0, DATA // 16, 0, 0, push_next=1)]
PASSES: dict[str, tuple[list[Fields], float]] = {
    "one": (chain(SHR), 1),
    "a conv's": (chain(SHR, MAX, MIN), 1),
    "five": (chain(ADD, MIN, MAX, MIN, MAX), 1),
    "MAX begins": (chain(MAX, MIN), 1),
    "a token after": (with_last(chain(SHR, MAX, MIN), push_prev=1), 1),
    "a token before": ([*TOKEN, over(SHR, 3, pop_prev=1), *chain(MAX, MIN)], 1),
    "rows apart": (chain(SHR, MAX, MIN, dst_factor_out=COLUMNS + 7), 1),
    "one row, whose outer factor means nothing": (chain(SHR, MAX, iter_out=1, dst_factor_out=1, iter_in=400), 1),
    "one column, whose inner factor means nothing": (
        chain(SHR, MAX, iter_out=400, iter_in=1, dst_factor_out=1, dst_factor_in=9),
        1,
    ),
    "to the last accumulator": (chain(SHR, MAX, dst_factor_out=(2048 - COLUMNS) // 3), 1),
    "other sources, which an immediate has not": (with_last(chain(SHR, MAX), src_factor_in=1), 1),
    "SHR does not join": (chain(MAX, SHR), 2),
    "ADD does not join, and begins another": (chain(SHR, ADD, MAX), 2),
    "a token within": ([over(SHR, 3, push_prev=1), over(MAX, 0)], 2),
    "a token awaited within": ([*TOKEN, over(SHR, 3), over(MAX, 0, pop_prev=1)], 2),
    "two tensors": (with_last(chain(SHR, MAX), use_imm=0, src_factor_out=COLUMNS, src_factor_in=1), 3),
    "an instruction between": ([over(SHR, 3), load(MemoryType.UOP, 9, UOP_POOL // 4, 1, 0), over(MAX, 0)], 2),
    "rows that meet": (chain(SHR, MAX, dst_factor_out=COLUMNS - 1), 2),
    "columns that do not move": (chain(SHR, MAX, dst_factor_in=0), 12),
    "every other column": (chain(SHR, MAX, dst_factor_in=2, dst_factor_out=2 * COLUMNS), 4),
    "two micro-ops": (chain(SHR, MAX, uop_end=2, dst_factor_in=2, iter_in=COLUMNS // 2), 2),
    "another micro-op": (with_last(chain(SHR, MAX), uop_bgn=3, uop_end=4), 2),
    "other loops": (with_last(chain(SHR, MAX), iter_out=ROWS // 2, iter_in=2 * COLUMNS), 2),
    "another outer factor": (with_last(chain(SHR, MAX), dst_factor_out=COLUMNS + 1), 2),
}


@pytest.mark.parametrize("hazards", ["interlock", "none"])
@pytest.mark.parametrize("name", PASSES)
def test_these_instructions_join(name: str, hazards: str) -> None:
    instructions, passes = PASSES[name]
    accelerator = replace(PYNQ, hazards=hazards)
    program = words(accelerator, [*LOADS, *instructions, *SHOW])
    memory, busy = _run(accelerator, program)
    if hazards == "none" and name in ("columns that do not move", "rows that meet"):
        return  # updates are lost: test_micro_op_pairs.py
    assert np.array_equal(memory, _interpreted(accelerator, program, memory))
    took = busy - _busy_without(accelerator)
    if hazards == "none":  # one micro-op a cycle, one of two tensors in two
        passes = sum(2 if fields["use_imm"] else 4 for fields in instructions if "use_imm" in fields)
    assert passes * PASS - SLACK <= took <= passes * PASS + SLACK * len(instructions)


@cache
def _busy_without(accelerator: Accelerator) -> int:
    """Compute's, of the rest of test_these_instructions_join' programs."""
    return _run(accelerator, words(accelerator, [*LOADS, *SHOW]))[1]


@pytest.mark.parametrize("seed", range(4))
def test_any_clamps_in_a_row(seed: int) -> None:
    """Bounds above one another or not, at the ends of 16 bits, and equal to values."""
    generator = np.random.default_rng(seed)
    values = np.concatenate((generator.integers(-(2**31), 2**31, 1024), generator.integers(-9, 9, 1024 * 31)))
    bounds = (-32768, 32767, -9, -3, 0, 3, 9)
    clamps = [over(int(generator.integers(2)), int(generator.choice(bounds))) for _ in range(60)]
    heads = [over(int(generator.choice((SHR, ADD, MIN, MAX))), int(generator.choice(bounds))) for _ in range(12)]
    instructions = [fields for n, head in enumerate(heads) for fields in (head, *clamps[5 * n : 5 * n + n % 6])]
    program = words(PYNQ, [*LOADS, *instructions, *SHOW])
    memory, _ = _run(PYNQ, program, values.astype(np.int32))
    assert np.array_equal(memory, _interpreted(PYNQ, program, memory))


def test_a_stage_that_is_started_for_one_instruction_joins_none() -> None:
    """Compute without auto restart: each start is one instruction of a chain."""
    program = [load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 1), *chain(SHR, MAX, MIN), finish()]
    with SimulatedDevice(quick_build(PYNQ, "rtl"), MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(INSN, words(PYNQ, program))
        for register, value in (
            (Register.INSN_COUNT, len(program)),
            (Register.INSN_ADDR, INSN),
            (Register.FETCH_CONTROL, START),
        ):
            device.write_register(register, value)
        for executed in (1, 2, 3):
            device.write_register(Register.COMPUTE_CONTROL, START)
            device.step(2_000)
            assert device.counters().compute.instructions == executed
        device.write_register(Register.COMPUTE_CONTROL, START_AND_AUTO_RESTART)
        assert device.step(2_000)[0] is DeviceStatus.DONE


def test_joins_do_not_depend_on_the_memory() -> None:
    """The chain waits for instructions that a slow memory brings late: the pass is one, and later."""
    program = words(PYNQ, [LOADS[0], *chain(SHR, MAX, MIN, MAX, MIN), finish()])
    quick, slow = (_run(PYNQ, program, **timing)[1] for timing in ({}, {"bandwidth": (1, 2)}))
    assert quick + PASS / 4 < slow < quick + 2 * PASS


def test_an_index_past_the_accumulator_stops_the_first_before_the_second_begins() -> None:
    """An index past the accumulator stops the first instruction before the second begins.

    One pass would have changed the accumulators before the fault by MAX.
    """
    faulty = chain(ADD, MAX, dst_factor_out=(2048 - COLUMNS) // 3 + 1)
    show = words(PYNQ, [store(0, RESULT // 16, 1, 2048, push_prev=1), finish(pop_next=1)])
    with SimulatedDevice(quick_build(PYNQ, "rtl"), MemoryModel(BASE, MEMORY_BYTES)) as device:
        program = words(PYNQ, [load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 1), *faulty, finish()])
        device.write_memory(INSN, program)
        execution = execute(device, INSN, len(program), 100_000)
        assert execution.status is DeviceStatus.FAULT and execution.fault == Fault(FaultCode.ACC_INDEX, 2048)
        assert execution.counters.compute.instructions == 1
        device.write_register(Register.SOFT_RESET, 1)
        device.write_memory(INSN, show)
        assert execute(device, INSN, len(show), 100_000).status is DeviceStatus.DONE
        out = np.frombuffer(device.read_memory(RESULT, 2048 * 16), np.int8).reshape(2048, 16)
    outer = (2048 - COLUMNS) // 3 + 1
    expected = np.zeros((2048, 16), np.int8)
    for row in range(ROWS):
        expected[row * outer : row * outer + COLUMNS] = 3
    assert np.array_equal(out, expected)


LOADS = [load(MemoryType.UOP, 0, UOP_POOL // 4, 1, len(UOPS)), load(MemoryType.ACC, 0, DATA // 64, 1, 2048)]
_EVERYWHERE = {"iter_out": 1, "iter_in": 2048}
SHOW = [
    *(
        fields
        for byte in range(4)
        for fields in (
            over(SHR, 8 * (byte > 0), **_EVERYWHERE, push_next=1, pop_next=int(byte > 0)),
            store(0, RESULT // 16 + 2048 * byte, 1, 2048, pop_prev=1, push_prev=1),
        )
    ),
    finish(pop_next=1),
]


def _run(
    accelerator: Accelerator, program: NDArray[np.uint64], values: NDArray[np.int32] = VALUES, **timing: Any
) -> tuple[NDArray[np.uint8], int]:
    """Return the memory after the run and compute's busy cycles, which must equal the twin's.

    `values`, of the accumulator, lie at DATA.
    """
    run = run_beside_twin(accelerator, program, micro_ops(PYNQ, *UOPS), values, MemoryModel(**timing))
    assert run.execution.status is DeviceStatus.DONE, run.execution
    return run.after, run.execution.counters.compute.busy


def _interpreted(accelerator: Accelerator, program: NDArray[np.uint64], memory: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the result of the numpy interpreter for the program whose run left `memory`."""
    expected = memory.copy()
    expected[RESULT - BASE :] = 0
    NumpyInterpreter(accelerator, BASE, expected).run(INSN, len(program))
    return expected
