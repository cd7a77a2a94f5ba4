"""The blame for a lost board: no trial is accused at first, and never one that had company."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from hilt.measure import Request
from hilt.measure.board_measurer import Suspects


def request(ordinal: int, attempt: int = 0) -> Request:
    return Request(ordinal, f"run/{ordinal}/{attempt}", None, None, 0.1)  # type: ignore[arg-type]


def test_the_first_loss_accuses_nobody_and_makes_all_suspects() -> None:
    suspects = Suspects()
    before = time.monotonic()
    assert suspects.after_loss([request(1), request(2)]) is None
    assert suspects.has(request(1)) and suspects.has(request(2, attempt=3)) and not suspects.has(request(3))
    assert suspects.lost_at >= before


def test_a_first_loss_alone_accuses_nobody_either() -> None:
    """Cables and power fail while one trial runs, too."""
    suspects = Suspects()
    assert suspects.after_loss([request(1)]) is None
    alone = request(1, attempt=1)
    assert suspects.after_loss([alone]) is alone


def test_whom_the_agent_names_is_accused_at_once_and_only_once() -> None:
    suspects = Suspects()
    named = request(4)
    suspects.accuse(named)
    assert suspects.after_loss([named, request(5)]) is named
    assert not suspects.has(request(5))
    assert suspects.after_loss([request(5), request(6)]) is None


@given(st.lists(st.sets(st.integers(0, 5), max_size=2), max_size=30))
def test_the_accused_was_alone_and_lost_before(losses: list[set[int]]) -> None:
    suspects, seen = Suspects(), set()
    for taken in losses:
        accused = suspects.after_loss([request(ordinal) for ordinal in sorted(taken)])
        expected = taken if len(taken) == 1 and taken <= seen else set()
        assert ({accused.ordinal} if accused else set()) == expected
        seen |= taken
