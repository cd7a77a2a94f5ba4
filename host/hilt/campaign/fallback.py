"""The fallback schedule: the one that a user without tuning has.

TVM v0.9 takes a FallbackConfigEntity for a workload without a record: every knob at its first value, which is
configuration 0 of a space (tiles of one element, no virtual threads). Where that does not compile, or the board does
not find it right, the next by index stands in for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from hilt.engine.campaign_results import FALLBACK_ATTEMPTS
from hilt.engine.loop import HasConfidence, assess
from hilt.trial import Outcome
from hilt.tune import Assessment, Feedback, Tuner, TuningProblem


def fallback_candidates(problem: TuningProblem) -> list[int]:
    """Return the first FALLBACK_ATTEMPTS configurations, by index, that compile."""
    return [int(index) for index in np.flatnonzero(problem.compiles)[:FALLBACK_ATTEMPTS]]


class FallbackFirst:
    """A tuner that first asks for the fallback's candidates, one at a time, until one is right.

    Then it passes everything on to `tuner`. That one hears of a candidate only when it asks for it: the result comes
    from memory and nothing is measured twice.
    """

    def __init__(self, tuner: Tuner, candidates: Sequence[int]) -> None:
        self._tuner = tuner
        self._candidates = deque(candidates)
        self._trying: set[int] = set()
        self._tried: dict[int, Feedback] = {}
        self._found = False

    @property
    def searching(self) -> bool:
        """True while the fallback is searched; each ask must be told before the next then."""
        return not self._found and bool(self._candidates)

    def ask(self, count: int) -> list[int]:
        """Return indices, see hilt.tune.Tuner."""
        if self.searching:
            index = self._candidates.popleft()
            self._trying.add(index)
            return [index]
        found: list[int] = []
        while len(found) < count:
            asked = self._tuner.ask(count - len(found))
            if not asked:
                break
            known = [self._tried[index] for index in asked if index in self._tried]
            if known:
                self._tuner.tell(known)
            found += [index for index in asked if index not in self._tried]
        return found

    def tell(self, feedback: Sequence[Feedback]) -> None:
        """Take results, see hilt.tune.Tuner."""
        others = []
        for result in feedback:
            if result.index in self._trying:
                self._trying.remove(result.index)
                self._tried[result.index] = result
                self._found = self._found or result.outcome is Outcome.OK
            else:
                others.append(result)
        if others:
            self._tuner.tell(others)

    def confidence(self) -> float | None:
        """Return the tuner's confidence; None where it has none."""
        return self._tuner.confidence() if isinstance(self._tuner, HasConfidence) else None

    def assessment(self) -> Assessment | None:
        """Return the tuner's own; None where it has none."""
        return assess(self._tuner)
