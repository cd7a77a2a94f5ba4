"""`hilt delete`, `hilt archive`, `hilt tag` and `hilt note`: order in the list of runs and campaigns."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hilt import paths
from hilt.cli.following import name_of
from hilt.cli.plain_text import plain
from hilt.cli.prose import say_text
from hilt.store import Campaign, Run, Store, database_path
from hilt.store.identifiers import run_or_campaign

Identifier = Annotated[
    str, typer.Argument(metavar="ID", help="The id of a run or a campaign, the beginning of it, or `last`.")
]
Identifiers = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Ids of runs or campaigns, beginnings of them, or `last`.")
]


def delete(
    identifiers: Identifiers,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete runs and campaigns with their trials, logs and reports, for good. Asks first.

    One that is running, or that is a layer of a campaign, is not deleted.
    """
    from hilt.engine.deletion import delete as delete_record

    home = paths.home()
    with Store(database_path(home)) as store:
        records = _records(store, identifiers)
        if not yes and not _confirmed(store, records):
            say_text("nothing is deleted")
            raise typer.Exit(1)
        for record in records:
            trials = delete_record(store, home, record)
            say_text(f"{name_of(record)} is deleted, with {trials} trials")


def archive(
    identifiers: Identifiers,
    undo: Annotated[bool, typer.Option("--undo", help="List them again.")] = False,
) -> None:
    """Leave runs and campaigns out of `hilt runs`, `hilt campaigns` and the terminal UI; nothing of them is lost.

    `hilt runs --all` lists them too, and every command takes them by their ids.
    """
    from hilt.store.labels import labels_of, set_labels

    with Store(database_path(paths.home())) as store:
        for record in _records(store, identifiers):
            set_labels(store, record.uuid, labels_of(store, record.uuid).put_away(not undo))
            say_text(f"{name_of(record)} is {'listed again' if undo else 'archived'}")


def tag(
    identifier: Identifier,
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Words without spaces and commas.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take these tags away.")] = False,
) -> None:
    """Give a run or a campaign tags; `hilt runs --tag TAG` lists those that have it."""
    from hilt.store.labels import labels_of, set_labels

    with Store(database_path(paths.home())) as store:
        record = run_or_campaign(store, identifier)
        before = labels_of(store, record.uuid)
        after = before.tagged(remove=tags) if remove else before.tagged(add=tags)
        set_labels(store, record.uuid, after)
    say_text(f"{name_of(record)}: {', '.join(after.tags) or 'no tags'}")


def note(
    identifier: Identifier,
    text: Annotated[str | None, typer.Argument(help="The note; '' removes it. Prints the note unless given.")] = None,
) -> None:
    """Write a note on a run or a campaign, in place of the one before, or print it."""
    from hilt.store.labels import labels_of, set_labels

    with Store(database_path(paths.home())) as store:
        record = run_or_campaign(store, identifier)
        labels = labels_of(store, record.uuid)
        if text is not None:
            labels = labels.noted(text)
            set_labels(store, record.uuid, labels)
    say_text(f"{name_of(record)}: {plain(labels.note) or 'no note'}")


def _records(store: Store, identifiers: list[str]) -> list[Run | Campaign]:
    """Return the records, each once. Raises UnknownRunError before anything is done to any of them."""
    found = [run_or_campaign(store, identifier) for identifier in identifiers]
    return list({record.uuid: record for record in found}.values())


def _confirmed(store: Store, records: list[Run | Campaign]) -> bool:
    if not sys.stdin.isatty():
        raise typer.BadParameter("delete asks first, and there is no terminal to answer; --yes deletes without asking")
    for record in records:
        runs = store.runs_of(record.uuid) if isinstance(record, Campaign) else [record]
        trials = sum(sum(store.counts(run.uuid).values()) for run in runs)
        subject = record.name if isinstance(record, Campaign) else record.workload
        say_text(f"{name_of(record)}: {subject}, {trials} trials")
    return typer.confirm("Delete them for good?")
