"""The RTL's machinery, on small programs.

The tests cover throughput and latency of each stage, overlap, queues, tokens, hazards, registers and soft reset.
test_rtl_equals_golden.py holds the results of the instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilt.simulator.build import quick_build
from hilt.simulator.device import Counters, DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Fault, execute
from hilt.vta.isa import AluOpcode, MemoryType
from hilt_runtime.registers import START, START_AND_AUTO_RESTART, FaultCode, Register
from tests.rtl.assembly import (
    DATA,
    INSN,
    RESULT,
    UOP_POOL,
    Fields,
    alu,
    fill_table,
    finish,
    gemm,
    load,
    micro_ops,
    store,
    store_by_table,
    window,
    words,
)
from tests.rtl.variants import VARIANTS

A = VARIANTS["pynq A"]
LATENCY = 40
MEMORY = MemoryModel(base=0, bytes=1 << 22, read_latency=LATENCY, write_latency=20)
UOPS = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 1)
SLACK = 16  # cycles that an instruction may take beside its work and one memory latency


@pytest.fixture(scope="module")
def rtl() -> Path:
    return quick_build(A, "rtl")


@pytest.fixture
def device(rtl: Path) -> Iterator[SimulatedDevice]:
    with SimulatedDevice(rtl, MEMORY) as opened:
        yield opened


def run(device: SimulatedDevice, program: Sequence[Fields], max_cycles: int = 1_000_000) -> Counters:
    device.write_memory(INSN, words(A, program))
    execution = execute(device, INSN, len(program), max_cycles)
    assert execution.status is DeviceStatus.DONE, execution
    return execution.counters


# ---- Throughput ------------------------------------------------------------------------------------------------------


STEP = {"dst_factor_in": 1, "src_factor_in": 1}  # from bank to bank
NESTS = {
    "gemm": gemm(0, 1, **STEP),
    "gemm of one accumulator": gemm(0, 1),
    "gemm of one input": gemm(0, 1, dst_factor_in=1),
    "reset": gemm(0, 1, dst_factor_in=1, reset=1),
    "alu with an immediate": alu(AluOpcode.ADD, 0, 1, dst_factor_in=1, use_imm=1),
    "alu with an immediate, one bank": alu(AluOpcode.ADD, 0, 1, dst_factor_in=2, use_imm=1),
    "alu of two tensors": alu(AluOpcode.ADD, 0, 1, **STEP),
    "alu of two tensors, one source": alu(AluOpcode.ADD, 1, 2, dst_factor_in=1),
    "alu of two tensors, one bank": alu(AluOpcode.ADD, 0, 1, dst_factor_in=2, src_factor_in=2),
}


@pytest.mark.parametrize(
    ("name", "interlock", "none"),
    [
        ("gemm", 1, 1),
        ("gemm of one accumulator", 3, 1),
        ("gemm of one input", 0.5, 1),
        ("reset", 0.5, 1),
        ("alu with an immediate", 0.5, 1),
        ("alu with an immediate, one bank", 1, 1),
        ("alu of two tensors", 1, 2),
        ("alu of two tensors, one source", 1, 2),
        ("alu of two tensors, one bank", 2, 2),
    ],
)
@pytest.mark.parametrize("hazards", ["interlock", "none"])
def test_cycles_of_a_micro_op(hazards: str, name: str, interlock: float, none: float) -> None:
    accelerator = replace(A, hazards=hazards)
    cycles_each = interlock if hazards == "interlock" else none

    def busy(count: int) -> int:
        with SimulatedDevice(quick_build(accelerator, "rtl"), MEMORY) as device:
            device.write_memory(UOP_POOL, micro_ops(accelerator, (0, 0, 0), (0, 2047, 0)))
            uops = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 2)
            loads = run(device, [uops, finish()]).compute.busy
            return run(device, [uops, NESTS[name] | {"iter_in": count}, finish()]).compute.busy - loads

    assert busy(1000) - busy(500) == 500 * cycles_each
    assert busy(1000) <= 1000 * cycles_each + SLACK


def test_a_window_that_writes_each_accumulator_once_waits_for_none(device: SimulatedDevice) -> None:
    """What it does not write has the destination of the last pixel; a window that repeats one waits."""

    def busy(rows: int, row: int) -> int:
        program = [window(0, rows, 5, (0, 1), dst_factor_out=row, dst_factor_in=1), finish()]
        return run(device, program).compute.busy

    assert busy(100, 4) - busy(50, 4) == 50 * 5
    assert busy(100, 3) - busy(50, 3) == 50 * (5 + 1)
    assert busy(100, 4) == 500 + 7 + 1


@pytest.mark.parametrize("latency", [1, 40, 200])
@pytest.mark.parametrize(("rows", "columns", "stride"), [(1, 1024, 1024), (8, 128, 200), (64, 14, 56)])
def test_a_load_takes_its_beats_and_one_latency(rtl: Path, latency: int, rows: int, columns: int, stride: int) -> None:
    program = [load(MemoryType.INP, 0, DATA // 16, rows, columns, stride, push_next=1), finish(pop_prev=1)]
    with SimulatedDevice(rtl, replace(MEMORY, read_latency=latency)) as device:
        counters = run(device, program)
    beats = rows * columns * 16 // 8
    assert counters.load.bytes == 8 * beats
    assert beats + latency <= counters.load.busy <= beats + latency + SLACK


def test_a_store_takes_its_beats_and_one_latency(device: SimulatedDevice) -> None:
    counters = run(device, [store(0, RESULT // 16, 8, 100, 128, push_prev=1), finish(pop_next=1)])
    beats = 8 * 100 * 16 // 8
    assert counters.store.bytes == 8 * beats
    assert beats + MEMORY.write_latency <= counters.store.busy <= beats + MEMORY.write_latency + SLACK


def test_a_store_to_the_table_takes_its_beats_and_one_by_way_of_it_a_cycle_more(device: SimulatedDevice) -> None:
    rows = (0, RESULT // 16, 8, 100, 128)
    plain = run(device, [store(*rows, push_prev=1), finish(pop_next=1)])
    by_table = run(device, [store_by_table(*rows, push_prev=1), finish(pop_next=1)])
    assert by_table.store.busy == plain.store.busy + 1
    assert by_table.store.bytes == plain.store.bytes
    fill = run(device, [fill_table(0, 16, push_prev=1), finish(pop_next=1)])
    assert fill.store.busy == 256 // 8 + 4
    assert fill.store.bytes == fill.store.stalled == 0


def test_row_pads_cost_no_bus_time_where_an_element_has_two_beats(device: SimulatedDevice) -> None:
    """One pad a row is written while the next element's first beat arrives."""

    def busy(pad: int) -> int:
        padded = load(MemoryType.INP, 0, DATA // 16, 56, 28, 56, x_pad_0=pad, push_next=1)
        return run(device, [padded, finish(pop_prev=1)]).load.busy

    assert busy(1) - busy(0) <= 2


def test_bandwidth_is_shared_by_the_ports(rtl: Path) -> None:
    """Loads of both stages at once take as long as their bytes, not half of it, and a slow memory twice that."""
    program = [
        load(MemoryType.INP, 0, DATA // 16, 1, 2048, push_next=1),
        load(MemoryType.ACC, 0, DATA // 64, 1, 512),
        finish(pop_prev=1),
    ]
    cycles = {}
    for bandwidth in ((8, 1), (4, 1), (16, 1)):
        with SimulatedDevice(rtl, replace(MEMORY, bandwidth=bandwidth)) as device:
            cycles[bandwidth] = run(device, program).cycles
    bytes_moved = 2048 * 16 + 512 * 64
    assert bytes_moved / 8 <= cycles[8, 1] <= bytes_moved / 8 * 1.03
    assert bytes_moved / 4 <= cycles[4, 1] <= bytes_moved / 4 * 1.03
    assert bytes_moved / 16 <= cycles[16, 1] <= bytes_moved / 16 * 1.06


def test_load_and_compute_overlap(device: SimulatedDevice) -> None:
    transfer = load(MemoryType.INP, 0, DATA // 16, 1, 2000, push_next=1)
    multiply = gemm(0, 1, 2, 2000, **STEP)
    apart = run(device, [transfer, finish(pop_prev=1)]).cycles + run(device, [multiply, finish()]).cycles
    together = run(device, [transfer, multiply, finish(pop_prev=1)]).cycles
    assert together < 0.6 * apart


# ---- Queues and tokens -----------------------------------------------------------------------------------------------


def test_fetch_waits_while_a_queue_is_full(device: SimulatedDevice) -> None:
    """Load waits for a token that compute pushes after a long GEMM, with more LOADs behind it than the queue holds."""
    loads = [load(MemoryType.INP, n, DATA // 16 + n, 1, 1) for n in range(A.instruction_queue_depth + 100)]
    loads[0] |= {"pop_next": 1}
    loads[-1] |= {"push_next": 1}
    counters = run(device, [gemm(0, 1, 4, 2000, **STEP, push_prev=1), *loads, finish(pop_prev=1)])
    assert counters.load.instructions == len(loads)
    assert counters.fetch.starved > 1000, "fetch was never held up by the full queue"


@pytest.mark.parametrize(
    "waiting",
    [
        load(MemoryType.INP, 0, DATA // 16, 1, 1, pop_next=1, push_next=1),
        gemm(0, 0, pop_prev=1),
        gemm(0, 0, pop_next=1),
        store(0, RESULT // 16, 1, 1, pop_prev=1, push_prev=1),
    ],
)
def test_a_token_that_never_comes_hangs_until_a_reset(device: SimulatedDevice, waiting: Fields) -> None:
    ends = {0: finish(pop_prev=1), 1: finish(pop_next=1)}.get(waiting["opcode"], finish())
    device.write_memory(INSN, words(A, [waiting, ends]))
    assert execute(device, INSN, 2, 5_000).status is DeviceStatus.RUNNING
    assert device.read_register(Register.DONE_READ) == 0
    device.write_register(Register.SOFT_RESET, 1)
    run(device, [finish()])


def test_a_stage_waits_while_a_token_queue_is_full(device: SimulatedDevice) -> None:
    """Load pushes more tokens than its queue holds while compute is busy; the one that does not fit is not lost."""
    more = 1024 + 6
    nothing = [load(MemoryType.INP, 0, 0, 0, 0, push_next=1)] * more
    program = [gemm(0, 1, 10, 1000, **STEP), *nothing, *[gemm(0, 0, pop_prev=1)] * more, finish()]
    device.write_memory(INSN, words(A, program))
    execution = execute(device, INSN, len(program), 8_000)
    assert execution.status is DeviceStatus.RUNNING
    assert execution.counters.load.instructions == 1024
    assert device.step(100_000)[0] is DeviceStatus.DONE
    assert device.counters().load.instructions == more


def test_a_store_pushes_its_token_when_the_memory_has_the_data(device: SimulatedDevice) -> None:
    device.memory[RESULT : RESULT + 16] = 0xFF
    slow = replace(MEMORY, write_latency=500)
    with SimulatedDevice(quick_build(A, "rtl"), slow) as patient:
        counters = run(patient, [store(0, RESULT // 16, 1, 1, push_prev=1), finish(pop_next=1)])
    assert counters.cycles > 500


# ---- Faults ----------------------------------------------------------------------------------------------------------


def test_of_two_faults_in_one_cycle_the_one_nearer_to_fetch_is_told(rtl: Path) -> None:
    """Both LOADs are taken in the cycle after the GEMM's last, one for its token.

    That of ACC begins three cycles later, so that of INP has three pads before the one that is past its buffer.
    """
    of_load = load(MemoryType.INP, 2045, 0, 0, 4, y_pad_0=1, pop_next=1)
    of_compute = load(MemoryType.ACC, 5000, 0, 0, 1, y_pad_0=1)
    harmless = {"sram_base": 0}

    def ends(*loads: Fields) -> tuple[int, Fault | None]:
        program = [loads[0], gemm(0, 1, 10, 10, push_prev=1), loads[1], finish(pop_next=1)]
        with SimulatedDevice(rtl, MEMORY) as device:
            device.write_memory(INSN, words(A, program))
            execution = execute(device, INSN, len(program), 10_000)
            return execution.cycles, execution.fault

    cycles, alone = ends(of_load, of_compute | harmless)
    assert alone == Fault(FaultCode.INP_INDEX, 2048)
    assert ends(of_load | harmless, of_compute) == (cycles, Fault(FaultCode.ACC_INDEX, 5000))
    assert ends(of_load, of_compute) == (cycles, alone)


def test_nothing_begins_after_a_fault_until_a_reset(device: SimulatedDevice) -> None:
    device.write_memory(INSN, words(A, [load(MemoryType.INP, 5000, DATA // 16, 1, 1), finish(pop_next=1)]))
    faulted = execute(device, INSN, 2, 10_000)
    assert faulted.status is DeviceStatus.FAULT
    device.step(100)
    assert execute(device, INSN, 2, 10_000).counters == faulted.counters


def test_a_program_that_faults_as_it_finishes_is_not_done(rtl: Path) -> None:
    """A LOAD from nowhere is answered before, in and after the cycle of FINISH, a cycle later with each latency."""
    program = [load(MemoryType.INP, 0, 1 << 20, 1, 1), gemm(0, 1, 1, 60, **STEP), finish()]
    statuses = []
    for latency in range(60, 80):
        with SimulatedDevice(rtl, replace(MEMORY, read_latency=latency)) as device:
            device.write_memory(INSN, words(A, program))
            statuses.append(execute(device, INSN, len(program), 10_000).status)
            assert device.read_register(Register.DONE_READ) == (statuses[-1] is DeviceStatus.DONE)
    assert set(statuses) == {DeviceStatus.FAULT, DeviceStatus.DONE}
    assert statuses == sorted(statuses, reverse=True), "first faults, then none"


# ---- Registers -------------------------------------------------------------------------------------------------------


def test_done_is_cleared_by_the_next_start(device: SimulatedDevice) -> None:
    run(device, [finish()])
    assert device.read_register(Register.DONE_READ) == 1
    device.write_memory(INSN, words(A, [gemm(0, 0, pop_prev=1)]))
    assert execute(device, INSN, 1, 1_000).status is DeviceStatus.RUNNING
    assert device.read_register(Register.DONE_READ) == 0


def test_a_zero_resets_nothing(device: SimulatedDevice) -> None:
    run(device, [finish()])
    device.write_register(Register.SOFT_RESET, 0)
    assert device.read_register(Register.DONE_READ) == 1


def test_a_stage_without_auto_restart_executes_one_instruction(device: SimulatedDevice) -> None:
    program = [load(MemoryType.INP, n, DATA // 16, 1, 1) for n in range(3)]
    device.write_memory(INSN, words(A, program))
    device.write_register(Register.INSN_COUNT, len(program))
    device.write_register(Register.INSN_ADDR, INSN)
    device.write_register(Register.FETCH_CONTROL, START)
    for executed in (1, 2):
        device.write_register(Register.LOAD_CONTROL, START)
        device.step(1_000)
        assert device.counters().load.instructions == executed
        control = device.read_register(Register.LOAD_CONTROL)
        assert control & 0b1111 == 0b1110, "idle, done and ready"
        assert device.read_register(Register.LOAD_CONTROL) & 0b1010 == 0, "done and ready are cleared by reading"
    device.write_register(Register.LOAD_CONTROL, START_AND_AUTO_RESTART)
    device.step(1_000)
    assert device.counters().load.instructions == 3
    assert device.read_register(Register.LOAD_CONTROL) & 0b10000001 == 0b10000001
    device.write_register(Register.LOAD_CONTROL, START)
    assert device.read_register(Register.LOAD_CONTROL) & 0b10000001 == 0b00000001


def test_address_registers_are_added_to_dram_bases(device: SimulatedDevice) -> None:
    values = np.arange(16, dtype=np.int8)
    device.write_memory(DATA, values.astype("<i4"))
    device.write_memory(UOP_POOL, micro_ops(A, (0, 0, 0)))
    program = [
        load(MemoryType.UOP, 0, 1, 1, 1),
        load(MemoryType.ACC, 0, 2, 1, 1),
        alu(AluOpcode.ADD, 0, 1, use_imm=1, imm=1, push_next=1),
        store(0, 3, 1, 1, pop_prev=1, push_prev=1),
        finish(pop_next=1),
    ]
    device.write_memory(INSN, words(A, program))
    for register, value in (
        (Register.INSN_COUNT, len(program)),
        (Register.INSN_ADDR, INSN),
        (Register.UOP_ADDR, UOP_POOL - 4),
        (Register.BIAS_ADDR, DATA - 2 * 64),
        (Register.OUT_ADDR, RESULT - 3 * 16),
        (Register.FETCH_CONTROL, START),
        (Register.LOAD_CONTROL, START_AND_AUTO_RESTART),
        (Register.COMPUTE_CONTROL, START_AND_AUTO_RESTART),
        (Register.STORE_CONTROL, START_AND_AUTO_RESTART),
    ):
        device.write_register(register, value)
    status, _ = device.step(10_000)
    assert status is DeviceStatus.DONE
    assert device.read_memory(RESULT, 16) == (values + 1).tobytes()


# ---- Soft reset ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after_cycles", [1, 7, 30, 61, 90, 137, 250, 400])
def test_a_soft_reset_in_mid_transfer_drains_the_bus(device: SimulatedDevice, after_cycles: int) -> None:
    """A soft reset with bursts outstanding on all four ports drains the bus.

    The next run is neither disturbed nor answered with their data.
    """
    device.write_memory(DATA, np.arange(4096, dtype="<u4"))
    busy_everywhere = [
        load(MemoryType.ACC, 0, DATA // 64, 4, 512),
        *[load(MemoryType.INP, 0, DATA // 16, 1, 2000)] * 3,
        *[store(0, RESULT // 16, 8, 200)] * 3,
        *[load(MemoryType.WGT, 0, DATA // 256, 1, 1)] * 200,
        finish(),
    ]
    device.write_memory(INSN, words(A, busy_everywhere))
    assert execute(device, INSN, len(busy_everywhere), after_cycles).status is DeviceStatus.RUNNING
    device.write_register(Register.SOFT_RESET, 1)
    polls = 0
    while device.read_register(Register.SOFT_RESET):  # beats already on the bus may still be written
        polls += 1
        assert polls < 4000, "the bus was never drained"
    assert device.step(1)[0] is DeviceStatus.IDLE
    device.memory[RESULT : RESULT + 0x8000] = 0x77
    values = np.arange(16, dtype="<i4") - 8
    device.write_memory(DATA, values)
    device.write_memory(UOP_POOL, micro_ops(A, (5, 0, 0)))
    run(
        device,
        [
            UOPS,
            load(MemoryType.ACC, 5, DATA // 64, 1, 1),
            alu(AluOpcode.MAX, 0, 1, use_imm=1, imm=0, push_next=1),
            store(5, RESULT // 16 + 4, 1, 1, pop_prev=1, push_prev=1),
            finish(pop_next=1),
        ],
    )
    written = np.flatnonzero(device.memory[RESULT : RESULT + 0x8000] != 0x77)
    assert written.tolist() == list(range(64, 80))
    assert device.read_memory(RESULT + 64, 16) == np.maximum(values, 0).astype(np.int8).tobytes()


def test_writes_that_a_reset_cuts_short_write_nothing_more(rtl: Path) -> None:
    """A memory of a byte a cycle has taken a few beats of the bursts that were begun, whose others have strobes low."""
    beats = 8 * 200 * 2
    with SimulatedDevice(rtl, replace(MEMORY, bandwidth=(1, 1))) as device:
        device.memory[RESULT : RESULT + 8 * beats] = 0x77
        device.write_memory(INSN, words(A, [store(0, RESULT // 16, 8, 200), finish(pop_next=1)]))
        assert execute(device, INSN, 2, 500).status is DeviceStatus.RUNNING
        before = np.count_nonzero(device.memory[RESULT : RESULT + 8 * beats] != 0x77)
        device.write_register(Register.SOFT_RESET, 1)
        while device.read_register(Register.SOFT_RESET):
            pass
        after = np.count_nonzero(device.memory[RESULT : RESULT + 8 * beats] != 0x77)
    assert 0 < before <= after <= before + 3 * 8 < 8 * beats


# ---- Hazards ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("distance", "lost"), [(1, True), (2, True), (3, False)])
@pytest.mark.parametrize("hazards", ["interlock", "none"])
def test_updates_of_one_accumulator(hazards: str, distance: int, lost: bool) -> None:
    """An update loses a sum if it follows another of the same accumulator too closely.

    Without an interlock it misses the sums of the two micro-ops before it with the same destination.
    """
    accelerator = replace(A, hazards=hazards)
    uops = [(0, 0, 0), *((n, 1, 0) for n in range(1, distance)), (0, 0, 0)]
    program = [
        load(MemoryType.UOP, 0, UOP_POOL // 4, 1, len(uops)),
        load(MemoryType.INP, 0, DATA // 16, 1, 1),
        load(MemoryType.WGT, 0, (DATA + 0x1000) // 256, 1, 1, push_next=1),
        gemm(0, len(uops), pop_prev=1, push_next=1),
        store(0, RESULT // 16, 1, 1, pop_prev=1, push_prev=1),
        finish(pop_next=1),
    ]
    with SimulatedDevice(quick_build(accelerator, "rtl"), MEMORY) as device:
        device.write_memory(UOP_POOL, micro_ops(accelerator, *uops))
        device.write_memory(DATA, np.ones(16, dtype=np.int8))
        device.write_memory(DATA + 0x1000, np.ones(256, dtype=np.int8))
        run(device, program)
        expected = 16 if lost and hazards == "none" else 32
        assert device.read_memory(RESULT, 16) == bytes([expected] * 16)
