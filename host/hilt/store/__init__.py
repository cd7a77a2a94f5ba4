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
from hilt.store.remeasurements import (
    DRIFT_TOLERANCE,
    ROUNDS,
    Confirmed,
    Purpose,
    Remeasurement,
    certainty,
    is_decided,
    largest_drift,
    with_noise,
)
from hilt.trial import Trial

__all__ = [
    "DRIFT_TOLERANCE",
    "ROUNDS",
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
    "certainty",
    "database_path",
    "is_decided",
    "largest_drift",
    "with_noise",
]


def database_path(home: Path) -> Path:
    """Return the path of the database of a hilt home."""
    return home / FILE_NAME
