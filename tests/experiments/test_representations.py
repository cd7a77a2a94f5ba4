"""AutoTVM's Figure 9: the rows that judge a model are not in its training set."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.measure.dataset import DatasetStore
from hilt_experiments.autotvm import transferred
from tests.unit.measure.dataset.small import built, small_subject


@pytest.mark.parametrize("features", ["knob", "ast", "context"])
def test_more_samples_than_a_space_has_leave_some_to_judge_by(
    features: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    subject = small_subject()
    built(DatasetStore().folder, [subject])
    (row,) = transferred([subject, subject], "within", features, 10 * len(subject.space), seed=0)
    assert 0 <= row["accuracy"] <= 1 and 0 <= row["ndcg"] <= 1
