"""The search for a trial that takes a board down with it.

A board that is lost says nothing about the trials that were on their way: cables, power and people do that too. So they
go again, each alone. One that the board is lost with once more, alone, is answered for, if the board comes back well.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from hilt.measure.interfaces import Request


class Suspects:
    """Trials that one board was lost with. Told from the board's thread."""

    def __init__(self) -> None:
        self.lost_at = 0.0
        """When the board was lost last, by the monotonic clock."""
        self._trials: set[str] = set()
        self._accused: Request | None = None

    def has(self, request: Request) -> bool:
        """Whatever its attempt."""
        return _trial(request) in self._trials

    def accuse(self, request: Request) -> None:
        """Note that the agent itself failed with this trial."""
        self._accused = request

    def after_loss(self, taken: Sequence[Request]) -> Request | None:
        """Return the trial that the loss came from, if that is known; `taken` have no answer."""
        self.lost_at = time.monotonic()
        accused, self._accused = self._accused, None
        if accused is not None:
            self._trials.add(_trial(accused))
            return accused
        if len(taken) == 1 and self.has(taken[0]):
            return taken[0]
        self._trials.update(_trial(each) for each in taken)
        return None


def _trial(request: Request) -> str:
    """Return the part of "RUN/NUMBER/ATTEMPT" that stays when a trial is tried again."""
    return request.key.rpartition("/")[0]
