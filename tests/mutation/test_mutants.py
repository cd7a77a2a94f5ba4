"""Mutants of a small module: the changes, and that each mutant compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.__main__ import line_runners
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import mutants

SOURCE = '''
def clamp(value: int, high: int = 7) -> int:
    """Return it."""
    if value >= high and not value == 3:
        note(value)
        return high
    return value - 1
'''


def test_each_change_is_made_once() -> None:
    made = list(mutants(SOURCE))
    changes = sorted(mutant.change for mutant in made)
    wanted = ["1 -> 2", "3 -> 4", "7 -> 8", "And -> Or", "Eq -> NotEq", "GtE -> Gt", "Sub -> Add"]
    assert changes == sorted([*wanted, "condition -> False", "not -> ", "without note(value)"])
    assert len({mutant.source for mutant in made}) == len(made)
    for mutant in made:
        compile(mutant.source, "mutant", "exec")


def test_a_change_does_as_its_name_says() -> None:
    by_change = {mutant.change: mutant.source for mutant in mutants(SOURCE)}
    assert "value > high" in by_change["GtE -> Gt"]
    assert "not not value == 3" in by_change["not -> "]
    assert "note" not in by_change["without note(value)"]
    assert "if False:" in by_change["condition -> False"]


def test_annotations_are_left_alone() -> None:
    assert list(mutants("held: int | None = None\ndef f(a: int | str) -> int | None: ...\n")) == []


@pytest.mark.parametrize("name", EQUIVALENT)
def test_each_equivalent_mutant_is_one(name: str) -> None:
    source = (Path(__file__).parents[2] / name).read_text(encoding="utf-8")
    lines = source.splitlines()
    made = {(lines[each.line - 1].strip(), each.change) for each in mutants(source)}
    assert EQUIVALENT[name].keys() <= made


def test_the_line_of_a_decorator_runs_at_import() -> None:
    source = "@mark(True)\ndef one() -> int:\n    return 1\n"
    ran = {"test_one": {3}, "test_two": {2}}
    assert line_runners(1, source, ran) == ["test_two"]
    assert line_runners(3, source, ran) == ["test_one"]
