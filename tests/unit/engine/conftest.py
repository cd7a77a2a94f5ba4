"""Databases for the loop's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.store import Trial
from hilt.trial import Outcome

from .loop_bench import BUDGET, Bench


@pytest.fixture
def bench(tmp_path: Path):
    made = Bench(tmp_path / "hilt.db")
    yield made
    made.store.close()


@pytest.fixture
def undisturbed(tmp_path: Path) -> list[Trial]:
    quiet = Bench(tmp_path / "quiet.db")
    assert quiet.session()
    trials = quiet.trials
    quiet.store.close()
    assert [each.ordinal for each in trials] == list(range(BUDGET))
    assert {each.outcome for each in trials} > {Outcome.OK, Outcome.REJECTED}
    return trials
