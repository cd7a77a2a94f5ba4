"""The profile of an inference: its starts and the time between them, on real and on virtual boards."""

from __future__ import annotations

from typing import Any

import pytest

from hilt.network.latency import Latency, latency_text, runs_text
from hilt.network.profile import perfetto, profile

CLOCK = 100_000_000


def manifest() -> dict[str, Any]:
    layer = {"op": "conv2d", "macs": 640, "cycles": 1000, "alone": 1000, "bound": 900, "residual": False}
    return {
        "target": {"clock_hz": CLOCK, "macs_per_cycle": 64},
        "steps": [
            {"kind": "vta", "name": "vta 0", "program": 0},
            {"kind": "unpack", "name": "unpack a"},
            {"kind": "cpu", "op": "table", "name": "t"},
            {"kind": "vta", "name": "vta 1", "program": 1},
            {"kind": "unpack", "name": "unpack y"},
        ],
        "layers": [{**layer, "name": name, "program": number, "schedule": "tuned"} for number, name in enumerate("ab")],
    }


def inference(device_seconds: float) -> dict[str, Any]:
    """Two programs of 10 us in calls of `device_seconds` and 40 us more; 150 us between the calls."""
    call = device_seconds + 40e-6
    after = call + 150e-6
    return {
        "steps": [
            ["vta", "vta 0", 0.0, call, device_seconds, 1000],
            ["unpack", "unpack a", call, call + 50e-6, 0.0, None],
            ["cpu", "t", call + 60e-6, call + 145e-6, 0.0, None],
            ["vta", "vta 1", after, after + call, device_seconds, 1000],
            ["unpack", "unpack y", after + call, after + call + 70e-6, 0.0, None],
        ]
    }


REAL, VIRTUAL = "192.0.2.2", "virtual:pynq"
OWN = 50 + 85 + 70
"""Microseconds of the processor's steps of `inference`."""
BETWEEN = 10 + 5
"""Microseconds between them."""


@pytest.mark.parametrize("device_seconds", [10e-6, 12e-6])
def test_a_real_boards_times_are_those_measured(device_seconds: float) -> None:
    latency = profile(manifest(), [inference(device_seconds)] * 3, REAL).latency
    assert latency.vta == pytest.approx(20)
    assert latency.start == pytest.approx(80 + 2 * (device_seconds * 1e6 - 10))
    assert latency.crossings == pytest.approx(50 + 70)
    assert latency.processor == pytest.approx(85 + BETWEEN)
    assert latency.assumed == "" and latency.warm == 2


def test_a_virtual_boards_processor_is_never_this_machine() -> None:
    latency = profile(manifest(), [inference(0.8)] * 3, VIRTUAL).latency
    assert latency.vta == pytest.approx(20)
    assert latency.crossings + latency.processor == pytest.approx(20 * (OWN + BETWEEN))
    assert latency.start == pytest.approx(2 * 150), "starts are assumed of the core, not timed in a simulation"
    assert "assumed of a Cortex-A9" in latency.assumed and latency.assumed in latency_text(latency)


@pytest.mark.parametrize("board", [REAL, VIRTUAL])
def test_timeline_and_parts_add_up_to_the_latency(board: str) -> None:
    figures = profile(manifest(), [inference(10e-6)] * 2, board)
    assert sum(each.microseconds for each in figures.timeline) == pytest.approx(figures.latency.total)
    assert sum(part for _, part in figures.latency.parts) == pytest.approx(figures.latency.total)
    trace = perfetto(manifest(), figures)["traceEvents"]
    assert sum(event.get("dur", 0.0) for event in trace) == pytest.approx(figures.latency.total)
    assert Latency.from_dict(figures.to_dict()["latency"]) == figures.latency


def test_the_first_inference_is_apart_and_the_median_of_the_others_is_the_figure() -> None:
    latency = profile(manifest(), [inference(each * 1e-6) for each in (900, 30, 10, 20)], REAL).latency
    totals = [20 + 80 + OWN + BETWEEN + 2 * (each - 10) for each in (900, 30, 10, 20)]
    assert latency.first == pytest.approx(totals[0]) and latency.total == pytest.approx(totals[3])
    assert (latency.least, latency.largest) == (pytest.approx(totals[2]), pytest.approx(totals[1]))
    assert "median of 3 warm inferences" in runs_text(latency)
    alone = profile(manifest(), [inference(10e-6)], REAL).latency
    assert alone.first is None and alone.warm == 0 and "cold" in runs_text(alone)


@pytest.mark.parametrize("board", [REAL, VIRTUAL])
def test_the_time_between_programs(board: str) -> None:
    figures = profile(manifest(), [inference(10e-6), inference(12e-6), inference(30e-6)], board)
    assert figures.latency.starts == 2
    assert figures.between == pytest.approx(150 * (20 if board == VIRTUAL else 1))


def test_one_program_has_nothing_between() -> None:
    one = manifest()
    one["steps"], one["layers"] = one["steps"][:1], one["layers"][:1]
    run = {"steps": inference(10e-6)["steps"][:1]}
    assert profile(one, [run], VIRTUAL).between == 0
