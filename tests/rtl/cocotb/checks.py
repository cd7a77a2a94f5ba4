"""The checks that run inside the simulator; test_axi_ports.py starts them, with settings as JSON in HILT_CHECK.

The accelerators have small buffers, so that programs that show all of them are short. `second_accelerator()` is in the
design of every check, and runs in one.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiResp

from hilt.schedule import Conv2d, lower, make_tensors
from hilt.simulator.build import build
from hilt.simulator.driver import Fault
from hilt.simulator.program_run import UNWRITTEN, place
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters
from hilt.vta.isa import MemoryType
from hilt_runtime.registers import FaultCode, Register
from tests.rtl.assembly import BASE, DATA, INSN, MEMORY_BYTES, RESULT, Fields, finish, load, store, words
from tests.rtl.cocotb.bench import Bench
from tests.rtl.cocotb.memory import GuardedMemory
from tests.rtl.compare_models import on_library
from tests.rtl.random_programs import RandomProgram, random_program

SETTINGS: dict[str, Any] = json.loads(os.environ.get("HILT_CHECK", "{}"))
MAX_CYCLES = 400_000


def bench_accelerator() -> Accelerator:
    small = {"log_uop_buff_size": 11, "log_inp_buff_size": 13, "log_wgt_buff_size": 13, "log_acc_buff_size": 14}
    return Accelerator(replace(load_parameters("pynq"), **small), IsaRevision.B)


def second_accelerator() -> Accelerator:
    """Return the files that two_accelerators.sv needs."""
    small = {"log_uop_buff_size": 12, "log_inp_buff_size": 12, "log_wgt_buff_size": 14, "log_acc_buff_size": 13}
    parameters = replace(load_parameters("pynq"), **small)
    return Accelerator(
        parameters, IsaRevision.WIDE, bus_bits=128, instruction_queue_depth=64, table=False, window=False
    )


@cocotb.test()
async def random_programs(dut: Any) -> None:
    seed = SETTINGS["seed"]
    program = random_program(bench_accelerator(), seed, SETTINGS["instructions"])
    bench = Bench(dut.u_first, GuardedMemory(program.base, program.image), seed)
    await bench.start()
    await runs_like_golden(bench, program, bench_accelerator())


@cocotb.test()
async def two_at_once(dut: Any) -> None:
    """Each runs a program of its own at the same time as the other, and leaves its golden model's memory."""
    seed, runs = SETTINGS["seed"], []
    for number, (accelerator, part) in enumerate(
        ((bench_accelerator(), dut.u_first), (second_accelerator(), dut.u_second))
    ):
        program = random_program(accelerator, seed + number, SETTINGS["instructions"])
        bench = Bench(part, GuardedMemory(program.base, program.image), seed + number)
        await bench.start()
        runs.append(cocotb.start_soon(runs_like_golden(bench, program, accelerator)))
    for run in runs:
        await run


@cocotb.test()
async def convolution(dut: Any) -> None:
    """Lowered, with double buffering and padding: the output is the reference's, and nothing else was written."""
    accelerator = bench_accelerator()
    workload = Conv2d("small", 1, 32, 9, 9, 32, kernel=(3, 3), stride=(1, 1), padding=(1, 1), bias=True)
    knobs = {"tile_b": 1, "tile_h": 3, "tile_w": 9, "tile_ci": 1, "tile_co": 1, "oc_nthread": 2, "h_nthread": 1}
    program, tensors = lower(workload, knobs, accelerator), make_tensors(workload, accelerator, seed=3)
    addresses, end = place(program, BASE)
    instructions = program.relocated({name: address for name, address in addresses.items() if name != "insn"})
    output = np.full(program.buffer("out").bytes, UNWRITTEN, np.uint8)
    image = np.zeros(end - BASE, np.uint8)
    for name, array in {**tensors.inputs, "uop": program.uops, "insn": instructions, "out": output}.items():
        contents = np.frombuffer(array.tobytes(), np.uint8)
        image[addresses[name] - BASE :][: len(contents)] = contents
    bench = Bench(dut.u_first, GuardedMemory(BASE, image), SETTINGS["seed"])
    await bench.start()
    assert await bench.run(addresses["insn"], len(instructions), max_cycles=MAX_CYCLES) is None
    image[addresses["out"] - BASE :][: len(output)] = tensors.expected.ravel().view(np.uint8)
    wrong = np.flatnonzero(bench.memory.image != image)
    assert wrong.size == 0, f"{wrong.size} bytes are wrong, the first at {BASE + int(wrong[0]):#x}"
    assert_ports_kept_the_rules(bench)


FINISH = 7  # the last instruction's number
# By port: the beat that is answered with an error, and the address to be told: of the beat, of a write's burst.
ERRORS = {
    "fetch": (INSN + 16 * FINISH + 8, INSN + 16 * FINISH + 8),
    "load": (DATA + 0x1448, DATA + 0x1448),
    "compute": (DATA + 0x2008, DATA + 0x2008),
    "store": (RESULT + 3 * 1024 + 80, RESULT + 3 * 1024),
}


