"""Finds the run or campaign of this home that holds a board."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from hilt.engine.run_files import RunFiles
from hilt.measure import board_names_of
from hilt.store import RunState, Store

_GOING = (RunState.CREATED, RunState.RUNNING, RunState.PAUSED)


def holder_of(store: Store, home: Path, board: str, waiting: str) -> str | None:
    """Return the holder of a board and the time it began, as in `campaign 1234abcd (resnet18) since 21:04:11`.

    Args:
        store: The database of `home`.
        home: The directory of runs; holders of other homes are not found.
        board: One board, or several with commas between.
        waiting: The uuid of the run or campaign that wants the board.

    Returns:
        None if no other engine of this home works on any of these boards.
    """
    names = set(board_names_of(board))
    for run in store.runs():
        owner = run.campaign or run.uuid
        if owner == waiting or run.state not in _GOING or not names & set(board_names_of(run.board)):
            continue
        files = RunFiles(home, owner)
        if files.is_running():
            campaign = store.campaign(run.campaign) if run.campaign else None
            title = f"campaign {owner[:8]} ({campaign.name})" if campaign else f"run {owner[:8]} ({run.workload})"
            since = datetime.fromtimestamp(files.lock_path.stat().st_mtime).astimezone()
            return f"{title} since {since:%H:%M:%S}"
    return None
