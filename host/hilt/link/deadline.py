"""A moment on the monotonic clock that a whole operation shares, passed down through its calls."""

from __future__ import annotations

import time

from hilt.link.errors import LinkTimeoutError


class Deadline:
    """`seconds` from now."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def remaining(self, task: str) -> float:
        """Return the seconds left, above 0. Raises LinkTimeoutError, with the name in `task`, if none are left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise LinkTimeoutError(f"{task} took too long")
        return left

    @property
    def left(self) -> float:
        """Seconds; below 0 once it has passed."""
        return self._end - time.monotonic()

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._end
