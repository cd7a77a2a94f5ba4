from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable

import numpy as np
import pytest

from hilt.schedule import load_workload
from hilt.schedule.validity_summary import summarize_validity
from hilt.simulator.device import MemoryModel
from hilt.simulator.toolchain import MissingToolError
from hilt.trial import Outcome
from hilt.tune import Feedback, Stop, TuningProblem
from hilt.tune.model_guided.analytic_model import bytes_moved
from hilt.tune.model_guided.initial_design import PARTS
from hilt.tune.model_guided.tuner import HiltOptions, HiltTuner
from hilt.tune.options import TunerOptionError
from hilt.virtual.board_model import board_model

from ..conformance import run

BOARD = board_model("pynq")
PYNQ = BOARD.accelerator
SLOW = dataclasses.replace(BOARD.memory_model, read_latency=90, write_latency=20, bandwidth=(3, 1), jitter=6)
FAST_CLOCK = 1.4


@pytest.fixture(scope="module")
def problem() -> TuningProblem:
    return TuningProblem.of(load_workload("resnet18.C11"), PYNQ, checks="tvm", orders=4)


def board(problem: TuningProblem, memory: MemoryModel, clock: float = 1.0) -> tuple[Callable[[int], Feedback], float]:
    """Answers as a board with that memory would, and the least latency in microseconds."""
    valid = np.flatnonzero(summarize_validity(problem.workload, PYNQ, problem.space, problem.checks).verdicts == 0)
    cycles = problem.predicted_cycles(valid, [memory])[:, 0]
    latency = dict(zip(valid.tolist(), (cycles / (PYNQ.clock_hz / 1e6 * clock)).tolist(), strict=True))

    def measure(index: int) -> Feedback:
        if index not in latency:
            return Feedback(index, Outcome.WRONG_ANSWER)
        return Feedback(index, Outcome.OK, latency[index])

    return measure, min(latency.values())


@pytest.fixture(scope="module")
def slow_board(problem: TuningProblem) -> tuple[Callable[[int], Feedback], float]:
    return board(problem, SLOW, FAST_CLOCK)


@pytest.mark.slow
def test_a_board_unlike_the_assumed_one_is_tuned_in_few_trials(
    problem: TuningProblem, slow_board: tuple[Callable[[int], Feedback], float]
) -> None:
    measure, best = slow_board
    tuner = HiltTuner(problem, 1, HiltOptions())
    assert tuner.confidence() is None
    told = run(tuner, 750, 8, measure)
    assert all(each.outcome is Outcome.OK for each in told)
    assert min(each.microseconds or np.inf for each in told[:16]) <= 1.01 * best
    assert (tuner.confidence() or 0) >= 0.99
    assert len(told) < np.count_nonzero(problem.compiles)


@pytest.mark.slow
def test_it_says_how_sure_it_is_why_it_stops_and_how_far_the_board_is_from_the_twin(
    problem: TuningProblem, slow_board: tuple[Callable[[int], Feedback], float]
) -> None:
    tuner = HiltTuner(problem, 1, HiltOptions())
    assert tuner.assessment().confidence is None
    assert tuner.assessment().stop is Stop.SEARCHING
    run(tuner, 750, 8, slow_board[0])
    assessment = tuner.assessment()
    assert assessment.stop is Stop.SURE
    assert assessment.machine == "RTL"
    assert assessment.board_over_twin == pytest.approx(1 / FAST_CLOCK, rel=0.02)
    assert assessment.scatter is not None and assessment.scatter < 0.02
    assert "it is sure" in assessment.text


@pytest.mark.slow
def test_used_up_it_says_so(problem: TuningProblem, slow_board: tuple[Callable[[int], Feedback], float]) -> None:
    tuner = HiltTuner(problem, 2, HiltOptions(stop_at=2.0))
    run(tuner, 10_000, 16, slow_board[0])
    assert tuner.assessment().stop is Stop.EXHAUSTED
    assert tuner.ask(4) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_an_error_of_each_configurations_own_does_not_mislead_it(
    problem: TuningProblem, slow_board: tuple[Callable[[int], Feedback], float], seed: int
) -> None:
    """Nothing but a trial tells which of those that are near is the best."""
    errors = np.exp(0.1 * np.random.default_rng(seed).standard_normal(len(problem.space)))

    def measure(index: int) -> Feedback:
        true = slow_board[0](index)
        if true.microseconds is None:
            return true
        return Feedback(index, Outcome.OK, true.microseconds * float(errors[index]))

    told = run(HiltTuner(problem, seed, HiltOptions()), 750, 8, measure)
    valid = np.flatnonzero(summarize_validity(problem.workload, PYNQ, problem.space, problem.checks).verdicts == 0)
    best = min(measure(index).microseconds or np.inf for index in valid.tolist())
    assert min(each.microseconds or np.inf for each in told) <= 1.01 * best


@pytest.mark.slow
def test_a_rule_over_tiles_is_learnt_and_the_run_goes_on(
    problem: TuningProblem, slow_board: tuple[Callable[[int], Feedback], float]
) -> None:
    """Every configuration that the twin favours gives wrong answers."""
    latency = {each: slow_board[0](each).microseconds for each in np.flatnonzero(problem.compiles).tolist()}
    valid = sorted((value, index) for index, value in latency.items() if value is not None)
    columns = problem.columns(np.array([index for _, index in valid]))
    best_height = int(columns["tile_h"][0])

    def measure(index: int) -> Feedback:
        if latency[index] is None or problem.columns(np.array([index]))["tile_h"][0] == best_height:
            return Feedback(index, Outcome.WRONG_ANSWER)
        return Feedback(index, Outcome.OK, latency[index])

    best = min(value for value, index in valid if problem.columns(np.array([index]))["tile_h"][0] != best_height)
    told = run(HiltTuner(problem, 3, HiltOptions()), 750, 8, measure)
    reached = [each.microseconds is not None and each.microseconds <= 1.01 * best for each in told]
    assert any(reached) and reached.index(True) < 60


