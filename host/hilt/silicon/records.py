"""Measurements of physical boards, one JSON object a line, as taken from TVM's published tuning logs."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilt.silicon.packed_task import DENSE, PackedTask, TaskError, packed_task
from hilt.vta.parameters import ParameterError, VTAParameters

_MOST_BYTES = 64 << 20
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LARGEST = 1 << 20


class RecordError(ValueError):
    """A file of measurements that cannot be read; the message says which and why."""


@dataclass(frozen=True)
class BoardRecord:
    """One configuration measured on one board.

    Attributes:
        line: Line of the file, from 1.
        board: The board and its geometry, such as `pynq_1x16_i8w8a32_15_15_18_17`.
        parameters: Geometry from that name.
        task: The packed workload.
        knobs: Inner factors and threads.
        seconds: Repeats of the measurement; empty where none is given.
        date: Day of the measurement, YYYY-MM-DD, or None.
        doubt: Why the seconds cannot be the configuration's, or None.
    """

    line: int
    board: str
    parameters: VTAParameters
    task: PackedTask
    knobs: dict[str, int]
    seconds: tuple[float, ...]
    date: str | None
    doubt: str | None

    @property
    def mean_seconds(self) -> float | None:
        """Mean of the repeats."""
        return sum(self.seconds) / len(self.seconds) if self.seconds else None

    @property
    def below_mac_bound(self) -> bool:
        """Return whether the seconds are less than a micro-op a cycle at 100 MHz allows."""
        mean = self.mean_seconds
        return mean is not None and mean < self.task.micro_ops / 100e6


@dataclass(frozen=True)
class Skipped:
    """One line that is no record hilt can predict, and why."""

    line: int
    reason: str


@dataclass(frozen=True)
class RecordFile:
    """The records of a file, its lines that are none, and the sha256 of its bytes."""

    records: list[BoardRecord]
    skipped: list[Skipped]
    sha256: str


def read_records(path: Path) -> RecordFile:
    """Return the records of a file of measurements; blank lines count as nothing.

    Raises:
        RecordError: The file cannot be read or is larger than 64 MiB.
    """
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise RecordError(f"records {path}: {size} bytes; hilt reads at most {_MOST_BYTES}, so split the file")
        contents = path.read_bytes()
    except OSError as error:
        raise RecordError(f"records {path}: cannot be read ({error.strerror}); check the path") from error
    records: list[BoardRecord] = []
    skipped: list[Skipped] = []
    for number, line in enumerate(contents.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(number, json.loads(line)))
        except (TaskError, ParameterError) as error:
            skipped.append(Skipped(number, str(error)))
        except (ValueError, RecursionError) as error:
            skipped.append(Skipped(number, f"not a JSON object: {error}"))
    return RecordFile(records, skipped, hashlib.sha256(contents).hexdigest())


def _record(line: int, values: Any) -> BoardRecord:
    if not isinstance(values, dict):
        raise TaskError(f"a {type(values).__name__}; a record is a JSON object")
    board = _text(values, "board")
    if not board.startswith("pynq_"):
        raise TaskError(f"board {board!r}: the machine models are of PYNQ boards, named pynq_GEOMETRY")
    parameters = VTAParameters.from_name(board.removeprefix("pynq_"))
    kind = _text(values, "task")
    pairs = {"strides": (1, 1), "padding": (0, 0)}
    for name in pairs:
        if kind != DENSE or values.get(name) is not None:
            pairs[name] = _pair(values, name)
    task = packed_task(kind, _sizes(values, "data"), _sizes(values, "kernel"), pairs["strides"], pairs["padding"])
    task.check_geometry(parameters)
    return BoardRecord(line, board, parameters, task, _knobs(values), _seconds(values), _date(values), _doubt(values))


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise TaskError(f"{name} is {value!r}; it must be a text")
    return value[:200]


def _sizes(values: Mapping[str, Any], name: str) -> tuple[int, ...]:
    value = values.get(name)
    if not isinstance(value, list) or not all(type(size) is int and 0 < size <= _LARGEST for size in value):
        raise TaskError(f"{name} is {value!r}; it must be a list of sizes of 1 to {_LARGEST}")
    return tuple(value)


def _pair(values: Mapping[str, Any], name: str) -> tuple[int, int]:
    """Two numbers, or TVM's four of padding where both sides are alike."""
    value = values.get(name)
    if isinstance(value, list) and len(value) == 4 and name == "padding" and value[:2] == value[2:]:
        value = value[:2]
    if (
        not isinstance(value, list)
        or len(value) != 2
        or not all(type(size) is int and 0 <= size < 256 for size in value)
    ):
        raise TaskError(f"{name} is {value!r}; it must be two numbers of 0 to 255")
    return value[0], value[1]


def _knobs(values: Mapping[str, Any]) -> dict[str, int]:
    knobs = values.get("knobs")
    if not isinstance(knobs, dict) or not all(type(value) is int for value in knobs.values()):
        raise TaskError(f"knobs are {knobs!r}; they must be an object of inner factors")
    return knobs


def _seconds(values: Mapping[str, Any]) -> tuple[float, ...]:
    """Repeats; none where the field is missing or null."""
    given = values.get("seconds")
    if given is None:
        return ()
    repeats = given if isinstance(given, list) else [given]
    if not all(type(value) in (int, float) and math.isfinite(value) and 0 < value < 1e6 for value in repeats):
        raise TaskError(f"seconds are {given!r}; they must be positive numbers")
    return tuple(float(value) for value in repeats)


def _date(values: Mapping[str, Any]) -> str | None:
    value = values.get("measured")
    if value is None:
        return None
    if not isinstance(value, str) or not _DATE.match(value):
        raise TaskError(f"measured is {value!r}; it must be a date as 2019-07-11")
    return value[:10]


def _doubt(values: Mapping[str, Any]) -> str | None:
    value = values.get("doubt")
    return None if value is None else str(value)[:200]
