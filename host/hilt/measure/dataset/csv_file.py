"""Datasets as CSV: a column for each knob, then `outcome`, `reason` and `microseconds`."""

from __future__ import annotations

import csv
import io
import math
from typing import TextIO

from hilt.measure.dataset.dataset import Dataset, DatasetError
from hilt.measure.dataset.recorded_space import (
    ABSENT,
    RecordedSpace,
    SpaceRecord,
    Value,
    order_of,
    values_at,
    values_of,
)
from hilt.trial import Outcome

FORM = "csv"
_RESULTS = ("outcome", "reason", "microseconds")
_LATENCY = "microseconds"


def read_csv(text: str, name: str) -> RecordedSpace:
    """Return the recorded space of a CSV's text: a column `microseconds`, knobs, and perhaps `outcome` and `reason`.

    Without an outcome a configuration is ok where it has a latency, and crashed elsewhere. Raises DatasetError.
    """
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        columns = next(rows, [])
        if _LATENCY not in columns or len(set(columns)) != len(columns):
            raise DatasetError(f"its first line has no column {_LATENCY!r}, or a column twice")
        knobs = [place for place, column in enumerate(columns) if column not in _RESULTS]
        records = [_record(row, columns, knobs, line) for line, row in enumerate(rows, 2) if row]
    except csv.Error as error:
        raise DatasetError(f"it is no CSV ({error})") from error
    values = {
        columns[place]: sorted({record.values[number] for record in records}, key=order_of)
        for number, place in enumerate(knobs)
    }
    return RecordedSpace(name, values, form=FORM, records=records)


def _record(row: list[str], columns: list[str], knobs: list[int], line: int) -> SpaceRecord:
    if len(row) != len(columns):
        raise DatasetError(f"line {line} has {len(row)} fields; the first has {len(columns)}")
    fields = dict(zip(columns, row, strict=True))
    latency, word = fields[_LATENCY], fields.get("outcome", "")
    try:
        outcome = Outcome(word) if word else (Outcome.OK if latency else Outcome.CRASH)
        microseconds = float(latency) if outcome is Outcome.OK else None
    except ValueError:
        told = f"outcome {word[:40]!r}, {_LATENCY} {latency[:40]!r}"
        raise DatasetError(f"line {line} has no result: {told}") from None
    if outcome is Outcome.BOARD_LOST:
        raise DatasetError(f"line {line}: a lost board is no result")
    return SpaceRecord([_value(row[place]) for place in knobs], outcome, microseconds, fields.get("reason", ""))


def _value(text: str) -> Value:
    """Return an integer or a finite number where the text is one."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def write_csv(dataset: Dataset, file: TextIO) -> None:
    """Write a row for each configuration in the order of the index, absent ones left out."""
    knobs = values_of(dataset)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*knobs, *_RESULTS])
    for index in range(len(dataset)):
        reason, outcome = dataset.reason_of(index), dataset.outcome_of(index)
        if reason == ABSENT:
            continue
        latency = repr(float(dataset.microseconds[index])) if outcome is Outcome.OK else ""
        writer.writerow([*values_at(index, knobs), str(outcome), reason, latency])
