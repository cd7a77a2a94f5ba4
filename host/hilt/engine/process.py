"""The engine's process: holds the run, serves its clients, runs the loop, and says how it ended."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Protocol

from hilt import measure, tune
from hilt.engine.board_health import BoardHealthMonitor
from hilt.engine.errors import RunOverError, failure_of
from hilt.engine.event_log import EventLog
from hilt.engine.events import (
    BoardChanged,
    EngineCommand,
    EngineHello,
    Event,
    FailureCause,
    Finished,
    Logged,
    StateChanged,
)
from hilt.engine.loop import TuningLoop, assess
from hilt.engine.reserve import DiskReserve
from hilt.engine.run_control import Control
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunTask, check_same
from hilt.engine.server import EngineServer
from hilt.engine.stopping import closed_at_stop, opened_unless_stopped
from hilt.measure import BoardDescription, BoardEvent, Listen, Measurer
from hilt.store import Run, RunState, Store, StoreError, database_path

SAYINGS = {
    EngineCommand.PAUSE: "pausing after what is on the board",
    EngineCommand.RESUME: "",
    EngineCommand.STOP: "stopping after what is on the board",
}


class Boards(Protocol):
    """Where boards come from: hilt.measure is one."""

    def describe_board(self, name: str) -> BoardDescription: ...

    def open_measurer(self, name: str, listen: Listen) -> Measurer: ...


def main(arguments: Sequence[str] | None = None, boards: Boards = measure) -> int:
    """Runs one run to its end or until it is stopped; 0, or 1 where it failed (the run's record says why)."""
    parser = argparse.ArgumentParser(prog="python -m hilt.engine", description="Runs one tuning run; clients attach.")
    parser.add_argument("run", help="its whole uuid")
    parser.add_argument("--home", type=Path, required=True, help="hilt's home directory")
    parser.add_argument("--ready-fd", type=int, help="where to say that clients can attach, or why not")
    options = parser.parse_args(arguments)
    os.environ["HILT_HOME"] = str(options.home)  # the layers below keep their state in the same home
    announce = announcer(options.ready_fd)
    try:
        with Store(database_path(options.home)) as store:
            files = RunFiles(options.home, options.run)
            with files.locked():
                return _EngineSession(store, files, boards, announce).run()
    except Exception as error:
        log_unexpected(error)
        announce({"failure": failure_of(error), "message": str(error)})
        return 1


class _EngineSession:
    """One engine's work on a run whose lock it holds."""

    def __init__(
        self, store: Store, files: RunFiles, boards: Boards, announce: Callable[[dict[str, object]], None]
    ) -> None:
        self._store = store
        self._files = files
        self._boards = boards
        self._announce = announce
        self._control = Control()
        self._publish: Callable[[Event], None] = lambda event: None
        self._run: Run = store.run(files.uuid)
        self._reserve = DiskReserve(files.directory)
        self._watch = BoardHealthMonitor(self._run.uuid, self._stop, lambda event: self._publish(event))

    def run(self) -> int:
        if self._run.state is RunState.FINISHED:
            raise RunOverError(f"run {self._run.uuid[:8]} has finished; `hilt show {self._run.uuid[:8]}` shows it")
        board = self._boards.describe_board(self._run.board)
        check_same(self._run, board)
        with EngineServer(self._files, EngineHello(self._run.uuid, os.getpid()), self._obey) as server:
            self._publish = self._watched(EventLog(self._files.event_log_path).recording(server.publish))
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: server.obey(EngineCommand.STOP))
            handler = EventHandler(self._publish)
            logging.getLogger("hilt").addHandler(handler)
            self._announce({"failure": None})
            self._reserve.take()
            try:
                finished = self._tune(board)
            except Exception as error:
                log_unexpected(error)
                finished = Finished(RunState.FAILED, str(error), failure_of(error))
            finally:
                logging.getLogger("hilt").removeHandler(handler)
            self._end(finished)
        return 1 if finished.failure else 0

    def _tune(self, board: BoardDescription) -> Finished:
        self._set_state(RunState.RUNNING, f"opening board {board.name}")
        task = RunTask(self._run, board)
        tuner = tune.make_tuner(self._run.tuner, task.problem, self._run.seed, **self._run.tuner_options)
        measurer = opened_unless_stopped(self._control, lambda: self._boards.open_measurer(board.name, self._hear))
        complete = False
        if measurer is not None:
            try:
                self._set_state(RunState.RUNNING, "")
                loop = TuningLoop(self._run, tuner, task, measurer, self._store, self._control, self._publish)
                with closed_at_stop(self._control, measurer):
                    complete = loop.run()
            finally:
                measurer.close()
        if complete:
            assessment = assess(tuner)
            return Finished(RunState.FINISHED, "" if assessment is None else assessment.text)
        if self._watch.failing is not None:
            return Finished(RunState.FAILED, self._watch.failing, FailureCause.BOARD)
        return Finished(RunState.STOPPED, f"`hilt resume {self._run.uuid[:8]}` goes on")

    def _end(self, finished: Finished) -> None:
        try:
            self._record(finished)
        except StoreError as error:  # most likely what the run failed of; clients hear of it all the same
            finished = finished if finished.failure else Finished(RunState.FAILED, str(error), FailureCause.STORE)
        self._publish(finished)

    def _record(self, finished: Finished) -> None:
        """Record the end of the run; on a full disk, in the room that was kept for it. Raises StoreError."""
        values = (self._run.uuid, finished.state, finished.detail, finished.failure or "")
        try:
            self._store.set_state(*values)
        except StoreError:
            self._reserve.give_back()
            self._store.set_state(*values)
        self._reserve.give_back()

    def _set_state(self, state: RunState, detail: str) -> None:
        self._store.set_state(self._run.uuid, state, detail)
        self._publish(StateChanged(state, detail))

    def _obey(self, command: EngineCommand) -> None:
        self._control.obey(command)
        self._publish(StateChanged(RunState.RUNNING, SAYINGS[command]))

    def _watched(self, publish: Callable[[Event], None]) -> Callable[[Event], None]:
        def publish_and_watch(event: Event) -> None:
            publish(event)
            self._watch.hear(event)

        return publish_and_watch

    def _stop(self) -> None:
        self._control.obey(EngineCommand.STOP)

    def _hear(self, event: BoardEvent) -> None:
        self._publish(BoardChanged(event.board, event.state, event.detail, event.at, event.celsius))


class EventHandler(logging.Handler):
    """What the layers below log, for clients."""

    def __init__(self, publish: Callable[[Event], None]) -> None:
        super().__init__(logging.INFO)
        self._publish = publish

    def emit(self, record: logging.LogRecord) -> None:
        level = {"INFO": "info", "WARNING": "warning"}.get(record.levelname, "error")
        self._publish(Logged(level, record.getMessage(), time()))


def announcer(descriptor: int | None) -> Callable[[dict[str, object]], None]:
    """Tells the launcher, once, that clients can attach or why they cannot."""
    pending = [] if descriptor is None else [descriptor]

    def announce(message: dict[str, object]) -> None:
        if pending:
            with os.fdopen(pending.pop(), "w") as pipe:
                pipe.write(json.dumps(message) + "\n")

    return announce


def log_unexpected(error: BaseException) -> None:
    """Into engine.log, which is where standard error goes: the events carry only the line. A disk that is full loses it
    here, and not what is said of it."""
    with suppress(OSError):
        traceback.print_exception(error, file=sys.stderr)
        sys.stderr.flush()
