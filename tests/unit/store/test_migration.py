"""Databases of older versions: brought up to date when opened, with all that they hold."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hilt.store import CorruptStoreError, RunState, Store, UnknownRunError
from hilt.store.campaigns import slices
from hilt.store.labels import Labels, all_labels, labels_of, set_labels
from hilt.store.schema import VERSION

from .examples import run, trial

FIRST = (Path(__file__).parent / "schema_1.sql").read_text()
SEVENTH = (Path(__file__).parent / "schema_7.sql").read_text()
EIGHTH = (Path(__file__).parent / "schema_8.sql").read_text()
NINTH = (Path(__file__).parent / "schema_9.sql").read_text()
UUID = "a" * 32


def schema_of(path: Path) -> dict[str, list[tuple[str, str, int, int]]]:
    """(name, type, not null, part of the primary key) of every column, by table; indices too."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
        rows = {name: connection.execute(f"PRAGMA table_xinfo({name})").fetchall() for name in names}
    return {name: sorted((row[1], row[2], row[3], row[5]) for row in rows[name]) for name in names}


def old(path: Path, script: str = FIRST) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        connection.commit()


def test_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    old(path)
    with Store(path) as store:
        (found,) = store.runs()
        assert (found.uuid, found.space_kind, found.orders, found.checks) == (UUID, "autotvm", 1, "compiler")
        assert [each.ordinal for each in store.trials(UUID)] == [0, 1]
        best = store.best(UUID)
        assert best is not None and best.microseconds == 6.0
        store.create_run(run("b" * 32))
        store.record("b" * 32, [trial(0, 0, 1.0)])
    Store(tmp_path / "new.db").close()
    assert schema_of(path) == schema_of(tmp_path / "new.db")
    with Store(path) as store:
        assert {each.uuid: each.orders for each in store.runs()} == {UUID: 1, "b" * 32: 4}


def test_runs_in_a_row_become_a_campaign_with_a_budget(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    old(path, SEVENTH)
    with Store(path) as store:
        (campaign,) = store.campaigns()
        assert (campaign.name, campaign.budget) == ("two", {"trials": 24})
        assert campaign.state is RunState.STOPPED and not campaign.fallback_first
        first, second = store.runs_of(campaign.uuid)
        assert [(part.ordinal, part.workload, part.trials) for part in slices(store, campaign.uuid)] == [
            *((ordinal, first.workload, 4) for ordinal in range(3)),
            *((ordinal, second.workload, 4) for ordinal in (3, 4)),
        ], "six trials were in two batches"
        assert [len(store.trials(run.uuid)) for run in (first, second)] == [12, 6]
        store.upgrade()
    Store(tmp_path / "new.db").close()
    assert schema_of(path) == schema_of(tmp_path / "new.db")


def test_a_campaign_of_finished_runs_has_finished(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    old(path, SEVENTH + "UPDATE runs SET state = 'finished';")
    with Store(path) as store:
        assert [campaign.state for campaign in store.campaigns()] == [RunState.FINISHED]


def test_records_of_schema_8_can_be_labelled(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    old(path, EIGHTH)
    with Store(path) as store:
        assert [len(store.trials(each.uuid)) for each in store.runs()] == [1, 2]
        assert all_labels(store) == {}
        set_labels(store, UUID, Labels(("first",), "of schema 8"))
        assert labels_of(store, UUID).note == "of schema 8"
    Store(tmp_path / "new.db").close()
    assert schema_of(path) == schema_of(tmp_path / "new.db")


def test_runs_of_schema_9_had_five_rounds_and_no_confidence(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    old(path, NINTH)
    with Store(path) as store:
        assert [(each.rounds, each.confidence) for each in store.runs()] == [(5, None)] * 2
        store.set_confidence(UUID, 0.75)
        store.create_run(run("e" * 32, rounds=None))
        assert store.run(UUID).confidence == 0.75 and store.run("e" * 32).rounds is None
        with pytest.raises(UnknownRunError):
            store.set_confidence("f" * 32, 0.5)
    Store(tmp_path / "new.db").close()
    assert schema_of(path) == schema_of(tmp_path / "new.db")


def test_opening_does_not_write_a_current_file(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    Store(path).close()
    before = path.read_bytes()
    Store(path).close()
    assert path.read_bytes() == before


def test_a_version_that_never_was_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    old(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 0")
    with pytest.raises(CorruptStoreError, match="version 0"):
        Store(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 0 != VERSION
