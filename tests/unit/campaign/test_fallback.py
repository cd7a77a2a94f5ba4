"""The fallback schedule: its definition, and its cost of one trial, once."""

from __future__ import annotations

import pytest

from hilt.campaign.fallback import FallbackFirst, fallback_candidates
from hilt.engine.campaign_results import FALLBACK_ATTEMPTS, fallback_of
from hilt.schedule import load_workload
from hilt.store import Trial
from hilt.trial import Outcome
from hilt.tune import Feedback, TuningProblem
from hilt.tune.plain_tuners import GridOptions, GridTuner
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters
from tests.unit.store.examples import trial

PYNQ = Accelerator(load_parameters("pynq"), IsaRevision.A)


@pytest.mark.parametrize("layer", [f"resnet18.C{ordinal}" for ordinal in range(2, 12)])
def test_it_is_tvms_where_that_compiles(layer: str) -> None:
    """TVM v0.9's FallbackConfigEntity: every split's inner factor 1, every other knob at its first value."""
    problem = TuningProblem.of(load_workload(layer), PYNQ, orders=4)
    candidates = fallback_candidates(problem)
    assert candidates[0] == 0
    assert set(problem.space.knobs_at(0).values()) == {1}
    assert candidates == sorted(candidates) and len(candidates) == FALLBACK_ATTEMPTS
    assert problem.compiles[candidates].all()


def grid() -> tuple[FallbackFirst, GridTuner]:
    problem = TuningProblem.of(load_workload("resnet18.C5"), PYNQ)
    inner = GridTuner(problem.space, GridOptions())
    return FallbackFirst(inner, [0, 3, 5]), inner


def fine(index: int) -> Feedback:
    return Feedback(index, Outcome.OK, 10.0)


def test_nothing_is_tried_twice() -> None:
    tuner, _ = grid()
    assert tuner.searching
    assert tuner.ask(8) == [0]
    tuner.tell([Feedback(0, Outcome.WRONG_ANSWER)])
    assert tuner.ask(1) == [3]
    tuner.tell([fine(3)])
    assert not tuner.searching
    assert tuner.ask(5) == [1, 2, 4, 5, 6], "0 and 3 are known, 5 was not needed"


def test_none_is_right() -> None:
    tuner, _ = grid()
    for index in (0, 3, 5):
        assert tuner.searching and tuner.ask(1) == [index]
        tuner.tell([Feedback(index, Outcome.TIMEOUT)])
    assert not tuner.searching
    assert tuner.ask(3) == [1, 2, 4]


def test_the_tuner_gets_the_results_of_its_trials() -> None:
    told: list[Feedback] = []
    tuner, inner = grid()
    inner.tell = told.extend  # type: ignore[method-assign, assignment]
    tuner.ask(1)
    tuner.tell([fine(0)])
    assert told == [], "it did not ask"
    assert tuner.ask(2) == [1, 2]
    assert told == [fine(0)], "asked for, and told from memory"
    tuner.tell([fine(1), fine(2)])
    assert [each.index for each in told] == [0, 1, 2]
    assert tuner.confidence() is None, "a grid is not sure of anything"


def test_which_trial_of_a_run_it_is() -> None:
    wrong = [Trial(ordinal, ordinal, {}, Outcome.WRONG_ANSWER) for ordinal in range(FALLBACK_ATTEMPTS)]
    right = trial(2, 2, 7.0)
    assert fallback_of([]) is None
    assert fallback_of(wrong[:2]) is None, "not found yet"
    assert fallback_of([*wrong[:2], right]) == right
    assert fallback_of([*wrong, trial(8, 8, 1.0)]) is None, "none of the attempts was right"
    last = trial(FALLBACK_ATTEMPTS - 1, FALLBACK_ATTEMPTS - 1, 7.0)
    assert fallback_of([*wrong[:-1], last]) == last, "the last attempt is one"
