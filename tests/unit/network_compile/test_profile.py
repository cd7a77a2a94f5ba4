"""The profile of an inference: its starts and the time between them, on real and on virtual boards."""

from __future__ import annotations

from typing import Any

import pytest

from hilt.network.profile import profile

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


@pytest.mark.parametrize(("simulated", "device_seconds"), [(False, 10e-6), (True, 0.8)])
def test_a_start_takes_what_is_not_vtas(simulated: bool, device_seconds: float) -> None:
    figures = profile(manifest(), [inference(device_seconds)] * 3, simulated)
    assert figures.vta == pytest.approx(20)
    assert figures.start == pytest.approx(80)
    assert figures.total == pytest.approx(20 + 80 + 50 + 85 + 70)


@pytest.mark.parametrize("simulated", [False, True])
def test_the_time_between_programs_is_the_wall_clocks(simulated: bool) -> None:
    figures = profile(manifest(), [inference(10e-6), inference(12e-6), inference(30e-6)], simulated)
    assert figures.starts == 2
    assert figures.between == pytest.approx(150)


def test_one_program_has_nothing_between() -> None:
    one = manifest()
    one["steps"], one["layers"] = one["steps"][:1], one["layers"][:1]
    run = {"steps": inference(10e-6)["steps"][:1]}
    assert profile(one, [run], simulated=True).between == 0
