"""The limit of a recovery: a board that another client has by now is left to it."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from hilt.link.errors import (
    BitstreamRefusedError,
    BoardBusyError,
    LinkLostError,
    ProtocolViolationError,
    QuarantinedError,
    RefusedError,
    UnreachableError,
)
from hilt.link.quarantine import quarantined
from hilt.measure import BoardState
from hilt.measure.ladder import SECONDS, RecoveryStep, StepSkippedError
from hilt.measure.plausibility import ImpossibleLatencyError
from hilt.measure.recovery import Recovery


class Untouchable:
    virtual = False

    def endpoint(self) -> None:
        raise AssertionError("a step was climbed that would take the board from who uses it")

    power = endpoint


class TakenBoard:
    """A connection to a board that answers well, and says that it is somebody else's."""

    name = "desk"
    boot_id = "b"
    connected = None
    target = Untouchable()

    def __init__(self) -> None:
        self.closing = threading.Event()

    def connect(self, seconds: float, rebooted_from: str | None = None) -> None:
        raise BoardBusyError("board is in use: ann")

    def disconnect(self) -> None:
        pass

    def tell(self, state: BoardState, detail: str) -> None:
        pass


def test_a_board_that_somebody_else_took_is_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board that somebody else took is not taken back.

    After a laptop slept through its lease, it must not end the other client's daemon, boot or power.
    """
    monkeypatch.setitem(SECONDS, RecoveryStep.RECONNECT, 0.1)
    recovery = Recovery(TakenBoard())  # type: ignore[arg-type]
    assert isinstance(recovery.recover_from(LinkLostError("silent")), BoardBusyError)
    assert [(each.step, each.well) for each in recovery.attempts] == [(RecoveryStep.RECONNECT, False)]
    assert "desk" not in quarantined()


class WedgedBoard(TakenBoard):
    """A board whose registers hold nonsense after a hang, until it has booted anew, or for good."""

    connected = SimpleNamespace(client=SimpleNamespace(reset=lambda step, deadline: SimpleNamespace(canary=True)))

    def __init__(self, mended_by: RecoveryStep | None, boot_id: str | None = "b") -> None:
        super().__init__()
        self.attempts: list[RecoveryStep] = []
        self.boot_id = boot_id
        self._mended_by = mended_by

    def connect(self, seconds: float, rebooted_from: str | None = None) -> None:
        if self._mended_by not in self.attempts:
            raise BitstreamRefusedError("identity_mismatch", "register 0x40 reads 0x00000000")


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recovery, "_act", lambda self, step: self._connection.attempts.append(step))


@pytest.mark.usefixtures("acts")
def test_registers_that_were_right_once_and_say_another_accelerator_are_a_broken_board() -> None:
    board = WedgedBoard(mended_by=RecoveryStep.REBOOT)
    recovery = Recovery(board)  # type: ignore[arg-type]
    assert recovery.recover_from(RefusedError("board_broken", "canary failed")) is None
    attempts = [(each.step, each.well) for each in recovery.attempts]
    assert attempts == [(RecoveryStep.DAEMON, False), (RecoveryStep.REBOOT, True)]


@pytest.mark.usefixtures("acts")
def test_a_board_whose_registers_stay_wrong_is_quarantined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    board = WedgedBoard(mended_by=None)
    reason = Recovery(board).recover_from(LinkLostError("silent"))  # type: ignore[arg-type]
    assert isinstance(reason, QuarantinedError) and "register 0x40" in str(reason)
    assert board.attempts == list(RecoveryStep)


@pytest.mark.usefixtures("acts")
def test_registers_that_never_were_right_are_a_wrong_bitstream_for_which_no_board_is_rebooted() -> None:
    board = WedgedBoard(mended_by=None, boot_id=None)
    recovery = Recovery(board)  # type: ignore[arg-type]
    with pytest.raises(BitstreamRefusedError):
        recovery.connect_at_first()
    assert board.attempts == []


class BabblingBoard(TakenBoard):
    """An agent that answers each connection with bytes that the protocol does not allow."""

    boot_id = "b"

    def __init__(self) -> None:
        super().__init__()
        self.attempts: list[RecoveryStep] = []
        self.connects = 0

    def connect(self, seconds: float, rebooted_from: str | None = None) -> None:
        self.connects += 1
        raise ProtocolViolationError("checksum of a frame is wrong")


@pytest.mark.usefixtures("acts")
def test_an_agent_that_babbles_is_given_up_after_a_few_connections_on_each_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    board = BabblingBoard()
    monkeypatch.setattr(board.closing, "wait", lambda seconds: False)
    recovery = Recovery(board)  # type: ignore[arg-type]
    reason = recovery.recover_from(ProtocolViolationError("checksum of a frame is wrong"))
    assert isinstance(reason, QuarantinedError) and "checksum" in str(reason)
    assert board.connects == 3 * len(RecoveryStep)


@pytest.mark.usefixtures("acts")
def test_an_impossible_latency_starts_the_agent_anew_before_it_is_measured_again() -> None:
    board = WedgedBoard(mended_by=RecoveryStep.DAEMON)
    recovery = Recovery(board)  # type: ignore[arg-type]
    assert recovery.recover_from(ImpossibleLatencyError("0 cycles")) is None
    assert board.attempts == [RecoveryStep.DAEMON]


class DeadBoard(WedgedBoard):
    """A board whose kernel has panicked before the run begins: no SSH server answers until its power is cycled."""

    def connect(self, seconds: float, rebooted_from: str | None = None) -> None:
        if self._mended_by not in self.attempts:
            raise UnreachableError("no SSH session with xilinx@pynq: connection reset")


@pytest.mark.usefixtures("acts")
def test_the_power_of_a_board_that_is_dead_at_first_is_cycled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.measure.recovery.SETTLE_SECONDS", 0.0)
    board = DeadBoard(mended_by=RecoveryStep.POWER, boot_id=None)
    recovery = Recovery(board)  # type: ignore[arg-type]
    recovery.connect_at_first()
    assert board.attempts == [RecoveryStep.POWER]
    assert [(each.step, each.well) for each in recovery.attempts] == [(RecoveryStep.POWER, True)]


def test_a_dead_board_without_a_power_switch_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_switch(self: Recovery, step: RecoveryStep) -> None:
        raise StepSkippedError("it has no power switch")

    monkeypatch.setattr("hilt.measure.recovery.SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(Recovery, "_act", no_switch)
    recovery = Recovery(DeadBoard(mended_by=None, boot_id=None))  # type: ignore[arg-type]
    with pytest.raises(UnreachableError, match="connection reset"):
        recovery.connect_at_first()
    assert recovery.attempts == []


def test_the_power_of_a_board_that_somebody_uses_is_not_cycled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.measure.recovery.SETTLE_SECONDS", 0.0)
    with pytest.raises(BoardBusyError):
        Recovery(TakenBoard()).connect_at_first()  # type: ignore[arg-type]
