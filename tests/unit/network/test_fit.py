"""The choice between forms of a network: refined before they are compared, an equalised one only for a gain."""

from __future__ import annotations

from typing import Any

import pytest

from hilt.network.quantize.fit import _Candidate, _Refined, _Refining, best_starts


def chosen(monkeypatch: pytest.MonkeyPatch, *refined: tuple[bool, float]) -> int:
    """Return which of candidates is chosen that are equalised or not, and reach decibels when they are refined."""
    nothing: Any = None
    candidates = [_Candidate(nothing, equal, False, False, -place) for place, (equal, _) in enumerate(refined)]
    reached = {id(each): decibels for each, (_, decibels) in zip(candidates, refined, strict=True)}
    monkeypatch.setattr(_Refining, "refined", lambda _, each: _Refined(each, nothing, reached[id(each)]))
    best = _Refining(nothing, True, nothing, nothing).best_of(candidates)
    return next(place for place, each in enumerate(candidates) if each is best.candidate)


def test_the_best_start_is_not_always_the_best_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, (False, 25.3), (False, 28.2), (False, 27.9)) == 1


def test_an_equalised_form_must_bring_a_tenth_of_a_decibel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, (False, 20.0), (True, 20.05)) == 0
    assert chosen(monkeypatch, (False, 20.0), (True, 20.15)) == 1
    assert chosen(monkeypatch, (True, 20.0), (False, 20.05)) == 1


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ([(False, 25.2), (True, 29.3), (False, 30.3), (False, 30.1), (True, 30.2), (True, 30.1)], [2, 4]),
        ([(True, 31.0), (False, 25.0), (True, 32.0)], [2, 1]),
        ([(False, 20.0), (False, 21.0), (False, 22.0)], [2, 1]),
        ([(False, 20.0), (True, 20.05)], [0, 1]),
    ],
)
def test_an_equalised_form_and_another_are_refined(given: list[tuple[bool, float]], places: list[int]) -> None:
    """Which of two kinds is best refined, a start of one kind does not tell."""
    nothing: Any = None
    candidates = [_Candidate(nothing, equal, False, False, decibels) for equal, decibels in given]
    found = best_starts(candidates, 2)
    assert [next(place for place, each in enumerate(candidates) if each is one) for one in found] == places
    assert best_starts(candidates, 1) == found[:1]
