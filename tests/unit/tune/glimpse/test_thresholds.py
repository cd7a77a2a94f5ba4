from __future__ import annotations

import numpy as np
import pytest

from hilt.schedule import load_workload, verdicts
from hilt.tune import TuningProblem
from hilt.tune.glimpse.encoding import CONFIGURATION_FEATURES, KnobSpace, layer_features
from hilt.tune.glimpse.target import HardwareTarget
from hilt.tune.glimpse.thresholds import ThresholdEnsemble
from hilt.tune.glimpse.weights import load_weights
from hilt.virtual.board_model import board_model


def ensemble(thresholds: list[float]) -> ThresholdEnsemble:
    """Return an ensemble whose predictors reject if the first feature is above their threshold.

    The other pieces of a predictor never reject.
    """
    coefficients = np.zeros((len(thresholds), 3, CONFIGURATION_FEATURES), dtype=np.float32)
    coefficients[:, 0, 0] = 1
    offsets = np.full((len(thresholds), 3), -1e6, dtype=np.float32)
    offsets[:, 0] = -np.array(thresholds)
    return ThresholdEnsemble(coefficients, offsets)


def features(value: float) -> np.ndarray:
    found = np.zeros((1, CONFIGURATION_FEATURES), dtype=np.float32)
    found[0, 0] = value
    return found


def test_a_predictor_rejects_above_its_threshold_and_not_at_it() -> None:
    one = ensemble([2.0])
    assert not one.votes(features(2.0))[0, 0]
    assert one.votes(features(2.5))[0, 0]


@pytest.mark.parametrize(("votes", "rejected"), [(0, False), (1, False), (2, False), (3, True), (6, True)])
def test_exactly_a_third_is_not_more_than_a_third(votes: int, rejected: bool) -> None:
    six = ensemble([0.0] * votes + [9.0] * (6 - votes))
    assert six.votes(features(1.0)).sum() == votes
    assert six.rejects(features(1.0), 1 / 3)[0] == rejected


def test_tau_one_rejects_nothing_and_tau_zero_if_any_predictor_rejects() -> None:
    three = ensemble([0.0, 0.0, 0.0])
    assert not three.rejects(features(1.0), 1.0)[0]
    assert ensemble([0.0, 9.0, 9.0]).rejects(features(1.0), 0.0)[0]


@pytest.mark.parametrize("checks", ["compiler", "tvm"])
@pytest.mark.parametrize("name", ["resnet18.C2", "resnet18.C8", "deepbench.76"])
def test_on_held_out_layers_the_filter_passes_valid_configurations(name: str, checks: str) -> None:
    accelerator = board_model("pynq").accelerator
    problem = TuningProblem.of(load_workload(name), accelerator, checks=checks, orders=4)  # type: ignore[arg-type]
    weights = load_weights()
    layer = layer_features(problem.workload, accelerator, problem.space, problem.checks)
    knobs = KnobSpace.of(problem.space, problem.workload)
    description = weights.description(layer, HardwareTarget.assumed(accelerator).figures())
    every = np.arange(len(problem.space))
    rejected = ThresholdEnsemble.generate(weights.thresholds, description, knobs).rejects(
        knobs.configuration_features(every), 1 / 3
    )
    valid = verdicts(problem.workload, accelerator, problem.space.columns(every), problem.checks) == 0
    assert valid[~rejected].mean() > 1.3 * valid.mean()
    assert rejected[valid].mean() < 0.2
