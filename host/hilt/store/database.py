"""The database of runs and trials: SQLite in WAL mode, every record on disk before its writer goes on."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from hilt.store.errors import AmbiguousRunError, StoreError, UnknownRunError, corrupt, explained
from hilt.store.records import Campaign, Run, RunState, RunSummary
from hilt.store.remeasurements import Confirmed, Purpose, Remeasurement, confirmations, with_confirmations
from hilt.store.rows import (
    CAMPAIGN_COLUMNS,
    RUN_COLUMNS,
    TRIAL_COLUMNS,
    campaign_of,
    campaign_row,
    run_of,
    run_row,
    trial_of,
    trial_row,
)
from hilt.store.schema import MIGRATIONS, VERIFIED, prepare
from hilt.store.upgrade import snapshot, upgrade
from hilt.trial import Outcome, Trial

FILE_NAME = "hilt.db"
_BUSY_SECONDS = 30.0
_EMPTY_SECONDS = 3.0
_EMPTY_POLL_SECONDS = 0.05

_RUN = ", ".join(RUN_COLUMNS)
_TRIAL = ", ".join(f'"{name}"' for name in TRIAL_COLUMNS)
_INSERT_RUN = f"INSERT INTO runs ({_RUN}) VALUES ({', '.join(':' + name for name in RUN_COLUMNS)})"  # noqa: S608
_INSERT_TRIAL = (
    f"INSERT INTO trials (run, {_TRIAL}) "  # noqa: S608
    f"VALUES ((SELECT id FROM runs WHERE uuid = :uuid), {', '.join(':' + name for name in TRIAL_COLUMNS)})"
)
_INSERT_CAMPAIGN = (
    f"INSERT INTO campaigns ({', '.join(CAMPAIGN_COLUMNS)}) "  # noqa: S608
    f"VALUES ({', '.join('?' * len(CAMPAIGN_COLUMNS))})"
)
_OF_RUN = "run = (SELECT id FROM runs WHERE uuid = ?)"


class Store:
    """One database file; may be used from several threads, and by several processes at once.

    A file of an older schema is read as it is. The first write brings it up to date, unless an engine uses it:
    see `hilt.store.upgrade`.

    Raises StoreError (CorruptStoreError, NewerStoreError, StoreWriteError) from any call, UnknownRunError if a run
    is named that is not there. A call that raises has changed nothing.
    """

    def __init__(self, path: Path, *, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now
        self._lock = threading.RLock()
        self._older: sqlite3.Connection | None = None
        """The rows of a file of an older schema, in today's tables; None for a file of today's."""
        self._seen = 0
        _refuse_empty(path)
        is_new = not path.exists()
        with explained(path):
            # One connection for all threads, behind a lock: a record must be on disk when its call returns anyway.
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._open()
            except BaseException:
                self._connection.close()
                if is_new and path.is_file() and path.stat().st_size == 0:
                    path.unlink()  # a full disk: nothing was written yet
                raise

    def _open(self) -> None:
        self._connection.row_factory = sqlite3.Row
        if not self._is_older():
            self._prepare()

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        prepare(self._connection, self.path)

    def _is_older(self) -> bool:
        """Tell whether the file has tables of an older schema, and keep their columns in `_older`."""
        if self._connection.execute("PRAGMA user_version").fetchone()[0] not in MIGRATIONS:
            self._forget_older()
            return False
        changed = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if self._older is None or changed != self._seen:
            self._forget_older()
            self._older, self._seen = snapshot(self._connection, self.path), changed
            self._older.row_factory = sqlite3.Row
        return True

    def _forget_older(self) -> None:
        if self._older is not None:
            self._older.close()
            self._older = None

    def upgrade(self) -> None:
        """Bring an older file up to date, with a line on standard error. Raises OlderStoreInUseError."""
        with self._lock, explained(self.path):
            if self._older is None:
                return
            line = upgrade(self._connection, self.path)
            self._forget_older()
            self._prepare()
        if line:
            sys.stderr.write(line + "\n")

    def close(self) -> None:
        with self._lock:
            self._forget_older()
            self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # writing

    def create_run(self, run: Run) -> None:
        with self.writing() as connection:
            connection.execute(_INSERT_RUN, run_row(run))

    def create_recorded(self, runs: Iterable[tuple[Run, Sequence[Trial]]]) -> None:
        """Store runs that were made elsewhere, with their trials and times: all of it or nothing."""
        with self.writing() as connection:
            for run, trials in runs:
                connection.execute(_INSERT_RUN, run_row(run))
                _insert_trials(connection, run.uuid, map(trial_row, trials))

    def create_campaign(self, campaign: Campaign) -> None:
        with self.writing() as connection:
            connection.execute(_INSERT_CAMPAIGN, campaign_row(campaign))

    def set_state(self, uuid: str, state: RunState, detail: str = "", failure: str = "") -> None:
        """Set the state of a run.

        The first state that ends a run sets `finished`; a later one clears it. A run that has finished stays so: a
        layer may be skipped for good while its last trials wait for a paused board.
        """
        finished = self._now() if state in (RunState.STOPPED, RunState.FAILED, RunState.FINISHED) else None
        with self.writing() as connection:
            changed = connection.execute(
                "UPDATE runs SET state = ?, detail = ?, failure = ?, finished = ? WHERE uuid = ? AND state <> ?",
                (state, detail, failure, finished, uuid, RunState.FINISHED),
            )
            if not changed.rowcount and not _is_there(connection, uuid):
                raise _unknown(uuid)

    def set_confidence(self, uuid: str, confidence: float) -> None:
        """Set the tuner's confidence after the latest results. Raises UnknownRunError."""
        with self.writing() as connection:
            changed = connection.execute("UPDATE runs SET confidence = ? WHERE uuid = ?", (confidence, uuid))
            if not changed.rowcount:
                raise _unknown(uuid)

    def discard_run(self, uuid: str) -> bool:
        """Remove a run without any trial; return False if it has trials. Raises StoreError."""
        with self.writing() as connection:
            if connection.execute(f"SELECT 1 FROM trials WHERE {_OF_RUN} LIMIT 1", (uuid,)).fetchone():  # noqa: S608
                return False
            connection.execute("DELETE FROM runs WHERE uuid = ?", (uuid,))
        return True

    def move(self, uuid: str, board: str) -> None:
        """Move a run to another board."""
        with self.writing() as connection:
            if not connection.execute("UPDATE runs SET board = ? WHERE uuid = ?", (board, uuid)).rowcount:
                raise _unknown(uuid)

    def record(self, uuid: str, trials: Sequence[Trial]) -> None:
        """Put trials on disk, all or none; one that has no time yet gets the time of now.

        A trial whose ordinal or index the run has already is refused. The budget of a run that has finished is
        the number of its trials: those on the board when a layer was skipped count too.
        """
        with self.writing() as connection:
            if not _is_there(connection, uuid):
                raise _unknown(uuid)
            now = self._now()
            rows = (trial_row(trial) | {"recorded_at": trial.recorded_at or now} for trial in trials)
            _insert_trials(connection, uuid, rows)
            connection.execute(
                "UPDATE runs SET budget = max(budget, (SELECT count(*) FROM trials WHERE run = runs.id)) "
                "WHERE uuid = ? AND state = ?",
                (uuid, RunState.FINISHED),
            )

    def record_remeasurement(self, uuid: str, row: Remeasurement) -> None:
        """Record a row once for each purpose, round and trial; an earlier row stays."""
        values = (str(row.purpose), row.round, row.ordinal, row.microseconds, row.board, uuid)
        with self.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO remeasurements (purpose, round, ordinal, microseconds, board, run) "
                "SELECT ?, ?, ?, ?, ?, id FROM runs WHERE uuid = ?",
                values,
            )

    # reading

    def run(self, identifier: str) -> Run:
        """Return the run of this uuid or of the only uuid that begins with it; `last` is the newest.

        Raises UnknownRunError, AmbiguousRunError.
        """
        wanted = identifier.lower()
        if wanted == "last":
            rows = self.rows(f"SELECT {_RUN} FROM runs ORDER BY id DESC LIMIT 1")  # noqa: S608
            if not rows:
                raise UnknownRunError("there are no runs yet; begin one with `hilt tune`")
            return run_of(rows[0])
        query = f"SELECT {_RUN} FROM runs WHERE substr(uuid, 1, length(?1)) = ?1 AND ?1 <> '' LIMIT 3"  # noqa: S608
        rows = self.rows(query, wanted)
        if len(rows) > 1:
            names = ", ".join(row["uuid"][: len(wanted) + 8] for row in rows)
            raise AmbiguousRunError(f"more than one run begins with {identifier!r} ({names}, ...); give more of its id")
        if not rows:
            raise _unknown(identifier)
        return run_of(rows[0])

    def runs(self, limit: int | None = None) -> list[Run]:
        """Return the runs, newest first: in the order in which they were created, whatever the clock."""
        query = f"SELECT {_RUN} FROM runs ORDER BY id DESC LIMIT ?"  # noqa: S608
        return [run_of(row) for row in self.rows(query, -1 if limit is None else limit)]

    def campaigns(self) -> list[Campaign]:
        """Return the campaigns, newest first, as for runs."""
        return [campaign_of(row) for row in self.rows("SELECT * FROM campaigns ORDER BY rowid DESC")]

    def campaign(self, identifier: str) -> Campaign | None:
        """Return the campaign of this uuid or of the only uuid that begins with it, or None.

        Raises AmbiguousRunError.
        """
        query = "SELECT * FROM campaigns WHERE substr(uuid, 1, length(?1)) = ?1 AND ?1 <> '' LIMIT 2"
        rows = self.rows(query, identifier.lower())
        if len(rows) > 1:
            raise AmbiguousRunError(f"more than one campaign begins with {identifier!r}; give more of its id")
        return campaign_of(rows[0]) if rows else None

    def runs_of(self, campaign: str) -> list[Run]:
        """Return the runs of the campaign of this uuid, oldest first."""
        query = f"SELECT {_RUN} FROM runs WHERE campaign = ? ORDER BY id"  # noqa: S608
        return [run_of(row) for row in self.rows(query, campaign)]

    def summary(self, uuid: str) -> RunSummary:
        run = self.run(uuid)
        counts = self.counts(run.uuid)
        valid = f"SELECT count(*) FROM trials INDEXED BY trials_verified WHERE {_OF_RUN} AND {VERIFIED}"  # noqa: S608
        return RunSummary(run, sum(counts.values()), self.rows(valid, run.uuid)[0][0], self.best(run.uuid))

    def trials(self, uuid: str, since: int = 0, limit: int | None = None) -> list[Trial]:
        """Return the trials in order, from ordinal `since` on."""
        query = f"SELECT {_TRIAL} FROM trials WHERE {_OF_RUN} AND ordinal >= ? ORDER BY ordinal LIMIT ?"  # noqa: S608
        return [trial_of(row) for row in self.rows(query, uuid, since, -1 if limit is None else limit)]

    def latest_trials(self, uuid: str, limit: int, before: int | None = None) -> list[Trial]:
        """Return a page: the last `limit` trials with an ordinal below `before`, newest first."""
        query = f"SELECT {_TRIAL} FROM trials WHERE {_OF_RUN} AND ordinal < ? ORDER BY ordinal DESC LIMIT ?"  # noqa: S608
        top = 2**63 - 1 if before is None else before
        return [trial_of(row) for row in self.rows(query, uuid, top, limit)]

    def counts(self, uuid: str) -> dict[Outcome, int]:
        """Return the number of trials by outcome, for those that occurred."""
        query = f"SELECT outcome, count(*) FROM trials WHERE {_OF_RUN} GROUP BY outcome"  # noqa: S608
        return {Outcome(row[0]): row[1] for row in self.rows(query, uuid)}

    def reasons(self, uuid: str, outcome: Outcome) -> dict[str, int]:
        """Return the number of trials of an outcome by reason, most frequent first."""
        query = (
            f"SELECT reason, count(*) AS n FROM trials WHERE {_OF_RUN} AND outcome = ? "  # noqa: S608
            "GROUP BY reason ORDER BY n DESC, reason"
        )
        return {row[0]: row[1] for row in self.rows(query, uuid, str(outcome))}

    def remeasurements(self, uuid: str) -> list[Remeasurement]:
        """Return the remeasurements by purpose, round and trial."""
        query = (
            f"SELECT purpose, round, ordinal, microseconds, board FROM remeasurements WHERE {_OF_RUN} "  # noqa: S608
            "ORDER BY purpose, round, ordinal"
        )
        return [Remeasurement(Purpose(row[0]), *row[1:]) for row in self.rows(query, uuid)]

    def confirmations(self, uuid: str) -> dict[int, Confirmed]:
        """Return the latencies of the trials that were measured again at the end, by trial number."""
        return confirmations(self.remeasurements(uuid))

    def reported(self, uuid: str) -> list[Trial]:
        """Return the trials for others to choose from: with confirmed latencies, without lucky ones."""
        return with_confirmations(self.trials(uuid), self.remeasurements(uuid))

    def fastest(self, uuid: str, count: int) -> list[Trial]:
        """Return the `count` fastest verified trials as first measured; the earlier of two equals first."""
        query = (
            f"SELECT {_TRIAL} FROM trials INDEXED BY trials_verified WHERE {_OF_RUN} AND {VERIFIED} "  # noqa: S608
            "ORDER BY microseconds, ordinal LIMIT ?"
        )
        return [trial_of(row) for row in self.rows(query, uuid, count)]

    def best(self, uuid: str) -> Trial | None:
        """Return the fastest trial whose whole output was compared and right; the earlier of two equals.

        Where the best trials were measured again at the end, that decides, and the trial has the latencies of then.
        """
        confirmed = self.confirmations(uuid)
        if confirmed:
            winner = min(confirmed, key=lambda ordinal: (confirmed[ordinal].microseconds, ordinal))
            return confirmed[winner].replacing(self.trials(uuid, winner, 1)[0])
        found = self.fastest(uuid, 1)
        return found[0] if found else None

    def improvements(self, uuid: str) -> list[tuple[int, float]]:
        """Return the best-latency curve: (ordinal, microseconds) of each verified trial faster than all before it."""
        query = (
            f"SELECT ordinal, microseconds FROM (SELECT ordinal, microseconds, min(microseconds) OVER "  # noqa: S608
            f"(ORDER BY ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM trials "
            f"INDEXED BY trials_verified WHERE {_OF_RUN} AND {VERIFIED}) "
            "WHERE before IS NULL OR microseconds < before ORDER BY ordinal"
        )
        return [(row[0], row[1]) for row in self.rows(query, uuid)]

    def best_of_each(self, workload: str | None = None) -> list[tuple[Run, Trial]]:
        """Return the best trial of every workload and board, with its run, by workload and board."""
        found: dict[tuple[str, str], tuple[Run, Trial]] = {}
        for run in self.runs():
            best = self.best(run.uuid) if workload in (None, run.workload) else None
            key = (run.workload, run.board)
            if best and (key not in found or _latency(best) < _latency(found[key][1])):
                found[key] = (run, best)
        return [found[key] for key in sorted(found)]

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Return the rows of a query, for the other modules of this room."""
        with self._lock, explained(self.path):
            older = self._older is not None and self._is_older()
            source = self._older if older and self._older is not None else self._connection
            return source.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction, all or none, for the other modules of this room."""
        self.upgrade()
        with self._lock, explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite has rolled back by itself after some errors
                    self._connection.execute("ROLLBACK")
                raise


