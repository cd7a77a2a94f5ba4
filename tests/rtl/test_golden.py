"""The golden model's choices where public models differ (TVM_FACTS.md section 3), and its behaviour as a device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice, SimulatorError
from hilt.simulator.driver import execute
from hilt.vta.isa import AluOpcode, MemoryType
from hilt_runtime.registers import START, START_AND_AUTO_RESTART, Register
from tests.rtl.assembly import (
    BASE,
    DATA,
    INSN,
    MEMORY_BYTES,
    RESULT,
    UOP_POOL,
    alu,
    finish,
    gemm,
    load,
    micro_ops,
    run,
    store,
    words,
)
from tests.rtl.variants import VARIANTS

A, B = VARIANTS["pynq A"], VARIANTS["pynq B"]
UOPS = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 1)
STORE_ONE = store(0, RESULT // 16, 1, 1, pop_prev=1, push_prev=1)
END = finish(pop_next=1)


@pytest.fixture(scope="module")
def golden() -> Path:
    return build(A, "golden")


def test_an_acc_load_alone_leaves_out_stale(golden: Path) -> None:
    values = np.full(16, 9, "<i4")
    instructions = [
        UOPS,
        alu(AluOpcode.ADD, 0, 1, use_imm=1, imm=4),
        load(MemoryType.ACC, 0, DATA // 64, 1, 1, push_next=1),
        STORE_ONE,
        END,
    ]
    finished = run(golden, A, instructions, {UOP_POOL: micro_ops(A, (0, 0, 0)), DATA: values.tobytes()})
    assert finished.read(RESULT, 16).tolist() == [4] * 16


def test_out_keeps_the_sum_of_a_resetting_gemm(golden: Path) -> None:
    inp, wgt = np.full(16, 2, "i1"), np.full((16, 16), 3, "i1")
    instructions = [
        load(MemoryType.INP, 0, DATA // 16, 1, 1),
        load(MemoryType.WGT, 0, DATA // 256 + 1, 1, 1, push_next=1),
        UOPS,
        alu(AluOpcode.ADD, 0, 1, use_imm=1, imm=4, pop_prev=1),
        gemm(0, 1, reset=1, push_next=1),
        STORE_ONE,
        alu(AluOpcode.ADD, 0, 1, use_imm=1, imm=1, pop_next=1, push_next=1),
        store(0, RESULT // 16 + 1, 1, 1, pop_prev=1, push_prev=1),
        END,
    ]
    contents = {UOP_POOL: micro_ops(A, (0, 0, 0)), DATA: inp.tobytes(), DATA + 256: wgt.tobytes()}
    finished = run(golden, A, instructions, contents)
    assert finished.read(RESULT, 16).tolist() == [16 * 2 * 3 + 4] * 16
    assert finished.read(RESULT + 16, 16).tolist() == [1] * 16


@pytest.mark.parametrize(
    ("imm", "expected"), [(0, -40), (3, -5), (15, -1), (16, 0), (-1, -80), (31, -80), (32, -40), (-16, 0), (30, -160)]
)
def test_shr_takes_the_low_five_bits_as_a_signed_amount(golden: Path, imm: int, expected: int) -> None:
    instructions = [
        UOPS,
        alu(AluOpcode.ADD, 0, 1, use_imm=1, imm=-40),
        alu(AluOpcode.SHR, 0, 1, use_imm=1, imm=imm, push_next=1),
        STORE_ONE,
        END,
    ]
    finished = run(golden, A, instructions, {UOP_POOL: micro_ops(A, (0, 0, 0))})
    assert finished.read(RESULT, 16).view(np.int8).tolist() == [int(np.array(expected).astype(np.int8))] * 16


def test_revision_b_multiplies_and_loads_accumulators_of_bytes() -> None:
    values = np.arange(-8, 8, dtype="i1")
    instructions = [
        UOPS,
        load(MemoryType.ACC_8BIT, 0, DATA // 16, 1, 1),
        alu(AluOpcode.MUL, 0, 1, use_imm=1, imm=-7, push_next=1),
        STORE_ONE,
        END,
    ]
    finished = run(build(B, "golden"), B, instructions, {UOP_POOL: micro_ops(B, (0, 0, 0)), DATA: values.tobytes()})
    assert finished.read(RESULT, 16).view(np.int8).tolist() == (values * -7).tolist()


def test_fetch_stalls_when_a_queue_is_full(golden: Path) -> None:
    """The load queue holds 512 and the stage one more: a token that is pushed behind them never comes."""
    for waiting, status in ((512, DeviceStatus.DONE), (514, DeviceStatus.RUNNING)):
        loads = [load(MemoryType.INP, 0, 0, 0, 0, pop_next=1) for _ in range(waiting)]
        instructions = [*loads, *(gemm(0, 0, push_prev=1) for _ in range(waiting)), finish()]
        assert run(golden, A, instructions, max_cycles=10_000).execution.status is status


def test_a_limit_holds_however_large_the_instruction(golden: Path) -> None:
    """A program of 2^41 micro-ops runs in pieces, and each piece ends at its limit."""
    with SimulatedDevice(golden, MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(INSN, words(A, [gemm(0, 8192, 16383, 16383), finish()]))
        assert execute(device, INSN, 2, 1000).status is DeviceStatus.RUNNING
        for _ in range(3):
            assert device.step(500) == (DeviceStatus.RUNNING, 500)
        assert device.counters().cycles == 2500
        assert device.counters().macs == (2500 - 2) * 256  # two fetched


def test_counts_work_and_bytes(golden: Path) -> None:
    instructions = [
        load(MemoryType.INP, 0, DATA // 16, 2, 3, x_pad_0=1),
        load(MemoryType.WGT, 0, DATA // 256, 1, 2, push_next=1),
        UOPS,
        gemm(0, 1, 3, 4, pop_prev=1, push_next=1),
        store(0, RESULT // 16, 1, 5, pop_prev=1, push_prev=1),
        END,
    ]
    counters = run(golden, A, instructions, {UOP_POOL: micro_ops(A, (0, 0, 0))}).execution.counters
    assert counters.macs == 12 * 256
    assert (counters.fetch.bytes, counters.fetch.instructions) == (6 * 16, 6)
    assert (counters.load.bytes, counters.load.instructions) == (6 * 16 + 2 * 256, 2)
    assert (counters.compute.bytes, counters.compute.instructions) == (4, 3)
    assert (counters.store.bytes, counters.store.instructions) == (5 * 16, 1)


def test_address_registers_are_added(golden: Path) -> None:
    """Address registers are added, as the public driver may use them.

    dram_base counts from 0, and the buffer's address is in its register.
    """
    instructions = [
        load(MemoryType.UOP, 0, 0, 1, 1),
        load(MemoryType.ACC, 0, 2, 1, 1),
        alu(AluOpcode.ADD, 0, 1, use_imm=1, imm=1, push_next=1),
        store(0, 5, 1, 1, pop_prev=1, push_prev=1),
        END,
    ]
    with SimulatedDevice(golden, MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(INSN, words(A, instructions))
        device.write_memory(DATA + 2 * 64, np.arange(16, dtype="<i4"))
        registers = {
            Register.INSN_COUNT: len(instructions),
            Register.INSN_ADDR: INSN,
            Register.UOP_ADDR: UOP_POOL,
            Register.BIAS_ADDR: DATA,
            Register.OUT_ADDR: RESULT,
            Register.FETCH_CONTROL: START,
            Register.LOAD_CONTROL: START_AND_AUTO_RESTART,
            Register.COMPUTE_CONTROL: START_AND_AUTO_RESTART,
            Register.STORE_CONTROL: START_AND_AUTO_RESTART,
        }
        for register, value in registers.items():
            device.write_register(register, value)
        assert device.step(1000)[0] is DeviceStatus.DONE
        assert device.read_memory(RESULT + 5 * 16, 16) == np.arange(1, 17, dtype="i1").tobytes()


def test_a_stage_started_without_auto_restart_does_one_instruction(golden: Path) -> None:
    with SimulatedDevice(golden, MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(INSN, words(A, [gemm(0, 0), gemm(0, 0), finish()]))
        device.write_register(Register.INSN_COUNT, 3)
        device.write_register(Register.INSN_ADDR, INSN)
        device.write_register(Register.FETCH_CONTROL, START)
        for instructions in (1, 2):
            device.write_register(Register.COMPUTE_CONTROL, START)
            assert device.step(100)[0] is DeviceStatus.RUNNING
            assert device.counters().compute.instructions == instructions
            assert device.read_register(Register.COMPUTE_CONTROL) & 0b110 == 0b110  # done, idle
        device.write_register(Register.COMPUTE_CONTROL, START)
        assert device.step(100)[0] is DeviceStatus.DONE


def test_the_model_describes_itself(golden: Path) -> None:
    with SimulatedDevice(golden, MemoryModel(BASE, MEMORY_BYTES)) as device:
        assert device.description == {
            **{"form": "golden", "parameters": A.parameters.name, "isa": "A"},
            **{"bus_bits": 64, "hazards": "interlock"},
        }
        assert device.read_register(Register.IDENTITY) == int.from_bytes(b"HILT", "big")
        assert device.read_register(Register.MAP_VERSION) == 1
        assert device.read_register(Register.GEOMETRY) == 0x53340
        assert device.read_register(Register.BUFFER_SIZES) == 0x11120F0F
        assert device.read_register(Register.BUILD) == 1 << 16 | 1 << 13 | 1 << 12 | 6 << 8


def test_missing_files_are_refused(golden: Path, tmp_path: Path) -> None:
    with SimulatedDevice(golden, MemoryModel(BASE, MEMORY_BYTES)) as device:
        assert device.step(10) == (DeviceStatus.IDLE, 0)
        with pytest.raises(SimulatorError, match="not all in the memory 0x100000..0x200000"):
            device.read_memory(BASE + MEMORY_BYTES - 8, 16)
        with pytest.raises(SimulatorError, match="no register at 0x4000"):
            device.read_register(0x4000)
        with pytest.raises(SimulatorError, match="have 32 bits"):
            device.write_register(Register.INSN_ADDR, 1 << 32)
        with pytest.raises(SimulatorError, match="a limit of 18446744073709551616 cycles"):
            device.step(1 << 64)
    with pytest.raises(SimulatorError, match="memory_bytes 18446744073709551616 cannot be: it has 64 bits"):
        SimulatedDevice(golden, MemoryModel(bytes=1 << 64))
    with pytest.raises(SimulatorError, match="seed -1 cannot be: it has 32 bits"):
        SimulatedDevice(golden, MemoryModel(seed=-1))
    with pytest.raises(SimulatorError, match="not a multiple of 4096"):
        SimulatedDevice(golden, MemoryModel(base=16))
    no_model = tmp_path / "libvta.so"
    no_model.write_bytes(b"")
    with pytest.raises(SimulatorError, match="is not a VTA model"):
        SimulatedDevice(no_model, MemoryModel())
