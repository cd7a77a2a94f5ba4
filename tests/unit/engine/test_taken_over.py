"""A run begun anew on a board that has changed: the results that hold are taken over, all others measured again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hilt.engine import launch
from hilt.engine.client import EngineClient
from hilt.engine.events import RunProgress
from hilt.engine.taken_over import CONTINUES, TWIN, continuing, taken_over
from hilt.store import Run, RunState, Store, Trial, database_path
from hilt.store.labels import labels_of
from tests.unit.store.examples import run as example_run
from tests.unit.store.examples import trial as example_trial

from .table import TableBoards
from .test_process import ENGINE, Gate, at_root, gate, start, stop, to_the_end, wait

__all__ = ["at_root", "gate"]  # fixtures
BEFORE = 12
"""Programs that the board of an older hilt answers before the run is stopped."""


def begin_anew(home: Path, old: Run, board: str) -> tuple[Run, list[Trial], str]:
    new = launch.begin_anew(old.uuid, home, board=board, boards=TableBoards(), engine=ENGINE)
    new, trials = to_the_end(home, new)
    assert (new.state, len(trials)) == (RunState.FINISHED, 40)
    with Store(database_path(home)) as store:
        return new, trials, labels_of(store, new.uuid).note


def stopped_run(home: Path, gate: Gate, board: str) -> tuple[Run, dict[int, Trial]]:
    """Return a stopped run, and its verified trials by configuration."""
    gate.shut(after=BEFORE)
    run = start(home, board=board)
    with EngineClient.attach(home, run.uuid) as client:
        wait(client, lambda event: isinstance(event, RunProgress) and event.trials >= BEFORE)
    stop(home, run, gate)
    run, trials = to_the_end(home, run)
    verified = {trial.index: trial for trial in trials if trial.verified}
    assert run.state is RunState.STOPPED and 0 < len(verified) < len(trials) < 40
    return run, verified


def same_records(trials: list[Trial], old: dict[int, Trial]) -> set[int]:
    """Return the configurations whose record is the old one, the time of the measurement included."""
    return {
        trial.index
        for trial in trials
        if trial.index in old
        and replace(old[trial.index], ordinal=trial.ordinal) == trial
        and old[trial.index].recorded_at == trial.recorded_at
    }


@pytest.mark.slow  # starts engines
@pytest.mark.parametrize(
    ("then", "now"),
    [("table:one~twin", "table:two~twin"), ("table:one", "table:one@second")],
    ids=["twin", "bitstream"],
)
def test_verified_results_are_taken_over_where_the_cycles_are_the_same(
    tmp_path: Path, gate: Gate, then: str, now: str
) -> None:
    old, verified = stopped_run(tmp_path, gate, then)
    new, trials, note = begin_anew(tmp_path, old, now)
    assert same_records(trials, verified) == verified.keys(), "the random tuner asks for the same ones again"
    assert note == f"began anew from {old.uuid[:8]}, with its {len(verified)} verified results"
    assert new.versions[CONTINUES] == old.uuid


@pytest.mark.slow  # starts engines
@pytest.mark.parametrize(("then", "now"), [("table:one~twin", "table:two~other"), ("table:one", "table:two")])
def test_nothing_is_taken_over_where_cycles_may_differ(tmp_path: Path, gate: Gate, then: str, now: str) -> None:
    old, verified = stopped_run(tmp_path, gate, then)
    new, trials, note = begin_anew(tmp_path, old, now)
    assert same_records(trials, verified) == set()
    assert note == f"began anew from {old.uuid[:8]}"
    assert CONTINUES not in new.versions


@pytest.mark.slow  # starts engines
def test_a_finished_run_that_begins_anew_is_measured_again(tmp_path: Path) -> None:
    old, trials = to_the_end(tmp_path, start(tmp_path, board="table:one~twin"))
    new, again, _ = begin_anew(tmp_path, old, "table:one~twin")
    assert again == trials
    assert same_records(again, {trial.index: trial for trial in trials if trial.verified}) == set()
    assert CONTINUES not in new.versions


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        *[("workload_spec", {"n": 2}), ("parameters", "4x8"), ("isa", "B"), ("clock_hz", 1), ("space", "tile_b=1")],
        *[("space_kind", "ml2"), ("orders", 1), ("checks", "tvm"), ("repeat", 7), ("number", 7), ("seed", 77)],
        *[("output_elements", 7), ("bitstream", "9" * 64)],
    ],
)
def test_results_hold_for_a_run_of_the_same_facts_alone(fact: str, value: object) -> None:
    old, new = example_run("a" * 32), example_run("b" * 32)
    assert continuing(new, old).versions == {**new.versions, CONTINUES: old.uuid}
    other = replace(new, **{fact: value})  # type: ignore[arg-type]
    assert getattr(other, fact) != getattr(new, fact)
    assert continuing(other, old).versions == other.versions


def test_a_run_without_a_twin_has_its_bitstream_alone() -> None:
    old, new = (
        example_run("a" * 32, versions={TWIN: ""}),
        example_run("b" * 32, bitstream="9" * 64, versions={TWIN: ""}),
    )
    assert continuing(new, old).versions == new.versions
    twins = [replace(each, versions={TWIN: "2"}) for each in (old, new)]
    assert continuing(twins[1], twins[0]).versions == {TWIN: "2", CONTINUES: old.uuid}


def test_a_chain_of_runs_hands_its_results_on_until_one_is_deleted(tmp_path: Path) -> None:
    with Store(tmp_path / "hilt.db") as store:
        uuids = [letter * 32 for letter in "abc"]
        for place, uuid in enumerate(uuids):
            versions = {CONTINUES: uuids[place - 1]} if place else {}
            store.create_run(example_run(uuid, versions=versions))
            store.record(uuid, [example_trial(0, 10 + place, 1.0), example_trial(1, 20, place + 1.0)])
        last = store.run(uuids[2])
        found = taken_over(store, last)
        assert {index: trial.microseconds for index, trial in found.items()} == {10: 1.0, 11: 1.0, 20: 2.0}, (
            "the newest run's result counts"
        )
        with store.writing() as connection:
            connection.execute("DELETE FROM runs WHERE uuid = ?", (uuids[0],))
        assert taken_over(store, last).keys() == {11, 20}
        assert taken_over(store, store.run(uuids[1])) == {}
