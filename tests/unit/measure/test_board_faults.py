"""A board's thread when the board fails: who is blamed, which trials go again alone, which events clients hear."""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.link.client import _refusal
from hilt.link.errors import LinkLostError, QuarantinedError, RefusedError
from hilt.link.quarantine import quarantine
from hilt.measure import BoardEvent, BoardState, Request
from hilt.measure.board_measurer import PIPELINE_DEPTH, SETBACKS_ALLOWED, BoardMeasurer
from hilt.measure.connection import Connected
from hilt.measure.request_queue import PoolClosedError
from hilt.trial import Outcome, Result
from hilt_board.protocol import AgentFailure, Measured, Record, TrialRequest, WireVerification
from tests.e2e.small_programs import dot_product

from .test_board import BOARD, SECONDS, Agent, requests


class ScriptedAgent(Agent):
    """An agent that loses or refuses the trials that `fail` says, and notes all calls in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.missing: set[str] = set()
        self.uploaded: dict[str, bytes] = {}
        self.patience: list[float] = []
        self.fail: Callable[[str], Exception | None] = lambda key: None
        self.canary: bool | None = None

    def missing_blobs(self, blobs: Any, deadline: object) -> set[str]:
        self.calls.append("missing")
        return set(blobs)

    def upload_blob(self, digest: str, data: bytes, deadline: object) -> None:
        self.uploaded[digest] = data

    def measure(self, trial: TrialRequest, code: bytes) -> Future[Record]:
        self.calls.append(f"measure {trial.key}")
        self.ran.append(trial.key)
        found: Future[Record] = Future()
        error = self.fail(trial.key)
        if error is not None:
            found.set_exception(error)
            return found
        verified = WireVerification(compared=16, mismatched=0)
        found.set_result(
            Measured(
                trial.key, "ok", "", len(self.ran), (10.0,) * trial.repeat, (0.1,) * trial.repeat, verified,
                canary=self.canary, seconds={} if self.canary is None else {"reset_soft": 0.25, "run": 1.0},
            )
        )  # fmt: skip
        return found

    def reply(self, future: Future[Record], expected: object, deadline: Any) -> Record:
        self.patience.append(deadline.left)
        self.calls.append("reply")
        return future.result(SECONDS)

    def acknowledge(self, through: int, deadline: object, run: str) -> None:
        self.calls.append(f"acknowledge {run} {through}")


class Bench:
    """A board whose recovery succeeds at once, unless `broken`; the new agent began at the time `began`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.agent = ScriptedAgent()
        self.events: list[BoardEvent] = []
        self.released = 0
        self.faults: list[Exception] = []
        self.broken: Exception | None = None
        self.began = float("inf")
        self.time_scale = 1.0
        target = SimpleNamespace(description=BOARD, release=self._release)
        self.measurer = BoardMeasurer(target, self.events.append)  # type: ignore[arg-type]
        monkeypatch.setattr(self.measurer.recovery, "recover_from", self._recover)
        self.connect(0.0)

    def _release(self) -> None:
        self.released += 1

    def connect(self, began: float) -> None:
        welcome = SimpleNamespace(time_scale=self.time_scale)
        line = SimpleNamespace(client=self.agent, close=self.agent.close, welcome=welcome)
        self.measurer.connection.connected = Connected(line, "b" * 64, [], began)  # type: ignore[arg-type]

    def _recover(self, error: Exception) -> Exception | None:
        self.faults.append(error)
        if self.broken is None:
            self.connect(self.began)
        return self.broken

    def measure(self, asked: list[Request]) -> dict[int, Result]:
        results: dict[int, Result] = {}
        self.measurer.measure(asked, results.__setitem__)
        return results

    @property
    def states(self) -> list[BoardState]:
        return [event.state for event in self.events]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    made = Bench(monkeypatch)
    yield made
    made.measurer.close()


def loses(*keys: str, times: int = 1) -> Callable[[str], Exception | None]:
    """Lose the link so many times with each of these trials."""
    left = dict.fromkeys(keys, times)

    def fail(key: str) -> Exception | None:
        if not left.get(key):
            return None
        left[key] -= 1
        return LinkLostError("silent")

    return fail


def test_a_measurement_is_announced_and_its_end_too(bench: Bench) -> None:
    assert len(bench.measure(requests(3))) == 3
    assert bench.states == [BoardState.RUNNING, BoardState.READY]
    bench.measure([])
    assert bench.states == [BoardState.RUNNING, BoardState.READY], "nothing ran"
    bench.measurer.close()
    bench.measurer.close()
    assert bench.states[2:] == [BoardState.RELEASED] and bench.released == 1
    assert bench.events[-1].detail.startswith("3 trials answered; idle ")


def test_two_trials_are_on_their_way_and_no_third(bench: Bench) -> None:
    bench.measure(requests(4))
    assert PIPELINE_DEPTH == 2
    assert [call for call in bench.agent.calls if not call.startswith(("missing", "acknowledge"))] == [
        "measure r/0/0", "measure r/1/0", "reply", "measure r/2/0", "reply", "measure r/3/0", "reply", "reply",
    ]  # fmt: skip


