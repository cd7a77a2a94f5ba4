"""Predictions and fits as text and JSON: the records that count, the words of each line, and the sums below."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.silicon.fit import FREE
from hilt.silicon.predict import MODELS, RTL_TWIN, RecordPrediction
from hilt.silicon.report import (
    identification_lines,
    parameter_lines,
    prediction_json,
    prediction_lines,
    unseen_lines,
    validation_lines,
)
from hilt.simulator.builds import NEWER, OLDER


def prediction(
    name: str, mean: float | None, seconds: tuple[float, float, float | None], **changes: Any
) -> RecordPrediction:
    task = SimpleNamespace(name=name, kind="conv2d", micro_ops=10, images=1, block=16)
    values = {
        "task": task, "mean_seconds": mean, "line": 7, "doubt": None,
        "seconds": [] if mean is None else [mean], "below_mac_bound": False, "date": None, "board": "pynq", "knobs": {},
    }  # fmt: skip
    measured: Any = SimpleNamespace(record=SimpleNamespace(**{**values, **changes}), build=NEWER, instructions=9)
    return RecordPrediction(measured, dict(zip((NEWER, OLDER, RTL_TWIN), seconds, strict=True)))


RIGHT = prediction("right", 1e-3, (1.1e-3, 2e-3, 1e-3))
DOUBTED = prediction("doubted", 1e-3, (9e-3, 2e-3, None), doubt="another clock")
BOUND = prediction("bound", 1e-3, (9e-3, 2e-3, 1e-3), below_mac_bound=True)
UNMEASURED = prediction("unmeasured", None, (1e-3, 2e-3, None))
ALL = [RIGHT, DOUBTED, BOUND, UNMEASURED]
SKIPPED: list[Any] = [SimpleNamespace(line=3, reason="no task")]


def test_each_record_has_a_line_and_those_that_do_not_count_say_so() -> None:
    head, right, doubted, bound, unmeasured, skipped, own, *by_model = prediction_lines(SKIPPED, ALL)
    assert head.split() == ["workload", "build", "measured", "predicted", "error", "older", "RTL", "twin"]
    assert right.split() == ["right", NEWER, "1000.0", "1100.0", "+9.5", "%", "2000.0", "1000.0"]
    assert doubted.split()[2:] == ["1000.0", "9000.0", "+219.7", "%", "2000.0", "-", "not", "counted"]
    assert bound.endswith("  not counted")
    assert unmeasured.split() == ["unmeasured", NEWER, "-", "1000.0", "2000.0", "-", "not", "counted"]
    assert len(head) == len(right) == len(unmeasured.removesuffix("  not counted"))
    assert skipped == "line 3 skipped: no task"
    assert own == f"1 records count: root mean square of log error {math.log(1.1):.4f}"
    assert by_model == [
        f"all of them by {model}: {abs(math.log(seconds)):.4f} over 1"
        for model, seconds in zip(MODELS, (1.1, 2.0, 1.0), strict=True)
    ]


def test_ranks_are_stated_of_three_records_and_more() -> None:
    lines = prediction_lines([], [prediction(str(place), 1e-3 * place, (1e-3 * place,) * 3) for place in (1, 2, 3)])
    assert lines[4].startswith(
        "3 records count: root mean square of log error 0.0000, rank correlation of time per MAC 1."
    )


def test_json_has_every_record_and_the_sums() -> None:
    file: Any = SimpleNamespace(sha256="f" * 64)
    plain = prediction_json(file, SKIPPED, ALL)
    assert plain["sha256"] == "f" * 64 and plain["skipped"] == [{"line": 3, "reason": "no task"}]
    assert plain["records"][0] == {
        **{"line": 7, "workload": "right", "task": "conv2d", "board": "pynq", "measured_on": None, "knobs": {}},
        **{"instructions": 9, "measured_seconds": 1e-3, "build": NEWER, "predicted_seconds": 1.1e-3},
        **{"log_error": pytest.approx(math.log(1.1)), "by_model": RIGHT.seconds, "counted": True, "doubt": None},
    }
    doubts = [record["doubt"] for record in plain["records"]]
    assert doubts == [None, "another clock", "below the MAC bound at 100 MHz", None]
    assert [record["counted"] for record in plain["records"]] == [True, False, False, False]
    assert plain["records"][3]["log_error"] is None
    summary = plain["summary"]
    assert (summary["predicted"], summary["skipped"], summary["counted"]) == (4, 1, 1)
    assert summary["rms_log_error"] == pytest.approx(math.log(1.1)) and summary["rank_correlation"] is None
    assert summary["by_model"][OLDER] == {"counted": 1, "rms_log_error": pytest.approx(math.log(2.0))}


def fit(**changes: tuple[float, float]) -> Any:
    """A fit whose values are in the middle of their ranges and well known, but those of `changes`."""
    middle = {free.name: ((free.low + free.high) / 2, 1e-3 * free.low) for free in FREE} | changes
    return SimpleNamespace(
        values={name: value for name, (value, _) in middle.items()},
        standard_errors={name: error for name, (_, error) in middle.items()},
        correlations=np.eye(len(FREE)),
        errors=np.array([0.01, -0.02]),
        rms=0.0158,
    )


def test_each_fitted_value_has_its_error_and_unit() -> None:
    lines = parameter_lines(fit(**{FREE[0].name: (12.5, 0.25)}))
    assert len(lines) == len(FREE)
    assert lines[0].split() == [FREE[0].name, "12.5", "+-", "0.25", *FREE[0].unit.split()]


def test_limits_of_the_measurements_are_sentences() -> None:
    first, second, third = FREE[0], FREE[1], FREE[2]
    assert len(identification_lines(fit())) == 2, "what holds of every fit"
    result = fit(**{first.name: (first.low, 0.0), second.name: ((second.low + second.high) / 2, 1e9)})
    result.correlations[2, 0] = result.correlations[0, 2] = -0.9
    at_limit, uncertain, traded, *_ = identification_lines(result)
    assert at_limit.startswith(f"{first.name} ends at {first.low:.4g}, a limit of its range")
    assert uncertain.startswith(f"{second.name} is ") and "standard error of 1e+09" in uncertain
    assert traded == f"{first.name} and {third.name} trade against each other (correlation -0.90)."
    assert identification_lines(fit(**{third.name: (third.high, 0.0)}))[0].startswith(f"{third.name} ends at")


def test_errors_are_those_of_the_fit_and_without_the_workload() -> None:
    measured: list[Any] = [RIGHT.measured, prediction("b", None, (1.0, 1.0, None), date="2019-05").measured]
    validation: Any = SimpleNamespace(errors=np.array([0.03, -0.04]), rms=0.0354, rank_correlation=0.5)
    head, first, second, rms, ranks = validation_lines(measured, fit(), validation)
    assert head.split() == ["workload", "date", "measured", "us", "fitted", "left", "out"]
    assert first.split() == ["right", "-", "1000.0", "+1.0%", "+3.0%"]
    assert second.split() == ["b", "2019-05", "0.0", "-2.0%", "-4.0%"]
    assert len(head) == len(first) == len(second)
    assert rms == "root mean square of log error: 0.0158 fitted, 0.0354 leaving a workload out"
    assert ranks == "rank correlation of time per MAC, leaving a workload out: 0.5000"


def test_records_that_no_fit_saw_have_their_largest_error() -> None:
    measured: list[Any] = [RIGHT.measured, DOUBTED.measured]
    first, second, last = unseen_lines("dense", measured, np.array([0.03, -0.04]))
    assert (first.split(), second.split()) == (["right", "+3.0%"], ["doubted", "-4.0%"])
    assert last == "dense, which the fit never saw: 0.0354, at most 4.0 %"
