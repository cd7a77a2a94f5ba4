"""The messages of a board's thread to its agent, in answer to the run's requests."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hilt.link.client import _refusal
from hilt.link.errors import LinkLostError, ProtocolViolationError
from hilt.measure import Request, connection, describe_board
from hilt.measure.board_measurer import SETBACKS_ALLOWED, BoardMeasurer
from hilt.measure.connection import Connected
from hilt.measure.fleet import FleetMeasurer
from hilt.measure.plausibility import ImpossibleLatencyError
from hilt.trial import Outcome, Result
from hilt_board.protocol import AgentFailure, Measured, Record, TrialRequest, WireVerification
from tests.e2e.small_programs import dot_product

BOARD = describe_board("virtual:pynq")
SECONDS = 20.0


class Agent:
    """An agent that has every blob, and finds every program right at once."""

    def __init__(self) -> None:
        self.acknowledged: queue.Queue[tuple[str, int]] = queue.Queue()
        self.ran: list[str] = []

    def missing_blobs(self, blobs: object, deadline: object) -> set[str]:
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


def test_a_trial_too_large_for_the_protocol_is_rejected_alone(board: BoardMeasurer, agent: Agent) -> None:
    asked = requests(3)
    asked[1] = replace(asked[1], repeat=5000)
    results: dict[int, Result] = {}
    board.measure(asked, results.__setitem__)
    assert [results[ordinal].outcome for ordinal in range(3)] == [Outcome.OK, Outcome.REJECTED, Outcome.OK]
    assert "TrialRequest.repeat: an integer from 1 to 1000" in results[1].reason
    assert agent.ran == ["r/0/0", "r/2/0"]


def test_a_board_of_a_fleet_gets_acknowledgements_during_the_run(board: BoardMeasurer, agent: Agent) -> None:
    """The journal must not grow until the run ends: every reconnection fetches all of it, and it has a limit."""
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
    """A user without a name has one for other clients.

    A container may run under a number that no passwd file has.
    """

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(connection.getpass, "getuser", nameless)
    monkeypatch.setattr(connection.os, "getuid", lambda: 4711)
    assert connection.who().startswith("hilt of user 4711@")


class FaultyAgent(Agent):
    """An agent that answers the first `faults` trials with a right reply changed by `spoil`."""

    def __init__(self, faults: int, spoil: Callable[[Measured], Record]) -> None:
        super().__init__()
        self._faults = faults
        self._spoil = spoil

    def measure(self, trial: TrialRequest, code: bytes) -> Future[Record]:
        answered = super().measure(trial, code)
        if self._faults:
            self._faults -= 1
            spoiled: Future[Record] = Future()
            right = answered.result()
            assert isinstance(right, Measured)
            spoiled.set_result(self._spoil(right))
            return spoiled
        return answered

    def reply(self, future: Future[Record], expected: object, deadline: object) -> Record:
        message = future.result(SECONDS)
        if isinstance(message, AgentFailure):
            raise _refusal(message)
        return message


def reconnecting(board: BoardMeasurer, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Have every recovery succeed at once with the same agent; returns the faults that were recovered from."""
    line = SimpleNamespace(client=agent, close=agent.close, welcome=SimpleNamespace(time_scale=1.0))
    faults: list[Exception] = []

    def recover_from(error: Exception) -> None:
        faults.append(error)
        board.connection.connected = Connected(line, "b" * 64, [], float("inf"))  # type: ignore[arg-type]

    monkeypatch.setattr(board.recovery, "recover_from", recover_from)
    recover_from(LinkLostError("not connected yet"))
    faults.clear()
    return faults