def test_results_are_acknowledged_once_before_more_is_waited_for(bench: Bench) -> None:
    bench.measure(requests(3))
    assert [call for call in bench.agent.calls if call.startswith("acknowledge")] == ["acknowledge r 3"]
    bench.measure([])
    assert bench.agent.calls[-1] == "acknowledge r 3"


def test_tensors_travel_once_for_each_connection(bench: Bench) -> None:
    asked = requests(3)
    asked = [replace(each, tensors=asked[0].tensors) for each in asked]
    bench.measure(asked)
    assert bench.agent.calls.count("missing") == 1
    tensors = asked[0].tensors
    arrays = [*tensors.inputs.values(), tensors.expected]
    assert sorted(bench.agent.uploaded.values()) == sorted(array.tobytes() for array in arrays)
    bench.connect(0.0)
    bench.measure(asked[:1])
    assert bench.agent.calls.count("missing") == 2


def test_suspects_go_alone_and_the_one_that_takes_the_board_down_again_is_a_crash(bench: Bench) -> None:
    bench.agent.fail = loses("r/1/0", times=2)
    results = bench.measure(requests(4))
    assert [results[ordinal].outcome for ordinal in range(4)] == [Outcome.OK, Outcome.CRASH, Outcome.OK, Outcome.OK]
    assert results[1].reason.startswith("it took the board's agent or the board itself down, alone on a board")
    assert results[1].board == BOARD.name
    assert len(bench.faults) == 2
    sent = [call for call in bench.agent.calls if call.startswith("measure") or call == "reply"]
    alone = sent.index("measure r/1/0", sent.index("measure r/1/0") + 1)
    assert sent[alone : alone + 3] == ["measure r/1/0", "reply", "measure r/2/0"], "nothing was sent with the suspect"
    assert sent[alone + 3] == "reply", "the other suspect goes alone too"
    assert bench.measurer.usage.trials == 4


def test_a_suspect_is_not_blamed_for_an_agent_that_survived_it(bench: Bench) -> None:
    """The link went, not the agent: it runs since before the loss."""
    bench.agent.fail = loses("r/0/0", times=2)
    bench.began = 0.0
    results = bench.measure(requests(1))
    assert results[0].outcome is Outcome.OK and len(bench.faults) == 2


def test_a_suspect_is_not_blamed_if_the_board_stays_down(bench: Bench) -> None:
    bench.agent.fail = loses("r/0/0", times=2)
    first = True

    def recover(error: Exception) -> Exception | None:
        nonlocal first
        bench.faults.append(error)
        bench.connect(float("inf"))
        first, was_first = False, first
        return None if was_first else LinkLostError("no power")

    bench.measurer.recovery.recover_from = recover  # type: ignore[method-assign]
    results = bench.measure(requests(1))
    assert results[0] == Result(Outcome.BOARD_LOST, "no power", board=BOARD.name)


@pytest.mark.parametrize("code", ["worker_failed", "internal"])
def test_the_trial_that_the_agent_names_is_a_crash_at_once(bench: Bench, code: str) -> None:
    failures = [AgentFailure(code, "it ended")]  # type: ignore[arg-type]
    bench.agent.fail = lambda key: _refusal(failures.pop()) if failures and key == "r/1/0" else None
    results = bench.measure(requests(3))
    assert [results[ordinal].outcome for ordinal in range(3)] == [Outcome.OK, Outcome.CRASH, Outcome.OK]
    assert len(bench.faults) == 1


def test_a_program_that_the_board_refuses_is_rejected_and_no_fault(bench: Bench) -> None:
    refusal = AgentFailure("program_invalid", "a LOAD outside its buffer")
    bench.agent.fail = lambda key: _refusal(refusal) if key == "r/1/0" else None
    results = bench.measure(requests(3))
    assert [results[ordinal].outcome for ordinal in range(3)] == [Outcome.OK, Outcome.REJECTED, Outcome.OK]
    assert results[1].reason.startswith("program_invalid: ") and results[1].board == BOARD.name
    assert bench.faults == [] and bench.measurer.usage.trials == 3


def test_another_refusal_is_a_fault_of_the_board(bench: Bench) -> None:
    refusals = [AgentFailure("board_broken", "the canary fails")]
    bench.agent.fail = lambda key: _refusal(refusals.pop()) if refusals else None
    results = bench.measure(requests(2))
    assert {result.outcome for result in results.values()} == {Outcome.OK}
    assert [type(fault) for fault in bench.faults] == [RefusedError]


def test_a_fourth_loss_in_a_row_is_the_last_and_a_result_in_between_begins_anew(bench: Bench) -> None:
    bench.began = 0.0  # the agent survives: no trial is to blame
    bench.agent.fail = loses(*(f"r/{ordinal}/0" for ordinal in range(6)), times=SETBACKS_ALLOWED)
    results = bench.measure(requests(3))
    assert {result.outcome for result in results.values()} == {Outcome.OK}
    bench.faults.clear()
    bench.agent.fail = loses("r/0/0", times=SETBACKS_ALLOWED + 1)
    results = bench.measure(requests(1))
    assert results[0] == Result(Outcome.BOARD_LOST, "silent", board=BOARD.name)
    assert len(bench.faults) == SETBACKS_ALLOWED
    assert bench.states[-1] is BoardState.LOST and bench.events[-1].detail == "silent"
    assert bench.measurer.connection.connected is None


