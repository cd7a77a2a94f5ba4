"""A sample of TVM's published VTA tuning logs (TopHub, Apache License 2.0), as hilt's record lines.

The seconds were measured on physical PYNQ boards in 2019. Source: the `vta` logs of https://github.com/tlc-pack/tophub.
"""

from __future__ import annotations

from pathlib import Path

from hilt.silicon.measured import MeasuredWorkload, with_programs
from hilt.silicon.records import BoardRecord, read_records

FILE = Path(__file__).with_name("published.jsonl")


def records() -> list[BoardRecord]:
    return read_records(FILE).records


def measured() -> list[MeasuredWorkload]:
    items, refused = with_programs(records())
    assert refused == []
    return items
