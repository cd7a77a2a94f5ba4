"""HW-aware's Figure 2: a curve is of the same layers all along."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilt_experiments.bench import Bench, BenchSettings
from hilt_experiments.cost_models import RATIOS, SIZES, compare, mean_of


def test_a_layer_without_samples_for_every_share_is_in_none_of_the_means() -> None:
    everywhere = [{"workload": "a", "seed": 0, "samples": 50, "valid_ratio": ratio, "ndcg": 0.5} for ratio in RATIOS]
    rows = [*everywhere, {"workload": "b", "seed": 0, "samples": 50, "valid_ratio": RATIOS[0], "ndcg": 0.9}]
    assert [mean_of(rows, "ndcg", 50, ratio) for ratio in RATIOS] == pytest.approx([0.5] * len(RATIOS))
    assert np.isnan(mean_of(rows, "ndcg", 100, RATIOS[0]))


def test_each_part_of_the_figure_has_a_line(tmp_path: Path) -> None:
    bench = Bench("hw-aware-fig2", BenchSettings(), tmp_path, lambda line: None)
    facts = {"ndcg": 0.4, "precision": 0.3, "valid_invalid": 0.8, "all": 0.9}
    rows = [
        {"workload": "a", "seed": 0, "samples": size, "valid_ratio": ratio, "valid_valid": 0.5 + ratio / 10, **facts}
        for size in SIZES
        for ratio in RATIOS
    ]
    compare(bench, rows)
    texts = {each.claim.split(":")[0]: each.ours for each in bench.comparisons}
    assert list(texts) == ["Figure 2a", "Figure 2b", "Figure 2c", "Figure 2d", "Figure 2"]
    assert texts["Figure 2d"] == "0.510 and 0.590"
