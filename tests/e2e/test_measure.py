"""Measuring on a virtual board (golden model) over SSH: outcomes, and the same results whatever dies in the middle."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hilt.link import client as client_module
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import BitstreamRefusedError, BoardBusyError, QuarantinedError, UnreachableError
from hilt.link.quarantine import release
from hilt.measure import BoardEvent, BoardState, Request, connection, ladder, recovery
from hilt.measure.board_description import VirtualTarget
from hilt.measure.board_measurer import BoardMeasurer
from hilt.measure.ladder import RecoveryStep
from hilt.trial import Outcome, Result
from hilt.virtual.board_model import board_model
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.supervisor_control import SupervisorControl
from tests.e2e.small_programs import dot_product, hanging, wrong

ACCELERATOR = board_model("pynq").accelerator
LONG = 1 << 18
"""Rounds that take the golden model some milliseconds."""


_RUNS = itertools.count()
"""Tests share a board, and with it its journal: each measures under a run of its own."""


class HostDiedError(Exception):
    """The error raised at the point of the host's death."""


@dataclass
class Desk:
    """A measurer, its events, and the controls of its board."""

    measurer: BoardMeasurer
    events: list[BoardEvent] = field(default_factory=list)
    run: str = field(default_factory=lambda: f"run{next(_RUNS)}")

    def measure(self, requests: list[Request], after: Callable[[int], None] = lambda count: None) -> dict[int, Result]:
        """`after` is called in each report with how many there were; every trial is reported once."""
        results: dict[int, Result] = {}

        def report(ordinal: int, result: Result) -> None:
            assert ordinal not in results, f"trial {ordinal} was reported twice"
            results[ordinal] = result
            after(len(results))

        self.measurer.measure(requests, report)
        assert sorted(results) == sorted(request.ordinal for request in requests)
        return results

    @property
    def states(self) -> list[BoardState]:
        return [event.state for event in self.events]

    def trials_run(self) -> int:
        """Return the number of trials that the running daemon has run since its start."""
        connected = self.measurer.connection.connected
        assert connected is not None
        return connected.client.status(Deadline(30)).trials


@pytest.fixture
def desk(shared_home: Path) -> Iterator[Desk]:
    events: list[BoardEvent] = []
    measurer = BoardMeasurer.open(VirtualTarget("virtual:pynq", form="golden"), events.append)
    yield Desk(measurer, events)
    measurer.close()


def supervisor() -> SupervisorControl:
    control = SupervisorControl.find(BoardDirectory("pynq"))
    assert control is not None
    return control


def agent_home() -> Path:
    return BoardDirectory("pynq").home / ".hilt"


def daemon_pid() -> int:
    return int(json.loads((agent_home() / "agent.pid").read_text())["pid"])


def batch(run: str, count: int = 10) -> list[Request]:
    """Return long trials; every fourth gives a wrong answer."""
    requests = [dot_product(ACCELERATOR, n, LONG + 4096 * n, run, limit_seconds=1.0) for n in range(count)]
    return [wrong(request) if request.ordinal % 4 == 1 else request for request in requests]


# --- outcomes ---


def test_each_outcome_is_told_with_its_facts(desk: Desk) -> None:
    results = desk.measure(
        [
            dot_product(ACCELERATOR, 0, run=desk.run),
            wrong(dot_product(ACCELERATOR, 1, run=desk.run)),
            hanging(ACCELERATOR, 2, desk.run),
            dot_product(ACCELERATOR, 3, rounds=100, run=desk.run),
            replace(dot_product(ACCELERATOR, 4, rounds=100, run=desk.run), number=3, repeat=5),
        ]
    )
    assert [results[n].outcome for n in range(5)] == ["ok", "wrong_answer", "timeout", "ok", "ok"]
    assert {result.board for result in results.values()} == {"virtual:pynq"}
    right, mistaken = results[0].verification, results[1].verification
    assert right is not None and (right.compared, right.mismatched, right.first) == (16, 0, None)
    assert mistaken is not None
    assert (mistaken.compared, mistaken.mismatched, mistaken.first, mistaken.largest_error) == (16, 1, 5, 3)
    assert results[1].cycles is results[1].microseconds is results[2].cycles is None
    assert "no FINISH within 1000000 cycles" in results[2].reason
    assert results[3].cycles == results[4].cycles
    assert results[3].cycles is not None and results[3].microseconds == pytest.approx(results[3].cycles / 100)
    assert len(results[4].repeats) == 5
    assert desk.states[-1] is BoardState.READY
    assert desk.states[:4] == [
        BoardState.CONNECTING,
        BoardState.CONNECTING,
        BoardState.LOADED,
        BoardState.READY,
    ]


def test_a_program_that_fits_no_tensor_is_rejected_and_the_rest_measured(desk: Desk) -> None:
    good, other = dot_product(ACCELERATOR, 0, run=desk.run), dot_product(ACCELERATOR, 1, run=desk.run)
    inputs = {name: tensor for name, tensor in other.tensors.inputs.items() if name != "wgt"}
    results = desk.measure([replace(other, tensors=replace(other.tensors, inputs=inputs)), good])
    assert results[1].outcome is Outcome.REJECTED
    assert "wgt" in results[1].reason
    assert results[0].outcome is Outcome.OK


