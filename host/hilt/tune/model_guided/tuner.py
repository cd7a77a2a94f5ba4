"""The tuner `hilt`: machine models, calibrated by measurements, choose the next trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hilt.simulator.device import SimulatorError
from hilt.simulator.machine import MachineParameters
from hilt.trial import Outcome
from hilt.tune.assessment import Assessment, Stop
from hilt.tune.feedback import Feedback
from hilt.tune.model_guided.candidates import Candidates, candidates_of
from hilt.tune.model_guided.coverage import AVERSION, choose, confidence, covering
from hilt.tune.model_guided.initial_design import PARTS, DesignChoices, InitialDesign, initial_design_of
from hilt.tune.model_guided.latencies import Latencies
from hilt.tune.model_guided.parts import Parts
from hilt.tune.model_guided.shortlist import NEAR
from hilt.tune.model_guided.validity import Validity
from hilt.tune.one_thread import on_one_thread
from hilt.tune.options import TunerOptionError, require
from hilt.tune.problem import TuningProblem

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

_PLAUSIBLE = 192
"""Number of rows that are drawn jointly: those most probably among the best."""
_NEGLIGIBLE = 0.004
"""Expected number of better configurations that is too small to be reduced by exact predictions."""
_MINOR = 0.2
"""Share of all better configurations that is too small as well."""
_SHARPENED = 64
"""Number of rows that are predicted exactly at once."""
_MOST_SHARPENED = 10_000_000
"""Instructions of the programs that are predicted exactly in a run, besides those of the models' fits.

A million takes a second or less.
"""
_SETTLED = 0.95
"""Confidence above which configurations that will probably fail are not tried.

It is the confidence after all proposed trials have ended.
"""
_LEAST_MEASURED = 16
"""Valid trials before any confidence ends a run."""
_MOST_SURE = 0.999
"""Highest confidence while anything is untried: the draws resolve no more."""
_EXPLORE_EVERY = 8
"""Period of exploration: one of as many trials is drawn at random from rows that no model favours."""
_CURIOUS = 0.01
"""Aversion to failures while unknown rules must be found: a failure carries as much information as a success."""
_SECOND = 1
"""Place in the run, from 0, of the trial that moves the fewest bytes."""
_WORTH_EXPLORING = 0.7
"""Largest expected distance (as a logarithm) from the best of an explored row."""
_REACHABLE = 1.4
"""Largest expected distance (as a logarithm) from the best of a row that a hidden step may make the best."""
_HIDDEN_STEP = 0.5
"""Probability that a hidden step makes a row of an unseen part the best, times the share of parts unseen."""


@dataclass(frozen=True)
class HiltOptions:
    """The options of the tuner hilt."""

    stop_at: float = 0.99
    """Confidence, that nothing better by 1% remains, at which the tuner stops; above 1 it never stops by itself."""
    memories: int = 8
    """Memories that the first trials are chosen for."""
    draws: int = 512
    """Draws of the posterior for each choice."""
    published_faults: bool = True
    """Start from the published faults of TVM's runtime; else learn them from failures."""
    without: str = ""
    """Parts to leave out, for ablations, with commas between: twin, machines, openings, validity, exact."""
    machine: str = ""
    """Costs of the board's machine as `hilt silicon fit` keeps them; runs take the kept ones."""

    def __post_init__(self) -> None:
        require(self.stop_at > 0, f"stop_at is more than 0, not {self.stop_at}")
        require(1 <= self.memories <= 256, f"memories is from 1 to 256, not {self.memories}")
        require(16 <= self.draws <= 1 << 16, f"draws is from 16 to 65536, not {self.draws}")
        unknown = self.parts_left_out - PARTS
        require(not unknown, f"without names {', '.join(sorted(unknown))}; the parts are {', '.join(sorted(PARTS))}")
        require(not {"twin", "machines"} <= self.parts_left_out, "without leaves no machine; keep twin or machines")
        if self.machine:
            try:
                MachineParameters.from_text(self.machine)
            except SimulatorError as error:
                raise TunerOptionError(str(error)) from None

    @property
    def parts_left_out(self) -> frozenset[str]:
        """The names in `without`."""
        return frozenset(name.strip() for name in self.without.split(",") if name.strip())


