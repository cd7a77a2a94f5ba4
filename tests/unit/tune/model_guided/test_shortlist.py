"""The shortlist over a machine that is a table: which rows are predicted exactly, and the predictions of all."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from hilt.tune.model_guided.shortlist import Shortlist

Floats = npt.NDArray[np.float64]

ROWS = 60
NEVER = np.log(1e13)
"""Logarithm that stands for a program that would never end."""
POINT = np.zeros(2)
CANNOT = (3, 41)
"""Rows whose program cannot run."""
TWIN_OF = {7: 5, 50: 5}
"""Rows with the program of another."""


class TableMachine:
    """Exact logarithms that lie above rough ones by a constant, except for a row that never ends."""

    def __init__(self, affordable: int = ROWS) -> None:
        self.rough = np.log(1000.0 + 10 * np.arange(ROWS))
        self.exact = self.rough + 0.25
        self.exact[9] = np.inf
        self.asked: list[int] = []
        self._affordable = affordable

    def estimate(self, coordinates: Floats) -> Floats:
        return self.rough + coordinates[0]

    def rough_derivatives(self, coordinates: Floats) -> Floats:
        return np.ones((ROWS, 2))

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        self.asked += rows
        return self.exact[rows][:, None] + coordinates[:, 0][None, :]

    def derivatives(self, rows: Sequence[int], coordinates: Floats) -> tuple[Floats, Floats]:
        return self.exact[rows] + coordinates[0], np.full((len(rows), 2), 2.0) + np.array(rows)[:, None]

    def affordable(self, cycles: float) -> int:
        return self._affordable


class TablePrograms:
    """One program a row, except for the rows of `CANNOT` and `TWIN_OF`."""

    def digests(self, rows: Sequence[int]) -> list[bytes | None]:
        return [None if row in CANNOT else bytes([TWIN_OF.get(row, row)]) for row in rows]


def shortlist(machine: TableMachine, short: Sequence[int] | None = None) -> Shortlist:
    class Rows(SimpleNamespace):
        def __len__(self) -> int:
            return ROWS

    allowed = np.zeros(ROWS, dtype=bool)
    allowed[list(range(ROWS) if short is None else short)] = True
    smooth = np.linspace(0, 3, ROWS)[:, None]
    return Shortlist(cast(Any, Rows(short=allowed, smooth=smooth)), cast(Any, TablePrograms()), cast(Any, machine))


def rows(*numbers: int) -> npt.NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def test_rows_with_one_program_are_predicted_once() -> None:
    machine = TableMachine()
    made = shortlist(machine)
    assert made.include(rows(5, 7, 3, 50, 8)).tolist() == [5, 7, 50, 8], "row 3 cannot run"
    assert made.rows.tolist() == [5, 8]
    assert made.exact(rows(5, 7, 50, 8), POINT[None])[:, 0].tolist() == machine.exact[[5, 5, 5, 8]].tolist()
    assert machine.asked == [5, 5, 5, 8]
    assert made.derivatives(rows(7), POINT)[1].tolist() == [[7.0, 7.0]], "the derivatives of row 5"


def test_rows_that_are_too_long_to_lower_are_not_added() -> None:
    made = shortlist(TableMachine(), short=[5, 8])
    assert made.include(rows(5, 6, 8)).tolist() == [5, 8]
    assert made.rows.tolist() == [5, 8]


def test_a_program_that_cannot_run_has_no_prediction() -> None:
    made = shortlist(TableMachine())
    made.include(rows(*range(20)))
    found = made.predict(POINT)
    assert found.base[3] == 30.0
    assert found.base[41] < 10, "nothing is known of it yet"
    made.include(rows(41))
    assert made.predict(POINT).base[41] == 30.0


def test_an_exact_prediction_has_no_deviation_and_its_own_derivatives() -> None:
    machine = TableMachine()
    made = shortlist(machine)
    made.include(rows(*range(20)))
    found = made.predict(POINT)
    known = [row for row in range(20) if row not in CANNOT]
    ends = [row for row in known if row != 9]
    same = [TWIN_OF.get(row, row) for row in ends]
    assert found.base[ends].tolist() == machine.exact[same].tolist()
    assert found.slope[ends].tolist() == [[2.0 + row] * 2 for row in same]
    assert found.base[9] == 30.0, "it never ends"
    assert found.slope[9].tolist() == [1.0, 1.0]
    assert not found.own[known].any()
    assert found.base[50] == machine.exact[5] or found.own[50] > 0


def test_the_other_rows_are_off_by_the_known_ones_error() -> None:
    machine = TableMachine()
    made = shortlist(machine)
    made.include(rows(*range(0, 40, 2)))
    found = made.predict(POINT)
    unseen = [row for row in range(1, 40, 2) if row not in CANNOT]
    assert np.allclose(found.base[unseen], machine.rough[unseen] + 0.25, atol=0.02)
    assert (found.own[unseen] > 0).all() and (found.slope[unseen] == 1).all()
    assert found.own[59] > found.own[21], "less is known far from every known row"


def test_derivatives_are_taken_of_the_fastest_that_are_affordable() -> None:
    machine = TableMachine(affordable=3)
    made = shortlist(machine)
    made.include(rows(30, 20, 10, 40))
    found = made.predict(POINT)
    assert found.slope[[10, 20, 30]].tolist() == [[12.0] * 2, [22.0] * 2, [32.0] * 2]
    assert found.slope[40].tolist() == [1.0, 1.0]


def test_without_any_exact_prediction_the_rough_ones_stand() -> None:
    machine = TableMachine()
    found = shortlist(machine).predict(np.array([0.5, 0.0]))
    assert found.base.tolist() == (machine.rough + 0.5).tolist()
    assert not found.own.any() and (found.slope == 1).all()


def test_the_first_rows_are_the_best_and_some_of_all_kinds() -> None:
    machine = TableMachine()
    made = shortlist(machine, short=range(10, ROWS))
    made.open(POINT[None], rounds=0)
    best = [row for row in range(10, 34) if row not in CANNOT]
    assert made.rows[: len(best)].tolist() == best
    assert set(made.rows[len(best) :].tolist()) <= set(range(10, 10 + 25)), "of the better half"


@pytest.mark.parametrize("rounds", [0, 4])
def test_the_search_ends_with_the_best_known(rounds: int) -> None:
    machine = TableMachine()
    machine.exact[23] = machine.exact[10] - 0.3
    made = shortlist(machine, short=range(10, ROWS))
    made.include(rows(10, 14, 30, 33))
    made.extend(POINT, rounds)
    assert (23 in made.rows) is (rounds > 0)
    assert not {*range(10), *CANNOT} & set(made.rows.tolist())


def test_sharper_predictions_are_exact_and_the_rest_stays() -> None:
    machine = TableMachine()
    made = shortlist(machine)
    made.include(rows(0, 2, 4, 6, 8, 10))
    before = made.predict(POINT)
    known = before.base[[0, 2, 4, 6, 8, 10]].tolist()
    far = before.base[30]
    made.sharpen(before, rows(3, 7, 9, 11, 2), POINT)
    assert before.base[11] == machine.exact[11] and before.own[11] == 0
    assert before.base[7] == machine.exact[7] and before.base[9] == 30.0
    assert before.base[3] == 30.0 and before.own[3] == 0, "it cannot run"
    assert before.base[[0, 2, 4, 6, 8, 10]].tolist() == known
    assert before.base[30] == far and before.own[30] > 0 and (before.slope[11] == 1).all()


def test_a_copy_goes_on_by_itself() -> None:
    made = shortlist(TableMachine())
    made.include(rows(5, 3))
    other = made.copy()
    other.include(rows(8, 7))
    assert (made.rows.tolist(), other.rows.tolist()) == ([5], [5, 8])
    assert made.include(rows(8)).tolist() == [8], "it did not know of the copy's"
