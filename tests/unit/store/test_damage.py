"""Files that are not a database, newer ones, full and read-only disks: one clear line, and nothing half-written."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hilt.store import CorruptStoreError, NewerStoreError, Store, StoreWriteError, database
from hilt.store.schema import VERSION, version_of

from .examples import run, trial

UUID = "a" * 32


def filled(path: Path, trials: int = 500) -> None:
    with Store(path) as store:
        store.create_run(run(UUID))
        store.record(UUID, [trial(ordinal, ordinal, 1.0 + ordinal) for ordinal in range(trials)])


def test_text_is_not_a_database(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    path.write_text("this is not a database, it is a note to myself\n" * 100)
    before = path.read_bytes()
    with pytest.raises(CorruptStoreError) as raised:
        Store(path)
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE photographs (name TEXT)")
    other.close()
    with pytest.raises(CorruptStoreError, match="another program"):
        Store(path)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("photographs",)]
    other.close()


def test_a_newer_schema_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    filled(path, 1)
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version = {VERSION + 1}")
    other.close()
    with pytest.raises(NewerStoreError, match=f"schema {VERSION + 1} .* knows {VERSION}"):
        Store(path)


def test_damage_in_the_middle_is_found_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    filled(path)
    contents = bytearray(path.read_bytes())
    for page in range(2, len(contents) // 4096):  # every page but the first two, so that tables and indices are hit
        contents[page * 4096 : page * 4096 + 64] = random.Random(page).randbytes(64)
    path.write_bytes(contents)
    with pytest.raises(CorruptStoreError) as raised:
        Store(path)
    assert "\n" not in str(raised.value)


def test_a_truncated_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    filled(path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(CorruptStoreError):
        Store(path)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreWriteError, match="cannot be opened"):
        Store(tmp_path / "nowhere" / "hilt.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    filled(path, 1)
    path.chmod(0o400)
    with pytest.raises(StoreWriteError, match="write permission"), Store(path) as store:
        store.record(UUID, [trial(1, 1, 1.0)])


_FILL = """
import resource, sys
from pathlib import Path
from hilt.store import Store, StoreError
from tests.unit.store.examples import run, trial

path, limit, uuid = Path(sys.argv[1]), int(sys.argv[2]), "a" * 32
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
kept = -1
try:
    store = Store(path)
    store.create_run(run(uuid))
    while True:
        store.record(uuid, [trial(kept + 1, kept + 1, 5.0)])
        kept += 1
except StoreError as error:
    print(kept, type(error).__name__, error)
"""


@pytest.mark.parametrize("limit", [0, 1 << 12, 1 << 15, 1 << 18])
def test_a_full_disk_keeps_all_that_was_reported_and_no_half(tmp_path: Path, limit: int) -> None:
    """The limit on the size of a file stands for a full disk: writes past it fail in the middle."""
    path = tmp_path / "hilt.db"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", _FILL, str(path), str(limit)], capture_output=True, text=True, timeout=60, cwd=root
    )
    assert done.returncode == 0, done.stderr
    kept, kind, message = done.stdout.split(" ", 2)
    assert kind == "StoreWriteError" and message.count("\n") == 1
    with Store(path) as store:  # space was made: it opens, whole
        if store.runs():
            assert [each.ordinal for each in store.trials(UUID)] == list(range(int(kept) + 1))
            store.record(UUID, [trial(int(kept) + 1, int(kept) + 1, 5.0)])
        else:
            assert kept == "-1"
    if limit >= 1 << 18:
        assert int(kept) >= 10


@pytest.mark.parametrize(
    ("table", "column", "value", "read"),
    [
        ("trials", "knobs", "{", lambda store: store.trials(UUID)),
        ("trials", "seconds", "[" * 100_000, lambda store: store.best_of_each()),
        ("trials", "repeats", "7", lambda store: store.trials(UUID)),
        ("trials", "outcome", "fine", lambda store: store.trials(UUID)),
        ("runs", "versions", "nothing", lambda store: store.runs()),
        ("runs", "state", "dreaming", lambda store: store.run(UUID)),
    ],
)
def test_a_row_that_hilt_cannot_have_written_is_damage(
    tmp_path: Path, table: str, column: str, value: str, read: Callable[[Store], object]
) -> None:
    path = tmp_path / "hilt.db"
    filled(path, 3)
    with sqlite3.connect(path) as other:
        other.execute(f"UPDATE {table} SET {column} = ?", (value,))
    other.close()
    with Store(path) as store, pytest.raises(CorruptStoreError, match=r"(run|trial) \w+ of the database is damaged"):
        read(store)


def test_an_empty_file_is_not_taken_for_a_new_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_EMPTY_SECONDS", 0.1)
    path = tmp_path / "hilt.db"
    path.touch()
    with pytest.raises(CorruptStoreError, match="it is empty: 0 bytes"):
        Store(path)
    assert path.stat().st_size == 0


def test_a_file_that_another_process_is_about_to_fill_is_waited_for(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "hilt.db", tmp_path / "other.db"
    filled(elsewhere, 3)
    path.touch()
    timer = threading.Timer(0.2, elsewhere.replace, (path,))
    timer.start()
    with Store(path) as store:
        assert len(store.trials(UUID)) == 3


@pytest.mark.parametrize("version", [-3, 0])
def test_a_version_that_never_was_is_damage(tmp_path: Path, version: int) -> None:
    path = tmp_path / "hilt.db"
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert version_of(connection, path) == VERSION
        connection.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(CorruptStoreError, match=f"its schema says version {version}"):
            version_of(connection, path)


def test_a_damaged_page_is_found_before_anything_is_read_from_it(tmp_path: Path) -> None:
    path = tmp_path / "hilt.db"
    with Store(path) as store:
        store.create_run(run("a" * 32))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'runs'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    with closing(sqlite3.connect(path)) as connection, pytest.raises(CorruptStoreError, match=f"(?i)page {page}:"):
        version_of(connection, path)