class HiltTuner:
    """A tuner that proposes only configurations that compile, best first.

    Before the first latencies it uses predictions of many machines; then those of the machines that explain the
    latencies.
    """

    def __init__(self, problem: TuningProblem, seed: int, options: HiltOptions) -> None:
        self._problem = problem
        self._options = options
        self._generator = np.random.default_rng(seed)
        self._asked: set[int] = set()
        self._measured: dict[int, float] = {}
        self._outcomes: dict[int, bool] = {}
        self._explored = self._sharpened = 0
        self._view: _View | None = None
        self._validities: Floats | None = None
        """The probability of each followed row that it is valid; None after new results."""

    @on_one_thread
    def ask(self, count: int) -> list[int]:
        """Return indices as the protocol requires; none once `confidence()` has reached `stop_at`."""
        if count < 1 or not len(self._candidates) or self._is_sure():
            return []
        view = self._current_view()
        elsewhere = self._elsewhere(count)
        count -= len(elsewhere)
        asked = np.array([row in self._asked for row in view.rows.tolist()], dtype=np.bool_)
        exploring = self._exploring(count)
        aversion = _CURIOUS if self._validity.surprised else AVERSION
        rows = view.rows[choose(view.covers, asked, view.probability, view.mean, count - exploring, aversion)].tolist()
        rows = self._with_lightest(rows, count)
        self._asked.update(rows)
        rows += self._unfavoured(exploring)
        if self._measured:
            rows += self._unseen_rows(count - len(rows))
        doubtful = confidence(view.covers, np.isin(view.rows, list(self._asked))) < _SETTLED
        improbable = doubtful or not self._measured or self._options.stop_at > 1
        rows += self._others(count - len(rows), improbable)
        self._latencies.expect(rows)
        return [int(self._candidates.indices[row]) for row in elsewhere + rows]

    @on_one_thread
    def tell(self, feedback: Sequence[Feedback]) -> None:
        nominal = self._problem.accelerator.clock_hz / 1e6
        new = {}
        for item in feedback:
            row = self._candidates.row_of.get(item.index)
            if row is None or item.outcome is Outcome.BOARD_LOST:  # a lost board gives no result
                continue
            self._outcomes[row] = item.outcome is Outcome.OK
            if item.microseconds is not None:
                new[row] = float(np.log(item.microseconds * nominal))
        self._measured.update(new)
        if self._outcomes:
            rows = np.array(list(self._outcomes), dtype=np.int64)
            self._validity.learn(rows, np.array(list(self._outcomes.values())))
            self._latencies.learn(new, self._measured, rows)
        self._view = self._validities = None

    @on_one_thread
    def confidence(self) -> float | None:
        """Return the probability that nothing is better than the best measured by 1% or more; None before any latency.

        It is the probability of the posterior.
        """
        if not self._measured:
            return None
        view = self._current_view()
        measured = np.array([row in self._measured for row in view.rows.tolist()], dtype=np.bool_)
        covered = confidence(view.covers, measured) * float(np.exp(-view.overlooked))
        covered *= 1 - _HIDDEN_STEP * self._parts.share(self._unseen(self._outcomes))
        return covered if len(self._outcomes) == len(self._candidates) else min(covered, _MOST_SURE)

    @on_one_thread
    def assessment(self) -> Assessment:
        """Return the confidence, the reason to stop, and the distance of the board from the timing model."""
        certain = self.confidence()
        stop = Stop.SEARCHING
        if self._is_sure():
            stop = Stop.SURE
        elif len(self._asked) == len(self._candidates):
            stop = Stop.EXHAUSTED
        return Assessment(certain, stop, self._latencies.machine, *self._latencies.mismatch(self._measured))

    def _is_sure(self) -> bool:
        if len(self._measured) < min(_LEAST_MEASURED, len(self._candidates)):
            return False
        certain = self.confidence()
        return certain is not None and certain >= self._options.stop_at

    def _current_view(self) -> _View:
        if self._view is None:
            self._view = self._look()
        return self._view

    def _look(self) -> _View:
        self._sharpen()
        every = self._latencies.rows
        predicted = self._latencies.predict()
        mean = predicted.mean
        probability = self._followed_probability()
        hope = predicted.hope + np.where(probability < 0.001, 10.0, 0.0)
        order = np.argsort(hope, kind="stable")
        places, rest = np.sort(order[:_PLAUSIBLE]), order[_PLAUSIBLE:]
        rows = every[places]
        latencies = self._latencies.sample(places, self._options.draws, self._generator)
        valid = self._validity.sample(rows, self._options.draws, self._generator)
        for place, row in enumerate(rows.tolist()):
            if row in self._outcomes:
                valid[:, place] = self._outcomes[row]
            if row in self._measured:
                latencies[:, place] = self._measured[row]
        overlooked = float(self._better()[rest].sum()) if self._measured else 0.0
        return _View(rows, mean[places], probability[places], covering(latencies, valid), overlooked)

    def _sharpen(self) -> None:
        """Predict exactly the rows that would be worth trials only because their predictions are not exact."""
        lengths = self._candidates.hidden.column("instructions.all")
        if "exact" in self._options.parts_left_out:
            return
        while self._measured and self._sharpened < _MOST_SHARPENED:
            rows, better = self._latencies.rows, self._better()
            doubtful = np.where(self._latencies.estimated() & self._candidates.short[rows], better, 0.0)
            doubt = float(doubtful.sum())
            if doubt < max(_NEGLIGIBLE, _MINOR * better.sum()):
                return
            order = np.argsort(-doubtful, kind="stable")[:_SHARPENED]
            count = int(np.searchsorted(np.cumsum(doubtful[order]), doubt - _NEGLIGIBLE / 2)) + 1
            chosen = rows[order[:count]]
            self._latencies.sharpen(chosen)
            self._sharpened += int(lengths[chosen].sum())

    def _better(self) -> Floats:
        """Return the probability (n,) of each row that it is untried and better than the best measured by NEAR."""
        threshold = min(self._measured.values()) - NEAR
        better = self._latencies.predict().below(threshold) * self._followed_probability()
        better[np.isin(self._latencies.rows, list(self._outcomes))] = 0.0
        return np.asarray(better)

    def _followed_probability(self) -> Floats:
        """Return the probability (n,) that each followed row is valid: 0 or 1 if that is known."""
        if self._validities is None:
            rows = self._latencies.rows
            self._validities = self._validity.probability(rows)
            for place, row in enumerate(rows.tolist()):
                if row in self._outcomes:
                    self._validities[place] = float(self._outcomes[row])
        return self._validities

    def _with_lightest(self, rows: list[int], count: int) -> list[int]:
        """Return at most `count` chosen rows, the one that moves the fewest bytes as the second trial of the run.

        Many machines that no model knows are bound by their memory. The models' favourites differ little, and all are
        far from the best there. Where the first trial moves as few bytes, the favourites stay.
        """
        lightest, at = int(self._initial_design.lightest[0]), _SECOND - len(self._asked)
        if self._measured or not 0 <= at < min(count, len(rows) + 1):
            return rows
        if np.isin([*self._asked, *rows[:at]], self._initial_design.lightest).any():
            return rows
        if self._validity.probability(np.array([lightest]))[0] < 0.5:
            return rows
        rest = [row for row in rows if row != lightest]
        return [*rest[:at], lightest, *rest[at:]][:count]

    def _exploring(self, count: int) -> int:
        """Return the number of the next trials that explore beyond the models' favourites."""
        if not self._measured:
            return 0
        return min(max((len(self._asked) + count) // _EXPLORE_EVERY - 1 - self._explored, 0), count)

    def _unfavoured(self, count: int) -> list[int]:
        """Draw trials at random from rows that may be valid and fast."""
        if not count:
            return []
        self._explored += count
        chosen = self._unseen_rows(count)
        count -= len(chosen)
        mean = self._latencies.predict().mean
        rows = self._latencies.rows
        free = np.array([row not in self._asked for row in rows.tolist()], dtype=np.bool_)
        free &= (mean < mean.min() + _WORTH_EXPLORING) & (self._followed_probability() >= 0.5)
        eligible = rows[free]
        return chosen + self._first_free(self._generator.permutation(eligible), count)

    def _unseen(self, outcomes: dict[int, bool]) -> Bools:
        """Return a mask of the parts of the space without a valid trial."""
        return self._parts.unseen(outcomes, self._distance() <= _REACHABLE)

    def _unseen_rows(self, count: int) -> list[int]:
        """Return trials of parts of the space that no trial has seen, those in flight included; the fastest first."""
        if count < 1:
            return []
        in_flight = dict.fromkeys(self._asked - set(self._outcomes), True)
        distance = self._distance()
        worth = np.exp(-distance) * self._validity.probability(np.arange(len(self._candidates)))
        worth[(distance > _REACHABLE) | np.isin(np.arange(len(worth)), list(self._asked))] = 0.0
        rows = self._parts.choose(self._unseen({**self._outcomes, **in_flight}), worth, count)
        return self._first_free(rows, count)

    def _elsewhere(self, count: int) -> list[int]:
        """Return half of the trials, while all that ended have failed: the likeliest rows of parts that none has seen.

        The favourites may all break one rule. Then a valid trial tells more than a fast one.
        """
        if self._measured or not self._validity.surprised:
            return []
        worth = self._validity.probability(np.arange(len(self._candidates)))
        worth[list(self._asked)] = 0.0
        in_flight = dict.fromkeys(self._asked - set(self._outcomes), False)
        everywhere = np.ones(len(worth), dtype=np.bool_)
        unseen = self._parts.unseen({**self._outcomes, **in_flight}, everywhere)
        return self._first_free(self._parts.choose(unseen, worth, (count + 1) // 2), count)

    def _distance(self) -> Floats:
        """Return the expected distance (n,) of each candidate from the best, as a logarithm: a rough estimate."""
        estimate = self._latencies.estimate()
        return np.asarray(estimate - estimate.min())

    def _others(self, count: int, improbable: bool) -> list[int]:
        """Return trials for the case that nothing stands out.

        Rows that are predicted to be fast come first, then rows without an exact prediction. If `improbable`, rows that
        will probably fail come last.
        """
        if not count:
            return []
        mean = self._latencies.predict().mean
        followed = self._latencies.rows
        order = np.argsort(mean, kind="stable")
        chosen = self._first_free(followed[order[self._followed_probability()[order] >= 0.5]], count)
        if len(chosen) == count:
            return chosen
        order = np.argsort(self._latencies.estimate(), kind="stable")
        probability = self._validity.probability(np.arange(len(self._candidates)))
        chosen += self._first_free(order[probability[order] >= 0.5], count - len(chosen))
        if improbable and len(chosen) < count:
            chosen += self._first_free(np.argsort(-probability, kind="stable"), count - len(chosen))
        return chosen

    def _first_free(self, rows: Rows, count: int) -> list[int]:
        chosen: list[int] = []
        for row in rows.tolist():
            if len(chosen) == count:
                break
            if row not in self._asked:
                self._asked.add(row)
                chosen.append(row)
        return chosen

    @cached_property
    def _candidates(self) -> Candidates:
        return candidates_of(self._problem)

    @cached_property
    def _initial_design(self) -> InitialDesign:
        options = self._options
        machine = MachineParameters.from_text(options.machine) if options.machine else None
        choices = DesignChoices(options.memories, options.published_faults, machine, options.parts_left_out)
        return initial_design_of(self._problem, self._candidates, choices)

    @cached_property
    def _validity(self) -> Validity:
        return Validity(self._initial_design.failure_priors, self._candidates.knobs)

    @property
    def _parts(self) -> Parts:
        return self._initial_design.parts

    @cached_property
    def _latencies(self) -> Latencies:
        return Latencies(self._initial_design)


@dataclass(frozen=True)
class _View:
    """The posterior at one moment for the rows that may be among the best, arrays (n,)."""

    rows: Rows
    mean: Floats
    probability: Floats
    covers: Bools
    """A mask of the rows among the best of each draw, (draws, n)."""
    overlooked: float
    """Expected number of configurations beyond `rows` that are better than the best measured."""