def test_tensors_travel_once(desk: Desk) -> None:
    desk.measure([dot_product(ACCELERATOR, n, run=desk.run) for n in range(3)])
    blobs = {path.name: path.stat().st_ino for path in (agent_home() / "blobs").iterdir()}
    tensors = dot_product(ACCELERATOR, 0).tensors
    needed = [*tensors.inputs.values(), tensors.expected]
    assert {hashlib.sha256(tensor.tobytes()).hexdigest() for tensor in needed} <= set(blobs)
    desk.measure([dot_product(ACCELERATOR, n, run=desk.run) for n in range(3, 6)])
    assert {path.name: path.stat().st_ino for path in (agent_home() / "blobs").iterdir()} == blobs


def test_a_measured_key_is_answered_from_the_journal(desk: Desk) -> None:
    """A key with a recorded result is answered from the journal.

    The host died between the board's answer and its own record. The next host is sure of the two results that it has on
    record, and asks for the others again.
    """

    def die(count: int) -> None:
        if count == 3:
            raise HostDiedError

    requests = batch(desk.run, count=4)
    before = desk.trials_run()
    with pytest.raises(HostDiedError):
        desk.measure(requests, die)
    results = desk.measure(requests[2:])
    assert [results[n].outcome for n in (2, 3)] == ["ok", "ok"]
    assert desk.trials_run() == before + 4


def test_a_new_host_finds_results_that_the_old_one_did_not_get(desk: Desk) -> None:
    """A new host fetches the results that the old one missed.

    The SSH server dies, and the host with it. The board finishes its trials, and the next host runs only the rest.
    """
    requests = batch(desk.run, count=3)
    before = desk.trials_run()

    def die(count: int) -> None:
        with supervisor() as control:
            control.kill_ssh_server()
        raise HostDiedError

    with pytest.raises(HostDiedError):
        desk.measure(requests, die)
    desk.measurer.close()
    second = Desk(BoardMeasurer.open(VirtualTarget("virtual:pynq", form="golden"), lambda event: None))
    try:
        results = second.measure(requests)
        assert [results[n].outcome for n in range(3)] == ["ok", "wrong_answer", "ok"]
        assert second.trials_run() == before + 3
    finally:
        second.measurer.close()


# --- deaths in the middle ---


def kill_ssh() -> None:
    with supervisor() as control:
        control.kill_ssh_server()


def kill_daemon() -> None:
    os.kill(daemon_pid(), signal.SIGKILL)


def cycle_power() -> None:
    with supervisor() as control:
        control.power_cycle()


def switch_off() -> None:
    with supervisor() as control:
        control.power_off()


def kill_supervisor() -> None:
    with supervisor() as control:
        os.kill(control.status().supervisor_pid, signal.SIGKILL)


@pytest.mark.parametrize("disturb", [kill_ssh, kill_daemon, cycle_power, switch_off, kill_supervisor])
def test_same_results_as_on_a_quiet_board(desk: Desk, disturb: Callable[[], None]) -> None:
    quiet = desk.measure(batch(desk.run + "-quiet"))
    before = desk.trials_run()

    def disturb_once(count: int) -> None:
        if count == 4:
            disturb()

    disturbed = desk.measure(batch(desk.run), disturb_once)

    assert disturbed == quiet
    assert BoardState.RECOVERING in desk.states
    assert desk.states[-1] is BoardState.READY
    if disturb is kill_ssh:
        assert desk.trials_run() == before + 10, "a trial was run twice although its result was on the board"
    else:
        # The daemon is another: it has run the trials without a result, which is all but the four reported ones.
        assert desk.trials_run() <= 6


def test_a_killed_worker_is_replaced_and_the_trial_says_so(desk: Desk) -> None:
    def kill_worker(count: int) -> None:
        if count == 4:
            connected = desk.measurer.connection.connected
            assert connected is not None
            worker = connected.client.status(Deadline(30)).worker
            assert worker is not None
            os.kill(worker, signal.SIGKILL)

    results = desk.measure(batch(desk.run), kill_worker)
    outcomes = {ordinal: str(result.outcome) for ordinal, result in results.items()}
    expected = {ordinal: "wrong_answer" if ordinal % 4 == 1 else "ok" for ordinal in range(10)}
    differing = {ordinal: outcome for ordinal, outcome in outcomes.items() if outcome != expected[ordinal]}
    # Trial 4 was running; where it was just over, the worker died between two trials and nobody is to blame.
    assert differing in ({}, {4: "crash"}, {5: "crash"})


