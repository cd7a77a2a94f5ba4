"""The event model on small programs whose cycles are counted by hand, and the cache by its formula."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from hilt.schedule import load_workload, lower, lower_many, space_for
from hilt.silicon.measured import public_accelerator
from hilt.simulator.builds import NEWER, OLDER, shipped_builds
from hilt.simulator.device import SimulatorError
from hilt.simulator.machine import EventMachine, MachineParameters, MachineStatus
from hilt.vta.isa import INSTRUCTION, MemoryType, Opcode, encode
from hilt.vta.parameters import load_parameters
from hilt.vta.program import Program

PYNQ = public_accelerator(load_parameters("pynq"))
FREE_OF_CHARGE = MachineParameters(
    instruction=0, fetch=0, load_start=0, load_row=0, store_start=0, store_row=0, rows_overlap=0, hit_bytes=8,
    miss_bytes=4, store_bytes=8, store_allocates=0, cache_bytes=0, pad_element=0, gemm_iteration=0, gemm_micro_op=1,
    reset_iteration=0, alu_iteration=0, alu_micro_op=2,
)  # fmt: skip


def program(*instructions: Mapping[str, int]) -> Program:
    records = np.zeros(len(instructions), dtype=INSTRUCTION)
    for record, fields in zip(records, instructions, strict=True):
        for name, value in fields.items():
            record[name] = value
    return Program.assemble(PYNQ, encode(records, PYNQ), np.zeros((0, 1), dtype=np.uint32), ())


def load(**fields: int) -> dict[str, int]:
    base = {"opcode": Opcode.LOAD, "memory_type": MemoryType.INP, "y_size": 1, "x_size": 4, "x_stride": 4}
    return {**base, **fields}


FINISH = {"opcode": Opcode.FINISH, "pop_prev": 1}
MACHINE = EventMachine(PYNQ)


def cycles(costs: MachineParameters, *instructions: Mapping[str, int]) -> float:
    (result,) = MACHINE.predict([program(*instructions)], costs)
    assert result["status"] == MachineStatus.DONE
    return float(result["cycles"])


def test_rows_and_beats_add_up_on_one_port_and_overlap_on_another() -> None:
    costs = replace(FREE_OF_CHARGE, load_row=50, load_start=3)
    block = load(y_size=7, x_size=2, x_stride=9, push_next=1)  # 7 rows of 32 bytes, all missed
    assert cycles(costs, block, FINISH) == 3 + 7 * 50 + 7 * 32 / 4
    assert cycles(replace(costs, rows_overlap=1), block, FINISH) == 3 + 7 * 50
    assert cycles(replace(costs, rows_overlap=1, load_row=1), block, FINISH) == 3 + 7 * 32 / 4


def test_pads_cost_by_element() -> None:
    costs = replace(FREE_OF_CHARGE, pad_element=5)
    block = load(y_size=2, x_size=3, x_stride=3, y_pad_0=1, x_pad_1=1, push_next=1)
    assert cycles(costs, block, FINISH) == 5 * (3 * 4 - 2 * 3) + 2 * 3 * 16 / 4


def test_iterations_and_micro_ops_cost_apart() -> None:
    gemm = {"opcode": Opcode.GEMM, "uop_bgn": 2, "uop_end": 9, "iter_out": 3, "iter_in": 5}
    alu = {"opcode": Opcode.ALU, "uop_bgn": 0, "uop_end": 1, "iter_out": 1, "iter_in": 11}
    finish = {"opcode": Opcode.FINISH}
    costs = replace(FREE_OF_CHARGE, gemm_iteration=10, reset_iteration=4)
    assert cycles(costs, gemm, finish) == 15 * (10 + 7)
    assert cycles(costs, {**gemm, "reset": 1}, finish) == 15 * (4 + 7)
    assert cycles(costs, alu, finish) == 11 * 2


def test_stages_overlap_as_their_tokens_say() -> None:
    """Two loads and two GEMMs: the second load runs beside the first GEMM, unless it waits for it."""
    gemm = {"opcode": Opcode.GEMM, "uop_end": 10, "iter_out": 1, "iter_in": 10, "pop_prev": 1, "push_prev": 1}
    one = load(x_size=50, x_stride=50, push_next=1)  # 200 cycles
    finish = {"opcode": Opcode.FINISH}
    assert cycles(FREE_OF_CHARGE, one, gemm, one, gemm, finish) == 200 + 200 + 100
    assert cycles(FREE_OF_CHARGE, one, gemm, {**one, "pop_next": 1}, gemm, finish) == 200 + 100 + 200 + 100


def test_a_missing_token_never_ends() -> None:
    (result,) = MACHINE.predict([program(load(), FINISH)], FREE_OF_CHARGE)
    assert result["status"] == MachineStatus.NEVER


def test_a_cyclic_sweep_misses_as_random_replacement_does() -> None:
    """F bytes swept over and over through C bytes miss with m = 1 - exp(-m F / C)."""
    rows, width = 2048, 64
    sweep = [load(y_size=rows, x_size=width, x_stride=width, dram_base=0) for _ in range(30)]
    size = rows * width * 16
    cache = size / 1.5
    (result,) = MACHINE.predict(
        [program(*sweep, {"opcode": Opcode.FINISH})], replace(FREE_OF_CHARGE, cache_bytes=cache)
    )
    rate = 0.5
    for _ in range(100):
        rate = 1 - math.exp(-rate * size / cache)
    assert result["missed_bytes"] / result["read_bytes"] == pytest.approx(rate, abs=0.01)


def test_data_that_fits_the_cache_stays_there_from_run_to_run() -> None:
    block = load(y_size=10, x_size=100, x_stride=100, push_next=1)
    warm = replace(FREE_OF_CHARGE, cache_bytes=512 * 1024)
    assert cycles(warm, block, FINISH) < 1.05 * 16_000 / 8


@pytest.mark.slow
def test_hilts_own_programs_run_on_every_machine() -> None:
    workload = load_workload("resnet18.C8")
    space = space_for(workload, PYNQ)
    lowered = [item for item in lower_many(workload, space.columns(range(400)), PYNQ) if isinstance(item, Program)]
    assert len(lowered) > 20
    builds = shipped_builds()
    newer, older, chisel = (MACHINE.predict(lowered, builds.machines[name]) for name in (NEWER, OLDER, "chisel"))
    assert np.all(newer["status"] == 0) and np.all(older["status"] == 0) and np.all(chisel["status"] == 0)
    assert np.all(older["cycles"] > newer["cycles"])
    assert np.all(newer["cycles"] > workload.macs / 256)
    again = MACHINE.predict(lowered[:1], builds.machines[NEWER])
    assert again[0] == newer[0]
    assert lower(workload, space.knobs_at(0), PYNQ, "off").isa == "A"


def test_many_machines_together_take_what_each_takes_alone() -> None:
    """Machines in a row share the misses of one cache; another cache, or stores that pass it by, has its own."""
    workload = load_workload("resnet18.C11")
    columns = space_for(workload, PYNQ).columns(range(400))
    programs = [item for item in lower_many(workload, columns, PYNQ) if isinstance(item, Program)][:2]
    of_newer = shipped_builds().machines[NEWER]
    changes: list[dict[str, float]] = [{}, {"load_row": 9.0}, {"cache_bytes": 65536.0}, {"store_allocates": 0.0}, {}]
    machines = [replace(of_newer, **each) for each in changes]
    together = MACHINE.compare(programs, machines)["cycles"]
    alone = np.stack([MACHINE.predict(programs, machine)["cycles"] for machine in machines], axis=1)
    np.testing.assert_array_equal(together, alone)
    assert len(set(together[0])) == 4
    assert MACHINE.compare([], machines).shape == (0, 5)


def test_timeline_has_a_span_for_each_instruction() -> None:
    spans = MACHINE.timeline(program(load(push_next=1), FINISH), FREE_OF_CHARGE)
    assert [int(span["stage"]) for span in spans] == [1, 2]
    assert spans[0]["end"] == 16 and spans[1]["start"] == 16


def test_impossible_costs_are_refused() -> None:
    with pytest.raises(SimulatorError, match="load_row is -1"):
        replace(FREE_OF_CHARGE, load_row=-1)
    with pytest.raises(SimulatorError, match="0 bytes a cycle"):
        replace(FREE_OF_CHARGE, miss_bytes=0)
