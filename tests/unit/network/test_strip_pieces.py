"""A chain's records: a piece of its rows for each thread, strips that move along them, and rooms used again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt_runtime.native import strip_plan
from hilt_runtime.native.inference import InferencePlan
from hilt_runtime.native.split import work_of
from hilt_runtime.native.steps import KERNELS
from tests.unit.network.engines import bits

from .test_strips import by_numpy, chained, planned, step

COLUMNS = 64


def elementwise(rows: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return four functions in a chain, with one operand that is the same for all rows."""
    steps = [
        step("Tanh", ["x"], "a"),
        step("Mul", ["a", "scale"], "b"),
        step("Sigmoid", ["b"], "c"),
        step("Add", ["c", "x"], "y"),
    ]
    return steps, {"scale": np.linspace(-1, 1, COLUMNS, dtype=np.float32)}


def plan_of(rows: int, threads: int, kept: set[str] | None = None) -> tuple[InferencePlan, dict[str, Any]]:
    steps, constants = elementwise(rows)
    x = np.random.default_rng(rows).normal(0, 1, (rows, COLUMNS)).astype(np.float32)
    return planned(steps, constants, {"x": x}, kept or {"y"}, threads), by_numpy(steps, {**constants, "x": x})


def heads(plan: InferencePlan) -> list[Any]:
    return [record for record in plan.builder.records if record.chain > 1]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [600, 601, 1999])
def test_each_thread_has_its_share_of_the_rows(rows: int, threads: int) -> None:
    plan, wanted = plan_of(rows, threads)
    pieces = heads(plan)
    assert len(pieces) == threads and pieces[0].together == threads
    assert all(piece.together == 1 for piece in pieces[1:]) and chained(plan) == [4] * threads
    counts = [piece.rows for piece in pieces]
    assert sum(counts) == rows and max(counts) - min(counts) <= 1
    assert all(1 <= piece.height <= piece.rows for piece in pieces)
    assert len({piece.height for piece in pieces}) == 1
    plan.run({"x": wanted["x"]})
    np.testing.assert_array_equal(bits(plan.values["y"]), bits(wanted["y"]))


def test_strips_move_by_a_row_along_what_has_memory_of_its_own() -> None:
    plan, _ = plan_of(600, 1)
    row = COLUMNS * 4
    pitches = [list(record.pitch) for record in plan.builder.records]
    assert pitches == [[row, 0], [0, 0, 0], [0, 0], [0, row, row]]
    plan, _ = plan_of(600, 1, {"y", "b"})
    assert [list(record.pitch) for record in plan.builder.records][1:3] == [[0, 0, row], [row, 0]]


def test_a_room_is_used_again_once_nothing_reads_it() -> None:
    plan, _ = plan_of(600, 1)
    first, second, third, last = (record.places for record in plan.builder.records)
    a, b, c = first[-1], second[-1], third[-1]
    assert second[0] == a and third[0] == b and c in last[:2]
    assert a != b and b != c and a == c, "two rooms are enough"
    assert len({id(plan.builder.arrays[place]) for place in (a, b, c)}) == 2


def test_a_chain_is_cut_by_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 600
    plan, _ = plan_of(rows, 1)
    (head,) = heads(plan)
    strip = sum(
        work_of(KERNELS[each.kernel - 1], [plan.builder.arrays[place] for place in each.places], each.numbers)
        for each in plan.builder.records
    )
    work = strip * (rows // head.height)
    for pieces in (1, 2, 3, 5):
        monkeypatch.setattr(strip_plan, "LEAST", work // pieces)
        assert len(heads(plan_of(rows, 8)[0])) == pieces, "each has so much work at least"
