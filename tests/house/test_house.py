"""The product has no circles of files, and one definition of what must be one."""

from __future__ import annotations

import pytest

from .measure import ONE, circles, definitions, functions


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles() == []


@pytest.mark.parametrize("thing", ONE)
def test_there_is_one(thing: str) -> None:
    assert len(definitions()[thing]) == 1, definitions()[thing]


def test_complexity_counts_branches_of_a_function() -> None:
    by_name = {(each.file, each.name): each for each in functions()}
    assert by_name["host/hilt/did_you_mean.py", "did_you_mean"].complexity == 4  # a conditional, two comprehensions
    assert by_name["host/hilt/did_you_mean.py", "did_you_mean"].lines == 5
