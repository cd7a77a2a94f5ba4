"""The benchmark of tuners ends."""

from __future__ import annotations

from collections.abc import Sequence

from hilt.trial import Outcome
from hilt.tune.feedback import Feedback
from tests.bench.tuner import run


class Stops:
    """Asks twice, then for nothing more."""

    def __init__(self) -> None:
        self.left = [[1, 2, 3], [0]]

    def ask(self, count: int) -> list[int]:
        return self.left.pop(0) if self.left else []

    def tell(self, feedback: Sequence[Feedback]) -> None:
        pass

    def overheads(self) -> dict[str, float]:
        return {}


def test_a_tuner_that_stops_by_itself_ends_its_run() -> None:
    dataset = [Feedback(index, Outcome.OK, 1.0 + index) for index in range(4)]
    told, _, _ = run(Stops(), dataset)
    assert [each.index for each in told] == [1, 2, 3, 0]
