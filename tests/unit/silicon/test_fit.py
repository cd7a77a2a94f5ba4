"""Fits find the costs behind made-up measurements, and the parameters that ship explain published ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from hilt.cli.silicon import application
from hilt.silicon.fit import (
    FITTED_TASKS,
    FREE,
    builds_of,
    cross_validate,
    fit,
    log_errors,
    rank_correlation,
    root_mean_square,
)
from hilt.silicon.measured import MeasuredWorkload, cycles_of
from hilt.silicon.packed_task import GROUP_CONV2D
from hilt.silicon.predict import predict
from hilt.simulator.builds import CLOCK_HZ, NEWER, OLDER, build_of, shipped_builds
from tests.unit.silicon.published import FILE, measured

ITEMS = [item for item in measured() if item.record.doubt is None]


def of_kind(test: Callable[[str], bool]) -> list[MeasuredWorkload]:
    return [item for item in ITEMS if test(item.record.task.kind)]


@pytest.mark.slow
def test_the_parameters_that_ship_explain_the_published_convolutions() -> None:
    items = of_kind(lambda kind: kind in FITTED_TASKS)
    errors = log_errors(items, shipped_builds())
    assert root_mean_square(errors) < 0.02
    assert rank_correlation(items, errors) > 0.99


def test_group_convolutions_that_no_fit_saw_are_within_15_percent() -> None:
    items = of_kind(lambda kind: kind == GROUP_CONV2D)
    assert len(items) >= 4
    assert np.max(np.abs(log_errors(items, shipped_builds()))) < np.log(1.15)


def test_one_machine_for_both_builds_would_be_far_off() -> None:
    builds = shipped_builds()
    both = replace(builds, machines=dict.fromkeys((NEWER, OLDER), builds.machines[NEWER]))
    older = [item for item in of_kind(lambda kind: kind in FITTED_TASKS) if item.build == OLDER]
    assert root_mean_square(log_errors(older, both)) > 0.2


def test_cross_validation_never_fits_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    start = {free.name: free.start for free in FREE}
    seen: list[set[object]] = []

    def spy(items: list[MeasuredWorkload], values: dict[str, float], evaluations: int) -> SimpleNamespace:
        seen.append({item.record.task for item in items})
        return SimpleNamespace(values=values)

    monkeypatch.setattr("hilt.silicon.fit.fit", spy)
    items = of_kind(lambda kind: kind in FITTED_TASKS)[:8]
    found = cross_validate(items, start)
    tasks = list(dict.fromkeys(item.record.task for item in items))
    assert seen == [set(tasks) - {task} for task in tasks]
    assert np.allclose(found.errors, log_errors(items, builds_of(start)))


@pytest.mark.slow
def test_a_fit_finds_the_costs_that_made_its_measurements() -> None:
    truth = {free.name: free.start for free in FREE} | {
        "load_row": 62.0, "older_alu_element": 29.0, "call": 90.0, "newer_alu_element": 1.5, "miss_bytes": 3.2,
    }  # fmt: skip
    items = of_kind(lambda kind: True)
    builds = builds_of(truth)
    cycles = cycles_of(items, builds.machines)
    seconds = [builds.seconds(count, item.instructions) for count, item in zip(cycles, items, strict=True)]
    made = [
        replace(item, record=replace(item.record, seconds=(second,)))
        for item, second in zip(items, seconds, strict=True)
    ]
    result = fit(made, evaluations=12)
    assert result.rms < 2e-3
    for name in ("load_row", "older_alu_element", "call", "newer_alu_element", "miss_bytes"):
        assert result.values[name] == pytest.approx(truth[name], rel=0.05), name


def test_the_date_tells_the_builds_apart() -> None:
    assert build_of(1, "2019-08-09") == OLDER
    assert build_of(1, "2019-07-11") == build_of(4, "2019-08-09") == build_of(1, None) == NEWER


def test_every_model_predicts_and_the_runtime_is_counted() -> None:
    (item, *_) = of_kind(lambda kind: kind in FITTED_TASKS)
    builds = shipped_builds()
    (prediction,) = predict([item], builds)
    assert set(prediction.seconds) == {NEWER, OLDER, "rtl_twin"}
    cycles = cycles_of([item], builds.machines)[0]
    around = builds.runtime.call_seconds + item.instructions * builds.runtime.instruction_seconds
    assert prediction.chosen == pytest.approx(cycles / CLOCK_HZ + around)


@pytest.mark.slow
def test_predict_prints_json_of_every_line(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(FILE.read_text() + '{"board": 3}\n')
    printed = CliRunner().invoke(application, ["predict", str(file), "--json"])
    assert printed.exit_code == 0, printed.output
    answer = json.loads(printed.stdout)
    lines = FILE.read_text().count("\n")
    assert answer["summary"]["predicted"] == len(answer["records"]) == lines
    assert answer["skipped"] == [{"line": lines + 1, "reason": "board is 3; it must be a text"}]
    doubted = [record for record in answer["records"] if record["doubt"]]
    assert doubted and not any(record["counted"] for record in doubted)
    assert answer["summary"]["rms_log_error"] < 0.04


@pytest.mark.slow
def test_fit_names_omitted_points(tmp_path: Path) -> None:
    output = tmp_path / "builds.json"
    printed = CliRunner().invoke(application, ["fit", str(FILE), "--no-validate", "--output", str(output)])
    assert printed.exit_code == 0, printed.output
    assert "left out: conv2d_24x26x26_16_3x3_s1p1b1x16: below the MAC bound at 100 MHz" in printed.output
    assert "which the fit never saw" in printed.output
    assert set(json.loads(output.read_text())["machines"]) == {NEWER, OLDER, "chisel"}
