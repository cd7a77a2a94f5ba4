"""How far a recovery goes: a board that another client has by now is left to it."""

from __future__ import annotations

import threading

import pytest

from hilt.link.errors import BoardBusyError, LinkLostError
from hilt.link.quarantine import quarantined
from hilt.measure import BoardState
from hilt.measure.ladder import SECONDS, Rung
from hilt.measure.recovery import Recovery


class Untouchable:
    virtual = False

    def endpoint(self) -> None:
        raise AssertionError("a rung was climbed that would take the board from who uses it")

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
    """As after a laptop slept through its lease: the other's daemon, boot and power are not ours to end."""
    monkeypatch.setitem(SECONDS, Rung.RECONNECT, 0.1)
    recovery = Recovery(TakenBoard())  # type: ignore[arg-type]
    assert isinstance(recovery.recover_from(LinkLostError("silent")), BoardBusyError)
    assert [(each.rung, each.well) for each in recovery.climbed] == [(Rung.RECONNECT, False)]
    assert "desk" not in quarantined()
