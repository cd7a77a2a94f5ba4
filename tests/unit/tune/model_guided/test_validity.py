from __future__ import annotations

import itertools

import numpy as np

from hilt.schedule import load_workload
from hilt.schedule.validity_summary import summarize_validity
from hilt.trial import Outcome
from hilt.tune import Feedback, TuningProblem
from hilt.tune.model_guided.candidates import candidates_of
from hilt.tune.model_guided.knobs import Knobs
from hilt.tune.model_guided.tuner import HiltOptions, HiltTuner
from hilt.tune.model_guided.validity import FailurePrior, Validity, failure_priors
from hilt.virtual.board_model import board_model

PYNQ = board_model("pynq").accelerator


def test_refusals_of_tvms_runtime_are_predicted() -> None:
    """TVM_FACTS.md section 1, R6 and R7: of 290 that compile of C2, 182 run."""
    problem = TuningProblem.of(load_workload("resnet18.C2"), PYNQ, checks="tvm")
    compiled = np.flatnonzero(problem.compiles)
    runs = summarize_validity(problem.workload, PYNQ, problem.space, "tvm").verdicts[compiled] == 0
    validity = Validity(failure_priors(problem, compiled, problem.hidden_features(compiled)))
    assert runs.sum() == 182
    assert np.array_equal(validity.probability(np.arange(290)) > 0.5, runs)


def test_without_published_limits_all_that_compiles_is_worth_a_trial_until_some_fail() -> None:
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


def test_knobs_are_alike_by_values_pairs_nearness_and_primes() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C10"), PYNQ)
    indices = np.flatnonzero(problem.compiles)[:40]
    knobs = Knobs.of(problem, indices)
    columns = [values for values in problem.columns(indices).values() if len(np.unique(values)) > 1]
    alike = knobs.alike(np.arange(40), np.arange(40), knobs.even_weights)
    products = [*columns, *(first * second for first, second in itertools.combinations(columns, 2))]
    divided = {tuple(values % prime == 0) for values in products for prime in (2, 3, 5, 7, 11, 13)}
    rules = [rule for rule in divided if any(rule) and not all(rule)]
    rules = [rule for rule in rules if rule[0] or tuple(not each for each in rule) not in rules]
    assert knobs.aligned.shape == (40, len(rules))
    for one, other in ((0, 0), (0, 7), (3, 30), (12, 39)):
        equal = sum(values[one] == values[other] for values in columns)
        apart = sum(np.log2(values[one] / values[other]) ** 2 for values in columns)
        count = len(columns)
        expected = equal / count + equal * (equal - 1) / (count * (count - 1)) + np.exp(-apart / (2 * 1.2**2))
        shared = np.mean([rule[one] == rule[other] for rule in rules])
        assert abs(alike[one, other] - (expected + shared) / 4) < 1e-9


def test_a_rule_over_two_knobs_is_learnt_once_something_fails() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C5"), PYNQ)
    compiled = np.flatnonzero(problem.compiles)
    columns = problem.columns(compiled)
    works = (columns["tile_h"] * columns["tile_w"] < 49) & (columns["tile_co"] < 8)
    known = [FailurePrior("constant", np.ones(len(compiled)), 7.0, 1.5)]
    validity = Validity(known, Knobs.of(problem, compiled))
    assert not validity.surprised
    order = np.random.default_rng(0).permutation(len(compiled))
    validity.learn(order[:120], works[order[:120]])
    assert validity.surprised
    rest = order[120:1000]
    assert ((validity.probability(rest) > 0.5) == works[rest]).mean() > 0.93


def test_failures_that_share_two_knobs_spare_other_values_of_them() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C11"), PYNQ)
    compiled = np.flatnonzero(problem.compiles)
    columns = problem.columns(compiled)
    large = (columns["tile_h"] == 7) & (columns["tile_w"] == 7)
    small = (columns["tile_h"] == 1) & (columns["tile_w"] == 1)
    validity = Validity([FailurePrior("constant", np.ones(len(compiled)), 7.0, 1.5)], Knobs.of(problem, compiled))
    failed = np.random.default_rng(0).permutation(np.flatnonzero(large))[:24]
    validity.learn(failed, np.zeros(24, dtype=np.bool_))
    untried = np.setdiff1d(np.flatnonzero(large), failed)
    assert validity.probability(untried).mean() < 0.12
    assert validity.probability(np.flatnonzero(small)).mean() > 0.3


def test_learning_in_batches_equals_learning_at_once() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C11"), PYNQ)
    compiled = np.flatnonzero(problem.compiles)
    works = problem.columns(compiled)["tile_h"] < 7
    known = [FailurePrior("constant", np.ones(len(compiled)), 7.0, 1.5)]
    batches, once = (Validity(known, Knobs.of(problem, compiled)) for _ in range(2))
    rows = np.random.default_rng(1).permutation(len(compiled))[:32]
    for last in (8, 16, 24, 32):
        batches.learn(rows[:last], works[rows[:last]])
    once.learn(rows, works[rows])
    everything = np.arange(len(compiled))
    assert np.array_equal(batches.probability(everything), once.probability(everything))


def test_an_alignment_is_learnt_from_some_failures_and_few_valid_trials() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C8"), PYNQ, checks="tvm", orders=4)
    candidates = candidates_of(problem)
    columns = problem.columns(candidates.indices)
    breaks = (columns["tile_h"] * columns["tile_w"]) % 7 == 0
    model = Validity([FailurePrior("constant", np.ones(len(breaks)), 7.0, 1.5)], candidates.knobs)
    tried = np.concatenate((np.flatnonzero(breaks)[::9], np.flatnonzero(~breaks)[::12]))
    model.learn(tried, ~breaks[tried])
    untried = np.setdiff1d(np.arange(len(breaks)), tried)
    probability = model.probability(untried)
    assert probability[~breaks[untried]].mean() > 0.6 > 0.2 > probability[breaks[untried]].mean()
    # In every other draw failures follow one rule, so that all that is likely to fail may fail together.
    drawn = model.sample(untried, 400, np.random.default_rng(0))
    none_breaks = ~drawn[:, breaks[untried]].any(axis=1)
    assert none_breaks[::2].mean() > 0.05 > none_breaks[1::2].mean()


def test_a_valid_trial_is_looked_for_elsewhere_while_all_favourites_fail() -> None:
    # Of the hundred rows that are fastest by the timing model each breaks the rule: hilt tried ninety of them first.
    problem = TuningProblem.of(load_workload("resnet18.C8"), PYNQ, checks="tvm", orders=4)
    tuner, told = HiltTuner(problem, 0, HiltOptions()), []
    for _ in range(5):
        batch = tuner.ask(8)
        columns = problem.columns(np.array(batch))
        breaks = (columns["tile_h"] * columns["tile_w"]) % 7 == 0
        told += breaks.tolist()
        tuner.tell([Feedback(index, Outcome.WRONG_ANSWER) for index, bad in zip(batch, breaks, strict=True) if bad])
        if not breaks.all():
            break
    assert all(told[:8]) and not all(told)
