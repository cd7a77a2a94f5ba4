"""A loop on a table of answers: its task, tuners and database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from hilt.engine.events import Event
from hilt.engine.loop import TuningLoop
from hilt.engine.run_control import Control
from hilt.measure import Request
from hilt.schedule import Rejected
from hilt.store import Run, Store, Trial
from hilt.trial import Outcome, Result
from hilt.tune import Assessment, Feedback, Stop
from hilt.vta.program import Program
from tests.unit.store.examples import run as example_run

from .table import ELEMENTS, TableMeasurer, answer

UUID = "a" * 32
BUDGET = 23
BATCH = 4
SPACE = 60


class PlainTask:
    """A task that rejects every third configuration; a program holds only the number of its configuration."""

    def __init__(self) -> None:
        self.lowered: list[int] = []

    def knobs(self, index: int) -> Mapping[str, int]:
        return {"tile_h": index}

    def lower(self, index: int) -> Program:
        self.lowered.append(index)
        if index % 3 == 0:
            raise Rejected("inp_overflow", "too large")
        uops = np.array([[index]], dtype=np.uint32)
        return Program("pynq", "A", np.zeros((1, 2), dtype=np.uint64), uops, (), 25)

    def lower_many(self, indices: Sequence[int]) -> Iterator[Program | Rejected]:
        for index in indices:
            try:
                yield self.lower(index)
            except Rejected as rejected:
                yield rejected

    def lengths(self, indices: Sequence[int]) -> Sequence[float]:
        return [1.0] * len(indices)

    def request(self, ordinal: int, key: str, program: Program) -> Request:
        return Request(ordinal, key, program, None, 0.1)  # type: ignore[arg-type]


class GreedyTuner:
    """A tuner whose requests depend on all results so far: a difference in feedback or order shows in the trials."""

    def __init__(self, seed: int = 1, calls: list[str] | None = None) -> None:
        self._state = seed
        self._left = list(range(SPACE))
        self.calls = [] if calls is None else calls
        self.told: list[Feedback] = []

    def ask(self, count: int) -> list[int]:
        self.calls.append(f"ask {count}")
        chosen = []
        for _ in range(min(count, len(self._left))):
            self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
            chosen.append(self._left.pop((self._state >> 33) % len(self._left)))
        return chosen

    def tell(self, feedback: Sequence[Feedback]) -> None:
        self.calls.append(f"tell {len(feedback)}")
        self.told += feedback
        for each in feedback:
            self._state = hash((self._state, each.index, each.outcome is Outcome.OK, each.microseconds or 0.0)) % 2**64


class AssessingTuner(GreedyTuner):
    """A tuner with a view of its own run."""

    def confidence(self) -> float:
        return 0.25

    def assessment(self) -> Assessment:
        return Assessment(0.25, Stop.SEARCHING, "RTL", 1.5, 0.03)


def by_configuration(request: Request) -> Result:
    return answer(int(request.program.uops[0, 0]))


class Bench:
    """One database, in which a run is begun and gone on with."""

    def __init__(self, path: Path, **changes: object) -> None:
        self.store = Store(path)
        self.events: list[Event] = []
        usual: dict[str, object] = {"batch": BATCH, "budget": BUDGET}
        self.store.create_run(example_run(UUID, space_size=SPACE, output_elements=ELEMENTS, **{**usual, **changes}))

    def session(
        self,
        measurer: TableMeasurer | None = None,
        *,
        tuner: GreedyTuner | None = None,
        control: Control | None = None,
        task: PlainTask | None = None,
        publish: Callable[[Event], None] | None = None,
    ) -> bool:
        loop = TuningLoop(
            self.run,
            tuner or GreedyTuner(),
            task or PlainTask(),
            measurer or TableMeasurer(by_configuration),
            self.store,
            control or Control(),
            publish or self.events.append,
        )
        return loop.run()

    @property
    def run(self) -> Run:
        return self.store.run(UUID)

    @property
    def trials(self) -> list[Trial]:
        return self.store.trials(UUID)


class WaitingTuner(GreedyTuner):
    """Asks for nothing while a batch is untold, as a tuner does whose last batch covers all that it hopes for."""

    def __init__(self) -> None:
        super().__init__()
        self._untold = 0

    def ask(self, count: int) -> list[int]:
        batch = [] if self._untold else super().ask(count)
        self._untold += bool(batch)
        return batch

    def tell(self, feedback: Sequence[Feedback]) -> None:
        super().tell(feedback)
        self._untold -= 1
