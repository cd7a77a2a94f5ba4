"""The SQLite database of runs and trials: written by the engine, read by the two faces.

A trial is on disk before any client hears of it; only a trial compared in full can be a best.
"""

from pathlib import Path

from hilt.store.database import FILE_NAME, Store
from hilt.store.errors import (
    AmbiguousRunError,
    CorruptStoreError,
    NewerStoreError,
    StoreError,
    StoreWriteError,
    UnknownRunError,
)
from hilt.store.records import Campaign, Run, RunState, RunSummary, Slice
from hilt.store.remeasurements import DRIFT_TOLERANCE, Confirmed, Purpose, Remeasurement, largest_drift
from hilt.trial import Trial

__all__ = [
    "DRIFT_TOLERANCE",
    "AmbiguousRunError",
    "Campaign",
    "Confirmed",
    "CorruptStoreError",
    "NewerStoreError",
    "Purpose",
    "Remeasurement",
    "Run",
    "RunState",
    "RunSummary",
    "Slice",
    "Store",
    "StoreError",
    "StoreWriteError",
    "Trial",
    "UnknownRunError",
    "database_path",
    "largest_drift",
]


def database_path(home: Path) -> Path:
    """Return the path of the database of a hilt home."""
    return home / FILE_NAME
