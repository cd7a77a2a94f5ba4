"""Kernel Tuner's cache files (its schema 1.0.0) from and to datasets.

`time` is in milliseconds, or the name of an error. A row that hilt's compiler rejects is a CompilationFailedConfig,
other failures are a RuntimeFailedConfig. Kernel Tuner leaves out rows that its restrictions refuse; hilt marks them as
absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

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

FORM = "kerneltuner"
_OBJECTIVE = "time"
_ERRORS = {
    "CompilationFailedConfig": Outcome.REJECTED,
    "InvalidConfig": Outcome.REJECTED,
    "RuntimeFailedConfig": Outcome.CRASH,
}
_SPENT = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")


def read_kernel_tuner(text: str, name: str) -> RecordedSpace:
    """Return the recorded space of a cache file's text. Raises DatasetError."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"it is not JSON ({error}); Kernel Tuner closes a cache file when it ends") from error
    cache = content.get("cache") if isinstance(content, dict) else None
    if not isinstance(cache, dict):
        raise DatasetError("it has no object `cache`, as a cache file of Kernel Tuner has")
    if content.get("objective", _OBJECTIVE) != _OBJECTIVE:
        raise DatasetError(f"its objective is {str(content['objective'])[:40]!r}; hilt reads {_OBJECTIVE}")
    keys = content.get("tune_params_keys")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
        raise DatasetError("its `tune_params_keys` are no list of different names")
    rows = [_values(line, keys, key) for key, line in cache.items()]
    space = RecordedSpace(
        name, _knobs(content.get("tune_params"), keys, rows), _text(content, "device_name"),
        _text(content, "kernel_name"), FORM,
    )  # fmt: skip
    space.records = [_record(values, line) for values, line in zip(rows, cache.values(), strict=True)]
    return space


def _text(content: Mapping[str, Any], name: str) -> str:
    return str(content.get(name, ""))[:200]


def _values(line: object, keys: list[str], key: str) -> list[Value]:
    if not isinstance(line, dict):
        raise DatasetError(f"its configuration {key[:60]!r} is no object")
    missing = [name for name in keys if not isinstance(line.get(name), int | float | str)]
    if missing:
        raise DatasetError(f"its configuration {key[:60]!r} has no value of {missing[0]}")
    return [line[name] for name in keys]


def _knobs(described: object, keys: list[str], rows: list[list[Value]]) -> dict[str, list[Value]]:
    """Return the values of each knob: the file's own, or those of its configurations."""
    if described is None:
        return {name: sorted({row[place] for row in rows}, key=order_of) for place, name in enumerate(keys)}
    if not isinstance(described, dict) or not all(isinstance(described.get(name), list) for name in keys):
        raise DatasetError("its `tune_params` have no list of values for each knob")
    return {name: described[name] for name in keys}


def _record(values: list[Value], line: Mapping[str, Any]) -> SpaceRecord:
    time = line.get(_OBJECTIVE)
    error = time if isinstance(time, str) else line.get("__error__")
    if error is not None:
        return SpaceRecord(values, _ERRORS.get(str(error), Outcome.CRASH), reason=str(error))
    if isinstance(time, bool) or not isinstance(time, int | float):
        raise DatasetError(f"its configuration {str(values)[:60]} has no `time`")
    return SpaceRecord(values, Outcome.OK, 1000.0 * time)


def write_kernel_tuner(dataset: Dataset, file: TextIO, device: str, kernel: str, size: int) -> None:
    """Write a dataset's configurations, absent ones left out; `size` is Kernel Tuner's problem size."""
    knobs = values_of(dataset)
    head = {
        "schema_version": "1.0.0",
        "device_name": device,
        "kernel_name": kernel,
        "problem_size": [size],
        "tune_params_keys": list(knobs),
        "tune_params": knobs,
        "objective": _OBJECTIVE,
    }
    file.write(f'{json.dumps(head)[:-1]}, "cache": {{\n')
    file.writelines(_joined(_lines(dataset, knobs)))
    file.write("\n}}\n")


def _lines(dataset: Dataset, knobs: Mapping[str, list[Value]]) -> Iterator[str]:
    stamp = datetime.fromtimestamp(dataset.metadata["made"]["at"], UTC).isoformat()
    spent = dict.fromkeys(_SPENT, 0)
    for index in range(len(dataset)):
        reason = dataset.reason_of(index)
        if reason == ABSENT:
            continue
        values = values_at(index, knobs)
        line: dict[str, Any] = dict(zip(knobs, values, strict=True))
        line |= {"time": _time(dataset, index, reason), **spent, "timestamp": stamp}
        yield f"{json.dumps(','.join(map(str, values)))}: {json.dumps(line)}"


def _time(dataset: Dataset, index: int, reason: str) -> float | str:
    """Return milliseconds, or the name of an error."""
    outcome = dataset.outcome_of(index)
    if outcome is Outcome.OK:
        return float(dataset.microseconds[index]) / 1000.0
    if reason in _ERRORS:
        return reason
    return "CompilationFailedConfig" if outcome is Outcome.REJECTED else "RuntimeFailedConfig"


def _joined(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f",\n{line}" if number else line
