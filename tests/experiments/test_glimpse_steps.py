"""Search steps as Glimpse's paper counts them: moves of the annealing, none before the first model."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt_experiments import glimpse_steps
from hilt_experiments.contenders import Contender
from tests.unit.measure.dataset.small import built, small_subject


@pytest.mark.parametrize("tuner", ["autotvm", "glimpse"])
def test_a_run_counts_its_moves(tuner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = small_subject()
    dataset = built(tmp_path, [subject])[0]
    monkeypatch.setattr(glimpse_steps, "dataset_of", lambda of: dataset)
    (row,) = glimpse_steps.steps_of((subject,), tuner, 0, Contender.of(tuner).code())
    assert row["found"] and 1 <= row["trials"] <= len(subject.space)
    planned = row["trials"] > 64 if tuner == "autotvm" else row["trials"] > 16
    assert (row["steps"] > 0) == planned
