"""hilt's own tuner: the twin, calibrated by what is measured, says what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hilt.trial import Outcome
from hilt.tune.feedback import Feedback
from hilt.tune.model_guided.candidates import Candidates, candidates_of
from hilt.tune.model_guided.coverage import choose, confidence, covering
from hilt.tune.model_guided.initial_design import InitialDesign, initial_design_of
from hilt.tune.model_guided.posterior import Posterior
from hilt.tune.model_guided.validity import Validity
from hilt.tune.one_thread import on_one_thread
from hilt.tune.options import require
from hilt.tune.problem import TuningProblem

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

_PLAUSIBLE = 160
"""Rows that are drawn jointly: those most probably among the best."""


_SETTLED = 0.95
"""Confidence, once all that was asked is told, from which on nothing is tried that will more probably fail than not."""


@dataclass(frozen=True)
class HiltOptions:
    """What may be set of the tuner hilt."""

    stop_at: float = 0.99
    """Confidence that nothing better by 1% remains at which it asks for no more; above 1 it never stops by itself."""
    memories: int = 8
    """Memories that the first trials are chosen for."""
    draws: int = 512
    """Of the posterior, for each choice."""
    published_faults: bool = True
    """Whether it starts out from what is published of TVM's runtime; else it learns that from what fails."""

    def __post_init__(self) -> None:
        require(self.stop_at > 0, f"stop_at is more than 0, not {self.stop_at}")
        require(1 <= self.memories <= 256, f"memories is from 1 to 256, not {self.memories}")
        require(16 <= self.draws <= 1 << 16, f"draws is from 16 to 65536, not {self.draws}")


class HiltTuner:
    """Asks for configurations that compile and for nothing else, best first.

    Before the first result it goes by predictions with many memories; after each by the calibrated ones.
    """

    def __init__(self, problem: TuningProblem, seed: int, options: HiltOptions) -> None:
        self._problem = problem
        self._options = options
        self._generator = np.random.default_rng(seed)
        self._asked: set[int] = set()
        self._measured: dict[int, float] = {}
        self._outcomes: dict[int, bool] = {}
        self._view: _View | None = None

    @on_one_thread
    def ask(self, count: int) -> list[int]:
        """As the protocol has it; and nothing once `confidence()` has reached `stop_at`."""
        if count < 1 or not len(self._candidates):
            return []
        certain = self.confidence()
        if certain is not None and certain >= self._options.stop_at:
            return []
        view = self._current_view()
        asked = np.array([row in self._asked for row in view.rows.tolist()], dtype=np.bool_)
        rows = view.rows[choose(view.covers, asked, view.probability, view.mean, count)].tolist()
        self._asked.update(rows)
        doubtful = confidence(view.covers, np.isin(view.rows, list(self._asked))) < _SETTLED
        rows += self._others(count - len(rows), doubtful or self._options.stop_at > 1)
        return [int(self._candidates.indices[row]) for row in rows]

    @on_one_thread
    def tell(self, feedback: Sequence[Feedback]) -> None:
        nominal = self._problem.accelerator.clock_hz / 1e6
        for item in feedback:
            row = self._candidates.row_of.get(item.index)
            if row is None or item.outcome is Outcome.BOARD_LOST:  # a lost board says nothing about the configuration
                continue
            self._outcomes[row] = item.outcome is Outcome.OK
            if item.microseconds is not None:
                self._measured[row] = float(np.log(item.microseconds * nominal))
        if self._outcomes:
            rows = np.array(list(self._outcomes), dtype=np.int64)
            self._validity.learn(rows, np.array(list(self._outcomes.values())))
            self._belief.learn(self._measured)
        self._view = None

    @on_one_thread
    def confidence(self) -> float | None:
        """The probability, by what is believed, that nothing is better than the best measured by 1% or more.

        None before anything was measured."""
        if not self._measured:
            return None
        view = self._current_view()
        measured = np.array([row in self._measured for row in view.rows.tolist()], dtype=np.bool_)
        return confidence(view.covers, measured) * float(np.exp(-self._belief.overlooked))

    def _current_view(self) -> _View:
        if self._view is None:
            self._view = self._look()
        return self._view

    def _look(self) -> _View:
        mean, deviation = self._belief.predict()
        every = self._belief.rows
        probability = self._validity.probability(every)
        for place, row in enumerate(every.tolist()):
            probability[place] = float(self._outcomes[row]) if row in self._outcomes else probability[place]
        hope = mean - 2 * deviation + np.where(probability < 0.001, 10.0, 0.0)
        places = np.sort(np.argsort(hope, kind="stable")[:_PLAUSIBLE])
        rows = every[places]
        latencies = self._belief.sample(places, self._options.draws, self._generator)
        valid = self._validity.sample(rows, self._options.draws, self._generator)
        for place, row in enumerate(rows.tolist()):
            if row in self._outcomes:
                valid[:, place] = self._outcomes[row]
        return _View(rows, mean[places], probability[places], covering(latencies, valid))

    def _others(self, count: int, improbable: bool) -> list[int]:
        """When nothing stands out: what is predicted to be fast; then what was never lowered, or is the same program as
        another; and last, if `improbable`, what will more probably fail than not."""
        if not count:
            return []
        mean, _ = self._belief.predict()
        followed = self._belief.rows
        every = np.arange(len(self._candidates))
        estimate = self._candidates.analytic_model.cycles(self._belief.coordinates)
        order = np.concatenate((followed[np.argsort(mean, kind="stable")], np.argsort(estimate, kind="stable")))
        probability = self._validity.probability(every)
        chosen = self._first_free(order[probability[order] >= 0.5], count)
        if improbable and len(chosen) < count:
            chosen += self._first_free(np.argsort(-probability, kind="stable"), count - len(chosen))
        return chosen

    def _first_free(self, rows: Rows, count: int) -> list[int]:
        found: list[int] = []
        for row in rows.tolist():
            if len(found) == count:
                break
            if row not in self._asked:
                self._asked.add(row)
                found.append(row)
        return found

    @cached_property
    def _candidates(self) -> Candidates:
        return candidates_of(self._problem)

    @cached_property
    def _opening(self) -> InitialDesign:
        options = self._options
        return initial_design_of(self._problem, self._candidates, options.memories, options.published_faults)

    @cached_property
    def _validity(self) -> Validity:
        return Validity(self._opening.failure_priors)

    @cached_property
    def _belief(self) -> Posterior:
        return Posterior(self._opening)


@dataclass(frozen=True)
class _View:
    """What is believed at one moment of the rows that may be among the best, arrays (n,)."""

    rows: Rows
    mean: Floats
    probability: Floats
    covers: Bools
    """(draws, n)."""
