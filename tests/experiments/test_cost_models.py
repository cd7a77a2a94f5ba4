"""HW-aware's Figure 2: a curve is of the same layers all along."""

from __future__ import annotations

import numpy as np
import pytest

from hilt_experiments.cost_models import RATIOS, mean_of


def test_a_layer_without_samples_for_every_share_is_in_none_of_the_means() -> None:
    everywhere = [{"workload": "a", "seed": 0, "samples": 50, "valid_ratio": ratio, "ndcg": 0.5} for ratio in RATIOS]
    rows = [*everywhere, {"workload": "b", "seed": 0, "samples": 50, "valid_ratio": RATIOS[0], "ndcg": 0.9}]
    assert [mean_of(rows, "ndcg", 50, ratio) for ratio in RATIOS] == pytest.approx([0.5] * len(RATIOS))
    assert np.isnan(mean_of(rows, "ndcg", 100, RATIOS[0]))
