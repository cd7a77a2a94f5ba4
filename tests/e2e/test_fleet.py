"""Two virtual boards (golden model) over SSH measure one batch: the same results as one, whatever happens to either."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hilt.measure import BoardEvent, BoardState, Request, ladder
from hilt.measure.board_description import VirtualTarget
from hilt.measure.board_measurer import BoardMeasurer
from hilt.measure.fleet import FleetMeasurer
from hilt.measure.ladder import RecoveryStep
from hilt.trial import Result
from hilt.virtual.board_model import board_model
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.supervisor_control import SupervisorControl
from tests.e2e.small_programs import dot_product, wrong

ACCELERATOR = board_model("pynq").accelerator
NAMES = ("virtual:pynq@left", "virtual:pynq@right")


def batch(run: str, count: int = 16) -> list[Request]:
    requests = [dot_product(ACCELERATOR, n, (1 << 15) + 512 * n, run, limit_seconds=1.0) for n in range(count)]
    return [wrong(request) if request.ordinal % 4 == 1 else request for request in requests]


class Bench:
    def __init__(self) -> None:
        self.events: list[BoardEvent] = []
        targets = [VirtualTarget(name, form="golden") for name in NAMES]
        self.fleet = FleetMeasurer.open(targets, self.events.append)

    def measure(self, requests: list[Request], at: int = -1, disturb: object = None) -> dict[int, Result]:
        results: dict[int, Result] = {}

        def report(ordinal: int, result: Result) -> None:
            assert ordinal not in results
            results[ordinal] = result
            if len(results) == at and callable(disturb):
                disturb()

        self.fleet.measure(requests, report)
        assert sorted(results) == [request.ordinal for request in requests]
        return results


@pytest.fixture
def bench(hilt_home: Path) -> Iterator[Bench]:
    made = Bench()
    yield made
    made.fleet.close()


def without_names(results: dict[int, Result]) -> list[Result]:
    return [replace(results[ordinal], board="") for ordinal in sorted(results)]


def test_both_boards_answer_and_a_dying_one_changes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = bench.measure(batch("quiet"))
    assert {result.board for result in quiet.values()} == set(NAMES)

    def switch_off_left() -> None:
        control = SupervisorControl.find(BoardDirectory("left"))
        assert control is not None
        with control:
            control.power_off()

    disturbed = bench.measure(batch("disturbed"), 5, switch_off_left)
    assert without_names(disturbed) == without_names(quiet)

    # One that does not come back at all: the other goes on alone.
    for step in RecoveryStep:
        monkeypatch.setitem(ladder.SECONDS, step, 0.1)

    left = next(board for board in bench.fleet.boards if board.description.name == NAMES[0])
    target = left.connection.target
    assert isinstance(target, VirtualTarget)
    monkeypatch.setattr(target, "endpoint", lambda: replace(VirtualTarget.endpoint(target), port=1))

    def kill_left() -> None:
        control = SupervisorControl.find(BoardDirectory("left"))
        assert control is not None
        with control:
            os.kill(control.status().supervisor_pid, signal.SIGKILL)

    alone = bench.measure(batch("alone"), 3, kill_left)
    assert without_names(alone) == without_names(quiet)
    bench.fleet.close()
    states = [event.state for event in bench.events if event.board == NAMES[0]]
    assert BoardState.RECOVERING in states
    idle = [event.detail for event in bench.events if event.state is BoardState.RELEASED]
    assert len(idle) == 2 and all("trials answered; idle" in detail for detail in idle)


def test_a_board_in_use_is_left_to_its_holder(hilt_home: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run on both boards and a third one gets the third only."""
    monkeypatch.setattr("hilt.measure.recovery.SETTLE_SECONDS", 0.1)
    monkeypatch.setattr("hilt.measure.connection.who", lambda: "another run")
    events: list[BoardEvent] = []
    targets = [VirtualTarget(name, form="golden") for name in (*NAMES, "virtual:pynq@third")]
    second = FleetMeasurer.open(targets, events.append)
    try:
        assert [board.description.name for board in second.boards] == ["virtual:pynq@third"]
        lost = {event.board: event.detail for event in events if event.state is BoardState.LOST}
        assert set(lost) == set(NAMES) and all("in use by" in detail for detail in lost.values())
    finally:
        second.close()
    assert isinstance(bench.fleet.boards[0], BoardMeasurer)
    assert len(bench.measure(batch("after", 4))) == 4
