"""The database keeps each record, refuses contradictions, and never calls an unverified trial the best."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilt.store import Campaign, RunState, Store, StoreError, Trial, UnknownRunError
from hilt.store.campaigns import end_layer
from hilt.trial import Outcome, Verification

from .examples import ELEMENTS, run, trial


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "hilt.db") as opened:
        yield opened


def test_run_and_trials_come_back_as_they_went_in(store: Store) -> None:
    store.create_run(run("a" * 32))
    trials = [
        trial(0, 7, 12.25),
        Trial(1, 9, {"tile_h": 2}, Outcome.REJECTED, "inp_overflow"),
        Trial(
            2, 3, {"tile_h": 4}, Outcome.WRONG_ANSWER, "3 differ", 50, None, (), Verification(ELEMENTS, 3, 17, 9),
            ELEMENTS, board="virtual:pynq", attempt=1, seconds={"run": 0.5},
        ),
    ]  # fmt: skip
    store.record("a" * 32, trials)
    back = store.trials("a" * 32)
    assert back == trials
    assert (back[2].board, back[2].attempt, back[2].seconds) == ("virtual:pynq", 1, {"run": 0.5})
    assert store.run("aaaa") == run("a" * 32)
    assert store.run("aaaa").uuid == "a" * 32
    assert store.trials("a" * 32, since=1, limit=1) == trials[1:2]
    assert store.latest_trials("a" * 32, 2) == [trials[2], trials[1]]
    assert store.latest_trials("a" * 32, 2, before=1) == [trials[0]]


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    outcome=st.sampled_from([each for each in Outcome if each is not Outcome.BOARD_LOST]),
    compared=st.none() | st.integers(0, ELEMENTS),
    mismatched=st.integers(0, 3),
    elements=st.sampled_from([ELEMENTS, 0]),
)
def test_only_a_trial_compared_in_full_and_right_is_best(
    tmp_path_factory: pytest.TempPathFactory, outcome: Outcome, compared: int | None, mismatched: int, elements: int
) -> None:
    with Store(tmp_path_factory.mktemp("best") / "hilt.db") as store:
        store.create_run(run("a" * 32))
        seen = None if compared is None else Verification(compared, mismatched)
        fast = Trial(0, 0, {}, outcome, "", 1, 0.5, (0.5,), seen, elements)
        store.record("a" * 32, [fast, trial(1, 1, 40.0)])
        is_best = outcome is Outcome.OK and compared == elements == ELEMENTS and mismatched == 0
        best = store.best("a" * 32)
        assert best is not None
        assert best.ordinal == (0 if is_best else 1)
        assert fast.verified is is_best
        assert store.summary("a" * 32).valid == 1 + is_best


def test_of_two_equals_the_earlier_is_best(store: Store) -> None:
    store.create_run(run("a" * 32))
    assert store.best("a" * 32) is None
    for ordinal, latency in ((4, 9.0), (2, 9.0), (1, 10.0), (0, 11.0), (5, 30.0)):
        store.record("a" * 32, [trial(ordinal, ordinal, latency)])
    assert store.best("a" * 32) == trial(2, 2, 9.0)
    assert store.improvements("a" * 32) == [(0, 11.0), (1, 10.0), (2, 9.0)]


def test_a_trial_is_never_recorded_twice(store: Store) -> None:
    store.create_run(run("a" * 32))
    store.record("a" * 32, [trial(0, 7, 1.0)])
    with pytest.raises(StoreError, match="recorded twice"):
        store.record("a" * 32, [trial(1, 8, 1.0), trial(0, 9, 1.0)])
    with pytest.raises(StoreError, match="recorded twice"):
        store.record("a" * 32, [trial(1, 7, 1.0)])
    assert store.trials("a" * 32) == [trial(0, 7, 1.0)]  # the good half of the refused call is not there either


def test_board_lost_and_ok_without_latency_are_not_facts(store: Store) -> None:
    store.create_run(run("a" * 32))
    with pytest.raises(StoreError):
        store.record("a" * 32, [Trial(0, 0, {}, Outcome.BOARD_LOST)])
    with pytest.raises(StoreError):
        store.record("a" * 32, [Trial(0, 0, {}, Outcome.OK)])
    assert store.trials("a" * 32) == []


def test_runs_are_found_by_prefix(store: Store) -> None:
    for ordinal, uuid in enumerate(("ab" * 16, "ac" * 16, "bb" * 16)):
        store.create_run(run(uuid, created=float(ordinal)))
    assert store.run("ab").uuid == "ab" * 16
    assert store.run("B").uuid == "bb" * 16
    assert store.run("last").uuid == "bb" * 16
    assert [each.uuid[:2] for each in store.runs()] == ["bb", "ac", "ab"]
    assert [each.uuid[:2] for each in store.runs(limit=1)] == ["bb"]
    for wanted in ("a", "", "zz", "%", "_"):
        with pytest.raises(UnknownRunError):
            store.run(wanted)
    with pytest.raises(UnknownRunError):
        store.record("cc" * 16, [trial(0, 0, 1.0)])
    with pytest.raises(UnknownRunError):
        store.set_state("cc" * 16, RunState.STOPPED)


def test_state_keeps_when_a_run_ended(tmp_path: Path) -> None:
    with Store(tmp_path / "hilt.db", now=lambda: 1000.0) as store:
        store.create_run(run("a" * 32))
        store.set_state("a" * 32, RunState.STOPPED, "asked to")
        assert (store.run("a").state, store.run("a").detail, store.run("a").finished) == ("stopped", "asked to", 1000.0)
        store.set_state("a" * 32, RunState.RUNNING)
        assert (store.run("a").state, store.run("a").finished) == ("running", None)


def test_a_run_that_has_finished_stays_so_and_its_budget_is_its_trials(store: Store) -> None:
    """A run that has finished stays so, and its budget is the number of its trials.

    The example is a skipped layer with some trials still on a board, which may be paused.
    """
    store.create_run(run("a" * 32, budget=64))
    store.record("a" * 32, [trial(0, 0, 1.0)])
    assert store.run("a").budget == 64
    end_layer(store, "a" * 32, "skipped")
    assert store.run("a").budget == 1
    store.record("a" * 32, [trial(1, 1, 1.0), trial(2, 2, 1.0)])
    store.set_state("a" * 32, RunState.PAUSED, "the board is idle")
    found = store.run("a")
    assert (found.budget, found.state, found.detail) == (3, RunState.FINISHED, "skipped")


def test_the_newest_is_the_last_created_after_the_clock_jumps(store: Store) -> None:
    for ordinal, clock in enumerate((500.0, 900.0, 100.0)):
        store.create_campaign(Campaign(f"{ordinal}" * 32, "net", {}, {}, clock, {"trials": 8}))
        store.create_run(run("abc"[ordinal] * 32, created=clock, campaign="1" * 32 if ordinal else None))
    assert [each.uuid[0] for each in store.runs()] == ["c", "b", "a"]
    assert store.run("last").uuid[0] == store.runs(1)[0].uuid[0] == "c"
    assert [each.uuid[0] for each in store.runs_of("1" * 32)] == ["b", "c"]
    assert [each.uuid[0] for each in store.campaigns()] == ["2", "1", "0"]


def test_counts_and_reasons(store: Store) -> None:
    store.create_run(run("a" * 32))
    reasons = ["inp_overflow", "thread_split", "inp_overflow"]
    rejected = [Trial(n, n, {}, Outcome.REJECTED, reason) for n, reason in enumerate(reasons)]
    store.record("a" * 32, [*rejected, trial(3, 3, 1.0)])
    assert store.counts("a" * 32) == {Outcome.REJECTED: 3, Outcome.OK: 1}
    assert list(store.reasons("a" * 32, Outcome.REJECTED).items()) == [("inp_overflow", 2), ("thread_split", 1)]


def test_best_of_each_workload_and_board(store: Store) -> None:
    for uuid, workload, board, fastest in (
        ("a" * 32, "resnet18.C2", "virtual:pynq", 50.0),
        ("b" * 32, "resnet18.C2", "virtual:pynq", 40.0),
        ("c" * 32, "resnet18.C2", "virtual:zcu104", 60.0),
        ("d" * 32, "resnet18.C5", "virtual:pynq", 5.0),
    ):
        store.create_run(run(uuid, workload=workload, board=board))
        store.record(uuid, [trial(0, 0, fastest), trial(1, 1, 70.0)])
    store.create_run(run("e" * 32))  # no trials: no best
    found = [(each.uuid[0], best.microseconds) for each, best in store.best_of_each()]
    assert found == [("b", 40.0), ("c", 60.0), ("d", 5.0)]
    assert [each.uuid[0] for each, _ in store.best_of_each("resnet18.C5")] == ["d"]


def test_a_second_process_sees_committed_rows(store: Store) -> None:
    store.create_run(run("a" * 32))
    store.record("a" * 32, [trial(0, 7, 1.0)])
    other = sqlite3.connect(f"file:{store.path}?mode=ro", uri=True)
    assert other.execute('SELECT ordinal, "index" FROM trials').fetchall() == [(0, 7)]
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    other.close()


@pytest.mark.slow
def test_quick_at_a_hundred_thousand_trials(tmp_path: Path) -> None:
    """Queries are quick at a hundred thousand trials.

    The measure is SQLite's steps, which are the same on a busy machine; tests.bench measures seconds.
    """
    with Store(tmp_path / "hilt.db") as store:
        for uuid in ("a" * 32, "b" * 32):
            store.create_run(run(uuid))
            store.record(uuid, [trial(ordinal, ordinal, 1e6 - ordinal) for ordinal in range(50_000)])
    with Store(tmp_path / "hilt.db") as store:
        in_a_pass = steps_of(store, lambda: store.summary("a" * 32))
        summary = store.summary("a" * 32)
        assert (summary.trials, summary.valid) == (50_000, 50_000)
        assert in_a_pass < 20 * 50_000, "more than one pass over the run's trials"
        assert [each.ordinal for each in store.latest_trials("a" * 32, 100)] == list(range(49_999, 49_899, -1))
        assert steps_of(store, lambda: store.latest_trials("a" * 32, 100)) < 10_000
        assert [best.ordinal for _, best in store.best_of_each()] == [49_999]
        assert steps_of(store, store.best_of_each) < 10_000


def steps_of(store: Store, read: Callable[[], object]) -> int:
    """Return the number of instructions of its virtual machine that SQLite needs, in hundreds."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 100
        return 0

    store._connection.set_progress_handler(count, 100)
    read()
    store._connection.set_progress_handler(None, 0)
    return taken
