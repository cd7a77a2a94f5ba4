"""An inference as slices of time: one behind another, all of it, as the board's times are read."""

from __future__ import annotations

from typing import Any

import pytest

from hilt.network.processor_time import ProcessorTime
from hilt.network.timeline import BETWEEN, START, VTA, TimeSlice, step_name, timeline, total

MANIFEST: dict[str, Any] = {
    "target": {"clock_hz": 100e6},
    "steps": [
        {"kind": "pack", "name": "x"},
        {"kind": "vta", "name": "conv"},
        {"kind": "cpu", "name": "soft", "op": "softmax"},
        {"kind": "unpack", "name": "y"},
    ],
}
RAN: dict[str, Any] = {
    "steps": [
        ("pack", "x", 0.001, 0.003),
        ("vta", "conv", 0.003, 0.010, 0.005, 200_000),
        ("cpu", "soft", 0.011, 0.015),
        ("unpack", "y", 0.015, 0.016),
    ],
    "seconds": 0.018,
}


def told(slices: list[TimeSlice]) -> list[tuple[str, str, float, float, int]]:
    return [(each.kind, each.name, round(each.began, 3), round(each.microseconds, 3), each.step) for each in slices]


def test_measured_slices_are_all_of_the_inference() -> None:
    found = timeline(MANIFEST, RAN, ProcessorTime())
    assert told(found) == [
        (BETWEEN, "between steps", 0, 1000, 0),
        ("pack", "x", 1000, 2000, 0),
        (START, "start conv", 3000, 5000, 1),
        (VTA, "conv", 8000, 2000, 1),
        (BETWEEN, "between steps", 10000, 1000, 2),
        ("cpu", "softmax soft", 11000, 4000, 2),
        ("unpack", "y", 15000, 1000, 3),
        (BETWEEN, "after the last step", 16000, 2000, 3),
    ]
    assert total(found) == pytest.approx(18_000)
    assert [each.on_vta for each in found] == [each.kind == VTA for each in found]
    assert {each.image for each in found} == {0}


def test_assumed_times_replace_the_processors_and_cycles_stay() -> None:
    time = ProcessorTime({0: 0.0005, 2: 0.0, 3: 0.00025}, 0.0001, "by a model")
    assert told(timeline(MANIFEST, RAN, time)) == [
        ("pack", "x", 0, 500, 0),
        (START, "start conv", 500, 100, 1),
        (VTA, "conv", 600, 2000, 1),
        ("unpack", "y", 2600, 250, 3),
    ]


def test_without_cycles_vta_takes_its_seconds_and_none_are_a_slice_too() -> None:
    steps = {**MANIFEST, "steps": MANIFEST["steps"][1:2]}
    measured = timeline(steps, {"steps": [("vta", "conv", 0.0, 0.007, 0.005)]}, ProcessorTime())
    assert told(measured) == [(START, "start conv", 0, 2000, 0), (VTA, "conv", 2000, 5000, 0)]
    at_once = timeline(steps, {"steps": [("vta", "conv", 0.0, 0.0, 0.0)]}, ProcessorTime())
    assert told(at_once) == [(VTA, "conv", 0, 0, 0)]


def test_nothing_ran_in_no_time() -> None:
    assert timeline({**MANIFEST, "steps": []}, {"steps": []}, ProcessorTime()) == []
    assert told(timeline({**MANIFEST, "steps": []}, {"steps": [], "seconds": 0.001}, ProcessorTime())) == [
        (BETWEEN, "after the last step", 0, 1000, 0)
    ]
    assert total([]) == 0.0
    assert step_name({"kind": "cpu", "op": "add", "name": "sum"}) == "add sum"
    assert step_name({"kind": "unpack", "op": "add", "name": "sum"}) == "sum"
