"""The tables, and the check that a file holds them."""

from __future__ import annotations

import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hilt.plain_text import plain
from hilt.store.errors import NewerStoreError, corrupt

APPLICATION_ID = 0x48494C54  # "HILT", in the file's header
VERSION = 10

VERIFIED = "outcome = 'ok' AND mismatched = 0 AND compared = output_elements AND output_elements > 0"
"""The condition of a result: every element of the trial's output was compared and none differed."""

_REMEASUREMENTS_OF_3 = """CREATE TABLE remeasurements (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  purpose TEXT NOT NULL CHECK (purpose IN ('drift', 'confirmation')),
  round INTEGER NOT NULL CHECK (round >= 0),
  number INTEGER NOT NULL,
  microseconds REAL NOT NULL CHECK (microseconds > 0),
  board TEXT NOT NULL,
  PRIMARY KEY (run, purpose, round, number)
) STRICT, WITHOUT ROWID"""

_RUNS_OF_CAMPAIGN = "CREATE INDEX runs_campaign ON runs (campaign) WHERE campaign IS NOT NULL"
CAMPAIGNS = """CREATE TABLE campaigns (
  uuid TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  network TEXT NOT NULL,
  settings TEXT NOT NULL,
  created REAL NOT NULL
) STRICT"""
_CAMPAIGNS_GO_ON = (  # a budget for all layers together, and an engine of its own
    "ALTER TABLE campaigns ADD COLUMN budget TEXT",
    "ALTER TABLE campaigns ADD COLUMN state TEXT NOT NULL DEFAULT 'created'",
    "ALTER TABLE campaigns ADD COLUMN detail TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE campaigns ADD COLUMN failure TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE campaigns ADD COLUMN finished REAL",
    "ALTER TABLE campaigns ADD COLUMN spent_seconds REAL NOT NULL DEFAULT 0 CHECK (spent_seconds >= 0)",
)
_SLICES_OF_6 = """CREATE TABLE slices (
  campaign TEXT NOT NULL REFERENCES campaigns (uuid) ON DELETE CASCADE,
  number INTEGER NOT NULL CHECK (number >= 0),
  workload TEXT NOT NULL,
  trials INTEGER NOT NULL CHECK (trials > 0),
  expected_gain REAL NOT NULL,
  PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID"""
REMEASUREMENTS = _REMEASUREMENTS_OF_3.replace("number", "ordinal")
SLICES = _SLICES_OF_6.replace("number", "ordinal")
LABELS = """CREATE TABLE labels (
  uuid TEXT NOT NULL PRIMARY KEY,
  tags TEXT NOT NULL DEFAULT '[]',
  note TEXT NOT NULL DEFAULT '',
  archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1))
) STRICT, WITHOUT ROWID"""
_FALLBACK_FIRST = "ALTER TABLE campaigns ADD COLUMN fallback_first INTEGER NOT NULL DEFAULT 1"
_BUDGETED = ";\n".join((*_CAMPAIGNS_GO_ON, _FALLBACK_FIRST, SLICES))

_LAYERS = "(SELECT count(*) FROM json_each(network, '$.layers') WHERE json_extract(value, '$.reason') = '')"
"""Layers of a row of `campaigns` that VTA can run."""
_DONE = "(SELECT count(DISTINCT workload) FROM runs WHERE campaign = campaigns.uuid AND state = 'finished')"
_SLICES_OF_RUNS_IN_A_ROW = """
WITH RECURSIVE
  newest AS (
    SELECT campaign, workload, batch, budget, max(id) AS id FROM runs
    WHERE campaign IN (SELECT uuid FROM campaigns WHERE budget IS NULL) GROUP BY campaign, workload
  ),
  part (campaign, workload, batch, budget, id, trials, first) AS (
    SELECT campaign, workload, batch, budget, id,
      (SELECT coalesce(max(ordinal) + 1, 0) FROM trials WHERE run = newest.id), 0 FROM newest
    UNION ALL
    SELECT campaign, workload, batch, budget, id, trials, first + batch FROM part WHERE first + batch < trials
  )
INSERT INTO slices (campaign, ordinal, workload, trials, expected_gain)
SELECT campaign, row_number() OVER (PARTITION BY campaign ORDER BY id, first) - 1, workload,
  min(batch, budget - first), 0.0
FROM part WHERE first < trials AND first < budget"""
_RUNS_IN_A_ROW_GET_A_BUDGET = (  # campaigns without a budget were runs in a row, each with a budget of its own
    "ALTER TABLE runs ADD COLUMN predicted_microseconds REAL",
    _FALLBACK_FIRST,
    _SLICES_OF_RUNS_IN_A_ROW,
    f"UPDATE campaigns SET fallback_first = 0, state = iif({_DONE} >= {_LAYERS}, 'finished', 'stopped'), "  # noqa: S608
    f"budget = json_object('trials', json_extract(settings, '$.trials') * {_LAYERS}) WHERE budget IS NULL",
)

