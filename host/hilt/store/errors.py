"""The errors of the database. Each is one line: object, fact, next step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StoreError(Exception):
    """The database cannot be used; nothing was half-written."""


class CorruptStoreError(StoreError):
    """The file is damaged, or is not a database of hilt's."""


class NewerStoreError(StoreError):
    """The database was written by a newer hilt."""


class OlderStoreInUseError(StoreError):
    """The database has an older schema, and an engine of an older hilt uses it: it may only be read."""


class StoreWriteError(StoreError):
    """The disk is full, failing, or not ours to write."""


class UnknownRunError(LookupError):
    """No run or campaign goes by that id."""


class AmbiguousRunError(UnknownRunError):
    """More than one goes by that id."""


def _code(name: str) -> int:
    return int(getattr(sqlite3, name))


_CORRUPT = {_code("SQLITE_CORRUPT"), _code("SQLITE_NOTADB")}
_UNWRITTEN = {
    _code("SQLITE_FULL"): "the disk is full; free some space and resume",
    _code("SQLITE_IOERR"): "the disk refused a read or write (full, over its quota or failing); mend that and resume",
    _code("SQLITE_READONLY"): "it may not be written; give yourself write permission on the file and its directory",
    _code("SQLITE_CANTOPEN"): "it cannot be opened or created; check that its directory exists and may be written",
    _code("SQLITE_BUSY"): "another process has held it locked for too long; end that process",
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into this module's."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the class, the rest its detail
        if code in _CORRUPT:
            raise corrupt(path, str(error)) from error
        if code in _UNWRITTEN:
            raise StoreWriteError(f"database {path}: {_UNWRITTEN[code]} ({error})") from error
        raise


def corrupt(path: Path, detail: str) -> CorruptStoreError:
    return CorruptStoreError(
        f"database {path} is damaged or not hilt's ({detail}); move it away to begin a new one, "
        f"or rescue its rows with `sqlite3 {path} .recover`"
    )
