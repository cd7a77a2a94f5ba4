"""Lists a run's trials in another order, or some of them: first their ordinals, then the rows of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hilt.store.database import Store
from hilt.store.rows import TRIAL_COLUMNS, trial_of
from hilt.store.schema import VERIFIED
from hilt.trial import Trial

_OF_RUN = "run = (SELECT id FROM runs WHERE uuid = ?)"
_TRIAL = ", ".join(f'"{name}"' for name in TRIAL_COLUMNS)
_AT_ONCE = 500
"""Numbers in one query: SQLite takes at least 999 parameters."""


class Which(StrEnum):
    """A filter of trials by their outcome."""

    ALL = "all"
    VALID = "valid"
    REJECTED = "rejected"
    FAILED = "failed on the board"


class Order(StrEnum):
    """The order of a listing; trials without a latency come last, equals by ordinal."""

    NUMBER = "trial"
    LATENCY = "latency"
    OUTCOME = "outcome"


@dataclass(frozen=True)
class Listing:
    """A filter and an order of trials.

    `text` is searched in reason, outcome and knobs, ignoring case. Knobs read `tile_h=7 tile_w=14`, and also
    `h=7 w=14`, as they are shown.
    """

    which: Which = Which.ALL
    order: Order = Order.NUMBER
    descending: bool = False
    text: str = ""

    @property
    def is_plain(self) -> bool:
        """True for all trials by ordinal: no query is needed."""
        return self == Listing()


_WHERE = {
    Which.ALL: "TRUE",
    Which.VALID: VERIFIED,
    Which.REJECTED: "outcome = 'rejected'",
    Which.FAILED: "outcome NOT IN ('ok', 'rejected')",
}
_KNOBS = """replace(replace(replace(trim(knobs, '{}'), '"', ''), ':', '='), ',', ' ')"""
_SEARCHED = f"lower(outcome || ' ' || reason || ' ' || {_KNOBS} || ' ' || replace({_KNOBS}, 'tile_', ''))"
_COLUMNS = {Order.NUMBER: "ordinal", Order.LATENCY: "microseconds", Order.OUTCOME: "outcome"}


def trial_numbers(store: Store, uuid: str, listing: Listing) -> list[int]:
    """Return the ordinals of the listed trials of a run. Raises StoreError.

    It takes a tenth of a second at 100,000 trials, twice that with a text.
    """
    direction = "DESC" if listing.descending else "ASC"
    column = _COLUMNS[listing.order]
    query = (
        f"SELECT ordinal FROM trials WHERE {_OF_RUN} AND {_WHERE[listing.which]} "  # noqa: S608  constants
        f"AND (?2 = '' OR instr({_SEARCHED}, ?2) > 0) "
        f"ORDER BY {column} IS NULL, {column} {direction}, ordinal"
    ).replace("uuid = ?)", "uuid = ?1)")
    return [row[0] for row in store.rows(query, uuid, listing.text.lower())]


def trials_of(store: Store, uuid: str, ordinals: Sequence[int]) -> list[Trial]:
    """Return the trials of these ordinals that exist, by ordinal. Raises StoreError."""
    found = []
    for first in range(0, len(ordinals), _AT_ONCE):
        some = ordinals[first : first + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        query = f"SELECT {_TRIAL} FROM trials WHERE {_OF_RUN} AND ordinal IN ({marks}) ORDER BY ordinal"  # noqa: S608
        found += [trial_of(row) for row in store.rows(query, uuid, *some)]
    return found


def latencies(store: Store, uuid: str) -> list[tuple[int, str, float | None]]:
    """Return (index, outcome, microseconds of a verified trial) of every trial of a run. Raises StoreError.

    It takes a tenth of a second at 100,000 trials.
    """
    query = f'SELECT "index", outcome, CASE WHEN {VERIFIED} THEN microseconds END FROM trials WHERE {_OF_RUN}'  # noqa: S608
    return [(row[0], row[1], row[2]) for row in store.rows(query, uuid)]


def valid_latencies(store: Store, uuid: str) -> list[tuple[int, float]]:
    """Return (ordinal, microseconds) of every verified trial of the run, by ordinal. Raises StoreError."""
    query = f"SELECT ordinal, microseconds FROM trials WHERE {_OF_RUN} AND {VERIFIED} ORDER BY ordinal"  # noqa: S608
    return [(row[0], row[1]) for row in store.rows(query, uuid)]
