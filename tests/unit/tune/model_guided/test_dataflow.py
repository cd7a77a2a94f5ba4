"""The dependence graph of a program's segments, and the end of the program, of instructions written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.simulator.critical_path import CriticalPaths
from hilt.tune.model_guided.dataflow import Dataflow, FollowedWork, critical_work, finish
from hilt.virtual.board_model import board_model
from hilt.vta.isa import INSTRUCTION, MemoryType, Opcode, encode
from hilt.vta.program import Program

BOARD = board_model("pynq").accelerator
LOAD = {"opcode": Opcode.LOAD, "memory_type": MemoryType.INP}
WEIGHTS = {"opcode": Opcode.LOAD, "memory_type": MemoryType.WGT}
UOPS = {"opcode": Opcode.LOAD, "memory_type": MemoryType.UOP}
GEMM = {"opcode": Opcode.GEMM}
STORE = {"opcode": Opcode.STORE, "memory_type": MemoryType.OUT}
TILE = [
    {**LOAD, "pop_next": 1},
    {**WEIGHTS, "push_next": 1},
    UOPS,
    {**GEMM, "pop_prev": 1, "pop_next": 1, "push_prev": 1, "push_next": 1},
    {**STORE, "pop_prev": 1, "push_prev": 1},
]


@pytest.fixture(scope="module")
def paths() -> CriticalPaths:
    return CriticalPaths(BOARD)


def program_of(*instructions: dict[str, int]) -> Program:
    records = np.zeros(len(instructions) + 1, INSTRUCTION)
    for record, fields in zip(records, [*instructions, {"opcode": Opcode.FINISH}], strict=True):
        for name, value in fields.items():
            record[name] = value
    return Program.assemble(BOARD, encode(records, BOARD), np.zeros((1, 1), np.uint32), ())


def followed(work: list[list[float]], most: int) -> FollowedWork:
    """Return the work of as many tiles as it has rows for, with `most` segments followed."""
    flow = Dataflow.of(program_of(*TILE * (len(work) // len(TILE))), BOARD, most)
    return FollowedWork.of(flow, np.array(work), np.array(work).sum(axis=0))


def test_instructions_with_no_token_between_them_are_one_segment_of_their_stage() -> None:
    flow = Dataflow.of(program_of(*TILE, *TILE), BOARD, 100)
    assert len(flow.instructions) == 10  # without FINISH
    assert flow.stage.tolist() == [0, 0, 1, 1, 2] * 2
    assert flow.segment.tolist() == [0, 0, 1, 2, 3, 4, 4, 5, 6, 7]


def test_a_token_given_ends_a_segment_and_a_token_taken_begins_one() -> None:
    for gives in ("push_prev", "push_next"):
        flow = Dataflow.of(program_of({**GEMM, gives: 1}, GEMM, GEMM), BOARD, 100)
        assert flow.segment.tolist() == [0, 1, 1] and flow.sources.tolist() == [[0, 0, 0], [1, 0, 0]]
    for takes in ("pop_prev", "pop_next"):
        flow = Dataflow.of(program_of(GEMM, GEMM, {**GEMM, takes: 1}), BOARD, 100)
        assert flow.segment.tolist() == [0, 0, 1] and flow.sources.tolist() == [[0, 0, 0], [1, 0, 0]]
    flow = Dataflow.of(program_of({**LOAD, "push_next": 1}, {**GEMM, "pop_prev": 1}), BOARD, 100)
    assert flow.sources.tolist() == [[0, 0, 0], [0, 1, 0]]


def test_a_segment_waits_for_the_one_before_it_and_for_the_senders_of_its_tokens() -> None:
    sources = Dataflow.of(program_of(*TILE, *TILE), BOARD, 100).sources
    assert sources.tolist() == [
        [0, 0, 0],  # the first tile's loads: the tokens that they take come later
        [0, 0, 0],
        [2, 1, 0],  # its GEMM: after the micro-ops, and the loads
        [0, 3, 0],
        [1, 0, 0],  # the second tile's loads
        [3, 0, 0],
        [6, 5, 0],
        [4, 7, 0],
    ]
    first = [
        LOAD,
        {**GEMM, "push_prev": 1},
        {**LOAD, "pop_next": 1},
        {**STORE, "push_prev": 1},
        {**GEMM, "pop_next": 1},
    ]
    assert Dataflow.of(program_of(*first), BOARD, 100).sources.tolist() == [
        [0, 0, 0],
        [0, 0, 0],
        [1, 0, 2],
        [0, 0, 0],
        [2, 0, 4],
    ]


def test_only_the_first_instructions_and_segments_are_followed() -> None:
    program = program_of(*TILE, *TILE)
    whole, few, short = (
        Dataflow.of(program, BOARD, 100),
        Dataflow.of(program, BOARD, 3),
        Dataflow.of(program, BOARD, 100, 5),
    )
    assert few.sources.tolist() == whole.sources[:3].tolist() and few.segment.tolist() == whole.segment.tolist()
    assert len(short.instructions) == 5 and short.sources.tolist() == whole.sources[:4].tolist()
    work = np.arange(20.0).reshape(10, 2)
    assert few.summed(work).tolist() == [[2, 4], [4, 5], [6, 7]]


def test_a_program_that_is_followed_whole_ends_with_its_longest_path(paths: CriticalPaths) -> None:
    # loads 3 + 1, micro-ops 2, GEMM 5, store 7: 4 + 5 + 7, and the second GEMM waits for the first alone
    work = [[3.0], [1.0], [2.0], [5.0], [7.0]] * 2
    programs = [followed(work, 100)]
    assert finish(paths, programs, np.array([[1.0, 10.0]])).tolist() == [[4 + 5 + 7 + 7, 230]]
    total, slope = critical_work(paths, programs, np.array([1.0]))
    assert total.tolist() == [23] and slope.tolist() == [[23]]


def test_the_rest_goes_on_at_the_pace_of_the_second_half(paths: CriticalPaths) -> None:
    """Two kinds of work: 1 of the first in each load and store, 4 of the second in each GEMM."""
    work = [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 4.0], [1.0, 0.0]] * 8
    costs = np.array([1.0, 2.0])
    half, whole = (finish(paths, [followed(work[: 5 * tiles], 100)], costs[:, None])[0, 0] for tiles in (2, 4))
    assert (half, whole) == (1 + 2 * 8 + 1, 1 + 4 * 8 + 1)
    seen = 2 * (2 * 1.0 + 4 * 2.0)  # the work of two tiles
    wanted = whole + 2 * seen * (whole - half) / seen  # four tiles more
    programs = [followed(work, 16)]
    assert finish(paths, programs, costs[:, None])[0, 0] == pytest.approx(wanted)
    total, slope = critical_work(paths, programs, costs)
    assert total[0] == pytest.approx(wanted)
    step = 1e-6
    for kind in range(2):
        raised = costs * np.exp(step * (np.arange(2) == kind))
        change = (finish(paths, programs, raised[:, None])[0, 0] - wanted) / step
        assert slope[0, kind] == pytest.approx(change, rel=1e-4)


def test_work_as_small_as_parts_of_a_cycle_keeps_its_pace(paths: CriticalPaths) -> None:
    work = (np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 4.0], [1.0, 0.0]] * 8) * 1e-3).tolist()
    programs = [followed(work, 16)]
    large = finish(paths, programs, np.array([[1e3], [2e3]]))[0, 0]
    assert finish(paths, programs, np.array([[1.0], [2.0]]))[0, 0] == pytest.approx(large / 1e3)
    total, slope = critical_work(paths, programs, np.array([1.0, 2.0]))
    assert total[0] == pytest.approx(large / 1e3)
    assert slope[0] == pytest.approx(critical_work(paths, programs, np.array([1e3, 2e3]))[1][0] / 1e3)


def test_a_program_without_work_in_its_second_half_ends_with_the_first(paths: CriticalPaths) -> None:
    work = [[3.0], [0.0], [0.0], [0.0], [0.0]] * 2
    programs = [followed(work, 4)]
    (total,), slope = critical_work(paths, programs, np.array([1.0]))
    assert total == 3 and slope.tolist() == [[3]]
    assert finish(paths, programs, np.array([[1.0]])).tolist() == [[3]]