def test_a_crash_is_a_result_in_between(bench: Bench) -> None:
    bench.agent.fail = loses(*(f"r/{ordinal}/0" for ordinal in range(3)), times=2)
    results = bench.measure(requests(3))
    assert {result.outcome for result in results.values()} == {Outcome.CRASH}


def test_a_quarantined_board_says_so(bench: Bench) -> None:
    bench.agent.fail = loses("r/0/0")
    bench.broken = QuarantinedError("nothing helped")
    results = bench.measure(requests(1))
    assert results[0] == Result(Outcome.BOARD_LOST, "nothing helped", board=BOARD.name)
    assert bench.states[-1] is BoardState.QUARANTINED
    quarantine(BOARD.name, "it froze")
    assert "is quarantined since" in bench.measure(requests(1))[0].reason
    with pytest.raises(QuarantinedError, match="it froze"):
        BoardMeasurer.open(bench.measurer.connection.target, bench.events.append)


def test_a_board_that_cannot_be_opened_is_let_go_with_the_reason(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    def unreachable(self: object) -> None:
        raise LinkLostError("no route to host")

    monkeypatch.setattr("hilt.measure.recovery.Recovery.connect_at_first", unreachable)
    with pytest.raises(LinkLostError, match="no route"):
        BoardMeasurer.open(bench.measurer.connection.target, bench.events.append)
    assert bench.released == 1
    assert (bench.states, bench.events[-1].detail) == ([BoardState.LOST], "no route to host")


def test_a_board_that_is_not_connected_is_connected_first(bench: Bench) -> None:
    bench.measurer.connection.connected = None
    assert bench.measure(requests(1))[0].outcome is Outcome.OK
    assert str(bench.faults[0]) == f"{BOARD.name} is not connected"


def test_a_result_of_the_journal_is_not_measured_again(bench: Bench) -> None:
    connected = bench.measurer.connection.connected
    assert connected is not None
    verified = WireVerification(compared=16, mismatched=0)
    connected.journal["r/1/0"] = Measured("r/1/0", "ok", "", 7, (12.0,), (0.12,), verified)
    results = bench.measure(requests(3))
    assert [results[ordinal].cycles for ordinal in range(3)] == [10, 12, 10]
    assert bench.agent.ran == ["r/0/0", "r/2/0"] and connected.journal == {}
    assert bench.agent.calls[-1] == "acknowledge r 7"


def test_the_steps_of_a_trial_are_timed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]

    def monotonic() -> float:
        clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr("hilt.measure.board_measurer.time", SimpleNamespace(monotonic=monotonic))
    result = bench.measure(requests(1))[0]
    assert {name: result.seconds[name] for name in ("send", "answer")} == {"send": 1.0, "answer": 1.0}


def test_the_host_waits_for_two_trials_with_all_their_runs_and_the_agents_margin(bench: Bench) -> None:
    """The limit holds for the verified run and each of `number` times `repeat`; a simulator is slower by its scale."""
    bench.time_scale = 50.0
    bench.connect(0.0)
    (asked,) = requests(1)
    bench.measure([replace(asked, number=3, repeat=4, limit_seconds=0.5)])
    (left,) = bench.agent.patience
    wanted = 2 * (13 * 0.5 * 50 + 240)
    assert wanted - 20 < left <= wanted


def test_a_reset_of_the_agent_is_logged_with_its_cost(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "hilt.measure"):
        bench.measure(requests(1))
        assert caplog.messages == []
        bench.agent.canary = True
        bench.measure(requests(1))
    assert caplog.messages == [f"{BOARD.name}: ok after trial 0: reset_soft 0.25 s; canary well"]


def test_answers_that_nobody_waits_for_do_not_end_the_board(bench: Bench) -> None:
    """The batch was given up, as at a full disk; the next `serve` goes on with the same connection."""

    class GivenUp:
        def __init__(self) -> None:
            self.left = queue.SimpleQueue[Request]()
            for request in requests(2):
                self.left.put(request)
            self.given_back: list[Request] = []

        def take(self, board: str, *, idle: bool) -> Request | None:
            return None if self.left.empty() else self.left.get()

        def answer(self, request: Request, result: Result) -> None:
            raise PoolClosedError

        def put_back(self, requests: list[Request], reason: str) -> None:
            self.given_back += requests

    work = GivenUp()
    assert bench.measurer.serve(work) is None  # type: ignore[arg-type]
    assert (work.given_back, bench.faults, bench.measurer.usage.trials) == ([], [], 0)
    assert bench.measure([dot_product(BOARD.accelerator, 5, run="r")])[5].outcome is Outcome.OK
