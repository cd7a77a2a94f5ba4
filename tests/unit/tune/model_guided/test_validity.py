from __future__ import annotations

import numpy as np

from hilt.schedule import load_workload
from hilt.schedule.validity_summary import summarize_validity
from hilt.tune import TuningProblem
from hilt.tune.model_guided.validity import FailurePrior, Validity, failure_priors
from hilt.virtual.board_model import board_model

PYNQ = board_model("pynq").accelerator


def test_what_tvms_runtime_refuses_is_foreseen() -> None:
    """TVM_FACTS.md section 1, R6 and R7: of 290 that compile of C2, 182 run."""
    problem = TuningProblem.of(load_workload("resnet18.C2"), PYNQ, checks="tvm")
    compiled = np.flatnonzero(problem.compiles)
    runs = summarize_validity(problem.workload, PYNQ, problem.space, "tvm").verdicts[compiled] == 0
    validity = Validity(failure_priors(problem, compiled, problem.hidden_features(compiled)))
    assert runs.sum() == 182
    assert np.array_equal(validity.probability(np.arange(290)) > 0.5, runs)


def test_without_what_is_published_all_that_compiles_is_worth_a_trial_until_some_fail() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C2"), PYNQ, checks="tvm")
    compiled = np.flatnonzero(problem.compiles)
    runs = summarize_validity(problem.workload, PYNQ, problem.space, "tvm").verdicts[compiled] == 0
    validity = Validity(failure_priors(problem, compiled, problem.hidden_features(compiled), published=False))
    assert (validity.probability(np.arange(290)) > 0.5).mean() > 0.9
    told = np.random.default_rng(0).choice(290, 40, replace=False)
    validity.learn(told, runs[told])
    untold = np.setdiff1d(np.arange(290), told)
    assert ((validity.probability(untold) > 0.5) == runs[untold]).mean() > 0.9


def test_a_common_cause_is_learnt_from_few_failures() -> None:
    cause = np.repeat([0.0, 1.0], 50)
    validity = Validity([FailurePrior("constant", np.ones(100), 7.0, 1.5), FailurePrior("cause", cause, -2.0, 4.0)])
    before = validity.probability(np.array([0, 99]))
    validity.learn(np.array([0, 1, 2, 50, 51]), np.array([True, True, True, False, False]))
    after = validity.probability(np.array([49, 99]))
    assert before[0] > 0.98
    assert before[1] > 0.7
    assert after[0] > 0.9
    assert after[1] < 0.3


def test_a_wrong_prejudice_is_unlearnt() -> None:
    validity = Validity(
        [FailurePrior("constant", np.ones(9), 7.0, 1.5), FailurePrior("four threads", np.ones(9), -20.0, 2.0)]
    )
    assert validity.probability(np.array([8]))[0] < 0.01
    validity.learn(np.arange(6), np.ones(6, dtype=np.bool_))
    assert validity.probability(np.array([8]))[0] > 0.6


def test_draws_share_their_cause() -> None:
    validity = Validity([FailurePrior("doubtful", np.ones(2), 0.0, 50.0)])
    drawn = validity.sample(np.array([0, 1]), 4000, np.random.default_rng(1))
    assert abs(drawn[:, 0].mean() - 0.5) < 0.05
    assert (drawn[:, 0] == drawn[:, 1]).mean() > 0.95
