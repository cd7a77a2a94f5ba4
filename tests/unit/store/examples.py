"""A plausible run and trial to put into a database."""

from __future__ import annotations

from typing import Any

from hilt.store import Run, Trial
from hilt.trial import Outcome, Verification

ELEMENTS = 100_352


def run(uuid: str, **changes: Any) -> Run:
    values: dict[str, Any] = {
        "uuid": uuid,
        "workload": "resnet18.C5",
        "workload_spec": {"kind": "conv2d", "in_channels": 128, "kernel": [3, 3]},
        "board": "virtual:pynq",
        "parameters": "1x16_i8w8a32_15_15_18_17",
        "isa": "A",
        "bitstream": "0" * 64,
        "clock_hz": 100_000_000,
        "tuner": "random",
        "tuner_options": {},
        "seed": 1,
        "checks": "compiler",
        "space_kind": "autotvm",
        "orders": 4,
        "space": "tile_h=1,2 tile_w=1,2",
        "space_size": 2304,
        "budget": 64,
        "batch": 8,
        "repeat": 1,
        "limit_seconds": 0.5,
        "output_elements": ELEMENTS,
        "macs": 115_605_504,
        "bound_cycles": 451_584,
        "versions": {"hilt": "0.1.0"},
        "created": 1.0,
    }
    return Run(**values | changes)


def trial(ordinal: int, index: int, microseconds: float) -> Trial:
    return Trial(
        ordinal, index, {"tile_h": 2, "tile_w": 7}, Outcome.OK, "", int(microseconds * 100), microseconds,
        (microseconds,), Verification(ELEMENTS, 0), ELEMENTS,
    )  # fmt: skip
