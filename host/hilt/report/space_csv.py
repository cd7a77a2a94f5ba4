"""A space as CSV, a row for each configuration."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from hilt.atomic_write import atomic_write
from hilt.schedule import Reason, Space
from hilt.schedule.validity_summary import ValiditySummary

_ROWS_AT_ONCE = 1 << 16


def write_space_csv(path: Path, space: Space, summarize_validity: ValiditySummary) -> None:
    """Write the space as CSV; the file is whole or not there. Raises OSError.

    Columns: index, the knobs by name, verdict (accepted or rejected) and reason (empty if accepted).
    """
    words = [("accepted" if reason is Reason.OK else "rejected", _reason_text(reason)) for reason in Reason]
    ordinals = {int(reason): place for place, reason in enumerate(Reason)}
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["index", *space.names, "verdict", "reason"])
        for first in range(0, len(space), _ROWS_AT_ONCE):
            indices = np.arange(first, min(first + _ROWS_AT_ONCE, len(space)))
            knobs = space.values(indices).tolist()
            found = summarize_validity.verdicts[indices].tolist()
            writer.writerows(
                [index, *values, *words[ordinals[reason]]]
                for index, values, reason in zip(indices.tolist(), knobs, found, strict=True)
            )


def _reason_text(reason: Reason) -> str:
    return "" if reason is Reason.OK else reason.text
