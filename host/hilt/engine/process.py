"""The engine's process: holds a run or a campaign, serves its clients, opens the board, searches, reports the end."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from time import time
from typing import Protocol

from hilt import measure
from hilt.engine.board_health import BoardHealthMonitor, holder_of
from hilt.engine.errors import failure_of
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
from hilt.engine.job import Job, RunJob
from hilt.engine.run_control import closed_at_stop, opened_unless_stopped
from hilt.engine.run_files import DiskReserve, RunFiles
from hilt.engine.run_spec import RunTask, resolve_run
from hilt.engine.server import EngineServer
from hilt.link.errors import BoardBusyError
from hilt.measure import BoardDescription, BoardEvent, Listen, Measurer
from hilt.store import RunState, Store, StoreError, database_path
from hilt.tune import load_libraries

_OBEYED = {
    EngineCommand.PAUSE: "pausing after the trials on the board",
    EngineCommand.RESUME: "",
    EngineCommand.STOP: "stopping after the trials on the board",
}

_RETRY_SECONDS = 2.0
"""Between two attempts to open a board that is in use."""

Announce = Callable[[dict[str, object]], None]


class Boards(Protocol):
    """The source of boards: hilt.measure is one."""

    def describe_board(self, name: str) -> BoardDescription: ...

    def open_measurer(self, name: str, listen: Listen) -> Measurer: ...


OpenJob = Callable[[Store, str, Boards], Job]
"""Makes the job of a whole uuid. Raises UnknownRunError, RunOverError."""


def open_run(store: Store, uuid: str, boards: Boards) -> Job:
    """Return the job of the run with this whole uuid."""
    return RunJob(store, store.run(uuid))


def main(
    arguments: Sequence[str] | None = None,
    boards: Boards = measure,
    open_job: OpenJob = open_run,
    program: str = "hilt.engine",
) -> int:
    """Run one job to its end or until it is stopped; return 0, or 1 if it failed (its record has the reason)."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description="Run one job; clients attach to it.")
    parser.add_argument("uuid", help="the whole uuid of a run or a campaign")
    parser.add_argument("--home", type=Path, required=True, help="hilt's home directory")
    parser.add_argument("--wait", action="store_true", help="wait for a board that is in use")
    parser.add_argument("--ready-fd", type=int, help="descriptor for one line: clients can attach, or the failure")
    options = parser.parse_args(arguments)
    os.environ["HILT_HOME"] = str(options.home)  # the layers below keep their state in the same home
    announce = _announcer(options.ready_fd)
    try:
        with Store(database_path(options.home)) as store:
            files = RunFiles(options.home, options.uuid)
            with files.locked():
                job = open_job(store, options.uuid, boards)
                return _EngineSession(job, store, files, boards, announce, wait=options.wait).run()
    except Exception as error:
        log_unexpected(error)
        announce({"failure": failure_of(error), "message": str(error)})
        return 1


