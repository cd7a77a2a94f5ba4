"""The lease of a board: who has ended loses it, who lives or is elsewhere keeps it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.link.errors import BoardBusyError
from hilt.measure import lease
from hilt.measure.connection import who

HERE = socket.gethostname()


class Board:
    """A board whose agent answers so to each client that wants it, and names who holds it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, holder: str | None, busy: int = 1) -> None:
        self.opened: list[str] = []
        self.closed = 0
        self._holder, self._busy = holder, busy
        monkeypatch.setattr(lease.AgentConnection, "open", self._open)
        monkeypatch.setattr(lease, "run_agent", self._run)

    def endpoint(self) -> str:
        return "endpoint"

    def _open(self, endpoint: str, client: str, deadline: Any) -> Any:
        assert endpoint == "endpoint" and deadline.left > 0
        self.opened.append(client)
        if len(self.opened) <= self._busy:
            raise BoardBusyError("it is in use")
        return SimpleNamespace(close=self._close)

    def _close(self) -> None:
        self.closed += 1

    def _run(self, endpoint: str, words: tuple[str, ...], deadline: Any) -> str:
        assert (endpoint, words) == ("endpoint", ("status",))
        return json.dumps({"holder": self._holder})


@pytest.fixture(scope="module")
def ended() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    return process.pid


def test_a_free_board_has_no_lease_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(monkeypatch, None, busy=0)
    assert lease.end_lease(board) is None  # type: ignore[arg-type]
    assert board.opened == [who()] and board.closed == 1


def test_a_client_that_has_ended_loses_it_to_a_second_session_of_its_own(
    monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    holder = f"hilt of ann@{HERE}, process {ended}"
    board = Board(monkeypatch, holder)
    assert lease.end_lease(board) == holder  # type: ignore[arg-type]
    assert board.opened == [who(), holder] and board.closed == 1


def test_who_lives_or_is_elsewhere_keeps_it(monkeypatch: pytest.MonkeyPatch, ended: int) -> None:
    elsewhere = f"hilt of ann@other, process {ended}"
    for holder in (who(), elsewhere, f"hilt of ann@{HERE}, process {10**30}", f"a script of ann@{HERE}", None):
        board = Board(monkeypatch, holder)
        with pytest.raises(BoardBusyError, match="it is in use"):
            lease.end_lease(board)  # type: ignore[arg-type]
        assert board.opened == [who()] and board.closed == 0


def test_a_process_of_another_user_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        assert (pid, number) == (4711, 0), "nothing is sent to it"
        raise PermissionError

    monkeypatch.setattr(lease, "os", SimpleNamespace(kill=refuse))
    assert not lease._has_ended(f"hilt of root@{HERE}, process 4711")


def test_the_name_that_a_client_gives_itself_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lease._PROCESS.fullmatch(who())
    assert found is not None and (found["computer"], int(found["process"])) == (HERE, os.getpid())
