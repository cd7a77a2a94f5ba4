"""A run whose board fails for every trial stops with a line, and goes on after a resume."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.engine.board_health import MOST_IN_A_ROW, BoardHealthMonitor, Infrastructure
from hilt.engine.events import BoardChanged, Event, FailureCause, Logged, TrialRecorded
from hilt.store import RunState
from hilt.trial import Outcome, Trial

from .test_process import at_root, resume, start, to_the_end  # noqa: F401  (a fixture)


def trial(board: str, outcome: Outcome = Outcome.OK) -> TrialRecorded:
    return TrialRecorded(Trial(0, 0, {}, outcome, board=board))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=80))
def test_it_speaks_exactly_when_every_board_failed_so_often_in_a_row(history: list[tuple[str, bool]]) -> None:
    infrastructure = Infrastructure()
    for board in "ab":
        infrastructure.hear(BoardChanged(board, "ready", "", 0.0))
    row = {"a": 0, "b": 0}
    for board, fails in history:
        if fails:
            infrastructure.hear(BoardChanged(board, "recovering", "reconnect: gone", 0.0))
        infrastructure.hear(trial(board, Outcome.REJECTED))  # never was on a board
        row[board] = row[board] + 1 if fails else 0
        said = infrastructure.hear(trial(board))
        assert (said is not None) is (min(row.values()) >= MOST_IN_A_ROW)


@pytest.mark.parametrize("end", ["lost", "quarantined"])
def test_a_board_that_was_given_up_does_not_speak_for_the_others(end: str) -> None:
    infrastructure = Infrastructure()
    for board in "ab":
        infrastructure.hear(BoardChanged(board, "ready", "", 0.0))
    infrastructure.hear(BoardChanged("a", end, "gone for good", 0.0))
    said = []
    for _ in range(MOST_IN_A_ROW):
        infrastructure.hear(BoardChanged("b", "recovering", "reconnect: gone", 0.0))
        said.append(infrastructure.hear(trial("b")))
    assert said[:-1] == [None] * (MOST_IN_A_ROW - 1)
    assert said[-1] is not None and said[-1].startswith("STOPPED: b had to be recovered")


def test_the_monitor_stops_a_run_once_and_names_the_next_step() -> None:
    published: list[Event] = []
    stopped: list[bool] = []
    monitor = BoardHealthMonitor("0123456789abcdef", lambda: stopped.append(True), published.append)
    monitor.hear(BoardChanged("a", "ready", "", 0.0))
    for number in range(MOST_IN_A_ROW + 2):
        assert (monitor.failing is None) is (number < MOST_IN_A_ROW)
        monitor.hear(BoardChanged("a", "recovering", "reconnect: gone", 0.0))
        monitor.hear(trial("a"))
    assert monitor.failing == (
        "STOPPED: a had to be recovered for each of the last 10 trials (reconnect: gone); "
        "see to board, cable and power, then `hilt resume 01234567`"
    )
    assert stopped == [True]
    (line,) = published
    assert isinstance(line, Logged) and (line.level, line.text) == ("error", monitor.failing)


@pytest.mark.slow
def test_a_run_stops_of_itself_and_goes_on_elsewhere(tmp_path: Path) -> None:
    run = start(tmp_path, board="table:plain@shaky")
    failed, before = to_the_end(tmp_path, run)
    assert (failed.state, failed.failure) == (RunState.FAILED, FailureCause.BOARD)
    assert "STOPPED: table:plain@shaky had to be recovered for each of the last 10 trials" in failed.detail
    assert f"hilt resume {run.uuid[:8]}" in failed.detail
    assert MOST_IN_A_ROW <= len(before) < 40
    resume(tmp_path, run.uuid, board="table:plain")
    finished, trials = to_the_end(tmp_path, run)
    assert (finished.state, len(trials)) == (RunState.FINISHED, 40)
