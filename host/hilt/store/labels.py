"""Labels that people give to runs and campaigns: tags, a note, and whether it is archived; and their removal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from hilt.store.database import Store
from hilt.store.records import Campaign, Run

MOST_TAGS = 32
LONGEST_TAG = 40
LONGEST_NOTE = 4000


class LabelError(ValueError):
    """A tag or a note that cannot be kept."""


@dataclass(frozen=True)
class Labels:
    """The labels of a run or a campaign. Tags are in alphabetical order, each once."""

    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False

    def tagged(self, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Labels:
        """Return the labels with more or fewer tags. Raises LabelError for a tag that is none."""
        wanted = {_tag(text) for text in add}
        tags = tuple(sorted((set(self.tags) | wanted) - set(remove)))
        if len(tags) > MOST_TAGS:
            raise LabelError(f"{len(tags)} tags are too many; keep at most {MOST_TAGS}")
        return Labels(tags, self.note, self.archived)

    def noted(self, note: str) -> Labels:
        """Return the labels with another note; empty removes it. Raises LabelError for one that is too long."""
        if len(note) > LONGEST_NOTE:
            raise LabelError(f"the note has {len(note):,} characters; keep to {LONGEST_NOTE:,}")
        return Labels(self.tags, note.strip(), self.archived)

    def put_away(self, archived: bool) -> Labels:
        """Return the labels as archived or not."""
        return Labels(self.tags, self.note, archived)


def labels_of(store: Store, uuid: str) -> Labels:
    """Return the labels of a run or campaign; empty ones if nobody gave any. Raises StoreError."""
    return all_labels(store).get(uuid, Labels())


def all_labels(store: Store) -> dict[str, Labels]:
    """Return the labels by uuid, for those that have any. Raises StoreError."""
    rows = store.rows("SELECT uuid, tags, note, archived FROM labels")
    return {row[0]: Labels(tuple(json.loads(row[1])), row[2], bool(row[3])) for row in rows}


def set_labels(store: Store, uuid: str, labels: Labels) -> None:
    """Store the labels of a run or campaign. Raises StoreError."""
    with store.writing() as connection:
        connection.execute(
            "INSERT INTO labels (uuid, tags, note, archived) VALUES (?, ?, ?, ?) ON CONFLICT (uuid) DO UPDATE SET "
            "tags = excluded.tags, note = excluded.note, archived = excluded.archived",
            (uuid, json.dumps(list(labels.tags)), labels.note, int(labels.archived)),
        )


def remove(store: Store, record: Run | Campaign) -> list[str]:
    """Remove a run, or a campaign with its layers' runs, with trials and labels; return the uuids. Raises StoreError.

    The caller holds their locks (hilt.engine.deletion).
    """
    runs = [run.uuid for run in store.runs_of(record.uuid)] if isinstance(record, Campaign) else [record.uuid]
    uuids = list(dict.fromkeys([*runs, record.uuid]))
    with store.writing() as connection:
        connection.executemany("DELETE FROM runs WHERE uuid = ?", [(uuid,) for uuid in runs])
        connection.execute("DELETE FROM campaigns WHERE uuid = ?", (record.uuid,))
        connection.executemany("DELETE FROM labels WHERE uuid = ?", [(uuid,) for uuid in uuids])
    return uuids


def _tag(text: str) -> str:
    if (
        not text
        or len(text) > LONGEST_TAG
        or not text.isprintable()
        or any(char.isspace() or char == "," for char in text)
    ):
        raise LabelError(f"{text!r} is no tag; give at most {LONGEST_TAG} characters without spaces and commas")
    return text
