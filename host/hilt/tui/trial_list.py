"""A run's trials as rows that are read in blocks as they are looked at: as quick with 100,000 as with ten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hilt.store import CorruptStoreError, Store, StoreError, Trial
from hilt.store.listing import Listing, trials_of

_BLOCK = 128
_MOST_KEPT = 8192
"""Rows kept in memory; a screen shows a few dozen."""


class TrialList:
    """Row i is trial i, or the i-th of the numbers that were asked for. From one thread only."""

    def __init__(self, store: Store, uuid: str) -> None:
        self._store = store
        self._uuid = uuid
        self._kept: dict[int, Trial | None] = {}
        self._end = 0
        self._numbers: list[int] | None = None
        self.listing = Listing()
        self._unreadable: set[int] = set()

    def __len__(self) -> int:
        return self._end if self._numbers is None else len(self._numbers)

    def ordinal(self, row: int) -> int:
        return row if self._numbers is None else self._numbers[row]

    def row_of(self, ordinal: int) -> int | None:
        """Return the row of a trial; None if it is not among those that are shown."""
        if self._numbers is None:
            return ordinal if ordinal < self._end else None
        return self._numbers.index(ordinal) if ordinal in self._numbers else None

    def trial(self, row: int) -> Trial | None:
        """Return the trial of a row; None for one that is still on the board, or that cannot be read.

        Raises IndexError.
        """
        ordinal = self.ordinal(row)
        if ordinal not in self._kept:
            self._read(row)
        return self._kept[ordinal]

    def is_unreadable(self, row: int) -> bool:
        """Return whether the row cannot be read: a damaged page of the database hides its own rows only."""
        return self.ordinal(row) in self._unreadable

    def add(self, trials: Iterable[Trial]) -> None:
        """Add trials as they are recorded. A list of some only, or in another order, waits for `arrange`."""
        for trial in trials:
            self._kept[trial.ordinal] = trial
            self._end = max(self._end, trial.ordinal + 1)
        while len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]  # the one that came first

    def forget(self) -> None:
        """Read everything again when it is looked at: trials may have come without an event."""
        self._kept.clear()
        self._unreadable.clear()

    def arrange(self, listing: Listing, ordinals: Sequence[int] | None) -> None:
        """Show the trials of `listing`, whose ordinals are `numbers`; None if it is the plain one."""
        self.listing = listing
        self._numbers = None if ordinals is None else list(ordinals)

    def _read(self, row: int) -> None:
        first = row - row % _BLOCK
        ordinals = [self.ordinal(row) for row in range(first, min(first + _BLOCK, len(self)))]
        if len(self._kept) > _MOST_KEPT:
            self._kept.clear()
        found = {trial.ordinal: trial for trial in self._readable(ordinals)}
        for ordinal in ordinals:
            # A trial that arrived in the meantime is newer than the one that was read.
            if self._kept.get(ordinal) is None:
                self._kept[ordinal] = found.get(ordinal)

    def _readable(self, ordinals: Sequence[int]) -> Sequence[Trial]:
        """Return the trials that exist; if a page of them is damaged, each is read by itself."""
        try:
            return trials_of(self._store, self._uuid, ordinals)
        except StoreError as error:
            if len(ordinals) > 1 and isinstance(error, CorruptStoreError):
                return [trial for ordinal in ordinals for trial in self._readable([ordinal])]
            self._unreadable.update(ordinals)
            return []
