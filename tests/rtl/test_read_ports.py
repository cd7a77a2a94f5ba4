"""Several ports of the memory: weights and rows of inputs come over all at once, and each port moves a beat a cycle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilt.schedule import load_convolution, lower
from hilt.schedule.bounds import bound_cycles
from hilt.simulator.build import quick_build
from hilt.simulator.device import Counters, DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, Fault, execute
from hilt.simulator.twin import PlacedProgram, Twin
from hilt.vta.isa import MemoryType
from hilt_runtime.registers import START, START_AND_AUTO_RESTART, FaultCode, Register
from tests.rtl.assembly import BASE, DATA, INSN, MEMORY_BYTES, RESULT, Fields, finish, load, micro_ops, store, words
from tests.rtl.beside_twin import run_beside_twin
from tests.rtl.test_twin import MEMORIES, SMALL, UOPS
from tests.rtl.twin_comparison import schedule_differences
from tests.rtl.variants import VARIANTS, WIDE_VARIANTS

PORTS = 4
FOUR = VARIANTS["pynq A, 4 read ports"]
"""`make nightly` compares the build with 2, too."""
MEMORY = MemoryModel(BASE, MEMORY_BYTES, read_latency=40, write_latency=20)
ELEMENTS = 256
WEIGHTS = load(MemoryType.WGT, 0, DATA // 256, 16, 16, push_next=1)
INPUTS = load(MemoryType.INP, 0, DATA // 16, 1, 2048, push_next=1)
"""One row: its beats are as many as those of one half of the weights."""
INP_PORTS = 2
"""An input has two beats: no more ports than these share the rows."""


@pytest.fixture(scope="module")
def rtl() -> Path:
    return quick_build(FOUR, "rtl")


@pytest.fixture
def device(rtl: Path) -> Iterator[SimulatedDevice]:
    with SimulatedDevice(rtl, MEMORY) as opened:
        yield opened


def run(device: SimulatedDevice, program: list[Fields]) -> Counters:
    device.write_memory(INSN, words(FOUR, program))
    execution = execute(device, INSN, len(program), 100_000)
    assert execution.status is DeviceStatus.DONE, execution
    return execution.counters


def test_weights_come_over_all_ports_and_a_row_of_inputs_over_one(device: SimulatedDevice) -> None:
    weights = run(device, [WEIGHTS, finish(pop_prev=1)]).load
    assert weights.busy == 40 + ELEMENTS * 256 // PORTS // 8 + 5
    assert weights.bytes == ELEMENTS * 256
    inputs = run(device, [INPUTS, finish(pop_prev=1)]).load
    assert 0 <= inputs.busy - (40 + 2048 * 16 // 8 + 6) < INP_PORTS
    assert inputs.bytes == 2048 * 16


@pytest.mark.parametrize(("rows", "columns"), [(2, 1024), (3, 100), (32, 64), (100, 1)])
def test_rows_of_inputs_come_over_as_many_ports_as_an_input_has_beats(
    device: SimulatedDevice, rows: int, columns: int
) -> None:
    loaded = load(MemoryType.INP, 0, DATA // 16, rows, columns, push_next=1)
    counters = run(device, [loaded, finish(pop_prev=1)]).load
    beats = -(-rows // INP_PORTS) * columns * 2
    assert 0 <= counters.busy - (40 + beats + 6) < INP_PORTS
    assert counters.bytes == rows * columns * 16


@pytest.mark.parametrize("rows", [1, 2])
def test_inputs_do_not_wait_for_what_another_port_moves(device: SimulatedDevice, rows: int) -> None:
    """STOREs have the last port, at which no row of these inputs comes."""
    inputs = load(MemoryType.INP, 0, DATA // 16, rows, 2048 // rows, push_next=1)
    alone = run(device, [inputs, finish(pop_prev=1)]).load.busy
    stored = run(device, [store(0, RESULT // 16, 1, 2048), inputs, finish(pop_prev=1)]).load.busy
    assert stored == alone


def test_weights_share_the_last_port_with_stores(device: SimulatedDevice) -> None:
    counters = run(device, [store(0, RESULT // 16, 1, 2048), WEIGHTS, finish(pop_prev=1)])
    beats = 2 * ELEMENTS * 256 // PORTS // 8  # turn by turn: as many of the store's as of the weights'
    assert beats <= counters.load.busy <= beats * 1.02 + 40


@pytest.mark.parametrize("rate", [4, 8, 12, 14])
def test_the_memory_bounds_the_sum_of_the_ports(rtl: Path, rate: int) -> None:
    with SimulatedDevice(rtl, replace(MEMORY, bandwidth=(rate, 1))) as device:
        busy = run(device, [WEIGHTS, finish(pop_prev=1)]).load.busy
    assert ELEMENTS * 256 / rate <= busy <= ELEMENTS * 256 / rate * 1.03 + 40


def test_the_build_register_has_the_ports(device: SimulatedDevice) -> None:
    assert 1 << (device.read_register(Register.BUILD) >> 14 & 3) == PORTS


def error_of(device: SimulatedDevice, weight: int, offset: int) -> Execution:
    """Load one weight with the address register of weights at `offset`."""
    program = words(FOUR, [load(MemoryType.WGT, 0, weight, 1, 1, push_next=1), finish(pop_prev=1)])
    device.write_memory(INSN, program)
    device.write_register(Register.INSN_COUNT, len(program))
    device.write_register(Register.INSN_ADDR, INSN)
    device.write_register(Register.WGT_ADDR, offset)
    device.write_register(Register.FETCH_CONTROL, START)
    for register in (Register.LOAD_CONTROL, Register.COMPUTE_CONTROL, Register.STORE_CONTROL):
        device.write_register(register, START_AND_AUTO_RESTART)
    status, cycles = device.step(10_000)
    return Execution(status, cycles, device.counters())


def test_an_error_of_any_part_names_its_address(device: SimulatedDevice) -> None:
    """The memory ends before the whole element, or before its last parts alone."""
    end = BASE + MEMORY_BYTES
    for offset in range(0, 256, 256 // PORTS):
        execution = error_of(device, end // 256 - (1 if offset else 0), offset)
        assert execution.status is DeviceStatus.FAULT
        assert device.read_register(Register.FAULT_CODE) == FaultCode.DECERR
        assert device.read_register(Register.FAULT_ADDRESS_LOW) == end
        device.write_register(Register.SOFT_RESET, 1)
        assert execute(device, INSN, 0, 100).status is not DeviceStatus.FAULT


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_weight_past_the_buffer_is_a_fault_in_the_very_cycle(rtl: Path, memory: str) -> None:
    program = words(FOUR, [load(MemoryType.WGT, 1020, DATA // 256, 3, 3, push_next=1), finish(pop_prev=1)])
    with SimulatedDevice(rtl, replace(MEMORIES[memory], base=BASE, bytes=MEMORY_BYTES)) as device:
        device.write_memory(INSN, program)
        execution = execute(device, INSN, len(program), 100_000)
    assert execution.fault == Fault(FaultCode.WGT_INDEX, 1024)
    placed = PlacedProgram(program, np.zeros((0, 1), np.uint32), INSN)
    prediction = Twin(FOUR).predict([placed], MEMORIES[memory])[0]
    assert (prediction["cycles"], prediction["fault"]) == (execution.cycles, FaultCode.WGT_INDEX)


INP_BLOCKS: dict[str, dict[str, int]] = {
    "no pads": {"y_size": 7, "x_size": 3, "x_stride": 11},
    "one row": {"y_size": 1, "x_size": 30, "x_stride": 11},
    "one column": {"y_size": 90, "x_size": 1, "x_stride": 3},
    "pads around": {"y_size": 5, "x_size": 4, "x_stride": 9, "y_pad_0": 1, "y_pad_1": 2, "x_pad_0": 3, "x_pad_1": 1},
    "many pads": {"y_size": 2, "x_size": 1, "x_stride": 9, "y_pad_0": 15, "y_pad_1": 15, "x_pad_0": 15, "x_pad_1": 15},
    "pads beside rows": {"y_size": 6, "x_size": 4, "x_stride": 9, "x_pad_0": 1},
    "pads below": {"y_size": 6, "x_size": 4, "x_stride": 9, "y_pad_1": 3},
    "a pad behind": {"y_size": 3, "x_size": 4, "x_stride": 9, "x_pad_1": 1},
    "no rows": {"y_size": 0, "x_size": 4, "x_stride": 9, "y_pad_0": 3, "x_pad_1": 1},
    "no columns": {"y_size": 4, "x_size": 0, "x_stride": 9, "x_pad_0": 3, "y_pad_1": 2},
    "nothing": {"y_size": 4, "x_size": 0, "x_stride": 9},
    "the whole buffer": {"y_size": 64, "x_size": 30, "x_stride": 30, "x_pad_0": 1, "x_pad_1": 1},
}


@pytest.mark.parametrize("name", INP_BLOCKS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_blocks_of_inputs_take_the_very_cycles(name: str, memory: str) -> None:
    block = dict(INP_BLOCKS[name])
    sizes = [block.pop(size) for size in ("y_size", "x_size", "x_stride")]
    whole = name == "the whole buffer"
    program = [
        store(0, RESULT // 16, 30, 9, 11),
        load(MemoryType.INP, 0 if whole else 37, DATA // 16, *sizes, **block),
        WEIGHTS,
        load(MemoryType.INP, 0 if whole else 5, DATA // 16, *sizes, **block, push_next=1),
        finish(pop_prev=1),
    ]
    run_beside_twin(FOUR, words(FOUR, program), b"", memory=MEMORIES[memory])


@pytest.mark.parametrize(
    ("sram", "rows", "columns", "pads"),
    [
        (2047, 2, 1, {}),
        (2047, 1, 1, {"x_pad_1": 1}),
        (0, 1, 2049, {}),
        (1, 64, 30, {"x_pad_0": 1, "x_pad_1": 1}),
        (3000, 3, 5, {}),
        (0, 0xFFFF, 0xFFFF, {}),
        (0, 0x8001, 0x8000, {"y_pad_0": 15, "x_pad_0": 8}),
        (2000, 0, 7, {"y_pad_0": 7}),
    ],
)
def test_inputs_past_the_buffer_are_a_fault_in_the_very_cycle(
    sram: int, rows: int, columns: int, pads: dict[str, int]
) -> None:
    program = [load(MemoryType.INP, sram, DATA // 16, rows, columns, 1, **pads, push_next=1), finish(pop_prev=1)]
    execution = run_beside_twin(FOUR, words(FOUR, program), b"").execution
    assert execution.fault == Fault(FaultCode.INP_INDEX, max(sram, 2048))


WGT_BLOCKS: dict[str, list[Fields]] = {
    "rows apart": [load(MemoryType.WGT, 3, DATA // 256, 7, 3, 11, push_next=1), finish(pop_prev=1)],
    "one element": [load(MemoryType.WGT, 0, DATA // 256, 1, 1, push_next=1), finish(pop_prev=1)],
    "one column": [load(MemoryType.WGT, 0, DATA // 256, 200, 1, 3, push_next=1), finish(pop_prev=1)],
    "nothing": [load(MemoryType.WGT, 0, DATA // 256, 3, 0, push_next=1), finish(pop_prev=1)],
    "beside a store": [store(0, RESULT // 16, 30, 9, 11), WEIGHTS, INPUTS, WEIGHTS, finish(pop_prev=1)],
}


@pytest.mark.parametrize("name", WGT_BLOCKS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_blocks_of_weights_take_the_very_cycles(name: str, memory: str) -> None:
    run_beside_twin(FOUR, words(FOUR, WGT_BLOCKS[name]), b"", memory=MEMORIES[memory])


@pytest.mark.parametrize("name", SMALL)
def test_small_programs_take_the_very_cycles(name: str) -> None:
    run_beside_twin(FOUR, words(FOUR, SMALL[name]), micro_ops(FOUR, *UOPS))


KNOBS = {"tile_b": 1, "tile_h": 7, "tile_w": 7, "tile_ci": 1, "oc_nthread": 2, "h_nthread": 1, "loop_order": 3}


@pytest.mark.parametrize("layer", ["C9", "C11"])
def test_layers_of_many_weights_take_the_very_cycles(rtl: Path, layer: str) -> None:
    program = lower(load_convolution(f"resnet18.{layer}"), KNOBS | {"tile_co": 1}, FOUR)
    memory = MemoryModel(read_latency=46, bandwidth=(7 * PORTS, 1), jitter=5, seed=3)
    assert schedule_differences(rtl, Twin(FOUR), program, memory) == []


@pytest.mark.parametrize("layer", ["C9", "C11"])
def test_blocks_of_32_are_bound_by_weights_no_more(layer: str) -> None:
    """One GEMM micro-op a cycle is the bound that is left; programs are the same."""
    workload, wide = load_convolution(f"resnet18.{layer}"), WIDE_VARIANTS["1x32 A, 128-bit bus, 2 read ports"]
    one, two = replace(wide, read_ports=1), wide
    programs = [lower(workload, KNOBS | {"tile_co": 4}, accelerator) for accelerator in (one, two)]
    assert np.array_equal(programs[0].instructions, programs[1].instructions)
    memory = MemoryModel(read_latency=100, write_latency=50)
    alone, both = (int(Twin(each).predict(programs[:1], memory)[0]["cycles"]) for each in (one, two))
    assert both < 0.75 * alone
    assert both < 1.07 * bound_cycles(workload, two)
