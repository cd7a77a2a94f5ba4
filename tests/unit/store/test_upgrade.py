"""Databases of older schemas, while engines of an older hilt run, and after."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hilt.store import NewerStoreError, Store
from hilt.store.errors import OlderStoreInUseError
from hilt.store.labels import Labels, set_labels
from hilt.store.schema import VERSION
from hilt.store.upgrade import LOCK, running

from .examples import run, trial

FOLDER = Path(__file__).parent
SCHEMAS = (6, 7, 8, 9)
STATES = ("running", "killed", "finished", "campaign")


def made(home: Path, schema: int) -> Path:
    """Write a database of an older schema."""
    path = home / "hilt.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((FOLDER / f"schema_{schema}.sql").read_text())
        connection.commit()
    return path


def schema_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version


def rows_of(path: Path) -> dict[str, int]:
    """Return the number of rows of each table that a user would miss."""
    with closing(sqlite3.connect(path)) as connection:
        tables = ("runs", "trials", "remeasurements", "campaigns")
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


@contextmanager
def engine(home: Path, name: str) -> Iterator[None]:
    """Hold the lock of a run or campaign, as its engine does."""
    folder = home / "runs" / name
    folder.mkdir(parents=True)
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(file)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_no_run_is_lost(tmp_path: Path, schema: int, state: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(tmp_path, schema)
    before = rows_of(path)
    with Store(path) as store:
        uuid = store.runs()[0].uuid
        assert len(store.runs()) == before["runs"]
        trials = len(store.trials(uuid))
    assert schema_of(path) == schema, "reading leaves the file as it is"
    held = {"running": uuid, "campaign": "c" * 32}.get(state)
    if held is not None:
        with engine(tmp_path, held), Store(path) as store:
            assert len(store.trials(uuid)) == trials
            with pytest.raises(OlderStoreInUseError, match=rf"schema {schema} and an engine .*{held[:8]}"):
                store.create_run(run("f" * 32))
            with pytest.raises(OlderStoreInUseError):
                store.upgrade()
        assert (schema_of(path), rows_of(path)) == (schema, before)
    with Store(path) as store:
        store.create_run(run("f" * 32))
        store.record("f" * 32, [trial(0, 0, 1.0)])
        assert len(store.trials(uuid)) == trials
    assert schema_of(path) == VERSION
    after = rows_of(path)
    assert (after["runs"], after["trials"]) == (before["runs"] + 1, before["trials"] + 1)
    copy = tmp_path / f"hilt.db.schema{schema}"
    assert (schema_of(copy), rows_of(copy)) == (schema, before)
    assert (copy.stat().st_mode & 0o777) == 0o600
    said = capsys.readouterr().err
    assert said == f"database {path}: schema {schema} became {VERSION}; the older one is kept as {copy.name}\n"


def test_a_reader_sees_what_an_older_engine_writes(tmp_path: Path) -> None:
    path = made(tmp_path, 8)
    with Store(path) as store, closing(sqlite3.connect(path)) as older:
        first = len(store.runs())
        older.execute("UPDATE runs SET board = 'moved'")
        older.commit()
        assert {each.board for each in store.runs()} == {"moved"}
        assert len(store.runs()) == first


def test_a_reader_goes_on_when_another_hilt_has_brought_the_file_up_to_date(tmp_path: Path) -> None:
    path = made(tmp_path, 8)
    with Store(path) as reader, Store(path) as writer:
        count = len(reader.runs())
        writer.create_run(run("f" * 32))
        assert len(reader.runs()) == count + 1
        reader.create_run(run("e" * 32))
        assert len(writer.runs()) == count + 2


def test_an_earlier_copy_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hilt.db.schema8").write_text("the user's own")
    with Store(made(tmp_path, 8)) as store:
        store.upgrade()
    assert (tmp_path / "hilt.db.schema8").read_text() == "the user's own"
    assert schema_of(tmp_path / "hilt.db.schema8.2") == 8
    assert "kept as hilt.db.schema8.2" in capsys.readouterr().err


def test_a_full_disk_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path, 8)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with Store(path) as store, pytest.raises(OSError, match="No space"):
        store.create_run(run("f" * 32))
    assert schema_of(path) == 8
    assert sorted(each.name for each in tmp_path.iterdir()) == ["hilt.db"]


def test_a_newer_file_names_the_hilt_that_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
        connection.execute("UPDATE written_by SET hilt = '9.8.7\x1b[31m'")
        connection.commit()
    with pytest.raises(NewerStoreError, match=rf"{VERSION + 1} .* knows {VERSION}; hilt 9\.8\.7\S*, which wrote"):
        Store(path)


def test_only_held_locks_count(tmp_path: Path) -> None:
    with engine(tmp_path, "a" * 32):
        assert running(tmp_path) == ["a" * 32]
    assert running(tmp_path) == []
    with Store(made(tmp_path, 8)) as store:
        set_labels(store, store.runs()[0].uuid, Labels(("kept",), ""))