TABLES = f"""
{CAMPAIGNS};

CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  -- what the run is: fixed when it is created, compared when it is resumed
  workload TEXT NOT NULL,
  workload_spec TEXT NOT NULL,
  board TEXT NOT NULL,
  parameters TEXT NOT NULL,
  isa TEXT NOT NULL,
  bitstream TEXT NOT NULL,
  clock_hz INTEGER NOT NULL CHECK (clock_hz > 0),
  tuner TEXT NOT NULL,
  tuner_options TEXT NOT NULL,
  seed INTEGER NOT NULL,
  checks TEXT NOT NULL,
  space_kind TEXT NOT NULL,
  orders INTEGER NOT NULL CHECK (orders > 0),
  space TEXT NOT NULL,
  space_size INTEGER NOT NULL,
  budget INTEGER NOT NULL,
  batch INTEGER NOT NULL CHECK (batch > 0),
  repeat INTEGER NOT NULL CHECK (repeat > 0),
  number INTEGER NOT NULL DEFAULT 1 CHECK (number > 0),
  limit_seconds REAL NOT NULL CHECK (limit_seconds > 0),
  output_elements INTEGER NOT NULL CHECK (output_elements > 0),
  macs INTEGER NOT NULL,
  bound_cycles INTEGER NOT NULL,
  -- how it went
  state TEXT NOT NULL,
  detail TEXT NOT NULL,
  failure TEXT NOT NULL,
  created REAL NOT NULL,
  finished REAL,
  versions TEXT NOT NULL,
  campaign TEXT REFERENCES campaigns (uuid),
  predicted_microseconds REAL,
  confidence REAL,
  rounds INTEGER DEFAULT 5 CHECK (rounds > 0)
) STRICT;

CREATE TABLE trials (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
  -- facts about the configuration: the same whenever the same run is made on the same deterministic board
  "index" INTEGER NOT NULL,
  knobs TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome <> 'board_lost'),
  reason TEXT NOT NULL,
  cycles INTEGER,
  microseconds REAL,
  repeats TEXT NOT NULL,
  compared INTEGER,
  mismatched INTEGER,
  first INTEGER,
  largest_error INTEGER,
  output_elements INTEGER NOT NULL,
  -- circumstances: where and when
  board TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  seconds TEXT NOT NULL,
  recorded_at REAL NOT NULL,
  PRIMARY KEY (run, ordinal),
  CHECK (outcome <> 'ok' OR (microseconds IS NOT NULL AND microseconds > 0))
) STRICT, WITHOUT ROWID;

{REMEASUREMENTS};

{_BUDGETED};

{LABELS};

CREATE UNIQUE INDEX trials_once ON trials (run, "index");
CREATE INDEX trials_outcome ON trials (run, outcome, reason);
CREATE INDEX trials_verified ON trials (run, microseconds, ordinal) WHERE {VERIFIED};
{_RUNS_OF_CAMPAIGN};
"""

MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: (  # all runs of the time were of this space
        "ALTER TABLE runs ADD COLUMN space_kind TEXT NOT NULL DEFAULT 'autotvm'",
        "ALTER TABLE runs ADD COLUMN orders INTEGER NOT NULL DEFAULT 1 CHECK (orders > 0)",
    ),
    2: (_REMEASUREMENTS_OF_3,),
    3: (CAMPAIGNS, "ALTER TABLE runs ADD COLUMN campaign TEXT REFERENCES campaigns (uuid)", _RUNS_OF_CAMPAIGN),
    4: ("ALTER TABLE runs ADD COLUMN average INTEGER NOT NULL DEFAULT 1 CHECK (average > 0)",),
    5: (*_CAMPAIGNS_GO_ON, _SLICES_OF_6, "DROP INDEX IF EXISTS runs_created"),  # nothing asks by the clock any more
    6: (  # names of the glossary
        "ALTER TABLE runs RENAME COLUMN average TO number",
        "ALTER TABLE trials RENAME COLUMN number TO ordinal",
        'ALTER TABLE trials RENAME COLUMN configuration TO "index"',
        "ALTER TABLE remeasurements RENAME COLUMN number TO ordinal",
        "ALTER TABLE slices RENAME COLUMN number TO ordinal",
        "UPDATE runs SET board = 'dataset:' || substr(board, 11) WHERE board LIKE 'landscape:%'",
        "UPDATE trials SET board = 'dataset:' || substr(board, 11) WHERE board LIKE 'landscape:%'",
        "UPDATE remeasurements SET board = 'dataset:' || substr(board, 11) WHERE board LIKE 'landscape:%'",
        "UPDATE campaigns SET settings = replace(replace(settings, '\"average\":', '\"number\":'),"
        ' \'"board":"landscape:\', \'"board":"dataset:\')',
    ),
    7: _RUNS_IN_A_ROW_GET_A_BUDGET,
    8: (LABELS,),
    9: (
        "ALTER TABLE runs ADD COLUMN confidence REAL",
        "ALTER TABLE runs ADD COLUMN rounds INTEGER DEFAULT 5 CHECK (rounds > 0)",  # all runs of the time had five
    ),
}
"""The statements that lead from each version to the next; TABLES is the newest version."""


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty file, or check the tables of a file and bring older ones up to date.

    Raises CorruptStoreError, NewerStoreError.
    """
    # Of two processes that start together, one makes the tables and the other sees them.
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_empty(connection):
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            _sign(connection)
        else:
            before = version_of(connection, path)
            for older in range(before, VERSION):
                for statement in MIGRATIONS[older]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {older + 1}")
            if before < VERSION:
                _sign(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _sign(connection: sqlite3.Connection) -> None:
    """Note the hilt that made these tables, so that an older one can name it."""
    connection.execute("CREATE TABLE IF NOT EXISTS written_by (hilt TEXT NOT NULL) STRICT")
    connection.execute("DELETE FROM written_by")
    connection.execute("INSERT INTO written_by VALUES (?)", (_own_version(),))


def _own_version() -> str:
    try:
        return version("hilt")
    except PackageNotFoundError:  # sources on the path, not installed
        return "0"


def _writer(connection: sqlite3.Connection) -> str:
    """Return the version of the hilt that made a newer file's tables; empty if it did not say."""
    try:
        row = connection.execute("SELECT hilt FROM written_by").fetchone()
    except sqlite3.OperationalError:
        return ""
    return plain(str(row[0]))[:40] if row else ""


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of a file's tables. Raises CorruptStoreError, NewerStoreError."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise corrupt(path, "a SQLite database of another program")
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > VERSION:
        writer = _writer(connection)
        reads = f"hilt {writer}, which wrote it, or a newer one reads it" if writer else "use the hilt that wrote it"
        raise NewerStoreError(
            f"database {path} has schema {found} and this hilt ({_own_version()}) knows {VERSION}; {reads}"
        )
    if (finding := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise corrupt(path, finding.splitlines()[-1])
    if found not in MIGRATIONS and found != VERSION:
        raise corrupt(path, f"its schema says version {found}")
    return found
