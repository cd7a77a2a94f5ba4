"""Numbers that no run can have are refused before anything is written."""

from __future__ import annotations

import re

import pytest

from hilt.engine.errors import SettingsError
from hilt.engine.run_spec import RunSpec


def settings(**changes: object) -> RunSpec:
    values = {"workload": "resnet18.C2", "board": "virtual:pynq", "tuner": "random", "trials": 8}
    return RunSpec(**values | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("seed", -1, "from 0 to 9223372036854775807"),
        ("seed", 2**63, "from 0 to 9223372036854775807"),
        ("trials", 0, "at least 1"),
        ("trials", 2**63, "at most 9223372036854775807"),
        ("batch", 2**63, "at most 9223372036854775807"),
        ("repeat", 1001, "at most 1000"),
        ("number", 1001, "at most 1000"),
    ],
)
def test_a_number_that_neither_database_nor_board_can_hold_is_refused(name: str, value: int, limit: str) -> None:
    with pytest.raises(SettingsError, match=rf"{name} is {value}; it must be .*{re.escape(limit)}"):
        settings(**{name: value})


def test_the_largest_numbers_are_taken() -> None:
    largest = settings(seed=2**63 - 1, trials=2**63 - 1, repeat=1000, number=1000)
    assert (largest.seed, largest.trials) == (2**63 - 1, 2**63 - 1)
