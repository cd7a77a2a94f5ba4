"""The product has no circles of files, and one definition of each protocol."""

from __future__ import annotations

import pytest

from .measure import (
    LARGEST_COMPLEX_SHARE,
    MOST_LONG,
    ONE,
    circles,
    complex_functions,
    definitions,
    functions,
    long_functions,
)


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles() == []


@pytest.mark.parametrize("thing", ONE)
def test_there_is_one(thing: str) -> None:
    assert len(definitions()[thing]) == 1, definitions()[thing]


def test_few_functions_are_complex() -> None:
    found = complex_functions()
    names = [f"{each.file} {each.name} ({each.complexity})" for each in found]
    assert len(found) <= LARGEST_COMPLEX_SHARE * len(functions()), names


def test_few_functions_are_long() -> None:
    assert len(long_functions()) <= MOST_LONG, [f"{each.file} {each.name} ({each.lines})" for each in long_functions()]


def test_complexity_counts_branches_of_a_function() -> None:
    by_name = {(each.file, each.name): each for each in functions()}
    assert (
        by_name["host/hilt/did_you_mean.py", "did_you_mean"].complexity == 6
    )  # two conditionals, three comprehensions
    assert by_name["host/hilt/did_you_mean.py", "did_you_mean"].lines == 9