def _refuse_empty(path: Path) -> None:
    """Raise CorruptStoreError for a file of zero bytes: to SQLite it is a new database, and the old runs were gone.

    Another process may be about to write the first page; it has a few seconds for that.
    """
    deadline = time.monotonic() + _EMPTY_SECONDS
    try:
        while path.is_file() and path.stat().st_size == 0:
            if time.monotonic() > deadline:
                raise corrupt(path, "it is empty: 0 bytes")
            time.sleep(_EMPTY_POLL_SECONDS)
    except OSError:
        return  # SQLite meets it too, and says which


def _is_there(connection: sqlite3.Connection, uuid: str) -> bool:
    return connection.execute("SELECT 1 FROM runs WHERE uuid = ?", (uuid,)).fetchone() is not None


def _insert_trials(connection: sqlite3.Connection, uuid: str, rows: Iterable[dict[str, Any]]) -> None:
    try:
        connection.executemany(_INSERT_TRIAL, ({"uuid": uuid, **row} for row in rows))
    except sqlite3.IntegrityError as error:
        message = f"run {uuid}: a trial cannot be recorded twice or without its facts ({error})"
        raise StoreError(message) from error


def _latency(trial: Trial) -> float:
    assert trial.microseconds is not None
    return trial.microseconds


def _unknown(identifier: str) -> UnknownRunError:
    return UnknownRunError(f"there is no run {identifier!r}; `hilt runs` lists them")
