"""The experiment `score`: its runs, the rows that it keeps, and its tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilt_experiments import score
from hilt_experiments.bench import Bench, BenchSettings
from hilt_experiments.contenders import Contender
from hilt_experiments.score_runs import BUDGET, shards_of


def row(tuner: str, layer: str, seed: int, to: int | None, improved: list[tuple[int, float]]) -> dict[str, object]:
    return {
        "layer": layer,
        "world": "00 sums",
        "tuner": tuner,
        "seed": seed,
        "to_1%": to,
        "trials": 9,
        "improved": improved,
    }


def test_first_seeds_come_first_and_restricted_runs_are_others() -> None:
    there = [Contender.of("random")]
    told = [(shard.told[3], shard.told[4]) for shard in shards_of(["resnet18.C10"], there[:1], 9, 7)]
    assert told == [(0, 4), (4, 8), (8, 9)]
    both = shards_of(["resnet18.C10"], [there[0].restricted(), *there[:1]], 4, 7)
    assert len(both) == 2 and both[0].path != both[1].path


def test_the_best_so_far_is_none_before_the_first_valid_trial_and_stays_to_the_end() -> None:
    best = score.best_so_far(row("random", "resnet18.C10", 0, None, [(3, 9.0), (5, 7.0)]))
    assert best.shape == (BUDGET,) and np.isnan(best[:2]).all()
    assert best[2:6].tolist() == [9, 9, 7, 7] and best[-1] == 7


def test_hard_layers_are_compared_with_the_baseline_and_misses_count_as_more_than_the_budget() -> None:
    place, other = ("resnet18.C10", "00 sums"), ("resnet18.C9", "00 sums")
    ours = {place: [row("hilt", place[0], seed, 10, []) for seed in range(3)], other: []}
    base = {place: [row("autotvm", place[0], seed, trials, []) for seed, trials in enumerate((40, 40, None))]}
    found = score.trials_on_hard(ours, base)
    assert found["hard_to_1%"] == 10 and found["over_autotvm"] == 0.25 and found["never"] == 0
    assert score.trials_on_hard(base, base)["never"] == 1


@pytest.mark.slow
def test_runs_on_datasets_are_kept_and_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setattr(score, "contenders", lambda: [Contender.of("random"), Contender.of("order", by="random")])
    lines: list[str] = []
    bench = Bench("score", BenchSettings(seeds=2, workloads=("resnet18.C9",), jobs=1), tmp_path / "out", lines.append)
    score.score(bench)
    assert [each.name for each in bench.written] == ["score.csv"]
    assert len(bench.seed_rows) == 12 and not any(row["invalid"] for row in bench.seed_rows if row["tuner"] == "order")