def with_cycles(cycles: float) -> Callable[[Measured], Measured]:
    return lambda right: replace(right, cycles=(cycles,), microseconds=(cycles / 100,))


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (lambda right: replace(right, key="r/1/0"), ProtocolViolationError, "trial r/0/0 with the result of r/1/0"),
        (with_cycles(0.0), ImpossibleLatencyError, "0 cycles, the program's multiply-accumulates alone take 4"),
        (with_cycles(1e-300), ImpossibleLatencyError, "1e-300 cycles"),
        (with_cycles(3.0), ImpossibleLatencyError, "3 cycles"),
        (lambda right: replace(right, microseconds=(1e-9,)), ImpossibleLatencyError, "are not 1e-09 µs"),
        (lambda right: replace(right, cycles=(), microseconds=(0.03,)), ImpossibleLatencyError, "3 cycles"),
        (lambda right: replace(right, cycles=(), microseconds=()), ImpossibleLatencyError, "0 latencies came, 1"),
        (lambda right: replace(right, wall_microseconds=(5e6,)), ImpossibleLatencyError, "counter stands still"),
    ],
)
def test_a_reply_that_cannot_be_is_the_boards_fault_and_is_measured_again(
    board: BoardMeasurer,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Measured], Measured],
    kind: type[Exception],
    words: str,
) -> None:
    agent = FaultyAgent(1, spoil)
    faults = reconnecting(board, agent, monkeypatch)
    results: dict[int, Result] = {}
    board.measure([dot_product(BOARD.accelerator, 0, rounds=8, run="r")], results.__setitem__)
    assert [type(fault) for fault in faults] == [kind]
    assert words in str(faults[0])
    assert results[0].outcome is Outcome.OK and results[0].cycles == 10
    assert agent.ran == ["r/0/0", "r/0/0"]


def test_an_impossible_latency_is_forgotten_by_the_journal_before_it_is_measured_again(
    board: BoardMeasurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = FaultyAgent(1, with_cycles(0.0))
    reconnecting(board, agent, monkeypatch)
    board.measure([dot_product(BOARD.accelerator, 0, run="r")], lambda ordinal, result: None)
    assert agent.acknowledged.get_nowait() == ("r", 1)


def test_an_impossible_latency_of_the_journal_is_no_result_either(
    board: BoardMeasurer, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = reconnecting(board, agent, monkeypatch)
    verified = WireVerification(compared=16, mismatched=0)
    stale = Measured("r/0/0", "ok", "", 1, (0.0,), (0.0,), verified)
    assert board.connection.connected is not None
    board.connection.connected.journal[stale.key] = stale
    results: dict[int, Result] = {}
    board.measure([dot_product(BOARD.accelerator, 0, run="r")], results.__setitem__)
    assert len(faults) == 1 and results[0].cycles == 10


@pytest.mark.parametrize("spoil", [with_cycles(0.0), lambda right: replace(right, key="other/1/0")])
def test_a_board_that_keeps_on_lying_is_given_up_and_blames_no_trial(
    board: BoardMeasurer, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Measured], Measured]
) -> None:
    agent = FaultyAgent(1000, spoil)
    faults = reconnecting(board, agent, monkeypatch)
    results: dict[int, Result] = {}
    board.measure(requests(3), results.__setitem__)
    assert {result.outcome for result in results.values()} == {Outcome.BOARD_LOST}
    assert len(faults) == SETBACKS_ALLOWED


def test_a_board_without_memory_for_a_trial_is_lost_and_the_trial_is_not_rejected(
    board: BoardMeasurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = FaultyAgent(1000, lambda right: AgentFailure("out_of_memory", "no 36864 bytes of contiguous memory"))
    faults = reconnecting(board, agent, monkeypatch)
    results: dict[int, Result] = {}
    board.measure(requests(2), results.__setitem__)
    assert {result.outcome for result in results.values()} == {Outcome.BOARD_LOST}
    assert "no 36864 bytes of contiguous memory" in results[0].reason
    assert faults == []  # the agent has tried a new worker: nothing on the ladder frees memory


def test_escape_sequences_of_a_board_are_no_part_of_a_reason(
    board: BoardMeasurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = FaultyAgent(1, lambda right: Measured(right.key, "wrong_answer", "\x1b]0;mine\x07\x1b[31mred", 1))
    reconnecting(board, agent, monkeypatch)
    results: dict[int, Result] = {}
    board.measure(requests(1), results.__setitem__)
    assert results[0].reason == "]0;mine[31mred"
