"""The progress of a campaign: its state, its slices, the time it spent, and the end of its layers' runs."""

from __future__ import annotations

import time

from hilt.store.database import Store
from hilt.store.errors import UnknownRunError
from hilt.store.records import RunState, Slice

_ENDED = (RunState.STOPPED, RunState.FAILED, RunState.FINISHED)


def set_campaign_state(store: Store, uuid: str, state: RunState, detail: str = "", failure: str = "") -> None:
    """Set the state of a campaign. Raises UnknownRunError, StoreError.

    `finished` is set by a state that ends it, and cleared when it goes on.
    """
    finished = time.time() if state in _ENDED else None
    with store.writing() as connection:
        changed = connection.execute(
            "UPDATE campaigns SET state = ?, detail = ?, failure = ?, finished = ? WHERE uuid = ?",
            (state, detail, failure, finished, uuid),
        )
        if not changed.rowcount:
            raise UnknownRunError(f"there is no campaign {uuid!r}")


def move_campaign(store: Store, uuid: str, board: str) -> None:
    """Move all runs of a campaign to another board; its settings keep the first one."""
    with store.writing() as connection:
        connection.execute("UPDATE runs SET board = ? WHERE campaign = ?", (board, uuid))


def add_seconds(store: Store, uuid: str, seconds: float) -> None:
    """Add the time that its engine spent. Raises StoreError."""
    with store.writing() as connection:
        connection.execute("UPDATE campaigns SET spent_seconds = spent_seconds + ? WHERE uuid = ?", (seconds, uuid))


def record_slice(store: Store, uuid: str, made: Slice) -> None:
    """Record a slice before any of its trials is asked for. Raises StoreError."""
    values = (uuid, made.ordinal, made.workload, made.trials, made.expected_gain)
    with store.writing() as connection:
        connection.execute("INSERT INTO slices VALUES (?, ?, ?, ?, ?)", values)


def slices(store: Store, uuid: str) -> list[Slice]:
    """Return the slices in order of their ordinals."""
    query = "SELECT ordinal, workload, trials, expected_gain FROM slices WHERE campaign = ? ORDER BY ordinal"
    return [Slice(*row) for row in store.rows(query, uuid)]


def discard_campaign(store: Store, uuid: str) -> bool:
    """Remove a campaign without any trial, with its runs; return False if it has trials. Raises StoreError."""
    with store.writing() as connection:
        runs = "SELECT id FROM runs WHERE campaign = ?"
        if connection.execute(f"SELECT 1 FROM trials WHERE run IN ({runs}) LIMIT 1", (uuid,)).fetchone():  # noqa: S608
            return False
        connection.execute("DELETE FROM runs WHERE campaign = ?", (uuid,))
        connection.execute("DELETE FROM campaigns WHERE uuid = ?", (uuid,))
    return True


def set_prediction(store: Store, run: str, microseconds: float) -> None:
    """Store the twin's prediction for the run of a layer. Raises StoreError."""
    with store.writing() as connection:
        connection.execute("UPDATE runs SET predicted_microseconds = ? WHERE uuid = ?", (microseconds, run))


def end_layer(store: Store, uuid: str, detail: str = "") -> None:
    """Finish the run of a layer; its budget becomes the number of its trials, at least 1."""
    with store.writing() as connection:
        connection.execute(
            "UPDATE runs SET state = ?, detail = ?, failure = '', finished = ?, "
            "budget = max(1, (SELECT count(*) FROM trials WHERE run = runs.id)) WHERE uuid = ?",
            (RunState.FINISHED, detail, time.time(), uuid),
        )