@pytest.mark.slow
def test_same_seed_and_calls_give_the_same_trials(
    problem: TuningProblem, slow_board: tuple[Callable[[int], Feedback], float]
) -> None:
    first, second = (
        [each.index for each in run(HiltTuner(problem, 7, HiltOptions(stop_at=2.0)), 40, 8, slow_board[0])]
        for _ in range(2)
    )
    assert first == second
    assert len(set(first)) == 40


@pytest.mark.slow
def test_without_stopping_all_that_compiles_is_asked_once(
    problem: TuningProblem, slow_board: tuple[Callable[[int], Feedback], float]
) -> None:
    told = run(HiltTuner(problem, 2, HiltOptions(stop_at=2.0)), 10_000, 16, slow_board[0])
    assert sorted(each.index for each in told) == np.flatnonzero(problem.compiles).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.OK])
def test_a_board_on_which_all_fails_is_not_given_up(problem: TuningProblem, outcome: Outcome) -> None:
    tuner = HiltTuner(problem, 3, HiltOptions())
    told = run(tuner, 40, 8, lambda index: Feedback(index, outcome))
    assert len({each.index for each in told}) == 40
    assert tuner.confidence() is None


@pytest.mark.slow
def test_without_a_compiler_it_warns_once_and_goes_by_the_analytic_model(
    problem: TuningProblem,
    slow_board: tuple[Callable[[int], Feedback], float],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def no_compiler(*_: object) -> None:
        raise MissingToolError("no C++ compiler was found: install g++\nmore")

    monkeypatch.setattr(TuningProblem, "cycles_of", no_compiler)
    monkeypatch.setattr("hilt.tune.model_guided.structural.CriticalPaths", no_compiler)
    with caplog.at_level(logging.WARNING):
        told = run(HiltTuner(problem, 4, HiltOptions()), 40, 8, slow_board[0])
    assert [record.message for record in caplog.records] == [
        "tuner hilt goes by closed-form estimates, for the timing model cannot be built: "
        "no C++ compiler was found: install g++"
    ]
    assert min(each.microseconds or np.inf for each in told) <= 1.05 * slow_board[1]


@pytest.mark.slow
def test_with_checks_off_it_avoids_configurations_that_the_compiler_refuses() -> None:
    problem = TuningProblem.of(load_workload("resnet18.C10"), PYNQ, checks="off", kind="ml2")
    accepted = summarize_validity(problem.workload, PYNQ, problem.space, "compiler").verdicts == 0
    asked = HiltTuner(problem, 5, HiltOptions()).ask(16)
    assert len(asked) == 16
    assert accepted[asked].all()
    assert not accepted.all()


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(TunerOptionError, match="stop_at is more than 0"):
        HiltOptions(stop_at=0.0)
    with pytest.raises(TunerOptionError, match="draws is from 16"):
        HiltOptions(draws=1)
    with pytest.raises(TunerOptionError, match="without names memory; the parts are exact, machines"):
        HiltOptions(without="twin,memory")
    with pytest.raises(TunerOptionError, match="keep twin or machines"):
        HiltOptions(without="twin, machines")
    with pytest.raises(TunerOptionError, match="cannot be read"):
        HiltOptions(machine="fast")


@pytest.mark.slow
@pytest.mark.parametrize("part", sorted(PARTS))
def test_without_a_part_it_still_proposes_what_compiles(problem: TuningProblem, part: str) -> None:
    tuner = HiltTuner(problem, 1, HiltOptions(without=part))
    first = tuner.ask(8)
    tuner.tell([Feedback(index, Outcome.OK, 100.0 + index % 7) for index in first])
    second = tuner.ask(8)
    assert len(set(first + second)) == 16 and problem.compiles[first + second].all()
    assert (tuner.assessment().board_over_twin is None) == (part == "twin")


@pytest.mark.parametrize("count", [1, 8])
def test_the_second_trial_moves_the_fewest_bytes(count: int) -> None:
    """Machines that are bound by their memory have it as their best, which the models' favourites are far from."""
    problem = TuningProblem.of(load_workload("resnet18.C8"), PYNQ, checks="tvm", orders=4)
    tuner = HiltTuner(problem, 1, HiltOptions())
    asked = tuner.ask(count) + tuner.ask(count) + tuner.ask(count)
    assert moved_over_fewest(problem, asked[0]) > 1.01
    assert moved_over_fewest(problem, asked[1]) == 1
    assert len(set(asked)) == 3 * count


def test_where_the_first_trial_moves_as_few_bytes_the_second_is_another_favourite() -> None:
    """A trial for machines that the first one serves would only delay the favourites of the others."""
    problem = TuningProblem.of(load_workload("resnet18.C9"), PYNQ, checks="tvm", orders=4)
    first, second, *_ = HiltTuner(problem, 1, HiltOptions()).ask(8)
    assert moved_over_fewest(problem, first) <= 1.01 < moved_over_fewest(problem, second)


def moved_over_fewest(problem: TuningProblem, index: int) -> float:
    """Return the bytes that a configuration moves over the fewest of any that compiles."""
    some = np.append(np.flatnonzero(problem.compiles), index)
    moved = bytes_moved(problem.accelerator, problem.hidden_features(some))
    return float(moved[-1] / moved.min())
