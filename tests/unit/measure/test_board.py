"""What a board's thread says to its agent, in answer to what the run asks of it."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hilt.measure import Request, connection, describe_board
from hilt.measure.board_measurer import BoardMeasurer
from hilt.measure.connection import Connected
from hilt.measure.fleet import FleetMeasurer
from hilt.trial import Outcome, Result
from hilt_board.protocol import Measured, Record, TrialRequest, WireVerification
from tests.e2e.small_programs import dot_product

BOARD = describe_board("virtual:pynq")
SECONDS = 20.0


class Agent:
    """Has every blob, and finds every program right at once."""

    def __init__(self) -> None:
        self.acknowledged: queue.Queue[tuple[str, int]] = queue.Queue()
        self.ran: list[str] = []

    def missing(self, blobs: object, deadline: object) -> set[str]:
        return set()

    def measure(self, trial: TrialRequest, code: bytes) -> Future[Record]:
        self.ran.append(trial.key)
        found: Future[Record] = Future()
        verified = WireVerification(compared=16, mismatched=0)
        found.set_result(Measured(trial.key, "ok", "", len(self.ran), (10.0,), (0.1,), verified))
        return found

    def reply(self, future: Future[Record], expected: object, deadline: object) -> Record:
        return future.result(SECONDS)

    def acknowledge(self, through: int, deadline: object, run: str) -> None:
        self.acknowledged.put((run, through))

    def close(self) -> None:
        pass


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
def board(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BoardMeasurer]:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    target = SimpleNamespace(description=BOARD, release=lambda: None)
    made = BoardMeasurer(target, lambda event: None)  # type: ignore[arg-type]
    line = SimpleNamespace(client=agent, close=agent.close, welcome=SimpleNamespace(time_scale=1.0))
    made.connection.connected = Connected(line, "b" * 64, [], 0.0)  # type: ignore[arg-type]
    yield made
    made.close()


def requests(count: int) -> list[Request]:
    return [dot_product(BOARD.accelerator, ordinal, run="r") for ordinal in range(count)]


def test_what_the_protocol_cannot_say_is_rejected_and_the_rest_measured(board: BoardMeasurer, agent: Agent) -> None:
    asked = requests(3)
    asked[1] = replace(asked[1], repeat=5000)
    results: dict[int, Result] = {}
    board.measure(asked, results.__setitem__)
    assert [results[ordinal].outcome for ordinal in range(3)] == [Outcome.OK, Outcome.REJECTED, Outcome.OK]
    assert "TrialRequest.repeat: an integer from 1 to 1000" in results[1].reason
    assert agent.ran == ["r/0/0", "r/2/0"]


def test_a_board_of_a_fleet_is_told_what_is_safe_while_the_run_goes_on(board: BoardMeasurer, agent: Agent) -> None:
    """Its journal must not grow until the run ends: every reconnection fetches all of it, and it has a limit."""
    fleet = FleetMeasurer(BOARD, [board])
    for through in (3, 6):
        results: dict[int, Result] = {}
        fleet.measure(requests(3), results.__setitem__)
        told = agent.acknowledged.get(timeout=SECONDS)
        while told[1] < through:
            told = agent.acknowledged.get(timeout=SECONDS)
        assert told == ("r", through)
    fleet.close()


def test_a_user_without_a_name_can_be_told_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number that no passwd file has."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(connection.getpass, "getuser", nameless)
    monkeypatch.setattr(connection.os, "getuid", lambda: 4711)
    assert connection.who().startswith("hilt of user 4711@")
