"""The schedule file: written as version 2, read as 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.report.schedule_file import ScheduleFileError, read_schedule
from hilt.schedule import load_workload

TEXT = "conv2d:n=1,ci=32,h=14,w=14,co=32,k=3x3,s=1x1,p=1x1"
KNOBS = {"tile_b": 1, "tile_h": 7}


def written(folder: Path, version: int, key: str, **more: Any) -> Path:
    layers = [
        {"workload": "a", "operator": TEXT, "schedule": {key: KNOBS, "index": 3}},
        {"workload": "b", "nodes": [], "schedule": None, "fallback": None},
    ]
    path = folder / "schedule.json"
    path.write_text(json.dumps({"format": "hilt-schedule", "version": version, "layers": layers} | more))
    return path


@pytest.mark.parametrize(("version", "key"), [(1, "configuration"), (2, "knobs")])
def test_both_versions_are_read(tmp_path: Path, version: int, key: str) -> None:
    assert read_schedule(written(tmp_path, version, key)) == {load_workload(TEXT): KNOBS}


@pytest.mark.parametrize(
    ("version", "key", "more", "message"),
    [
        (3, "knobs", {}, "has version 3; this hilt reads up to 2"),
        (2, "configuration", {}, "a layer has no 'knobs'"),
        (2, "knobs", {"format": "bundle"}, "is no schedule file; `hilt campaign`"),
    ],
)
def test_another_file_is_refused_in_one_line(
    tmp_path: Path, version: int, key: str, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScheduleFileError, match=message):
        read_schedule(written(tmp_path, version, key, **more))
