from __future__ import annotations

import numpy as np
import pytest

from hilt.schedule import load_workload, verdicts
from hilt.tune import TuningProblem
from hilt.tune.glimpse.encoding import KnobSpace, layer_features
from hilt.tune.glimpse.prior import Prior
from hilt.tune.glimpse.target import HardwareTarget
from hilt.tune.glimpse.weights import load_weights
from hilt.virtual.board_model import board_model

PYNQ = board_model("pynq")
HELD_OUT = ("resnet18.C2", "resnet18.C5", "resnet18.C9", "deepbench.76", "deepbench.17")


def prior_of(problem: TuningProblem) -> Prior:
    weights = load_weights()
    layer = layer_features(problem.workload, problem.accelerator, problem.space, problem.checks)
    description = weights.description(layer, HardwareTarget.assumed(problem.accelerator).figures())
    return Prior.generate(weights.prior, description, KnobSpace.of(problem.space, problem.workload))


@pytest.mark.parametrize("kind", ["autotvm", "ml2"])
def test_each_knob_has_a_distribution(kind: str) -> None:
    problem = TuningProblem.of(load_workload("resnet18.C5"), PYNQ.accelerator, kind=kind)  # type: ignore[arg-type]
    prior = prior_of(problem)
    assert len(prior.logarithms) == len(problem.space.knobs)
    for knob, logarithms in zip(problem.space.knobs, prior.logarithms, strict=True):
        assert logarithms.shape == (len(knob.values),)
        assert np.exp(logarithms).sum() == pytest.approx(1, abs=1e-5)


def test_the_product_of_the_knobs_is_a_distribution_over_the_space() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C8"), PYNQ.accelerator, orders=4)
    logarithm = prior_of(problem).logarithm(np.arange(len(problem.space)))
    assert np.exp(logarithm.astype(np.float64)).sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("checks", ["compiler", "tvm"])
def test_first_samples_of_held_out_layers_are_valid_far_more_often_than_uniform_ones(checks: str) -> None:
    """Figure 4's ground: over five layers and an accelerator that training never saw."""
    ratios = []
    for name in HELD_OUT:
        problem = TuningProblem.of(load_workload(name), PYNQ.accelerator, checks=checks, orders=4)  # type: ignore[arg-type]
        columns = problem.space.columns(np.arange(len(problem.space)))
        valid = verdicts(problem.workload, problem.accelerator, columns, problem.checks) == 0
        first = prior_of(problem).first_samples(np.random.default_rng(3))[:50]
        ratios.append((valid[first].mean(), valid.mean()))
    ours, uniform = np.mean(ratios, axis=0)
    assert ours > 1.3 * uniform


def test_first_samples_of_a_held_out_layer_are_faster_than_uniform_ones() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C8"), PYNQ.accelerator, orders=4)
    generator = np.random.default_rng(4)
    first = prior_of(problem).first_samples(generator)
    groups = [group[problem.compiles[group]][:24] for group in (first, problem.space.sample(400, generator))]
    ours, uniform = (problem.predicted_cycles(group, [PYNQ.memory_model])[:, 0] for group in groups)
    assert ours.min() < uniform.min()
    assert np.median(ours) < np.median(uniform)


def test_first_samples_are_distinct_and_follow_the_seed() -> None:
    prior = prior_of(TuningProblem.of(load_workload("resnet18.C5"), PYNQ.accelerator, orders=4))
    one, same, other = (prior.first_samples(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert len(np.unique(one)) == len(one)
    assert np.array_equal(one, same)
    assert not np.array_equal(one[:20], other[:20])
