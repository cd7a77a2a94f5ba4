"""AutoTVM's tuning logs: one JSON record a line, as TVM v0.9 writes and reads them.

    {"input": [target, task, args, {}], "config": {"index": .., "code_hash": null, "entity": [[knob, kind, value], ..]},
     "result": [[seconds, ..], error number, seconds it all took, time], "version": 0.2, "tvm_version": "0.9.0"}

A split has [-1, inner factor] or [outer factor, inner factor] ("sp"), any other knob the value itself ("ot"). A
failed measurement costs 1e9. TVM v0.9 reads no line of version 0.1, which older releases wrote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from hilt.atomic_write import atomic_write

LOG_VERSION = 0.2
OUTDATED_VERSION = 0.1
TVM_VERSION = "0.9.0"
FAILED_COST = 1e9


class LogFormatError(ValueError):
    """A log that is none of AutoTVM's, or of something that hilt has not; the message names file and line."""


class OutdatedLogError(LogFormatError):
    """A line of log version 0.1, which TVM v0.9 skips with a warning."""


class ErrorNumber(IntEnum):
    """MeasureErrorNo of TVM v0.9 (docs/TVM_FACTS.md section 4)."""

    OK = 0
    INSTANTIATION = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN = 8


@dataclass(frozen=True)
class LogRecord:
    """One line of a log.

    `args` are JSON values. `entity` is (knob, kind, value) with kind `sp` or `ot` and the inner factor or the value.
    `costs` are seconds, (FAILED_COST,) for a failure; `all_cost` is in seconds, `timestamp` since the epoch.
    """

    target: str
    task: str
    args: tuple[Any, ...]
    index: int
    entity: tuple[tuple[str, str, int], ...]
    costs: tuple[float, ...]
    error: ErrorNumber
    all_cost: float
    timestamp: float
    tvm_version: str = TVM_VERSION

    @property
    def model(self) -> str:
        """The model of the target, as in `pynq_1x16_i8w8a32_15_15_18_17`; empty if it names none."""
        words = [word for word in self.target.split() if word.startswith("-model=")]
        return words[-1].removeprefix("-model=") if words else ""


def encode(record: LogRecord) -> str:
    """Return the line of a record, without the end of line."""
    entity = [[knob, kind, [-1, value] if kind == "sp" else value] for knob, kind, value in record.entity]
    return json.dumps(
        {
            "input": [record.target, record.task, list(record.args), {}],
            "config": {"index": record.index, "code_hash": None, "entity": entity},
            "result": [list(record.costs), int(record.error), record.all_cost, record.timestamp],
            "version": LOG_VERSION,
            "tvm_version": record.tvm_version,
        }
    )


def decode(line: str) -> LogRecord:
    """Return the record of a line. Raises LogFormatError without the line's number."""
    try:
        values = json.loads(line)
        version = values.get("version", values.get("v"))
        if version == OUTDATED_VERSION:
            raise OutdatedLogError(f"log version {version}; TVM v0.9 reads {LOG_VERSION} and skips this line")
        if version != LOG_VERSION:
            raise LogFormatError(f"log version {version}; TVM v0.9 writes {LOG_VERSION}")
        target, task, args, keywords = values["input"]
        if keywords:
            raise LogFormatError(f"keyword arguments {keywords}; VTA's tasks have none")
        costs, error, all_cost, timestamp = values["result"]
        if error == ErrorNumber.OK and not (costs and all(0 < float(cost) < FAILED_COST for cost in costs)):
            raise LogFormatError(f"costs {costs}; a measurement that went well has seconds, above 0 and below 1e9")
        if not math.isfinite(float(all_cost)) or not math.isfinite(float(timestamp)):
            raise LogFormatError(f"it took {all_cost} s at {timestamp}; both must be finite")
        return LogRecord(
            target=str(target),
            task=str(task),
            args=tuple(args),
            index=int(values["config"]["index"]),
            entity=tuple(_knob(*knob) for knob in values["config"]["entity"]),
            costs=tuple(float(cost) for cost in costs),
            error=ErrorNumber(error),
            all_cost=float(all_cost),
            timestamp=float(timestamp),
            tvm_version=str(values.get("tvm_version", "")),
        )
    except LogFormatError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise LogFormatError(f"not a record of AutoTVM's: {type(error).__name__} {error}") from error


def _knob(name: str, kind: str, value: Any) -> tuple[str, str, int]:
    if kind == "sp":
        outer, inner = value
        if outer != -1 and (type(outer) is not int or outer < 1):
            raise LogFormatError(f"knob {name} splits into {value}; a split is [-1, inner] or [outer, inner]")
        return name, kind, int(inner)
    if kind == "ot":
        return name, kind, int(value)
    raise LogFormatError(f"knob {name} is of kind {kind!r}; VTA's are sp and ot")


def read_log(path: Path) -> list[tuple[int, LogRecord]]:
    """Return records with their line numbers, from 1.

    Empty lines and lines that begin with # are left out, as in TVM. Raises LogFormatError, and OSError if the file
    cannot be read.
    """
    records = []
    for number, record in parse_log(path):
        if isinstance(record, OutdatedLogError):
            raise LogFormatError(f"{path}, line {number}: {record}") from record
        records.append((number, record))
    return records


def parse_log(path: Path) -> Iterator[tuple[int, LogRecord | OutdatedLogError]]:
    """Yield each line's number and record; of a line of version 0.1 its error.

    Raises:
        LogFormatError: The file is no text, or a line is no record.
        OSError: The file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise LogFormatError(f"{path} is not text: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            yield number, decode(line)
        except OutdatedLogError as error:
            yield number, error
        except LogFormatError as error:
            raise LogFormatError(f"{path}, line {number}: {error}") from error


def write_log(path: Path, records: Iterable[LogRecord]) -> None:
    """Write a line for each record; the file is whole or unchanged. Raises OSError."""
    with atomic_write(path) as file:
        file.writelines(encode(record) + "\n" for record in records)
