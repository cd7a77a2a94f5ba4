"""The loop: lost boards, and verdicts that may be the board's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hilt.engine.errors import BoardLostError
from hilt.engine.events import Logged
from hilt.measure import Report, Request
from hilt.store import Trial
from hilt.trial import Outcome, Result, Verification
from hilt.vta.program import Program

from .loop_bench import (
    BUDGET,
    Bench,
    PlainTask,
    by_configuration,
)
from .table import ELEMENTS, TableMeasurer


def test_a_lost_board_does_not_count_against_a_configuration(bench: Bench, undisturbed: list[Trial]) -> None:
    def now_and_then(request: Request) -> Result:
        _, ordinal, attempt = request.key.split("/")
        if int(ordinal) % 5 == 1 and int(attempt) < 2:
            return Result(Outcome.BOARD_LOST, "link gone")
        return by_configuration(request)

    measurer = TableMeasurer(now_and_then)
    assert bench.session(measurer)
    assert bench.trials == undisturbed
    told = [each for each in bench.trials if each.ordinal % 5 == 1 and each.outcome in ("ok", "wrong_answer")]
    assert {each.attempt for each in told} == {2}
    assert len(measurer.keys) == len(set(measurer.keys))


@pytest.mark.parametrize("doubtful", [Outcome.CRASH, Outcome.TIMEOUT, Outcome.BUS_ERROR])
def test_a_fault_of_the_board_is_not_taken_for_the_configurations(
    bench: Bench, undisturbed: list[Trial], doubtful: Outcome
) -> None:
    """A killed worker looks like a program that crashes: a verdict counts when it was given twice."""

    def once(request: Request) -> Result:
        if request.ordinal % 4 == 2 and request.key.endswith("/0"):
            return Result(doubtful, "the worker died")
        return by_configuration(request)

    measurer = TableMeasurer(once)
    assert bench.session(measurer)
    assert bench.trials == undisturbed
    asked = {ordinal: sum(key.split("/")[1] == str(ordinal) for key in measurer.keys) for ordinal in range(BUDGET)}
    for trial in bench.trials:
        with_chaos = trial.ordinal % 4 == 2 and trial.outcome is not Outcome.REJECTED
        failed = trial.outcome in (Outcome.TIMEOUT, Outcome.BUS_ERROR)
        apart = with_chaos and trial.outcome is not doubtful
        assert asked[trial.ordinal] == (trial.outcome is not Outcome.REJECTED) * (1 + failed + apart)


def test_of_two_doubtful_verdicts_the_one_that_comes_again_counts(bench: Bench) -> None:
    """Timeout, crash, timeout: the crash may have been the board's."""
    verdicts = (Outcome.TIMEOUT, Outcome.CRASH, Outcome.TIMEOUT)

    def doubtful(request: Request) -> Result:
        return Result(verdicts[int(request.key.split("/")[2])], "no answer")

    assert bench.session(TableMeasurer(doubtful))
    assert {trial.outcome for trial in bench.trials} == {Outcome.REJECTED, Outcome.TIMEOUT}
    assert {trial.attempt for trial in bench.trials if trial.outcome is Outcome.TIMEOUT} == {2}


def test_a_board_that_stays_lost_ends_the_session_and_nothing_of_it_is_recorded(
    bench: Bench, undisturbed: list[Trial]
) -> None:
    victim = next(each.ordinal for each in undisturbed if each.ordinal >= 6 and each.outcome is Outcome.OK)

    def lost(request: Request) -> Result:
        if request.ordinal == victim:
            return Result(Outcome.BOARD_LOST, "no power")
        return by_configuration(request)

    with pytest.raises(BoardLostError, match=f"lost 3 times with trial {victim} .no power.; .*`hilt resume aaaaaaaa`"):
        bench.session(TableMeasurer(lost))
    assert victim not in {each.ordinal for each in bench.trials}
    assert bench.session()
    assert bench.trials == undisturbed


def test_a_measurer_that_forgets_is_found_out(bench: Bench) -> None:
    class Forgetful(TableMeasurer):
        def measure(self, requests: Sequence[Request], report: Report) -> None:
            super().measure(requests[:-1], report)

    with pytest.raises(RuntimeError, match="did not answer"):
        bench.session(Forgetful(by_configuration))


def test_a_loss_is_a_warning_and_a_doubt_a_remark(bench: Bench) -> None:
    def troubled(request: Request) -> Result:
        _, ordinal, attempt = request.key.split("/")
        if ordinal == "2" and attempt == "0":
            return Result(Outcome.BOARD_LOST, "link gone")
        if ordinal == "2" and attempt == "1":
            return Result(Outcome.CRASH, "the worker died")
        return Result(Outcome.OK, "", 100, 1.0, (1.0,), Verification(ELEMENTS, 0))

    class Accepting(PlainTask):
        def lower(self, index: int) -> Program:
            return super().lower(3 * index + 1)

    assert bench.session(TableMeasurer(troubled), task=Accepting())
    assert [(event.level, event.text) for event in bench.events if isinstance(event, Logged)] == [
        ("warning", "board table:plain was lost with trial 2 (link gone); the trial is tried again"),
        ("info", "trial 2 ended as crash (the worker died); it is tried again to be sure"),
    ]
    assert bench.trials[2].attempt == 2
