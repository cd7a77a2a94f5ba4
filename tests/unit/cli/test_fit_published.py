"""`hilt silicon fit FILE`: the published records that count, and the fit in print and in its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.cli import fit_published as module
from hilt.cli.main import run as hilt
from hilt.silicon.fit import FITTED_TASKS, FREE, Fit
from hilt.silicon.packed_task import CONV2D, DENSE
from hilt.simulator.builds import shipped_builds
from tests.unit.silicon import published


def lines_of(kind: str, count: int) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in published.FILE.read_text().splitlines()]
    return [line for line in lines if line["task"] == kind][:count]


def file_of(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have every fit end at once with the first values; return how many records each got."""
    counts: list[int] = []

    def fit(measured: Any) -> Fit:
        counts.append(len(measured))
        values = {free.name: float(free.start) for free in FREE}
        size = len(FREE)
        return Fit(values, dict.fromkeys(values, 0.5), np.eye(size), np.full(len(measured), 0.1))

    monkeypatch.setattr(module, "fit", fit)
    return counts


def test_each_line_that_does_not_count_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, fast, none, doubted, odd = lines_of(CONV2D, 5)
    lines = [
        good, fast | {"seconds": [1e-9]}, none | {"seconds": []}, doubted | {"doubt": "another clock"},
        {**odd, "task": "conv2d_nchw"},
    ]  # fmt: skip
    file = file_of(tmp_path / "some.jsonl", lines)
    (counted,) = module._counted(file)
    assert counted.record.line == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{file}, line 5 skipped: task 'conv2d_nchw': hilt knows ")
    assert [line.split(": ", 1)[0] for line in said[1:]] == [f"{file}, line {line} left out" for line in (2, 3, 4)]
    reasons = ("below the MAC bound at 100 MHz", "it has no seconds", "another clock")
    assert [line.rsplit(": ", 1)[1] for line in said[1:]] == list(reasons)


def test_a_fit_needs_more_records_than_costs(
    tmp_path: Path, fitted: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_of(tmp_path / "few.jsonl", lines_of(CONV2D, len(FREE)) + lines_of(DENSE, 2))
    assert hilt(["silicon", "fit", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"hilt: {len(FREE)} usable records of {', '.join(FITTED_TASKS)}; a fit of {len(FREE)} costs needs more\n"
    )
    assert fitted == []


def test_all_files_are_fitted_together_and_the_machines_written(
    tmp_path: Path, fitted: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = lines_of(CONV2D, len(FREE) + 1)
    first = file_of(tmp_path / "a.jsonl", lines[:2])
    second = file_of(tmp_path / "b.jsonl", lines[2:] + lines_of(DENSE, 2))
    made = tmp_path / "fit.json"
    assert hilt(["silicon", "fit", str(first), str(second), "--no-validate", "--output", str(made)]) == 0
    assert fitted == [len(FREE) + 1]
    said = capsys.readouterr().out
    assert said.startswith("root mean square of log error: 0.1000 fitted\n")
    assert f"{DENSE}, which the fit never saw: " in said and f"{CONV2D}, which" not in said
    assert all(f"\n{free.name:<22} {free.start:>9.4g} +- 0.5" in said for free in FREE)
    assert said.endswith("\nAll records are winners of a search, so slow configurations are extrapolated.\n")
    written, shipped = json.loads(made.read_text()), shipped_builds().to_dict()
    assert written.keys() == shipped.keys() and written["machines"].keys() == shipped["machines"].keys()
    assert written["machines"] != shipped["machines"]
    assert made.read_text() == json.dumps(written, indent=2) + "\n"


def test_a_file_that_names_a_board_in_its_first_line_is_published(tmp_path: Path) -> None:
    assert module.is_published(published.FILE)
    (tmp_path / "log").write_text('{"input": 1}\n{"board": "pynq"}\n')
    assert not module.is_published(tmp_path / "log")
    (tmp_path / "long").write_text(" " * 4090 + '"board"')
    assert not module.is_published(tmp_path / "long")
    (tmp_path / "within").write_text(" " * 4089 + '"board"')
    assert module.is_published(tmp_path / "within")
    assert not module.is_published(tmp_path / "missing")
