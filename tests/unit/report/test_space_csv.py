"""A space as CSV: each configuration's row equals the result of lowering.

A file is written whole or not at all.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from hilt.atomic_write import atomic_write
from hilt.report.space_csv import write_space_csv
from hilt.schedule import Rejected, load_workload, lower, space_for
from hilt.schedule.validity_summary import summarize_validity
from tests.unit.schedule.cases import PYNQ


def test_rows_agree_with_lowering(tmp_path: Path) -> None:
    workload = load_workload("resnet18.C9")
    space = space_for(workload, PYNQ)
    found = summarize_validity(workload, PYNQ, space, "strict")
    write_space_csv(tmp_path / "space.csv", space, found)
    with (tmp_path / "space.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["index"]) for row in rows] == list(range(len(space)))
    assert {row["verdict"] for row in rows} == {"accepted", "rejected"}
    for index in np.random.default_rng(9).choice(len(space), 40, replace=False).tolist():
        knobs = {name: int(rows[index][name]) for name in space.names}
        assert knobs == space.knobs_at(index)
        try:
            lower(workload, knobs, PYNQ, "strict")
            said = ("accepted", "")
        except Rejected as rejection:
            said = ("rejected", rejection.reason)
        assert (rows[index]["verdict"], rows[index]["reason"]) == said
    assert found.valid == sum(row["verdict"] == "accepted" for row in rows)
    for reason, count in found.reasons.items():
        assert count == sum(row["reason"] == reason for row in rows)


def test_an_unfinished_file_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("before")
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write("half of it")
        raise RuntimeError
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
    with atomic_write(path) as file:
        file.write("after")
    assert path.read_text() == "after" and list(tmp_path.iterdir()) == [path]
