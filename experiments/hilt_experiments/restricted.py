"""Any tuner with the compiler's check as its restriction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilt.trial import Outcome
from hilt.tune import Feedback, Tuner


class RestrictedTuner:
    """A tuner whose proposals outside of `allowed` (n,) are answered at once as rejected: they are no trials."""

    def __init__(self, tuner: Tuner, allowed: npt.NDArray[np.bool_]) -> None:
        self._tuner = tuner
        self._allowed = allowed

    def ask(self, count: int) -> list[int]:
        """Return indices, see hilt.tune.Tuner."""
        found: list[int] = []
        while len(found) < count and (asked := self._tuner.ask(count - len(found))):
            refused = [index for index in asked if not self._allowed[index]]
            if refused:
                self._tuner.tell([Feedback(index, Outcome.REJECTED) for index in refused])
            found += [index for index in asked if self._allowed[index]]
        return found

    def tell(self, feedback: Sequence[Feedback]) -> None:
        """Take results, see hilt.tune.Tuner."""
        self._tuner.tell(feedback)
