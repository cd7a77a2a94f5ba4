"""A stop takes effect while boards, connections and tuners hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from hilt.engine.events import EngineCommand, Logged
from hilt.engine.job import RunJob
from hilt.engine.run_control import Control, closed_at_stop, opened_unless_stopped
from hilt.engine.tuner_calls import TunerCalls
from hilt.measure import Report, Request
from hilt.store import Store
from hilt.trial import Outcome, Result
from hilt.tune import Feedback
from tests.unit.store.examples import run as example_run

from .loop_bench import BUDGET, Bench, GreedyTuner
from .table import TableMeasurer, description

HANGS_SECONDS = 60.0
"""What hangs goes on by itself after so long: a stop that waits for it takes at least as long."""
HEARD_SECONDS = 15.0
"""The longest of a stop, and of the run before it, on a machine that is busy with others."""


class Dead:
    """A measurer whose boards answer nothing before it is closed."""

    description = description()

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.closed = threading.Event()

    def measure(self, requests: Sequence[Request], report: Report) -> None:
        self.reached.set()
        assert self.closed.wait(HANGS_SECONDS)
        for request in requests:
            report(request.ordinal, Result(Outcome.BOARD_LOST, "measurer was closed"))

    def close(self) -> None:
        self.closed.set()


def test_opening_ends_at_a_stop_and_a_later_connection_is_closed() -> None:
    control, begun, go_on = Control(), threading.Event(), threading.Event()
    dead = Dead()

    def open_slowly() -> Dead:
        begun.set()
        go_on.wait(HANGS_SECONDS)
        return dead

    threading.Thread(target=lambda: begun.wait(HANGS_SECONDS) and control.obey(EngineCommand.STOP)).start()
    began = time.monotonic()
    assert opened_unless_stopped(control, open_slowly) is None
    assert time.monotonic() - began < HEARD_SECONDS
    go_on.set()
    assert dead.closed.wait(HANGS_SECONDS)


def test_opening_gives_the_measurer_or_the_error() -> None:
    measurer = TableMeasurer(lambda request: Result(Outcome.OK))
    assert opened_unless_stopped(Control(), lambda: measurer) is measurer

    def fails() -> TableMeasurer:
        raise OSError("no board")

    with pytest.raises(OSError, match="no board"):
        opened_unless_stopped(Control(), fails)


@pytest.mark.slow
def test_a_stop_closes_the_measurer_and_only_a_stop() -> None:
    control, dead = Control(), Dead()
    with closed_at_stop(control, dead):
        control.obey(EngineCommand.PAUSE)
        control.obey(EngineCommand.RESUME)
    assert not dead.closed.is_set()
    with closed_at_stop(control, dead):
        control.obey(EngineCommand.STOP)
        assert dead.closed.wait(HANGS_SECONDS)


@pytest.mark.slow
def test_a_run_on_a_dead_board_stops_and_can_be_resumed(tmp_path: Path) -> None:
    bench, control, dead = Bench(tmp_path / "hilt.db"), Control(), Dead()
    threading.Thread(target=lambda: dead.reached.wait(HANGS_SECONDS) and control.obey(EngineCommand.STOP)).start()
    began = time.monotonic()
    with closed_at_stop(control, dead):
        assert not bench.session(dead, control=control)  # type: ignore[arg-type]
    assert time.monotonic() - began < HEARD_SECONDS
    assert not [event for event in bench.events if isinstance(event, Logged)]  # nobody is told of a lost board
    assert bench.session()


class Hanging(GreedyTuner):
    """A tuner whose third question, or second result, never ends."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self._calls_left = 2
        self.hangs, self.go_on = threading.Event(), threading.Event()

    def _perhaps(self, where: str) -> None:
        self._calls_left -= where == self._where
        if self._calls_left < 0:
            self.hangs.set()
            self.go_on.wait(HANGS_SECONDS)

    def ask(self, count: int) -> list[int]:
        self._perhaps("ask")
        return super().ask(count)

    def tell(self, feedback: Sequence[Feedback]) -> None:
        self._perhaps("tell")
        super().tell(feedback)


@pytest.mark.parametrize("where", ["ask", "tell"])
def test_a_stop_does_not_wait_for_a_tuner_that_hangs(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hilt.engine.tuner_calls.GRACE_SECONDS", 0.2)
    bench, control, tuner = Bench(tmp_path / "hilt.db"), Control(), Hanging(where)
    threading.Thread(target=lambda: tuner.hangs.wait(HANGS_SECONDS) and control.obey(EngineCommand.STOP)).start()
    began = time.monotonic()
    assert not bench.session(control=control, tuner=tuner)
    assert time.monotonic() - began < HEARD_SECONDS
    tuner.go_on.set()
    assert bench.session(), "the stopped run goes on with a tuner that answers"
    assert len(bench.trials) == BUDGET


def test_an_error_of_the_tuner_is_the_runs() -> None:
    def fail() -> None:
        raise LookupError("no such knob")

    with pytest.raises(LookupError, match="no such knob"):
        TunerCalls(Control()).run(fail)


def test_a_stop_does_not_wait_for_a_tuner_that_hangs_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hilt.engine.tuner_calls.GRACE_SECONDS", 0.2)
    begun, go_on = threading.Event(), threading.Event()

    def hang(*arguments: object, **options: object) -> None:
        begun.set()
        go_on.wait(HANGS_SECONDS)

    monkeypatch.setattr("hilt.tune.make_tuner", hang)
    job = RunJob(Store(tmp_path / "hilt.db"), example_run("b" * 32))
    threading.Thread(target=lambda: begun.wait(HANGS_SECONDS) and job.obey(EngineCommand.STOP)).start()
    began = time.monotonic()
    assert not job.search(TableMeasurer(lambda request: Result(Outcome.OK)), [SimpleNamespace(problem=None)])  # type: ignore[list-item]
    assert time.monotonic() - began < HEARD_SECONDS
    go_on.set()
