"""Deletes runs and campaigns: their records, and their directories."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from hilt.engine.errors import SettingsError
from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, Run, Store
from hilt.store.labels import remove


def delete(store: Store, home: Path, record: Run | Campaign) -> int:
    """Delete a run, or a campaign with the runs of its layers; return the number of trials that are gone.

    The records go first: a directory that is left by a crash is of no run.

    Raises:
        RunBusyError: An engine holds it.
        SettingsError: It is the run of a campaign's layer.
        StoreError: The store cannot be written.
    """
    if isinstance(record, Run) and record.campaign is not None and store.campaign(record.campaign) is not None:
        raise SettingsError(
            f"run {record.uuid[:8]} is a layer of campaign {record.campaign[:8]}; "
            f"`hilt delete {record.campaign[:8]}` deletes the campaign with all its layers"
        )
    runs = store.runs_of(record.uuid) if isinstance(record, Campaign) else [record]
    files = [RunFiles(home, uuid) for uuid in dict.fromkeys([record.uuid, *(run.uuid for run in runs)])]
    with ExitStack() as stack:
        for run_files in files:
            stack.enter_context(run_files.locked())
        trials = sum(sum(store.counts(run.uuid).values()) for run in runs)
        remove(store, record)
    for run_files in files:
        shutil.rmtree(run_files.directory, ignore_errors=True)
    return trials
