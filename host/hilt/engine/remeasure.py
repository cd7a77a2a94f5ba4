"""Measures trials again on a board whose latencies vary.

A reference now and then shows the board's drift; the best trials are measured in turn at the end, before a winner
is named. A deterministic board gives the same cycles whatever ran before: nothing is measured again there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from time import time
from typing import Protocol

from hilt.engine.errors import BoardLostError
from hilt.engine.events import Event, Logged
from hilt.engine.run_control import Control
from hilt.measure import Measurer, Request
from hilt.store import DRIFT_TOLERANCE, Purpose, Remeasurement, Run, Store, Trial, is_decided, largest_drift
from hilt.trial import Outcome, Result
from hilt.vta.program import Program

REFERENCE_EVERY = 50
"""Trials between two runs of the reference, which is the first verified trial of the run."""
MAX_LOSSES = 3
"""A trial whose board is lost so often ends the session; it is not recorded, and resuming tries it again."""
FINALISTS = 5
_FIRST_KEY = {Purpose.DRIFT: 1000, Purpose.CONFIRMATION: 9000}
"""The last part of a request's key, far above the attempts of a trial: each round runs, the journal does not answer."""
_LAST_DRIFT = 7999


class RemeasureTask(Protocol):
    """The workload and board of a run, see hilt.engine.loop.TuningTask."""

    def lower(self, index: int) -> Program: ...

    def request(self, ordinal: int, key: str, program: Program) -> Request: ...


class Remeasurer:
    """The repeated measurements of one run in one session; those of earlier sessions are kept."""

    def __init__(
        self,
        run: Run,
        task: RemeasureTask,
        measurer: Measurer,
        store: Store,
        control: Control,
        publish: Callable[[Event], None],
    ) -> None:
        self._run = run
        self._task = task
        self._measurer = measurer
        self._store = store
        self._control = control
        self._publish = publish
        self._boards = measurer.description.name.split(",")
        self._is_needed = not measurer.description.deterministic
        self._reference: Trial | None = None
        rows = store.remeasurements(run.uuid)
        self._confirming = next((row.board for row in rows if row.purpose is Purpose.CONFIRMATION), None)
        """The one board that confirms: no latency of another is compared with its own."""
        self._done = {(row.purpose, row.round, row.ordinal) for row in rows}
        self._said = False

    def look_for_drift(self, recorded: int) -> None:
        """Run the reference when it is time, after so many recorded trials of the run."""
        check = recorded // REFERENCE_EVERY
        if not self._is_needed or check > _LAST_DRIFT or any(key[:2] == (Purpose.DRIFT, check) for key in self._done):
            return
        if self._reference is None:
            verified = self._store.improvements(self._run.uuid)[:1]  # its first is the first verified trial
            if not verified:
                return
            self._reference = self._store.trials(self._run.uuid, verified[0][0], 1)[0]
        self._measure(Purpose.DRIFT, check, [self._reference], self._reference.board)
        drift = largest_drift(self._store.remeasurements(self._run.uuid))
        if drift > DRIFT_TOLERANCE and not self._said:
            self._said = True
            text = (
                f"the board drifts: trial {self._reference.ordinal}, measured again, is up to {100 * drift:.1f} % off; "
                f"is it hot, or does something else run on it?"
            )
            self._publish(Logged("warning", text, time()))

    def confirm(self) -> bool:
        """Measure the best trials again, one after another in each round; return False if it was stopped before."""
        finalists = self._store.fastest(self._run.uuid, FINALISTS) if self._is_needed else []
        if len(finalists) < 2:
            return True
        for turn in count():
            if is_decided(self._store.remeasurements(self._run.uuid), turn, self._run.rounds):
                break
            self._measure(Purpose.CONFIRMATION, turn, finalists, self._confirming)
            whole = {(Purpose.CONFIRMATION, turn, trial.ordinal) for trial in finalists} <= self._done
            if self._control.stopping and not whole:
                return False
        winner = self._store.best(self._run.uuid)
        if winner is not None and winner.ordinal != finalists[0].ordinal:
            text = (
                f"trial {winner.ordinal} is the fastest of the best {len(finalists)} measured again in turn; "
                f"trial {finalists[0].ordinal} only was at first"
            )
            self._publish(Logged("info", text, time()))
        return True

    def _measure(self, purpose: Purpose, turn: int, trials: Sequence[Trial], board: str | None) -> None:
        """Measure trials one after another on a board, and leave out failures of this round.

        With board None the first board that answers confirms from then on.
        """
        for trial in trials:
            if self._control.stopping:
                return
            if (purpose, turn, trial.ordinal) in self._done:
                continue
            key = f"{self._run.uuid}/{trial.ordinal}/{_FIRST_KEY[purpose] + turn}"
            request = self._task.request(trial.ordinal, key, self._task.lower(trial.index))
            request = replace(request, board=board if board in self._boards else None)
            result = self._answer(purpose, request)
            if result.outcome is Outcome.OK and result.microseconds is not None:
                row = Remeasurement(purpose, turn, trial.ordinal, result.microseconds, result.board)
                self._store.record_remeasurement(self._run.uuid, row)
                self._done.add((purpose, turn, trial.ordinal))
                if purpose is Purpose.CONFIRMATION:
                    board = self._confirming = result.board
            elif not self._control.stopping:
                text = f"trial {trial.ordinal}, measured again for {purpose}: {result.outcome} ({result.reason})"
                self._publish(Logged("warning", text, time()))

    def _answer(self, purpose: Purpose, request: Request) -> Result:
        """Return the board's answer to a request.

        Raises BoardLostError if the only board is gone during the confirmation: no winner is named from a
        part of the answers, and the run can be resumed.
        """
        must = purpose is Purpose.CONFIRMATION and len(self._boards) == 1
        for _ in range(MAX_LOSSES if must else 1):
            results: dict[int, Result] = {}
            self._measurer.measure([request], results.__setitem__)
            result = results[request.ordinal]
            if result.outcome is not Outcome.BOARD_LOST or self._control.stopping:
                return result
        if must:
            raise BoardLostError(
                f"board {self._measurer.description.name} was lost {MAX_LOSSES} times while the best trials were "
                f"measured again ({result.reason}); see to the board, then `hilt resume {self._run.uuid[:8]}`"
            )
        return result