def busy_everywhere() -> list[Fields]:
    """Transfers outstanding on all four ports, the last instruction among those that fetch brings late."""
    return [
        load(MemoryType.ACC, 0, DATA // 64, 2, 100, 128),
        load(MemoryType.INP, 0, DATA // 16, 1, 500),
        load(MemoryType.INP, 0, DATA // 16, 4, 100, 120, push_next=1),
        store(0, RESULT // 16, 5, 50, 64),
        store(0, RESULT // 16, 5, 50, 64, push_prev=1),
        load(MemoryType.ACC, 0, DATA // 64, 2, 100, 128, pop_prev=1),
        load(MemoryType.ACC, 0, DATA // 64, 1, 1, pop_next=1),
        finish(),
    ]


@cocotb.test()
async def bus_error(dut: Any) -> None:
    """Ends the run with its code and address, and the accelerator runs the next program after a soft reset."""
    seed, port, response = SETTINGS["seed"], SETTINGS["port"], AxiResp[SETTINGS["response"]]
    place_of_error, told = ERRORS[port]
    bench = Bench(dut.u_first, memory_of_busy_everywhere(), seed)
    bench.memory.errors = {port: range(place_of_error, place_of_error + 8)}
    bench.answer_errors_with(response)
    await bench.start()
    fault = await bench.run(INSN, len(busy_everywhere()), max_cycles=MAX_CYCLES)
    assert fault == Fault(FaultCode[response.name], told)
    assert not await bench.read(Register.DONE_READ)
    await bench.soft_reset()
    assert not await bench.read(Register.FAULT_CODE)
    await next_program_runs(bench, seed)


@cocotb.test()
async def soft_reset(dut: Any) -> None:
    """A soft reset at any instant, once and again, lets masters finish their outstanding transfers and nothing else."""
    seed = SETTINGS["seed"]
    generator = random.Random(seed)
    bench = Bench(dut.u_first, memory_of_busy_everywhere(), seed)
    await bench.start()
    for _ in range(4):
        await bench.begin(INSN, len(busy_everywhere()))
        await ClockCycles(bench.dut.clk, generator.randrange(1, 1500))
        await bench.soft_reset()
    await next_program_runs(bench, seed)


@cocotb.test()
async def registers(dut: Any) -> None:
    """Registers hold whole words, refuse part of a word, and answer in order however the channels pause."""
    generator = random.Random(SETTINGS["seed"])
    bench = Bench(dut.u_first, memory_of_busy_everywhere(), SETTINGS["seed"])
    await bench.start()
    written = {
        *(Register.INSN_COUNT, Register.INSN_ADDR, Register.INP_ADDR, Register.WGT_ADDR),
        *(Register.UOP_ADDR, Register.BIAS_ADDR, Register.OUT_ADDR, Register.DONE_WRITE),
    }
    values = dict.fromkeys(sorted(written), 0)
    for _ in range(60):
        register, value = generator.choice(list(values)), generator.getrandbits(32)
        if generator.random() < 0.3:
            answer = await bench.registers.write(register + generator.randrange(4), bytes([value & 0xFF]))
            assert answer.resp == AxiResp.SLVERR
        else:
            answer = await bench.registers.write(register, value.to_bytes(4, "little"))
            assert answer.resp == AxiResp.OKAY
            values[register] = value
        asked = [bench.registers.init_read(register, 4) for register in values]
        for read, expected in zip(asked, values.values(), strict=True):
            await read.wait()
            assert int.from_bytes(read.data.data, "little") == expected
    assert await bench.read(Register.IDENTITY) == int.from_bytes(b"HILT", "big")
    beyond = [0x4000 + register for register in values]
    for unmapped in (0x0014, 0x00FC, 0x1020, 0x1040, 0x2FFC, 0x3018, 0xFFFC, *beyond):
        answer = await bench.registers.write(unmapped, b"\xff" * 4)
        assert answer.resp == AxiResp.OKAY
        assert await bench.read(unmapped) == 0
    assert [await bench.read(register) for register in values] == list(values.values())
    assert not await bench.read(Register.SOFT_RESET)


@cocotb.test()
async def broken_masters_are_noticed(dut: Any) -> None:
    """The rules see an address that changes while it waits, and a strobe that is missing."""
    bench = Bench(dut.u_first, memory_of_busy_everywhere(), SETTINGS["seed"])
    await bench.start()
    await bench.begin(INSN, len(busy_everywhere()))
    await ClockCycles(bench.dut.clk, 20)
    assert bench.broken_rules() == []
    bench.dut.tamper_araddr.value = bench.dut.tamper_wstrb.value = 1
    await ClockCycles(bench.dut.clk, 2000)
    broken = set(bench.broken_rules())
    assert broken >= {"load: a waiting address changed", "store: a strobe is missing"}
    assert broken <= {"load: a waiting address changed", "store: a strobe is missing", "store: waiting data changed"}


async def runs_like_golden(bench: Bench, program: RandomProgram, accelerator: Accelerator) -> None:
    """The program leaves the memory that the golden model leaves, all of it, and the guards around it."""
    expected = on_library(build(accelerator, "golden"))(program).memory
    fault = await bench.run(program.insn_addr, len(program.records), max_cycles=MAX_CYCLES)
    assert fault is None, fault
    wrong = np.flatnonzero(bench.memory.image != expected)
    assert wrong.size == 0, f"{wrong.size} bytes differ from golden's, the first at {program.base + int(wrong[0]):#x}"
    assert_ports_kept_the_rules(bench)


async def next_program_runs(bench: Bench, seed: int) -> None:
    """One that fills every buffer first, for it does not begin at power-on."""
    program = random_program(bench_accelerator(), seed, 8, fill=True)
    bench.memory.replace(program.base, program.image)
    await runs_like_golden(bench, program, bench_accelerator())


def assert_ports_kept_the_rules(bench: Bench) -> None:
    assert bench.memory.guards_are_whole()
    assert bench.broken_rules() == []


def memory_of_busy_everywhere() -> GuardedMemory:
    image = np.random.default_rng(5).integers(0, 256, MEMORY_BYTES, dtype=np.uint8)
    program = np.frombuffer(words(bench_accelerator(), busy_everywhere()).tobytes(), np.uint8)
    image[INSN - BASE :][: len(program)] = program
    return GuardedMemory(BASE, image)