@pytest.fixture
def short_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for before the desk: a connection beats as it was opened."""
    monkeypatch.setattr(client_module, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(client_module, "SILENT_SECONDS", 2.0)


def test_a_frozen_daemon_is_noticed_and_replaced(short_heartbeat: None, desk: Desk) -> None:
    def freeze(count: int) -> None:
        if count == 4:
            os.kill(daemon_pid(), signal.SIGSTOP)

    results = desk.measure(batch(desk.run), freeze)
    assert [results[n].outcome for n in range(10)] == ["wrong_answer" if n % 4 == 1 else "ok" for n in range(10)]
    assert any("silent" in event.detail for event in desk.events)


def test_a_board_that_does_not_come_back_by_itself_is_power_cycled(
    short_heartbeat: None, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ladder.SECONDS, RecoveryStep.RECONNECT, 0.0)
    monkeypatch.setattr(ladder, "ACT_SECONDS", 1.0)
    with supervisor() as control:
        before = control.status()

    def freeze(count: int) -> None:
        if count == 4 and before.ssh_pid is not None:
            os.kill(before.ssh_pid, signal.SIGSTOP)

    results = desk.measure(batch(desk.run), freeze)
    assert [results[n].outcome for n in range(10)] == ["wrong_answer" if n % 4 == 1 else "ok" for n in range(10)]
    with supervisor() as control:
        assert control.status().boot_id != before.boot_id


# --- boards that do not come back ---


class Removed(VirtualTarget):
    """A board that can be carried away."""

    def __init__(self) -> None:
        super().__init__("virtual:pynq", form="golden")
        self.away = False

    def endpoint(self) -> Endpoint:
        endpoint = super().endpoint()
        # Nothing listens on port 1.
        return replace(endpoint, port=1) if self.away else endpoint


def test_a_board_that_stays_away_is_lost_and_a_board_that_returns_is_used(
    hilt_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Removed()
    events: list[BoardEvent] = []
    desk = Desk(BoardMeasurer.open(target, events.append), events)
    for step in RecoveryStep:
        monkeypatch.setitem(ladder.SECONDS, step, 0.1)

    def carry_away(count: int) -> None:
        if count == 2:
            target.away = True
            kill_ssh()

    try:
        results = desk.measure(batch(desk.run, count=6), carry_away)
        lost = [ordinal for ordinal, result in results.items() if result.outcome is Outcome.BOARD_LOST]
        assert lost[0] >= 2 and lost == list(range(lost[0], 6))
        assert "not reachable" in results[5].reason
        climbed = desk.measurer.recovery.attempts
        assert [(each.step, each.well) for each in climbed] == [(step, False) for step in RecoveryStep]
        assert desk.states[-1] is BoardState.QUARANTINED
        with pytest.raises(QuarantinedError, match="not reachable.*hilt boards release virtual:pynq"):
            BoardMeasurer.open(Removed(), events.append)

        target.away = False
        rest = [request for request in batch(desk.run, count=6) if request.ordinal in lost]
        assert {result.outcome for result in desk.measure(rest).values()} == {Outcome.BOARD_LOST}
        assert release("virtual:pynq")
        monkeypatch.setitem(ladder.SECONDS, RecoveryStep.RECONNECT, 60.0)
        again = desk.measure(rest)
        assert all(result.outcome in (Outcome.OK, Outcome.WRONG_ANSWER) for result in again.values())
    finally:
        desk.measurer.close()


def test_closing_ends_a_batch_as_lost(desk: Desk) -> None:
    results = desk.measure(batch(desk.run, count=5), lambda count: desk.measurer.close() if count == 2 else None)
    assert [results[n].outcome for n in range(5)][2:] == ["board_lost"] * 3
    assert results[4].reason == "measurer was closed"


# --- boards that cannot be opened ---


def test_a_busy_board_is_refused_by_name(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(connection, "who", lambda: "somebody else")
    with pytest.raises(BoardBusyError, match=f"in use by .*process {os.getpid()}"):
        BoardMeasurer.open(VirtualTarget("virtual:pynq", form="golden"), lambda event: None)
    assert desk.measure([dot_product(ACCELERATOR, 0, run=desk.run)])[0].outcome is Outcome.OK


def test_another_boards_bitstream_is_refused(hilt_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = VirtualTarget("virtual:pynq", form="golden")
    other = VirtualTarget("virtual:pynq_batched", form="golden")
    monkeypatch.setattr(target, "bitstream", other.bitstream)
    events: list[BoardEvent] = []
    with pytest.raises(BitstreamRefusedError, match="identity_mismatch"):
        BoardMeasurer.open(target, events.append)
    assert events[-1].state is BoardState.LOST


def test_an_unreachable_board_is_an_error(hilt_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "SETTLE_SECONDS", 0.1)
    monkeypatch.setitem(ladder.SECONDS, RecoveryStep.POWER, 0.1)
    target = Removed()
    target.away = True
    events: list[BoardEvent] = []
    with pytest.raises(UnreachableError, match="is it switched on"):
        BoardMeasurer.open(target, events.append)
    assert any(event.detail.startswith("power cycle: ") for event in events), "its power switch was left alone"
