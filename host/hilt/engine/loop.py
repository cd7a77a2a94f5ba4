"""The tuning loop: ask, lower, measure, record, tell.

The order is ask 0, ask 1, tell 0, ask 2, tell 1, ... whatever takes how long: batch k is on the board while batch k+1
is asked for and lowered. A tuner that asks for nothing while a batch is untold is asked again after that `tell`.
So a resumed run is the same loop over the same calls, in which the trials that are on record are not measured again;
there is no other replay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic, time
from typing import Protocol, runtime_checkable

from hilt.engine.errors import BoardLostError, RunMismatchError
from hilt.engine.events import EngineCommand, Event, Logged, RunProgress, StateChanged, TrialRecorded, TunerUpdated
from hilt.engine.remeasure import MAX_LOSSES, Remeasurer
from hilt.engine.run_control import Control
from hilt.engine.run_statistics import RunStatistics
from hilt.engine.taken_over import taken_over
from hilt.engine.tuner_calls import AbandonedError, TunerCalls
from hilt.measure import Measurer, Request
from hilt.schedule.checks import Rejected
from hilt.store import Run, RunState, Store, Trial
from hilt.trial import Outcome, Result
from hilt.tune import Assessment, Feedback, Tuner
from hilt.vta.program import Program

DOUBTFUL = (Outcome.TIMEOUT, Outcome.CRASH, Outcome.BUS_ERROR)
"""Verdicts that a fault of the board can bring about too: one is recorded when it was given twice, the board having
recovered in between."""
_GROUP_SECONDS = 2.0
"""The board is given about so much at once: it is how long a stop takes."""
_FIRST_GROUP = 2


class TuningTask(Protocol):
    """The workload, space and board of a run."""

    def knobs(self, index: int) -> Mapping[str, int]:
        """Return the configuration's knobs by name."""

    def lower(self, index: int) -> Program:
        """Return the program of a configuration. Raises Rejected."""

    def lower_many(self, indices: Sequence[int]) -> Iterator[Program | Rejected]:
        """Return the programs or rejections of configurations, in their order."""

    def lengths(self, indices: Sequence[int]) -> Sequence[float]:
        """Return about how long the program of each configuration runs, in any unit."""

    def request(self, ordinal: int, key: str, program: Program) -> Request:
        """Return the request of a program, with the run's tensors, limit and repeats."""


@runtime_checkable
class HasConfidence(Protocol):
    """A tuner that knows how sure it is."""

    def confidence(self) -> float | None: ...


@runtime_checkable
class Assessing(Protocol):
    """A tuner that knows why it asks for no more, and how far the board lies from its timing model."""

    def assessment(self) -> Assessment | None: ...


@dataclass
class TrialBatch:
    """The trials that a tuner was asked for at once."""

    first: int
    """Number of its first trial; the others follow."""
    indices: Sequence[int]
    programs: dict[int, Program] = field(default_factory=dict)
    """The programs that the board has to answer, by ordinal."""

    def trials(self) -> list[tuple[int, int]]:
        """Return (ordinal, index) of each trial."""
        return list(enumerate(self.indices, self.first))


@dataclass(frozen=True)
class _Pending:
    """A trial that the board has to answer."""

    ordinal: int
    index: int
    attempt: int = 0
    losses: int = 0
    loss: str = ""
    """Why it was lost last."""
    doubts: tuple[Outcome, ...] = ()
    """The doubtful verdicts that it got; the first that comes again is recorded."""


