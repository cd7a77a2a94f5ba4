"""Options of the lists of runs and campaigns: tags, and archived ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from hilt.store.labels import Labels

ListTag = Annotated[str | None, typer.Option("--tag", help="Only those with this tag (`hilt tag`).")]
ListAll = Annotated[bool, typer.Option("--all", help="List archived ones too.")]


def is_listed(labels: Mapping[str, Labels], uuids: Sequence[str], tag: str | None, all_of_them: bool) -> bool:
    """Return whether a record is in the list: `uuids` are its own, and that of its campaign."""
    own = [labels.get(uuid, Labels()) for uuid in uuids]
    if tag is not None and not any(tag in entry.tags for entry in own):
        return False
    return all_of_them or not any(entry.archived for entry in own)


def nothing_listed(kind: str, command: str, tag: str | None, labels: Mapping[str, Labels]) -> str:
    """Return the line in place of an empty list."""
    archived = any(entry.archived for entry in labels.values())
    if tag is not None:
        return f"no {kind} with the tag {tag!r}{'; --all looks among archived ones too' if archived else ''}"
    if archived:
        return f"no {kind} that are not archived; --all lists those"
    return f"no {kind} yet; `{command}` makes the first"
