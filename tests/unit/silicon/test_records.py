"""Record files: good lines become records, every other line is named with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.silicon.records import RecordError, RecordFile, read_records

GOOD: dict[str, Any] = {
    "board": "pynq_1x16_i8w8a32_15_15_18_17",
    "task": "conv2d_packed.vta",
    "data": [1, 8, 28, 28, 1, 16],
    "kernel": [16, 8, 1, 1, 16, 16],
    "strides": [2, 2],
    "padding": [0, 0],
    "knobs": {"tile_b": 1, "tile_h": 7, "tile_w": 14, "tile_ci": 1, "tile_co": 8, "oc_nthread": 2, "h_nthread": 1},
    "seconds": [0.001, 0.003],
    "measured": "2019-07-11",
}


def read(tmp_path: Path, *lines: object) -> RecordFile:
    file = tmp_path / "records.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return read_records(file)


def test_repeats_are_averaged_and_a_missing_date_or_measurement_is_none(tmp_path: Path) -> None:
    bare = {name: value for name, value in GOOD.items() if name not in ("seconds", "measured")}
    found = read(tmp_path, GOOD, bare, {**GOOD, "seconds": 0.5, "padding": [0, 0, 0, 0]})
    assert [record.mean_seconds for record in found.records] == [0.002, None, 0.5]
    assert [record.date for record in found.records] == ["2019-07-11", None, "2019-07-11"]
    assert found.skipped == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task": "conv2d_nchw.cuda"}, "hilt knows conv2d_packed.vta"),
        ({"board": "pynq_1x16"}, "no name of VTA parameters"),
        ({"board": "ultra96_1x16_i8w8a32_15_15_18_17"}, "of PYNQ boards"),
        ({"data": [1, 8, 28, 28, 4, 8]}, "differ"),
        ({"kernel": [16, 9, 1, 1, 16, 16]}, "no multiple"),
        ({"data": [1, 8, 28, 1 << 30, 1, 16]}, "list of sizes"),
        ({"strides": None}, "two numbers"),
        ({"padding": [0, 0, 1, 1]}, "two numbers"),
        ({"seconds": [-1]}, "positive"),
        ({"seconds": [float("nan")]}, "positive"),
        ({"measured": "yesterday"}, "a date as"),
        ({"knobs": [1, 2]}, "object of inner factors"),
        ({"data": [1, 2, 28, 28, 4, 8], "kernel": [16, 2, 1, 1, 8, 8]}, "but the board's are 1x16"),
    ],
)
def test_a_line_that_is_no_record_is_skipped_with_its_reason(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    found = read(tmp_path, {**GOOD, **change}, GOOD)
    assert len(found.records) == 1
    assert found.skipped[0].line == 1 and reason in found.skipped[0].reason


def test_text_that_is_no_json_is_skipped_too(tmp_path: Path) -> None:
    found = read(tmp_path, "not json", "[1]", "[" * 20000, "", GOOD)
    assert [skip.line for skip in found.skipped] == [1, 2, 3]
    assert [record.line for record in found.records] == [5]


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be read"):
        read_records(tmp_path / "missing.jsonl")
