"""Starts runs: a record in the store, then a process of its own that outlives the command."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from hilt import measure
from hilt.engine.client import CrowdedEngineError, EngineClient, NoEngineError
from hilt.engine.errors import EngineStartError, RunOverError
from hilt.engine.events import FailureCause
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec, make_run, resolve_run, spec_of
from hilt.engine.taken_over import continuing, taken_over
from hilt.processes import ctrl_c_later
from hilt.store import Run, RunState, Store, database_path
from hilt.store.labels import Labels, labels_of, set_labels

if TYPE_CHECKING:
    from hilt.engine.process import Boards

ENGINE = (sys.executable, "-m", "hilt.engine")
_START_SECONDS = 60.0
_END_SECONDS = 10.0
_POLL_SECONDS = 0.02
_LOG_LINES = 3


def start(
    settings: RunSpec,
    home: Path,
    *,
    continues: Run | None = None,
    wait: bool = False,
    boards: Boards = measure,
    engine: Sequence[str] = ENGINE,
) -> Run:
    """Make a new run and start its engine; return when clients can attach. A run whose engine did not start is removed.

    Args:
        settings: The run.
        home: The hilt home that stores it.
        continues: An older run; its results are taken over where they hold for the board.
        wait: Wait for a board that is in use, instead of failing.
        boards: The source of boards.
        engine: The command of the engine's process.

    Raises:
        StoreError, EngineStartError: The run was not stored, or its engine did not start.
        Exception: The errors of hilt.measure.describe_board and hilt.engine.run_spec.make_run.
    """
    run = make_run(settings, boards.describe_board(settings.board))
    run = run if continues is None else continuing(run, continues)
    with Store(database_path(home)) as store:
        store.create_run(run)
        try:
            spawn(run.uuid, home, engine, wait=wait)
        except EngineStartError:
            store.discard_run(run.uuid)
            raise
    return run


def resume(
    identifier: str,
    home: Path,
    *,
    board: str | None = None,
    wait: bool = False,
    boards: Boards = measure,
    engine: Sequence[str] = ENGINE,
) -> Run:
    """Start an engine for a run that has none; return when clients can attach. A running engine is left alone.

    `board` moves the run to another board of the same kind; `wait` waits for a board that is in use.

    Raises UnknownRunError, RunOverError, RunMismatchError, StoreError, EngineStartError.
    """
    with Store(database_path(home)) as store:
        run = store.run(identifier)
        if is_served(home, run.uuid):
            return run
        if run.state is RunState.FINISHED:
            raise RunOverError(f"run {run.uuid[:8]} has finished; `hilt show {run.uuid[:8]}` shows it")
        store.upgrade()
        if board is not None and board != run.board:
            resolve_run(run, boards.describe_board(board))
            store.move(run.uuid, board)
    spawn_unless_served(run.uuid, home, engine, wait=wait)
    return run


def begin_anew(
    identifier: str,
    home: Path,
    *,
    board: str | None = None,
    wait: bool = False,
    boards: Boards = measure,
    engine: Sequence[str] = ENGINE,
) -> Run:
    """Start a new run with a run's settings on its board as it is now; the old run stays as it is.

    Verified results of an unfinished run are taken over where they hold (hilt.engine.taken_over): another bitstream
    may have other latencies.

    Raises UnknownRunError and the errors of `start`.
    """
    with Store(database_path(home)) as store:
        old = store.run(identifier)
    settings = spec_of(old)
    settings = replace(settings, board=board) if board is not None else settings
    rest = None if old.state is RunState.FINISHED else old  # a finished run, begun anew, is measured again
    run = start(settings, home, continues=rest, wait=wait, boards=boards, engine=engine)
    with Store(database_path(home)) as store:
        label_anew(store, run.uuid, old.uuid, len(taken_over(store, run)))
    return run


def label_anew(store: Store, new: str, old: str, results: int) -> None:
    """Give a run or campaign that was begun anew the old one's tags, and a note of where it comes from."""
    note = f"began anew from {old[:8]}" + (f", with its {results} verified results" if results else "")
    set_labels(store, new, Labels(labels_of(store, old).tags, note))


def is_served(home: Path, uuid: str) -> bool:
    """Return whether an engine serves it: only one that says hello does.

    An engine that was just killed may still hold its lock and take connections. This waits for one that is ending or
    starting.
    """
    files = RunFiles(home, uuid)
    deadline = monotonic() + _END_SECONDS
    while files.is_running():
        try:
            EngineClient.attach(home, uuid).close()
        except CrowdedEngineError:
            return True
        except NoEngineError:
            if monotonic() < deadline:
                sleep(_POLL_SECONDS)
                continue
        return True
    return False


def spawn_unless_served(uuid: str, home: Path, engine: Sequence[str], *, wait: bool = False) -> None:
    """Start the engine as `spawn` does; return too where another command was quicker."""
    try:
        spawn(uuid, home, engine, wait=wait)
    except EngineStartError:
        if not is_served(home, uuid):
            raise


def spawn(uuid: str, home: Path, engine: Sequence[str], *, wait: bool = False) -> None:
    """Start the engine of a run or campaign; return when clients can attach. Raises EngineStartError."""
    files = RunFiles(home, uuid)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as ready:
        process: subprocess.Popen[bytes] | None = None
        try:
            try:
                with files.log_path.open("ab") as log, ctrl_c_later():
                    process = subprocess.Popen(
                        [*engine, uuid, "--home", str(home.absolute()), "--ready-fd", str(writing)] + ["--wait"] * wait,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        pass_fds=(writing,),
                        start_new_session=True,  # Ctrl-C in the terminal is for the client
                    )
            finally:
                os.close(writing)
            if not select.select([ready], [], [], _START_SECONDS)[0]:
                raise EngineStartError(f"the engine did not start within {_START_SECONDS:.0f} s", FailureCause.INTERNAL)
            answer = ready.readline()
        except BaseException:  # Ctrl-C: no client would know of the engine
            if process is not None:
                process.kill()
                process.wait()
            raise
    if not answer:
        raise EngineStartError(f"the engine died at its start: {_last_words(files.log_path)}", FailureCause.INTERNAL)
    message = json.loads(answer)
    if message["failure"] is not None:
        raise EngineStartError(message["message"], FailureCause(message["failure"]))


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{' | '.join(lines[-_LOG_LINES:])} (all of it in {log})"
