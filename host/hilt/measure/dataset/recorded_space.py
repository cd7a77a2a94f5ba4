"""Datasets of any accelerator: a dataset whose space and results came from a file.

Its `identity` has `space`, the values of each knob, as a dataset of hilt's own has, and `imported`, where it is from. A
cycle is a picosecond, so latencies keep six digits of a microsecond. A configuration that the file does not have counts
as rejected with reason `absent`: a restriction of the space, or not measured.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilt.measure.dataset.build import provenance
from hilt.measure.dataset.dataset import LARGEST_METADATA, Dataset, DatasetError
from hilt.measure.dataset.dataset_key import SCHEMA
from hilt.measure.dataset.outcomes import OUTCOMES
from hilt.schedule.space import Knob, Space
from hilt.trial import Outcome

Value = int | float | str | bool
PICOSECONDS = 10**12
"""The clock of an imported dataset, in Hz."""
ABSENT = "absent"
LARGEST_FILE = 256 << 20
"""Most bytes of a file that is read."""
MOST_CONFIGURATIONS = 1 << 24
"""Most configurations of the Cartesian product."""
MOST_KNOBS, MOST_VALUES = 64, 4096
_MOST_REASONS = 200
_LONGEST_TEXT = 200
_LONGEST_MICROSECONDS = 1e9


@dataclass(frozen=True)
class SpaceRecord:
    """The result of one configuration; latency in microseconds where the outcome is ok."""

    values: Sequence[Value]
    outcome: Outcome
    microseconds: float | None = None
    reason: str = ""


@dataclass
class RecordedSpace:
    """A space and its recorded results, as a file has them. Raises DatasetError for a space that hilt cannot hold."""

    name: str
    knobs: Mapping[str, Sequence[Value]]
    device: str = ""
    kernel: str = ""
    form: str = ""
    records: list[SpaceRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.knobs or len(self.knobs) > MOST_KNOBS:
            raise DatasetError(f"it has {len(self.knobs)} knobs; it must have 1 to {MOST_KNOBS}")
        for name, values in self.knobs.items():
            _check_knob(name, values)
        size = math.prod(len(values) for values in self.knobs.values())
        if size > MOST_CONFIGURATIONS:
            raise DatasetError(f"its knobs span {size:,} configurations; at most {MOST_CONFIGURATIONS:,} are read")
        if not all(len(text) <= _LONGEST_TEXT for text in (self.name, self.device, self.kernel)):
            raise DatasetError(f"a name is longer than {_LONGEST_TEXT} characters")

    def dataset(self) -> Dataset:
        """Return the dataset. Raises DatasetError for a record that is outside the space, twice, or no latency."""
        space = space_of_values(self.knobs)
        reasons = ["", ABSENT]
        outcome = np.full(len(space), OUTCOMES.index(Outcome.REJECTED), dtype=np.uint8)
        reason = np.ones(len(space), dtype=np.uint8)
        cycles = np.zeros(len(space), dtype=np.uint64)
        places = [{value: place for place, value in enumerate(values)} for values in self.knobs.values()]
        seen = np.zeros(len(space), dtype=np.bool_)
        strides = np.concatenate(([1], np.cumprod(space.sizes)[:-1])).tolist()
        for number, record in enumerate(self.records, 1):
            index = self._index(record, places, strides, number)
            if seen[index]:
                raise DatasetError(f"record {number} is of a configuration that an earlier one has: {record.values}")
            seen[index] = True
            outcome[index] = OUTCOMES.index(record.outcome)
            reason[index] = _number_of(record.reason, reasons)
            cycles[index] = _picoseconds(record, number)
        described = self._metadata(reasons)
        if 4 * len(json.dumps(described)) > LARGEST_METADATA:  # a text of numpy has four bytes a character
            raise DatasetError("the names and values of its knobs are too long")
        return Dataset(described, outcome, reason, cycles)

    def _index(self, record: SpaceRecord, places: list[dict[Value, int]], strides: list[int], number: int) -> int:
        index = 0
        for name, value, place, stride in zip(self.knobs, record.values, places, strides, strict=True):
            if value not in place:
                raise DatasetError(f"record {number}: {name} is {str(value)[:40]!r}, which is none of its values")
            index += place[value] * stride
        return index

    def _metadata(self, reasons: list[str]) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "name": self.name,
            "identity": {
                "schema": SCHEMA,
                "clock_hz": PICOSECONDS,
                "space": {name: list(values) for name, values in self.knobs.items()},
                "imported": {"device": self.device, "kernel": self.kernel, "form": self.form},
            },
            "outcomes": [str(outcome) for outcome in OUTCOMES],
            "reasons": reasons,
            "check": {},
            "made": {"at": time.time(), "seconds": 0.0, **provenance()},
        }


def is_imported(dataset: Dataset) -> bool:
    """Return whether a dataset came from a file: no compiler and no twin of hilt's knows its space."""
    return "imported" in dataset.identity


