"""The work of an engine's process: one run here, the layers of a network in hilt.campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol

from hilt import tune
from hilt.engine.errors import RunOverError
from hilt.engine.events import EngineCommand, Event, Finished
from hilt.engine.loop import TuningLoop, assess
from hilt.engine.run_control import Control
from hilt.engine.run_spec import RunTask
from hilt.engine.tuner_calls import AbandonedError, TunerCalls
from hilt.measure import Measurer
from hilt.store import Run, RunState, Store

Publish = Callable[[Event], None]


class Job(Protocol):
    """A run or a campaign, as the session of an engine needs it."""

    @property
    def uuid(self) -> str: ...

    @property
    def control(self) -> Control:
        """The commands of the clients."""

    @property
    def runs(self) -> Sequence[Run]:
        """The runs that the board must fit; at least one, all on one board."""

    @property
    def verdict(self) -> str:
        """The tuner's verdict after the search: its confidence in its best, and why it stopped; empty without one."""

    def begin(self, stack: ExitStack, publish: Publish, watch: Publish) -> None:
        """Open everything that must stay open until the end on `stack`.

        Args:
            stack: Closed after the last event.
            publish: Sends an event to the clients of the job.
            watch: Shows an event to the board health monitor only.
        """

    def set_state(self, state: RunState, detail: str) -> None:
        """Store the state. Raises StoreError."""

    def obey(self, command: EngineCommand) -> None:
        """Pass the command of a client on to the search."""

    def search(self, measurer: Measurer, tasks: Sequence[RunTask]) -> bool:
        """Spend the budget on the tasks of `runs`; return False if a stop came first."""

    def end(self, finished: Finished) -> None:
        """Store how the job ended, before its clients hear of it. Raises StoreError."""

    def share(self, event: Event) -> None:
        """Send a board's state, a log line or the end to further clients, such as those of a campaign's layers."""


class RunJob:
    """One run."""

    def __init__(self, store: Store, run: Run) -> None:
        """Take the run. Raises RunOverError if it has finished."""
        if run.state is RunState.FINISHED:
            raise RunOverError(f"run {run.uuid[:8]} has finished; `hilt show {run.uuid[:8]}` shows it")
        self._store = store
        self._run = run
        self._publish: Publish = lambda event: None
        self.control = Control()
        self.verdict = ""

    @property
    def uuid(self) -> str:
        """The run's."""
        return self._run.uuid

    @property
    def runs(self) -> Sequence[Run]:
        """The run alone."""
        return [self._run]

    def begin(self, stack: ExitStack, publish: Publish, watch: Publish) -> None:
        """See Job."""
        self._publish = publish

    def set_state(self, state: RunState, detail: str) -> None:
        """See Job."""
        self._store.set_state(self._run.uuid, state, detail)

    def obey(self, command: EngineCommand) -> None:
        """See Job."""
        self.control.obey(command)

    def search(self, measurer: Measurer, tasks: Sequence[RunTask]) -> bool:
        """See Job."""
        run, (task,) = self._run, tasks
        try:
            tuner = TunerCalls(self.control).run(
                lambda: tune.make_tuner(run.tuner, task.problem, run.seed, **run.tuner_options)
            )
        except AbandonedError:
            return False
        complete = TuningLoop(run, tuner, task, measurer, self._store, self.control, self._publish).run()
        assessment = assess(tuner)
        self.verdict = "" if assessment is None else assessment.text
        return complete

    def end(self, finished: Finished) -> None:
        """See Job."""
        self._store.set_state(self._run.uuid, finished.state, finished.detail, finished.failure or "")

    def share(self, event: Event) -> None:
        """See Job."""
