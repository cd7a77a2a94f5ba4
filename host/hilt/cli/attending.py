"""Attends to a run that has an engine: follows it, prints its results, returns the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from hilt.cli.exit_codes import Exit, exit_of, say
from hilt.cli.following import Ending, Record, exit_after, follow, name_of
from hilt.cli.following import wake as wake_up
from hilt.cli.formatting import print_json, run_json, short
from hilt.cli.plain_console import PlainConsole
from hilt.cli.progress import run_view
from hilt.cli.prose import print_text
from hilt.cli.summary import summary_text
from hilt.cli.work import CommandWork
from hilt.engine.run_files import RunFiles
from hilt.measure import DATASET_PREFIX
from hilt.store import Campaign, Run, Store, database_path
from hilt.store.campaigns import discard_campaign
from hilt.trial import Outcome


def attend_run(home: Path, launched: Callable[[], Run], *, detach: bool, as_json: bool, wake: bool = False) -> Exit:
    """Give a run an engine by `launched`, follow it unless detached, and print how it ended."""
    with CommandWork("starting the engine"):
        run = launched()  # only now: until it is followed Ctrl-C has nobody to stop it
    console = PlainConsole(stderr=as_json)
    if detach:
        leave_alone(home, run, console, wake)
        _print_run(home, run, console, as_json, ended=False)
        return Exit.OK
    limit = f"{run.limit_seconds * 1e3:,.0f} ms by the board's clock"
    compared = "nothing is" if run.board.startswith(DATASET_PREFIX) else "its whole output is"
    print_text(console, f"a program may run for {limit}; {compared} compared with the reference")
    ending = follow(home, run, run_view(run, console), wake=wake)
    if not wake and (failed := failure_to_begin(home, run, ending)) is not None:
        return failed
    verified = _print_run(home, run, console, as_json, ended=ending.finished is not None)
    return print_exit(run, ending, verified, console)


def leave_alone(home: Path, record: Record, console: Console, wake: bool) -> None:
    """Print how to come back to a run or a campaign that goes on without a client."""
    if wake:
        wake_up(home, record.uuid)
    name = short(record.uuid)
    text = f"{name_of(record)} goes on by itself; `hilt tui {name}` or `hilt resume {name}` attaches to it"
    print_text(console, text)


def failure_to_begin(home: Path, record: Record, ending: Ending) -> Exit | None:
    """Remove a new run or campaign that failed before its first trial; return the exit code, None for any other."""
    if ending.finished is None or ending.finished.failure is None:
        return None
    with Store(database_path(home)) as store:
        is_campaign = isinstance(record, Campaign)
        removed = discard_campaign(store, record.uuid) if is_campaign else store.discard_run(record.uuid)
    if not removed:
        return None
    say(ending.finished.detail)
    return exit_of(ending.finished.failure)


def _print_run(home: Path, run: Run, console: Console, as_json: bool, *, ended: bool) -> bool:
    """Print the results; return whether a verified configuration was found."""
    with Store(database_path(home)) as store:
        now = store.run(run.uuid)
        if as_json:
            print_json(run_json(store, now, RunFiles(home, run.uuid).is_running()), "run")
        elif ended:
            print_text(console, summary_text(store, now))
        # A dataset answers from records: nothing is verified, and a run with a valid answer is a success.
        recorded = run.board.startswith(DATASET_PREFIX) and store.counts(run.uuid).get(Outcome.OK, 0) > 0
        return recorded or store.best(run.uuid) is not None


def print_exit(record: Record, ending: Ending, verified: bool, console: Console) -> Exit:
    """Return the exit code of a run or a campaign that was followed; print how to go on with one that was left."""
    if ending.finished is None:
        name = short(record.uuid)
        print_text(console, f"left {name_of(record)}, which stops when the board is done; `hilt resume {name}` goes on")
        return Exit.INTERRUPTED
    return exit_after(record, ending, verified)