def values_of(dataset: Dataset) -> dict[str, list[Value]]:
    """Return the values of each knob, the first knob fastest in the index."""
    return {name: list(values) for name, values in dataset.identity["space"].items()}


def space_of(dataset: Dataset) -> Space:
    """Return the space of any dataset; knobs with values other than integers have the values' places instead."""
    return space_of_values(values_of(dataset))


def space_of_values(knobs: Mapping[str, Sequence[Value]]) -> Space:
    """Return the space of these knobs, as `space_of`."""
    return Space([Knob(name, _integers(values), split=False) for name, values in knobs.items()])


def values_at(index: int, knobs: Mapping[str, Sequence[Value]]) -> list[Value]:
    """Return the value of each knob of a configuration."""
    values = []
    for each in knobs.values():
        index, place = divmod(index, len(each))
        values.append(each[place])
    return values


def order_of(value: Value) -> tuple[bool, float, str]:
    """Return a key that sorts numbers by size, then texts."""
    is_text = isinstance(value, str)
    return is_text, 0.0 if is_text else float(value), str(value)


def _integers(values: Sequence[Value]) -> tuple[int, ...]:
    if all(type(value) is int and abs(value) < 1 << 31 for value in values):
        return tuple(int(value) for value in values)
    return tuple(range(len(values)))


def _check_knob(name: str, values: Sequence[Value]) -> None:
    """Raise DatasetError for a knob without a name or with values that are no plain ones, too many, or twice."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_TEXT or not name.isprintable():
        raise DatasetError(f"a knob's name is {str(name)[:40]!r}")
    if not 0 < len(values) <= MOST_VALUES:
        raise DatasetError(f"knob {name} has {len(values)} values; it must have 1 to {MOST_VALUES}")
    for value in values:
        plain = isinstance(value, int | float | str) and len(str(value)) <= _LONGEST_TEXT
        if not plain or (isinstance(value, float) and not math.isfinite(value)):
            raise DatasetError(f"knob {name} has the value {str(value)[:40]!r}; numbers and short texts are read")
    if len(set(values)) != len(values):
        raise DatasetError(f"knob {name} has a value twice")


def _number_of(reason: str, reasons: list[str]) -> int:
    """Return the number of a reason, a new one at the end of `reasons`; those beyond the most are left empty."""
    if reason in reasons:
        return reasons.index(reason)
    if len(reasons) >= _MOST_REASONS:
        return 0
    reasons.append(reason[:_LONGEST_TEXT])
    return len(reasons) - 1


def _picoseconds(record: SpaceRecord, number: int) -> int:
    if record.outcome is not Outcome.OK:
        return 0
    latency = record.microseconds
    if latency is None or not 0 < latency <= _LONGEST_MICROSECONDS:  # NaN is neither
        raise DatasetError(f"record {number}: its latency is {latency}; it must be above 0 and at most 1,000 s")
    return max(round(latency * (PICOSECONDS // 10**6)), 1)
