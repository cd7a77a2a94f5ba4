"""Search steps as Glimpse's paper counts them: moves of the annealing, none before the first model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hilt_experiments import glimpse_steps
from hilt_experiments.bench import Bench, BenchSettings
from hilt_experiments.contenders import Contender
from hilt_experiments.runs import Report
from hilt_experiments.shards import Row, Shard
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


def test_the_comparison_states_the_runs_of_each_tuner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = {"autotvm": 500, "glimpse": 100}

    def rows_of(shards: Sequence[Shard], jobs: int, report: Report) -> list[Row]:
        return [{"tuner": shard.told[0], "steps": moves[str(shard.told[0])]} for shard in shards]

    monkeypatch.setattr(glimpse_steps, "rows_of", rows_of)
    settings = BenchSettings(seeds=3, workloads=("resnet18.C9",), checks="compiler")
    bench = Bench("glimpse-steps", settings, tmp_path, lambda line: None)
    glimpse_steps.steps(bench)
    (found,) = bench.comparisons
    assert (found.ours, found.note) == ("5.00", "500 and 100 moves, means of 3 runs each")