class _EngineSession:
    """One process's work on a job whose lock it holds."""

    def __init__(
        self, job: Job, store: Store, files: RunFiles, boards: Boards, announce: Announce, *, wait: bool
    ) -> None:
        self._job = job
        self._store = store
        self._wait = wait
        self._files = files
        self._boards = boards
        self._announce = announce
        self._reserve = DiskReserve(files.directory)
        self._send: Callable[[Event], None] = lambda event: None
        self._health = BoardHealthMonitor(job.uuid, self._stop, lambda event: self._send(event))

    def run(self) -> int:
        board = self._boards.describe_board(self._job.runs[0].board)
        tasks = [resolve_run(run, board) for run in self._job.runs]
        with ExitStack() as stack:
            self._serve(stack)
            self._announce({"failure": None})
            self._reserve.take()
            try:
                finished = self._search(board, tasks)
            except Exception as error:
                log_unexpected(error)
                finished = Finished(RunState.FAILED, str(error), failure_of(error))
            finished = self._end(finished)
        return 1 if finished.failure else 0

    def _serve(self, stack: ExitStack) -> None:
        """Open the job's socket and those of its parts; commands, signals and log lines are heard from now on."""
        hello = EngineHello(self._job.uuid, os.getpid())
        server = stack.enter_context(EngineServer(self._files, hello, self._obey))
        self._send = EventLog(self._files.event_log_path).recording(server.publish)
        self._job.begin(stack, self._publish, self._health.hear)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.obey(EngineCommand.STOP))
        handler = _EventHandler(self._tell)
        logging.getLogger("hilt").addHandler(handler)
        stack.callback(logging.getLogger("hilt").removeHandler, handler)

    def _search(self, board: BoardDescription, tasks: Sequence[RunTask]) -> Finished:
        self._set_state(RunState.RUNNING, f"opening board {board.name}")
        for tuner in {run.tuner for run in self._job.runs}:  # meanwhile, so that the first fit does not wait for them
            threading.Thread(target=load_libraries, args=(tuner,), name="libraries", daemon=True).start()
        measurer = self._open(board)
        complete = False
        if measurer is not None:
            try:
                self._set_state(RunState.RUNNING, "")
                with closed_at_stop(self._job.control, measurer):
                    complete = self._job.search(measurer, tasks)
            finally:
                measurer.close()
        if complete:
            return Finished(RunState.FINISHED, self._job.verdict)
        if self._health.failing is not None:
            return Finished(RunState.FAILED, self._health.failing, FailureCause.BOARD)
        return Finished(RunState.STOPPED, f"`hilt resume {self._job.uuid[:8]}` goes on")

    def _open(self, board: BoardDescription) -> Measurer | None:
        """Return the open board; with --wait, once it is free, or None if a stop came first."""
        while True:
            try:
                return opened_unless_stopped(
                    self._job.control, lambda: self._boards.open_measurer(board.name, self._hear)
                )
            except BoardBusyError as error:
                holder = holder_of(self._store, self._files.home, board.name, self._job.uuid)
                reason = f"board {board.name} is in use by {holder}" if holder else str(error)
                if not self._wait:
                    raise BoardBusyError(f"{reason}; `--wait` waits for it") from error
            self._set_state(RunState.RUNNING, f"waiting: {reason}")
            if self._job.control.wait_for_stop(_RETRY_SECONDS):
                return None

    def _end(self, finished: Finished) -> Finished:
        try:
            self._record(finished)
        except StoreError as error:  # most likely the reason of the failure; clients hear of it all the same
            finished = finished if finished.failure else Finished(RunState.FAILED, str(error), FailureCause.STORE)
        self._tell(finished)
        return finished

    def _record(self, finished: Finished) -> None:
        """Record the end of the job; on a full disk, in the reserved room. Raises StoreError."""
        try:
            self._job.end(finished)
        except StoreError:
            self._reserve.give_back()
            self._job.end(finished)
        self._reserve.give_back()

    def _set_state(self, state: RunState, detail: str) -> None:
        self._job.set_state(state, detail)
        self._send(StateChanged(state, detail))

    def _publish(self, event: Event) -> None:
        self._send(event)
        self._health.hear(event)

    def _tell(self, event: Event) -> None:
        """Send an event of the whole process to the clients of the job, and to those of its parts."""
        self._job.share(event)
        self._send(event)

    def _obey(self, command: EngineCommand) -> None:
        # In this order: a stop may end the run at once, and nothing comes behind `finished`.
        self._send(StateChanged(RunState.RUNNING, _OBEYED[command]))
        self._job.obey(command)

    def _stop(self) -> None:
        self._job.obey(EngineCommand.STOP)

    def _hear(self, event: BoardEvent) -> None:
        changed = BoardChanged(event.board, event.state, event.detail, event.at, event.celsius)
        self._tell(changed)
        self._health.hear(changed)


class _EventHandler(logging.Handler):
    """Sends the log lines of the layers below to the clients."""

    def __init__(self, publish: Callable[[Event], None]) -> None:
        super().__init__(logging.INFO)
        self._publish = publish

    def emit(self, record: logging.LogRecord) -> None:
        level = {"INFO": "info", "WARNING": "warning"}.get(record.levelname, "error")
        self._publish(Logged(level, record.getMessage(), time()))


def _announcer(descriptor: int | None) -> Announce:
    """Return a function that tells the launcher, once, that clients can attach or why they cannot."""
    pending = [] if descriptor is None else [descriptor]

    def announce(message: dict[str, object]) -> None:
        if pending:
            with os.fdopen(pending.pop(), "w") as pipe:
                pipe.write(json.dumps(message) + "\n")

    return announce


def log_unexpected(error: BaseException) -> None:
    """Write the traceback to engine.log, which standard error goes to. A full disk loses it without a further error."""
    with suppress(OSError):
        traceback.print_exception(error, file=sys.stderr)
        sys.stderr.flush()
