"""Latencies that no board can have, at the edges of each rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hilt.measure import Request, describe_board
from hilt.measure.plausibility import impossibility, least_cycles
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import Opcode, decode, encode
from hilt_board.protocol import Measured
from tests.e2e.small_programs import dot_product

INTERLOCK = describe_board("virtual:pynq").accelerator
PUBLIC = replace(INTERLOCK, hazards="none")


def reasons(
    request: Request,
    cycles: tuple[float, ...],
    microseconds: tuple[float, ...] | None = None,
    wall: tuple[float, ...] = (),
    accelerator: Accelerator = INTERLOCK,
    time_scale: float = 1.0,
) -> str:
    latencies = microseconds if microseconds is not None else tuple(count / 100 for count in cycles)
    measured = Measured(request.key, "ok", cycles=cycles, microseconds=latencies, wall_microseconds=wall)
    return impossibility(measured, request, accelerator, time_scale)


@pytest.mark.parametrize("rounds", [1, 2, 7, 1000])
def test_the_bound_is_the_macs_and_two_share_a_cycle_behind_an_interlock(rounds: int) -> None:
    program = dot_product(INTERLOCK, 1, rounds).program
    assert least_cycles(program, PUBLIC) == rounds
    assert least_cycles(program, INTERLOCK) == max(1, rounds // 2)


def test_loops_and_micro_ops_multiply_and_a_reset_counts_nothing() -> None:
    program = dot_product(INTERLOCK, 1).program
    instructions = decode(program.instructions, INTERLOCK)
    gemm = np.flatnonzero((instructions["opcode"] == Opcode.GEMM) & (instructions["reset"] == 0))
    assert len(gemm) == 1 and (instructions["opcode"] == Opcode.GEMM).sum() == 2, "one of the two resets"
    instructions["uop_bgn"][gemm], instructions["uop_end"][gemm] = 3, 8
    instructions["iter_out"][gemm], instructions["iter_in"][gemm] = 6, 7
    changed = replace(program, instructions=encode(instructions, INTERLOCK))
    assert least_cycles(changed, PUBLIC) == 5 * 6 * 7


REQUEST = dot_product(PUBLIC, 1, 1000)


@pytest.mark.parametrize(("cycles", "possible"), [(1000.0, True), (999.9995, True), (999.9, False), (0.0, False)])
def test_no_program_is_faster_than_its_macs(cycles: float, possible: bool) -> None:
    found = reasons(REQUEST, (cycles,), accelerator=PUBLIC)
    assert found == ("" if possible else f"{cycles:g} cycles, the program's multiply-accumulates alone take 1,000")


@pytest.mark.parametrize(("microseconds", "possible"), [(10.0, True), (9.99, False)])
def test_a_board_that_counts_no_cycles_is_held_to_the_same(microseconds: float, possible: bool) -> None:
    found = reasons(REQUEST, (), (microseconds,), accelerator=PUBLIC)
    assert (found == "") is possible
    assert possible or found.startswith("999 cycles")


def test_as_many_figures_come_as_were_asked_for() -> None:
    three = replace(REQUEST, repeat=3)
    assert reasons(three, (2000.0,) * 3) == ""
    assert reasons(three, (2000.0,) * 2) == "2 latencies came, 3 were asked for"
    assert reasons(three, (2000.0,) * 2, (20.0,) * 3) == "2 cycle counts came, 3 were asked for"
    assert reasons(three, (), (20.0,) * 3) == ""


@pytest.mark.parametrize(
    ("microseconds", "possible"), [(20.0, True), (20.00001, True), (20.0001, False), (19.9, False)]
)
def test_cycles_and_microseconds_are_of_one_clock(microseconds: float, possible: bool) -> None:
    found = reasons(REQUEST, (2000.0,), (microseconds,))
    assert found == ("" if possible else f"2000 cycles at 100 MHz are not {microseconds:g} µs")


@pytest.mark.parametrize(
    ("counted", "wall", "possible"),
    [
        (1000.0, 13_000.0, True),  # three times as long, and ten milliseconds
        (1000.0, 13_001.0, False),
        (13_000.0, 1000.0, True),
        (13_001.0, 1000.0, False),
    ],
)
def test_counter_and_wall_clock_do_not_contradict_each_other(counted: float, wall: float, possible: bool) -> None:
    cycles = (counted * 100,)
    found = reasons(REQUEST, cycles, wall=(wall,))
    assert (found == "") is possible
    assert possible or found.startswith(f"the cycle counter says {counted:g} µs, the wall clock {wall:g} µs")
    assert reasons(REQUEST, cycles, wall=(wall,), time_scale=50.0) == "", (
        "a simulated board's wall clock is not its own"
    )
    assert reasons(REQUEST, cycles) == "", "without a wall clock nothing is compared"


def test_the_shortest_run_of_each_clock_is_compared() -> None:
    twice = replace(REQUEST, repeat=2)
    assert reasons(twice, (100_000.0, 200_000.0), wall=(90_000.0, 1000.0)) == ""


@pytest.mark.parametrize("outcome", ["timeout", "wrong_answer", "crash"])
def test_only_a_latency_can_be_impossible(outcome: str) -> None:
    assert impossibility(Measured(REQUEST.key, outcome), REQUEST, INTERLOCK, 1.0) == ""
