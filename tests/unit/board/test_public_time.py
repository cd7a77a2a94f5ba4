"""A public bitstream on a virtual board: its registers, its clock, and the costs that both sides name alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from hilt.schedule import load_workload, lower, make_tensors, space_for
from hilt.simulator.build import build
from hilt.simulator.machine import EventMachine, MachineParameters
from hilt.simulator.program_run import place
from hilt.virtual.board_model import BOARD_MODELS
from hilt_runtime.registers import START, START_AND_AUTO_RESTART, Register
from hilt_virtual_board.board_model import load_board_model
from hilt_virtual_board.machine import COSTS, MachineError, PublicMachine
from hilt_virtual_board.model import Model
from hilt_virtual_board.public_time import PublicTime

BOARD = BOARD_MODELS["pynq_public"]
ACCELERATOR = BOARD.accelerator
WORKLOAD = load_workload("resnet18.C10")


class Bench:
    """The registers of a public board with one program in its memory."""

    def __init__(self, folder: Path) -> None:
        settings = folder / "board.json"
        settings.write_text(json.dumps(BOARD.device_settings()))
        self.board_model = load_board_model(settings)
        self.library = build(ACCELERATOR, "public")
        self.model = Model(self.library, self.board_model.memory_model())
        self.registers = PublicTime(self.model, self.library, self.board_model)
        space = space_for(WORKLOAD, ACCELERATOR)
        self.program = lower(WORKLOAD, space.knobs_at(space.index(KNOBS)), ACCELERATOR)
        self.tensors = make_tensors(WORKLOAD, ACCELERATOR, 1)
        base = self.board_model.memory["base"]
        self.addresses, _ = place(self.program, base)
        contents = {**self.tensors.inputs, "uop": self.program.uops}
        buffers = {name: address for name, address in self.addresses.items() if name != "insn"}
        contents["insn"] = self.program.relocated(buffers)
        for name, array in contents.items():
            self.model.view(self.addresses[name] - base, array.nbytes)[:] = array.tobytes()

    def start(self, count: int) -> float:
        write = self.registers.write
        write(Register.INSN_COUNT, count)
        write(Register.INSN_ADDR, self.addresses["insn"])
        write(Register.OUT_ADDR, 0)
        started = self.registers.now()
        write(Register.FETCH_CONTROL, START)
        for control in (Register.LOAD_CONTROL, Register.COMPUTE_CONTROL, Register.STORE_CONTROL):
            write(control, START_AND_AUTO_RESTART)
        return started


KNOBS = {
    "tile_b": 1, "tile_h": 7, "tile_w": 7, "tile_ci": 8, "tile_co": 4, "oc_nthread": 2, "h_nthread": 1,
}  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    yield Bench(tmp_path)


@pytest.mark.slow
def test_a_program_takes_the_machines_time_and_computes_the_layer(bench: Bench) -> None:
    machine = MachineParameters(**BOARD.device_settings()["machine"])
    cycles = EventMachine(ACCELERATOR).predict([bench.program], machine)["cycles"][0]
    started = bench.start(len(bench.program.instructions))
    assert bench.registers.read(Register.DONE_READ) == 1
    elapsed = bench.registers.now() - started
    assert cycles / 1e8 < elapsed < cycles / 1e8 + 500e-6
    out = bench.program.buffer("out")
    seen = np.frombuffer(
        bench.model.view(bench.addresses["out"] - bench.board_model.memory["base"], out.bytes), np.int8
    )
    assert np.array_equal(seen, bench.tensors.expected.reshape(-1))


@pytest.mark.slow
def test_there_is_no_identity_and_nothing_counts(bench: Bench) -> None:
    bench.start(len(bench.program.instructions))
    assert bench.registers.read(Register.IDENTITY) == bench.registers.read(Register.CYCLES_LOW) == 0


@pytest.mark.slow
def test_a_program_without_its_end_is_never_done_while_the_clock_goes_on(bench: Bench) -> None:
    started = bench.start(len(bench.program.instructions) - 1)
    assert [bench.registers.read(Register.DONE_READ) for _ in range(5)] == [0] * 5
    assert bench.registers.now() - started > 0.05


@pytest.mark.slow
def test_repeats_differ_by_little(bench: Bench) -> None:
    seconds = []
    for _ in range(20):
        started = bench.start(len(bench.program.instructions))
        bench.registers.read(Register.DONE_READ)
        seconds.append(bench.registers.now() - started)
    assert max(seconds) - min(seconds) > 0
    assert np.median(np.abs(np.array(seconds) - np.median(seconds))) < 0.02 * np.median(seconds)


def test_host_and_board_name_the_costs_alike() -> None:
    assert tuple(field.name for field in fields(MachineParameters)) == COSTS


@pytest.mark.slow
def test_a_model_without_machines_is_refused() -> None:
    with pytest.raises(MachineError, match="no machine models"):
        PublicMachine(build(ACCELERATOR, "golden"), BOARD.device_settings()["machine"])
