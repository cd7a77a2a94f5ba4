"""Folders of up to a hundred megabytes that killed builders of models left in the cache."""

from __future__ import annotations

import fcntl
import shutil
from contextlib import ExitStack
from pathlib import Path


def remove_leftovers(models: Path) -> None:
    """Remove the folders of builders that no longer build, unless one builds here now.

    A builder makes its folder while it holds the lock of its model. A folder that was there before all locks were free
    is no builder's.
    """
    left = list(models.glob(".building-*"))
    if left and not _is_building(models):
        for folder in left:
            shutil.rmtree(folder, ignore_errors=True)


def _is_building(models: Path) -> bool:
    for path in models.glob("*.lock"):
        with ExitStack() as stack:
            try:
                lock = stack.enter_context(path.open("rb"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # it is held, or another user's
                return True
    return False
