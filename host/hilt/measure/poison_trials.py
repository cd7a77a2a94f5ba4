"""The trials that take a board down, if there are any.

A board that is lost says nothing about the trials that were on their way: cables, power and people do that too. So
they
go again, each alone. A trial that loses the board once more, alone, is answered, if the board comes back well.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from hilt.measure.interfaces import Request


class Suspects:
    """Trials that one board was lost with. Told from the board's thread."""

    def __init__(self) -> None:
        self.lost_at = 0.0
        """The time of the last loss of the board, by the monotonic clock."""
        self._trials: set[str] = set()
        self._accused: Request | None = None

    def has(self, request: Request) -> bool:
        """Return True if any attempt of the request's trial is a suspect."""
        return _trial(request) in self._trials

    def accuse(self, request: Request) -> None:
        """Record the request that the agent itself names as the one it failed with."""
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
    """Return "RUN/NUMBER" of "RUN/NUMBER/ATTEMPT": the part that stays the same when the trial is tried again."""
    return request.key.rpartition("/")[0]
