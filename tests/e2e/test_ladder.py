"""The recovery ladder of a host, step by step, on a virtual board (golden model) over SSH."""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.link.deadline import Deadline
from hilt.link.errors import QuarantinedError, RefusedError
from hilt.link.quarantine import quarantined, release
from hilt.measure import BoardEvent, BoardState
from hilt.measure.board_description import VirtualTarget
from hilt.measure.board_measurer import BoardMeasurer
from hilt.measure.ladder import RecoveryStep, restart_daemon
from hilt.trial import Outcome
from hilt.virtual.board_model import board_model
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.supervisor_control import SupervisorControl
from tests.e2e.small_programs import dot_product

ACCELERATOR = board_model("pynq").accelerator


@pytest.fixture
def measurer(shared_home: Path) -> Iterator[BoardMeasurer]:
    events: list[BoardEvent] = []
    opened = BoardMeasurer.open(VirtualTarget("virtual:pynq", form="golden"), events.append)
    opened.events = events  # type: ignore[attr-defined]
    yield opened
    opened.close()
    release("virtual:pynq")


def boot_id() -> str | None:
    control = SupervisorControl.find(BoardDirectory("pynq"))
    assert control is not None
    with control:
        return control.status().boot_id


def test_a_broken_board_is_mended_by_each_step_in_turn(
    measurer: BoardMeasurer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The daemon, the boot, the power: each is really new afterwards, and the step before did not help."""
    connect = measurer.connection.connect
    cured_by: list[RecoveryStep] = []

    def connect_or_not(seconds: float, rebooted_from: str | None = None) -> None:
        connect(seconds, rebooted_from)
        tried.append(measurer.connection.connected.client.status(Deadline(30)).uptime_seconds)  # type: ignore[union-attr]
        if steps[len(tried) - 1] is not cured_by[0]:
            measurer.connection.disconnect()
            raise RefusedError("board_broken", "canary failed")

    monkeypatch.setattr(measurer.connection, "connect", connect_or_not)
    steps = [RecoveryStep.DAEMON, RecoveryStep.REBOOT, RecoveryStep.POWER]
    for ordinal, step in enumerate(steps):
        tried: list[float] = []
        cured_by[:] = [step]
        before, boot = len(measurer.recovery.attempts), boot_id()
        with caplog.at_level(logging.WARNING, "hilt.measure"):
            assert measurer.recovery.recover_from(RefusedError("board_broken", "canary failed")) is None
        climbed = measurer.recovery.attempts[before:]
        assert [(each.step, each.well) for each in climbed] == [(each, each is step) for each in steps[: ordinal + 1]]
        assert all(uptime < 30 for uptime in tried), "the daemon is the old one"
        assert (boot_id() == boot) is (step is RecoveryStep.DAEMON)
        assert f"{step} took" in caplog.text and "canary well" in caplog.text
        result = {}
        measurer.measure([dot_product(ACCELERATOR, ordinal, run="ladder")], result.__setitem__)
        assert result[ordinal].outcome is Outcome.OK


def test_a_board_that_fails_its_canary_at_the_last_step_is_quarantined(
    measurer: BoardMeasurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(seconds: float, rebooted_from: str | None = None) -> None:
        raise RefusedError("board_broken", "canary failed after a new worker")

    monkeypatch.setattr(measurer.connection, "connect", never)
    monkeypatch.setattr(measurer.recovery, "_act", lambda step: None)
    measurer.connection.disconnect()
    results = {}
    measurer.measure([dot_product(ACCELERATOR, 0, run="broken")], results.__setitem__)
    assert results[0].outcome is Outcome.BOARD_LOST
    assert "canary failed after a new worker" in quarantined()["virtual:pynq"].reason
    assert measurer.events[-1].state is BoardState.QUARANTINED  # type: ignore[attr-defined]
    with pytest.raises(QuarantinedError, match="since .* canary failed.*power supply"):
        BoardMeasurer.open(VirtualTarget("virtual:pynq", form="golden"), lambda event: None)


def test_a_closed_measurer_leaves_no_supervisor_held(measurer: BoardMeasurer) -> None:
    target = measurer.connection.target
    assert isinstance(target, VirtualTarget)
    measurer.close()
    assert target._supervisor is None
    assert measurer.recovery.recover_from(RefusedError("board_broken", "x")) is not None
    assert target._supervisor is None


def test_the_kernel_kills_the_worker_with_its_daemon(measurer: BoardMeasurer) -> None:
    assert measurer.connection.connected is not None
    worker = measurer.connection.connected.client.status(Deadline(30)).worker
    assert worker is not None
    exited = os.pidfd_open(worker)  # readable when the process has ended, reaped or not
    try:
        restart_daemon(measurer.connection.target.endpoint())
        assert select.select([exited], [], [], 30)[0], "the worker outlived its daemon"
    finally:
        os.close(exited)
