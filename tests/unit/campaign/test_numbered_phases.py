"""The phases of a campaign's last stage: number, part, and the time that all of them still take."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hilt.campaign.numbered_phases import NumberedPhases


class Told:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def begin(self, phase: str) -> None:
        self.lines.append(phase)

    def counter(self, phase: str, units: str) -> Callable[[int, int], None]:
        return lambda done, count: self.lines.append(f"{phase}: {done} of {count} {units}")


def test_a_phase_has_its_number_and_the_time_left_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("hilt.campaign.numbered_phases.time.monotonic", lambda: now[0])
    told = Told()
    phases = NumberedPhases(told, 3)
    phases.next("bundle")
    phases.counter("placing", "nodes")(1, 4)
    now[0] = 10.0
    phases.next("layers")
    phases.begin("conv_0")
    phases.next("verifying")
    assert told.lines == [
        "1/3 bundle",
        "1/3 bundle: placing: 1 of 4 nodes",
        "2/3 layers, about 20 s left in all",
        "2/3 layers, about 20 s left in all: conv_0",
        "3/3 verifying, about 5 s left in all",
    ]
