"""Follows a run to its end, or until the user lets go of it: Ctrl-C asks the engine to stop, a second one detaches."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.console import Console

from hilt.cli.exit_codes import Exit, exit_of, say
from hilt.cli.formatting import short
from hilt.cli.progress import View, view_of
from hilt.engine.client import CrowdedEngineError, EngineClient, NoEngineError, SilentEngineError
from hilt.engine.events import EngineCommand, FailureCause, Finished
from hilt.store import Run, RunState, Store, database_path


@dataclass(frozen=True)
class Ending:
    """How following ended."""

    finished: Finished | None
    """None: the user detached, and the run goes on."""
    interrupted: bool
    """Ctrl-C was pressed."""


class Detached(Exception):  # noqa: N818  # not an error
    """Ctrl-C was pressed twice."""


def follow(home: Path, run: Run, console: Console, *, wake: bool = False) -> Ending:
    """Shows the run on `console` until it ends. `wake` resumes it where it is paused."""
    with stopped_by_ctrl_c(home, run.uuid), view_of(run, console) as view:
        try:
            client = EngineClient.attach(home, run.uuid)
        except (CrowdedEngineError, SilentEngineError):
            raise  # it runs: how it ended is not on record
        except NoEngineError:
            return Ending(_recorded_end(home, run), False)  # it was over before we came
        with client:
            if wake:
                client.send(EngineCommand.RESUME)
            try:
                with asking_to_stop(client) as presses:
                    finished = show_all(client, view, presses)
            except Detached:
                return Ending(None, True)
            return Ending(finished or _recorded_end(home, run), bool(presses))


def wake(home: Path, uuid: str) -> None:
    """A paused run or campaign goes on, as it does for who follows it. Raises CrowdedEngineError, SilentEngineError."""
    try:
        client = EngineClient.attach(home, uuid)
    except (CrowdedEngineError, SilentEngineError):
        raise
    except NoEngineError:
        return  # it was over before we came
    client.send(EngineCommand.RESUME)
    client.leave()


def exit_after(run: Run, ending: Ending, verified: bool) -> Exit:
    """What to exit with after a run that was followed to its end; what made it fail is said."""
    assert ending.finished is not None
    if ending.finished.failure is not None:
        say(f"run {short(run.uuid)} failed: {ending.finished.detail}")
        return exit_of(ending.finished.failure)
    if ending.interrupted or ending.finished.state is not RunState.FINISHED:  # by Ctrl-C here, or by somebody else
        return Exit.INTERRUPTED
    return Exit.OK if verified else Exit.NOTHING_VERIFIED


def show_all(client: EngineClient, view: View, presses: list[int]) -> Finished | None:
    """Every event, until the engine closes or dies."""
    finished = None
    said = False
    for event in client.events():
        view.show(event)
        if isinstance(event, Finished):
            finished = event
        if presses and not said and finished is None:
            view.note("Ctrl-C again does not wait for the board and leaves the run to stop by itself")
            said = True
    return finished


def _recorded_end(home: Path, run: Run) -> Finished:
    """How the store says that the run ended."""
    with Store(database_path(home)) as store:
        now = store.run(run.uuid)
    if now.state in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED):
        return Finished(now.state, now.detail, FailureCause(now.failure) if now.failure else None)
    detail = f"the engine ended without a word; `hilt resume {short(run.uuid)}` goes on with what is recorded"
    return Finished(RunState.FAILED, detail, FailureCause.INTERNAL)


@contextmanager
def stopped_by_ctrl_c(home: Path, uuid: str) -> Iterator[None]:
    """Ctrl-C where nobody follows yet what goes by `uuid` stops it too, and what we do."""
    try:
        yield
    except KeyboardInterrupt:
        with suppress(NoEngineError):
            client = EngineClient.attach(home, uuid)
            client.send(EngineCommand.STOP)
            client.leave()
            say(f"{short(uuid)} stops when the board is done; `hilt resume {short(uuid)}` goes on")
        raise


@contextmanager
def asking_to_stop(client: EngineClient) -> Iterator[list[int]]:
    """Gives the presses of Ctrl-C so far; the first asks the engine to stop, which its next event says. Raises
    Detached at the second. Nothing is printed from here: a signal may come in the middle of printing."""
    presses: list[int] = []

    def pressed(ordinal: int, frame: FrameType | None) -> None:
        presses.append(ordinal)
        if len(presses) > 1:
            raise Detached
        with suppress(NoEngineError):  # it is ending anyway
            client.send(EngineCommand.STOP)

    before = signal.signal(signal.SIGINT, pressed)
    try:
        yield presses
    finally:
        signal.signal(signal.SIGINT, before)
