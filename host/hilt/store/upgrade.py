"""A database of an older schema: read as it is, brought up to date only while nobody uses it, after a copy."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from hilt.store.errors import OlderStoreInUseError
from hilt.store.schema import VERSION, prepare, version_of

LOCK = "engine.lock"
"""The file in a run's or campaign's folder that its engine holds locked."""
_NAMED = 3


def snapshot(source: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """Return a database in memory with the rows of an older one, in today's tables. The file stays as it is."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        source.backup(copy)
        copy.execute("PRAGMA foreign_keys = ON")
        prepare(copy, path)
    except BaseException:
        copy.close()
        raise
    return copy


def upgrade(connection: sqlite3.Connection, path: Path) -> str:
    """Bring a file up to date; return a line that says so, empty if it was already.

    Raises:
        OlderStoreInUseError: An engine runs, which knows the older schema alone.
        StoreError: The copy or the change could not be written; the file is as it was.
    """
    version = version_of(connection, path)
    if version == VERSION:
        return ""
    holders = running(path.parent)
    if holders:
        named = ", ".join(name[:8] for name in holders[:_NAMED]) + (", ..." if len(holders) > _NAMED else "")
        raise OlderStoreInUseError(
            f"database {path} has schema {version} and an engine of an older hilt still writes to it ({named}): until "
            "it ends, this hilt only reads; wait for it, or stop it with the hilt that started it"
        )
    copy = _keep_copy(connection, path, version)
    prepare(connection, path)
    return f"database {path}: schema {version} became {VERSION}; the older one is kept as {copy.name}"


def running(home: Path) -> list[str]:
    """Return the names of runs and campaigns whose engine holds their lock."""
    return [lock.parent.name for lock in sorted(home.glob(f"runs/*/{LOCK}")) if _is_held(lock)]


def _is_held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _keep_copy(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Write a whole copy of the file beside it; an earlier copy is not overwritten."""
    target = path.with_name(f"{path.name}.schema{version}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.schema{version}.{number}")
    unfinished = target.with_name(f"{target.name}.new")
    unfinished.unlink(missing_ok=True)
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with sqlite3.connect(unfinished) as copy:
            connection.backup(copy)
        copy.close()
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return target
