"""The fallback of a run: the first right one of its first eight trials."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hilt.engine.campaign_results import FALLBACK_ATTEMPTS, fallback_of
from hilt.store import Trial
from hilt.trial import Outcome
from tests.unit.store.examples import trial


def made(words: str) -> list[Trial]:
    """Return trials: `f` fails, `o` is right, `u` ended without a comparison."""
    found = []
    for ordinal, word in enumerate(words):
        right = trial(ordinal, ordinal, 10.0)
        if word == "f":
            right = replace(right, outcome=Outcome.TIMEOUT, cycles=None, microseconds=None, verification=None)
        found.append(replace(right, verification=None) if word == "u" else right)
    return found


@pytest.mark.parametrize(
    ("words", "fallback"),
    [
        ("", None),
        ("o", 0),
        ("ffo", 2),
        ("fff", None),
        ("f" * 7 + "o", 7),
        ("f" * 8, None),
        ("f" * 8 + "o", None),
        ("fuo", None),
    ],
)
def test_it_is_the_first_that_is_right(words: str, fallback: int | None) -> None:
    assert FALLBACK_ATTEMPTS == 8
    found = fallback_of(made(words))
    assert (None if found is None else found.ordinal) == fallback
