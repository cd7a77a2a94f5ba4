"""A program's mistake ends its run with a code and an address, the same on the golden model and on the RTL, and the
accelerator runs the next program after a soft reset."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.simulator.build import Form, quick_build
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Fault, execute
from hilt.vta.isa import AluOpcode, MemoryType, Opcode
from hilt_runtime.registers import FaultCode, Register
from tests.rtl.assembly import (
    BASE,
    DATA,
    INSN,
    MEMORY_BYTES,
    RESULT,
    UOP_POOL,
    Fields,
    alu,
    fill_table,
    finish,
    gemm,
    load,
    micro_ops,
    run,
    store,
    store_by_table,
    window,
    words,
)
from tests.rtl.variants import VARIANTS

A = VARIANTS["pynq A"]
END = BASE + MEMORY_BYTES
UOPS = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 1)

# Name: instructions, the micro-op in the pool, the expected fault.
PROGRAMS: dict[str, tuple[list[Fields], tuple[int, int, int], Fault]] = {
    "uop load past its buffer": (
        [load(MemoryType.UOP, 8190, UOP_POOL // 4, 1, 3)],
        (0, 0, 0),
        Fault(FaultCode.UOP_INDEX, 8192),
    ),
    "inp load past its buffer": (
        [load(MemoryType.INP, 2040, DATA // 16, 3, 3)],
        (0, 0, 0),
        Fault(FaultCode.INP_INDEX, 2048),
    ),
    "pads alone past the buffer": (
        [load(MemoryType.INP, 2047, DATA // 16, 0, 0, x_pad_0=1, y_pad_1=2)],
        (0, 0, 0),
        Fault(FaultCode.INP_INDEX, 2048),
    ),
    "wgt load from past its buffer": (
        [load(MemoryType.WGT, 5000, DATA // 256, 1, 1)],
        (0, 0, 0),
        Fault(FaultCode.WGT_INDEX, 5000),
    ),
    "acc load past its buffer": (
        [load(MemoryType.ACC, 2000, DATA // 64, 7, 7)],
        (0, 0, 0),
        Fault(FaultCode.ACC_INDEX, 2048),
    ),
    "store past its buffer": (
        [store(2047, RESULT // 16, 2, 1)],
        (0, 0, 0),
        Fault(FaultCode.OUT_INDEX, 2048),
    ),
    "store by way of the table past its buffer": (
        [store_by_table(2040, RESULT // 16, 3, 3)],
        (0, 0, 0),
        Fault(FaultCode.OUT_INDEX, 2048),
    ),
    "store to the table from past its buffer": (
        [fill_table(2033, 16)],
        (0, 0, 0),
        Fault(FaultCode.OUT_INDEX, 2048),
    ),
    "store to the table of nothing": (
        [gemm(0, 0), fill_table(0, 0)],
        (0, 0, 0),
        Fault(FaultCode.ILLEGAL_INSTRUCTION, 1),
    ),
    "store to the table of two rows": (
        [gemm(0, 0), fill_table(0, 16, 2), fill_table(0, 16, 2)],
        (0, 0, 0),
        Fault(FaultCode.ILLEGAL_INSTRUCTION, 1),
    ),
    "micro-op past its buffer": (
        [UOPS, gemm(8191, 8194)],
        (0, 0, 0),
        Fault(FaultCode.UOP_INDEX, 8192),
    ),
    "gemm source past its buffer": (
        [UOPS, gemm(0, 1, 5, 1, src_factor_out=512)],
        (0, 0, 0),
        Fault(FaultCode.INP_INDEX, 2048),
    ),
    "gemm weight past its buffer": (
        [UOPS, gemm(0, 1, 1, 3, wgt_factor_in=500)],
        (0, 0, 1000),
        Fault(FaultCode.WGT_INDEX, 1500),
    ),
    "source of a window past its buffer": (
        [UOPS, window(0, 1, 9, (0, 9), src_factor_in=1)],
        (0, 2040, 0),
        Fault(FaultCode.INP_INDEX, 2048),
    ),
    "destination that a window does not write past its buffer": (
        [UOPS, window(0, 2, 2, (9, 9), dst_factor_out=1000, dst_factor_in=100)],
        (1000, 0, 0),
        Fault(FaultCode.ACC_INDEX, 2100),
    ),
    "window of two micro-ops": (
        [gemm(0, 0), window(0, 1, 2) | {"uop_end": 2}],
        (0, 0, 0),
        Fault(FaultCode.ILLEGAL_INSTRUCTION, 1),
    ),
    "window of no micro-op": (
        [gemm(0, 0), window(3, 1, 2) | {"uop_end": 3}],
        (0, 0, 0),
        Fault(FaultCode.ILLEGAL_INSTRUCTION, 1),
    ),
    "window of one column": (
        [gemm(0, 0), window(0, 2, 1)],
        (0, 0, 0),
        Fault(FaultCode.ILLEGAL_INSTRUCTION, 1),
    ),
    "window of more columns than a line has": (
        [gemm(0, 0), window(0, 2, 129)],
        (0, 0, 0),
        Fault(FaultCode.ILLEGAL_INSTRUCTION, 1),
    ),
    "gemm destination past its buffer": (
        [UOPS, gemm(0, 1, 2, 2, dst_factor_out=1000, dst_factor_in=100)],
        (1000, 0, 0),
        Fault(FaultCode.ACC_INDEX, 2100),
    ),
    "resetting gemm source past its buffer": (
        [UOPS, gemm(0, 1, 2, 1, src_factor_out=1, reset=1)],
        (0, 2047, 0),
        Fault(FaultCode.INP_INDEX, 2048),
    ),
    "alu destination past its buffer": (
        [UOPS, alu(AluOpcode.ADD, 0, 1, 1, 3, dst_factor_in=1024, use_imm=1)],
        (5, 0, 0),
        Fault(FaultCode.ACC_INDEX, 2053),
    ),
    "alu source past its buffer": (
        [UOPS, alu(AluOpcode.ADD, 0, 1, 1, 3, src_factor_in=1024)],
        (0, 7, 0),
        Fault(FaultCode.ACC_INDEX, 2055),
    ),
    "load from past the memory": (
        [load(MemoryType.INP, 0, (END - 64) // 16, 1, 20)],
        (0, 0, 0),
        Fault(FaultCode.DECERR, END),
    ),
    "load from before the memory": (
        [load(MemoryType.ACC, 0, 0x2000 // 64, 1, 2)],
        (0, 0, 0),
        Fault(FaultCode.DECERR, 0x2000),
    ),
    "uop load from past the memory": (
        [load(MemoryType.UOP, 0, (END + 0x4000) // 4, 1, 2)],
        (0, 0, 0),
        Fault(FaultCode.DECERR, END + 0x4000),
    ),
    "store to past the memory": (
        [store(0, (END - 4096) // 16, 3, 256)],
        (0, 0, 0),
        Fault(FaultCode.DECERR, END),
    ),
}


@pytest.mark.parametrize("form", ["golden", "rtl"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_is_reported_with_code_and_address(form: Form, name: str) -> None:
    instructions, uop, expected = PROGRAMS[name]
    never = finish(pop_next=1)  # so that it is the fault that ends the run
    finished = run(quick_build(A, form), A, [*instructions, never], {UOP_POOL: micro_ops(A, uop)})
    assert finished.execution.status is DeviceStatus.FAULT
    assert finished.execution.fault == expected


@pytest.mark.parametrize("form", ["golden", "rtl"])
@pytest.mark.parametrize(
    ("variant", "illegal"),
    [
        ("pynq A", (5, 0)),
        ("pynq A", (7, 0)),
        ("pynq B", (Opcode.LOAD | MemoryType.OUT << 7, 0)),
        ("pynq B", (Opcode.LOAD | 7 << 7, 0)),
        ("pynq B", (Opcode.ALU, 5 << 44)),
        ("pynq B", (Opcode.ALU, 7 << 44)),
    ],
)
def test_the_first_illegal_instruction_is_reported_with_its_number(
    form: Form, variant: str, illegal: tuple[int, int]
) -> None:
    accelerator = VARIANTS[variant]
    program = words(accelerator, [gemm(0, 0), gemm(0, 0), finish(), finish(), finish()])
    program[2] = program[3] = illegal
    finished = run(quick_build(accelerator, form), accelerator, program)
    assert finished.execution.status is DeviceStatus.FAULT
    assert finished.execution.fault == Fault(FaultCode.ILLEGAL_INSTRUCTION, 2)


@pytest.mark.parametrize("form", ["golden", "rtl"])
def test_an_illegal_store_is_reported_though_an_illegal_instruction_of_compute_waits_before_it(form: Form) -> None:
    program = words(A, [gemm(0, 0), store(0, RESULT // 16, 1, 1), fill_table(0, 17), finish(pop_next=1)])
    program[0] = (5 | 1 << 3, 0)  # its token never comes
    assert run(quick_build(A, form), A, program).execution.fault == Fault(FaultCode.ILLEGAL_INSTRUCTION, 2)


@pytest.mark.parametrize("form", ["golden", "rtl"])
def test_instructions_outside_the_memory_are_a_bus_error(form: Form) -> None:
    with SimulatedDevice(quick_build(A, form), MemoryModel(BASE, MEMORY_BYTES)) as device:
        execution = execute(device, END - 32, 5, 100_000)
    assert execution.fault == Fault(FaultCode.DECERR, END)


@pytest.mark.parametrize("form", ["golden", "rtl"])
def test_a_soft_reset_makes_it_run_again_with_its_buffers_as_they_were(form: Form) -> None:
    """acc is loaded before the fault and stored, by way of an ALU, after the reset."""
    values = np.arange(16, dtype="<i4")
    after = words(
        A,
        [
            UOPS,
            alu(AluOpcode.ADD, 0, 1, use_imm=1, imm=5, push_next=1),
            store(3, RESULT // 16, 1, 1, pop_prev=1, push_prev=1),
            finish(pop_next=1),
        ],
    )
    with SimulatedDevice(quick_build(A, form), MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(DATA, values)
        device.write_memory(UOP_POOL, micro_ops(A, (3, 3, 0)))
        device.write_memory(INSN, words(A, [load(MemoryType.ACC, 3, DATA // 64, 1, 1), gemm(8191, 8193), finish()]))
        assert execute(device, INSN, 3, 100_000).fault == Fault(FaultCode.UOP_INDEX, 8192)
        assert device.read_register(Register.DONE_READ) == 0
        device.write_register(Register.SOFT_RESET, 1)
        assert device.read_register(Register.FAULT_CODE) == 0
        device.write_memory(INSN, after)
        assert execute(device, INSN, len(after), 100_000).status is DeviceStatus.DONE
        assert device.read_memory(RESULT, 16) == (values + 5).astype(np.int8).tobytes()


@pytest.mark.parametrize("form", ["golden", "rtl"])
def test_a_block_of_nothing_is_no_mistake_wherever_it_is(form: Form) -> None:
    """x_size 0 and no pads: neither its index nor its address is looked at."""
    instructions = [
        load(MemoryType.INP, 60000, 0xFFFF_FFFF, 5, 0),
        load(MemoryType.WGT, 60000, 0xFFFF_FFFF, 0, 5, x_pad_0=3),
        load(MemoryType.ACC, 60000, 0xFFFF_FFFF, 0, 0),
        load(MemoryType.UOP, 60000, 0xFFFF_FFFF, 9, 0, y_pad_0=3),
        store(60000, 0xFFFF_FFFF, 0, 5),
        gemm(8191, 8191, 9, 9),
        gemm(8191, 9000, 0, 9),
        finish(),
    ]
    assert run(quick_build(A, form), A, instructions).execution.status is DeviceStatus.DONE