class TuningLoop:
    """The loop of one run.

    `run` runs it once. A campaign runs several side by side: it calls `ask`, `measure` and `tell` for each batch, and
    `confirm` at the end.

    Raises RunMismatchError, BoardLostError, StoreError, and the errors of the tuner or the lowering.
    """

    def __init__(
        self,
        run: Run,
        tuner: Tuner,
        task: TuningTask,
        measurer: Measurer,
        store: Store,
        control: Control,
        publish: Callable[[Event], None],
    ) -> None:
        self._run = run
        self._tuner = tuner
        self._task = task
        self._measurer = measurer
        self._store = store
        self._control = control
        self._publish = publish
        self._calls = TunerCalls(control)
        self.asked = 0
        """Trials so far, those on record included."""
        self._untold = {trial.ordinal: trial for trial in store.trials(run.uuid)}
        """Recorded trials that the tuner does not know yet."""
        self._taken_over = taken_over(store, run)
        self._statistics = RunStatistics(store.summary(run.uuid), store.counts(run.uuid))
        self._group = _FIRST_GROUP
        self._thinking = 0.0
        """Seconds that the tuner's answers took since the last results that it was told."""
        self._remeasurer = Remeasurer(run, task, measurer, store, control, publish)

    def run(self) -> bool:
        """Return True when the budget is spent or the space used up, False when it was stopped before."""
        self._publish(self.progress)
        with ThreadPoolExecutor(1, "measure") as pool:
            try:
                return self._run_batches(pool) and self.confirm()
            except BaseException:
                self._control.obey(
                    EngineCommand.STOP
                )  # whatever the board has is finished and recorded before we leave
                raise

    @property
    def progress(self) -> RunProgress:
        """The recorded progress, trials of earlier sessions included."""
        return self._statistics.progress()

    def _run_batches(self, pool: ThreadPoolExecutor) -> bool:
        current = self.ask(self._next_count)
        measuring = pool.submit(self.measure, current)
        while current.indices:
            following = self.ask(self._next_count)
            measuring.result()
            if self._control.stopping:
                return False
            measuring = pool.submit(self.measure, following)  # before `tell`: the board does not wait for the tuner
            self.tell(current)
            if not following.indices:  # an empty answer is final only once every result is known
                following = self.ask(self._next_count)
                measuring = pool.submit(self.measure, following)
            current = following
        return not self._calls.abandoned

    @property
    def _next_count(self) -> int:
        return min(self._run.batch, self._run.budget - self.asked)

    def ask(self, count: int) -> TrialBatch:
        """Ask for at most so many configurations, lower those not on record, and record the known results.

        Known are those that the lowering rejected, and those of a run that this one continues.
        """
        began = monotonic()
        batch = TrialBatch(self.asked, self._answer(count) if count else [])
        self.asked += len(batch.indices)
        self._compare_with_record(batch)
        self._lower(batch)
        if batch.first:  # the board does not wait for the first answer alone
            self._thinking += monotonic() - began
        return batch

    def _answer(self, count: int) -> Sequence[int]:
        """Return the tuner's answer; none if a stop came and it hangs."""
        try:
            return self._calls.run(lambda: self._tuner.ask(count))
        except AbandonedError:
            text = f"tuner {self._run.tuner} gives no answer, and the run was stopped: its call is given up"
            self._publish(Logged("warning", text, time()))
            return []

    def _compare_with_record(self, batch: TrialBatch) -> None:
        for ordinal, index in batch.trials():
            recorded = self._untold.get(ordinal)
            if recorded is not None and recorded.index != index:
                versions = ", ".join(f"{name} {version}" for name, version in self._run.versions.items())
                raise RunMismatchError(
                    f"run {self._run.uuid[:8]}: trial {ordinal} was of configuration {recorded.index}, but "
                    f"tuner {self._run.tuner} asks for {index} now; go on with the versions that began it "
                    f"({versions}), or begin a new run"
                )

    def _lower(self, batch: TrialBatch) -> None:
        known = []
        new = [(ordinal, index) for ordinal, index in batch.trials() if ordinal not in self._untold]
        lowered = self._task.lower_many([index for _, index in new])
        for ordinal, index in new:
            if self._control.stopping:
                break
            found = next(lowered)
            if isinstance(found, Rejected):
                known.append(self._trial(ordinal, index, Result(Outcome.REJECTED, found.reason), 0))
            elif index in self._taken_over:
                known.append(replace(self._taken_over[index], ordinal=ordinal))
            else:
                batch.programs[ordinal] = found
        lengths = self._task.lengths([batch.indices[ordinal - batch.first] for ordinal in batch.programs])
        self._statistics.lowered(self.asked, dict(zip(batch.programs, lengths, strict=True)))
        self._record(known)

    def measure(self, batch: TrialBatch) -> None:
        """Let the board answer the batch, a group at a time, unless stopped between two groups."""
        indices = dict(batch.trials())
        waiting = deque(_Pending(ordinal, indices[ordinal]) for ordinal in batch.programs)
        while waiting and self._may_measure():
            taken = [waiting.popleft() for _ in range(min(self._group, len(waiting)))]
            group = {pending.ordinal: pending for pending in taken}
            waiting.extendleft(reversed(self._measure_group(batch, group)))
            self._remeasurer.look_for_drift(self._statistics.trials)

    def _measure_group(self, batch: TrialBatch, group: Mapping[int, _Pending]) -> list[_Pending]:
        """Record the board's answers; return the trials to be measured again."""
        again: dict[int, _Pending] = {}
        answered: set[int] = set()

        def report(ordinal: int, result: Result) -> None:
            pending = group[ordinal]
            if result.outcome is Outcome.BOARD_LOST and self._control.stopping:
                again[ordinal] = pending  # the stop closed the board: its journal has the last answers
            elif result.outcome is Outcome.BOARD_LOST:
                again[ordinal] = self._after_loss(pending, result.reason)
            elif result.outcome in DOUBTFUL and result.outcome not in pending.doubts:
                again[ordinal] = self._after_doubt(pending, result)
            else:
                self._record([self._trial(ordinal, pending.index, result, pending.attempt)])
            answered.add(ordinal)

        began = monotonic()
        self._statistics.measuring()
        requests = [
            self._task.request(ordinal, f"{self._run.uuid}/{ordinal}/{pending.attempt}", batch.programs[ordinal])
            for ordinal, pending in group.items()
        ]
        self._measurer.measure(requests, report)
        if silent := group.keys() - answered:
            raise RuntimeError(f"the measurer did not answer trials {sorted(silent)}")
        for pending in again.values():
            if pending.losses >= MAX_LOSSES:
                raise BoardLostError(
                    f"board {self._measurer.description.name} was lost {pending.losses} times with trial "
                    f"{pending.ordinal} ({pending.loss}); see to the board, then `hilt resume {self._run.uuid[:8]}`"
                )
        for ordinal in group.keys() - again.keys():
            del batch.programs[ordinal]
        seconds = (monotonic() - began) / len(group)
        self._group = max(_FIRST_GROUP, int(_GROUP_SECONDS / seconds)) if seconds else self._run.batch
        return [again[ordinal] for ordinal in group if ordinal in again]

    def _after_loss(self, pending: _Pending, reason: str) -> _Pending:
        board = self._measurer.description.name
        text = f"board {board} was lost with trial {pending.ordinal} ({reason}); the trial is tried again"
        self._publish(Logged("warning", text, time()))
        return replace(pending, attempt=pending.attempt + 1, losses=pending.losses + 1, loss=reason)

    def _after_doubt(self, pending: _Pending, result: Result) -> _Pending:
        text = f"trial {pending.ordinal} ended as {result.outcome} ({result.reason}); it is tried again to be sure"
        self._publish(Logged("info", text, time()))
        return replace(pending, attempt=pending.attempt + 1, doubts=(*pending.doubts, result.outcome))

    def _may_measure(self) -> bool:
        """Wait while paused; return False once stopping."""
        if self._control.paused:
            self._set_state(RunState.PAUSED, "the board is idle")
            self._control.wait_while_paused()
            self._statistics.pause_ended()
            if not self._control.stopping:
                self._set_state(RunState.RUNNING, "")
        return not self._control.stopping

    def confirm(self) -> bool:
        """Measure the best ones again if that is needed; return False if it was stopped before."""
        return self._remeasurer.confirm()

    def _set_state(self, state: RunState, detail: str) -> None:
        self._store.set_state(self._run.uuid, state, detail)
        self._publish(StateChanged(state, detail))

    def _trial(self, ordinal: int, index: int, result: Result, attempt: int) -> Trial:
        elements = self._run.output_elements if result.outcome is not Outcome.REJECTED else 0
        trial = Trial.of(ordinal, index, self._task.knobs(index), result, elements, attempt)
        return replace(trial, recorded_at=time())

    def _record(self, trials: Sequence[Trial]) -> None:
        """Store trials, then publish them: no client hears of a trial that is not on disk."""
        if not trials:
            return
        self._store.record(self._run.uuid, trials)
        for trial in trials:
            self._untold[trial.ordinal] = trial
            self._statistics.add(trial)
            self._publish(TrialRecorded(trial))
        self._publish(self.progress)

    def tell(self, batch: TrialBatch) -> None:
        """Tell the tuner the results of a measured batch."""
        began = monotonic()
        trials = [self._untold.pop(ordinal) for ordinal, _ in batch.trials()]
        with suppress(AbandonedError):
            self._tell(batch, trials, began)

    def _tell(self, batch: TrialBatch, trials: Sequence[Trial], began: float) -> None:
        feedback = [Feedback(trial.index, trial.outcome, trial.microseconds) for trial in trials]
        self._calls.run(lambda: self._tuner.tell(feedback))
        confidence, assessment = self._calls.run(self._state_of_tuner)
        text = "" if assessment is None else assessment.text
        self._statistics.told(batch.first + len(trials), self._thinking + monotonic() - began)
        self._thinking = 0.0
        self._statistics.confident(batch.first + len(trials), confidence)
        if confidence is not None:
            self._store.set_confidence(self._run.uuid, confidence)
        self._publish(TunerUpdated(batch.first + len(trials), confidence, time(), text))

    def _state_of_tuner(self) -> tuple[float | None, Assessment | None]:
        return self._tuner.confidence() if isinstance(self._tuner, HasConfidence) else None, assess(self._tuner)


def assess(tuner: Tuner) -> Assessment | None:
    """Return the tuner's view of its own run; None if it has none."""
    return tuner.assessment() if isinstance(tuner, Assessing) else None
