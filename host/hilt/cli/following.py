"""Follows a run or a campaign to its end, or until the user lets go of it.

The first Ctrl-C asks the engine to stop; a second one detaches.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from hilt.cli.exit_codes import Exit, exit_of, say
from hilt.cli.formatting import short
from hilt.cli.progress import View
from hilt.engine.client import CrowdedEngineError, EngineClient, NoEngineError, SilentEngineError
from hilt.engine.events import EngineCommand, FailureCause, Finished
from hilt.store import Campaign, Run, RunState, Store, database_path

Record = Run | Campaign


@dataclass(frozen=True)
class Ending:
    """The end of following."""

    finished: Finished | None
    """The last event; None if the user detached and the run goes on."""
    interrupted: bool
    """Ctrl-C was pressed."""


class Detached(Exception):  # noqa: N818  # not an error
    """Ctrl-C was pressed twice."""


def kind_of(record: Record) -> str:
    """Return `run` or `campaign`."""
    return "campaign" if isinstance(record, Campaign) else "run"


def name_of(record: Record) -> str:
    """Return the kind and the short id, as in `run 1234abcd`."""
    return f"{kind_of(record)} {short(record.uuid)}"


def follow(home: Path, record: Record, view: View, *, wake: bool = False) -> Ending:
    """Show a run or a campaign in `view` until it ends.

    Args:
        home: The hilt home of the record.
        record: As it was when it got its engine.
        view: Not entered yet.
        wake: Resume it where it is paused.
    """
    with stopped_by_ctrl_c(home, record.uuid), view:
        try:
            client = EngineClient.attach(home, record.uuid)
        except (CrowdedEngineError, SilentEngineError):
            raise  # it runs: its end is not on record
        except NoEngineError:
            return Ending(_recorded_end(home, record), False)  # it was over before we came
        with client:
            if wake:
                client.send(EngineCommand.RESUME)
            try:
                with asking_to_stop(client) as presses:
                    finished = _show_all(client, view, presses)
            except Detached:
                return Ending(None, True)
            return Ending(finished or _recorded_end(home, record), bool(presses))


def wake(home: Path, uuid: str) -> None:
    """Resume a paused run or campaign. Raises CrowdedEngineError, SilentEngineError."""
    try:
        client = EngineClient.attach(home, uuid)
    except (CrowdedEngineError, SilentEngineError):
        raise
    except NoEngineError:
        return  # it was over before we came
    client.send(EngineCommand.RESUME)
    client.leave()


def exit_after(record: Record, ending: Ending, verified: bool) -> Exit:
    """Return the exit code after a run or campaign that was followed to its end; print the reason of a failure."""
    assert ending.finished is not None
    if ending.finished.failure is not None:
        say(f"{name_of(record)} failed: {ending.finished.detail}")
        return exit_of(ending.finished.failure)
    if ending.interrupted or ending.finished.state is not RunState.FINISHED:  # by Ctrl-C here, or by somebody else
        return Exit.INTERRUPTED
    return Exit.OK if verified else Exit.NOTHING_VERIFIED


def current(store: Store, record: Record) -> Record:
    """Return the record as the store has it now."""
    if isinstance(record, Campaign):
        return store.campaign(record.uuid) or record
    return store.run(record.uuid)


def _show_all(client: EngineClient, view: View, presses: list[int]) -> Finished | None:
    """Show every event until the engine closes or dies; return the last where it is the end."""
    finished = None
    noted = False
    for event in client.events():
        view.show(event)
        if isinstance(event, Finished):
            finished = event
        if presses and not noted and finished is None:
            view.note("Ctrl-C again does not wait for the board and leaves the run to stop by itself")
            noted = True
    return finished


def _recorded_end(home: Path, record: Record) -> Finished:
    """Return the end of a run or campaign as the store has it."""
    with Store(database_path(home)) as store:
        now = current(store, record)
    if now.state in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED):
        return Finished(now.state, now.detail, FailureCause(now.failure) if now.failure else None)
    detail = f"the engine ended without a word; `hilt resume {short(record.uuid)}` goes on from the record"
    return Finished(RunState.FAILED, detail, FailureCause.INTERNAL)


@contextmanager
def stopped_by_ctrl_c(home: Path, uuid: str) -> Iterator[None]:
    """Stop the engine of `uuid` too where Ctrl-C comes before anybody follows it."""
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
    """Give the presses of Ctrl-C so far; the first asks the engine to stop, and its next event says so.

    Raises Detached at the second. Nothing is printed from here: a signal may come in the middle of printing.
    """
    presses: list[int] = []

    def pressed(number: int, frame: FrameType | None) -> None:
        presses.append(number)
        if len(presses) > 1:
            raise Detached
        with suppress(NoEngineError):  # it is ending anyway
            client.send(EngineCommand.STOP)

    before = signal.signal(signal.SIGINT, pressed)
    try:
        yield presses
    finally:
        signal.signal(signal.SIGINT, before)
