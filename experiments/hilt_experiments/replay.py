"""Runs a tuner on a dataset: the engine's sequence of calls without the engine.

`pipelined` is the order that hilt's engine keeps (docs/architecture.md): ask 0, ask 1, tell 0, ask 2, tell 1, ...
Without, as the papers' systems do: ask 0, tell 0, ask 1, ... A trial is a configuration asked for, valid or not.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset import Dataset
from hilt.trial import Outcome
from hilt.tune import Feedback, Tuner


@dataclass(frozen=True)
class Protocol:
    """The rules of a run."""

    trials: int = 750
    batch: int = 8
    pipelined: bool = True
    until_optimum: bool = False
    """End with the batch that has the dataset's best: later batches do not change the trials to it."""


@dataclass(frozen=True, eq=False)
class Replay:
    """A run: its configurations and the tuner's processor seconds.

    `indices` int64 (n,) is in the order of the trials. `seconds` is by part: `ask`, `tell`, and the tuner's own
    parts if it reports them.
    """

    indices: npt.NDArray[np.int64]
    seconds: dict[str, float] = field(default_factory=dict)


def replay(tuner: Tuner, dataset: Dataset, protocol: Protocol, answers: Answers | None = None) -> Replay:
    """Run the tuner on the dataset until the trials are spent, it asks for nothing more, or the protocol ends it.

    Raises:
        ValueError: The tuner asks for a configuration twice.
    """
    answers = answers or Answers(dataset)
    asked: list[int] = []
    spent = {"ask": 0.0, "tell": 0.0}
    untold: deque[list[int]] = deque()
    more = True
    optimum = dataset.optimum if protocol.until_optimum else None
    while more or untold:
        if more:
            count = min(protocol.batch, protocol.trials - len(asked))
            started = time.process_time()
            batch = [int(index) for index in tuner.ask(count)] if count else []
            spent["ask"] += time.process_time() - started
            asked += batch
            more = bool(batch)
            if batch:
                untold.append(batch)
            if optimum is not None and bool(np.any(dataset.microseconds[batch] <= optimum)):
                break
        if untold and (len(untold) > protocol.pipelined or not more):
            heard = [answers.of(index) for index in untold.popleft()]
            started = time.process_time()
            tuner.tell(heard)
            spent["tell"] += time.process_time() - started
            more = more or not untold  # an empty answer is final only once every result is known
    if len(set(asked)) != len(asked):
        raise ValueError(f"the tuner asked for a configuration twice on {dataset.name}")
    own = getattr(tuner, "overheads", None)
    parts: dict[str, float] = own() if own is not None else {}
    return Replay(np.array(asked, dtype=np.int64), spent | parts)


class Answers:
    """A board's answer for each configuration of a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self._outcomes = [Outcome(text) for text in dataset.metadata["outcomes"]]
        self._outcome = dataset.outcome
        self._microseconds = dataset.microseconds

    def of(self, index: int) -> Feedback:
        outcome = self._outcomes[int(self._outcome[index])]
        latency = float(self._microseconds[index]) if outcome is Outcome.OK else None
        return Feedback(index, outcome, latency)
