"""Events that the daemon survives: its worker killed or stopped, its own death, a lost link, a second client."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from hilt_board.protocol import (
    Acknowledge,
    Acknowledged,
    AgentFailure,
    AgentHello,
    FrameDecoder,
    HasBlobs,
    Input,
    Measure,
    Measured,
    MissingBlobs,
    Results,
    ResultsReport,
    Shutdown,
    ShuttingDown,
    encode_frame,
    from_frame,
    to_frame,
)
from tests.e2e.agent.client import Agent, Client
from tests.e2e.agent.conftest import Hardware
from tests.e2e.agent.programs import MANY, Prepared, add_constant, sha256


def short(golden: Hardware, key: str) -> Prepared:
    return add_constant(golden.accelerator, golden.bitstream, key)


def endless(golden: Hardware, key: str) -> Prepared:
    """Minutes of simulation, every cycle of it within the limit."""
    return add_constant(golden.accelerator, golden.bitstream, key, rounds=MANY, elements=2000, limit_seconds=3000.0)


def seconds_long(golden: Hardware, key: str) -> Prepared:
    return add_constant(golden.accelerator, golden.bitstream, key, rounds=MANY, elements=1000, limit_seconds=3000.0)


def running(board: Client, prepared: Prepared) -> tuple[int, int]:
    """Send a trial that takes long; return its request number and the worker that is at it."""
    board.put(prepared.blobs)
    number = board.send(Measure(prepared.trial, prepared.code))
    while (status := board.status()).state != "busy":
        pass
    assert status.worker is not None
    return number, status.worker


def test_a_worker_that_is_killed_is_a_crash(board: Client, golden: Hardware) -> None:
    number, worker = running(board, endless(golden, "run/1/0"))
    os.kill(worker, signal.SIGKILL)
    measured = board.reply(number)
    assert isinstance(measured, Measured)
    assert (measured.outcome, measured.reason) == ("crash", "worker was ended by signal 9 (SIGKILL)")
    assert (measured.canary, measured.worker_restarts) == (True, 1)
    status = board.status()
    assert (status.state, status.worker_restarts) == ("ready", 1)
    assert status.worker not in (None, worker)
    assert board.measure(short(golden, "run/2/0")).outcome == "ok"


@pytest.mark.parametrize("silence", ["10"])
def test_a_worker_that_stands_still_is_a_timeout(board: Client, golden: Hardware) -> None:
    number, worker = running(board, endless(golden, "run/1/0"))
    os.kill(worker, signal.SIGSTOP)
    measured = board.reply(number)
    assert isinstance(measured, Measured)
    assert (measured.outcome, measured.canary, measured.worker_restarts) == ("timeout", True, 1)
    assert "no sign of life for 10 s" in measured.reason
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert board.measure(short(golden, "run/2/0")).outcome == "ok"


def test_a_worker_that_dies_between_trials_costs_none(board: Client, golden: Hardware) -> None:
    worker = board.status().worker
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    measured = board.measure(short(golden, "run/1/0"))
    assert measured.outcome == "ok"
    assert board.status().worker_restarts == 1


@pytest.mark.parametrize("again", [True, False], ids=["programmed again", "as it was"])
def test_a_worker_that_dies_between_sessions_costs_no_trial(
    agent: Agent, board: Client, golden: Hardware, again: bool
) -> None:
    """Hello starts another, which has loaded nothing yet."""
    worker = board.status().worker
    assert worker is not None
    board.close()
    os.kill(worker, signal.SIGKILL)
    client = agent.connect()
    while client.status().worker is not None:
        pass
    client.hello()
    if again:
        assert client.program(golden.program()).seconds > 0
    assert client.measure(short(golden, "run/1/0")).outcome == "ok"
    client.close()


def test_a_worker_without_memory_says_nothing_of_the_program(board: Client, golden: Hardware) -> None:
    """The agent's address space is full: reading a tensor fails, and not because of the configuration."""
    worker = board.status().worker
    assert worker is not None
    resource.prlimit(worker, resource.RLIMIT_AS, (1 << 20, 1 << 20))
    large = bytes(6 << 20)
    prepared = short(golden, "run/1/0")
    more = Input("more", "inp", sha256(large), len(large), 16)
    trial = replace(prepared.trial, inputs=(*prepared.trial.inputs, more))
    board.put({**prepared.blobs, sha256(large): large})
    refused = board.ask(Measure(trial, prepared.code), AgentFailure)
    assert refused.code == "worker_failed" and "MemoryError" in refused.message
    assert board.ask(Results(0), ResultsReport).results == ()
    assert board.ask(Measure(trial, prepared.code), Measured).outcome == "ok"
    assert board.status().worker not in (None, worker)


def test_a_key_is_run_once(board: Client, golden: Hardware) -> None:
    prepared = short(golden, "run/1/0")
    first = board.measure(prepared)
    again = board.measure(prepared)
    assert again == first
    assert board.status().trials == 1
    assert board.measure(short(golden, "run/1/1")).sequence == first.sequence + 1


def test_the_journal_outlives_the_daemon(agent: Agent, board: Client, golden: Hardware) -> None:
    first = board.measure(short(golden, "run/1/0"))
    second = board.measure(short(golden, "run/2/0"))
    running(board, endless(golden, "run/3/0"))
    daemon = _daemon_pid(agent)
    worker = board.status().worker
    os.kill(daemon, signal.SIGKILL)
    agent.start()
    assert _daemon_pid(agent) != daemon
    assert worker is not None and _gone(worker)
    client = agent.connect()
    welcome = client.hello()
    assert (welcome.bitstream, welcome.journal_next) == (None, second.sequence + 1)
    report = client.ask(Results(0), ResultsReport)
    assert (report.results, report.more) == ((first, second), False)
    assert client.ask(Results(first.sequence), ResultsReport).results == (second,)
    assert client.measure(short(golden, "run/1/0")) == first
    prepared = short(golden, "run/4/0")
    client.put(prepared.blobs)
    assert client.refused(Measure(prepared.trial, prepared.code)) == "not_programmed"
    assert client.ask(Acknowledge(first.sequence), Acknowledged).through == first.sequence
    assert client.ask(Results(0), ResultsReport).results == (second,)
    client.close()


def test_a_lost_link_loses_no_result(agent: Agent, board: Client, golden: Hardware) -> None:
    long = seconds_long(golden, "run/1/0")
    running(board, long)
    board.close()
    client = agent.connect()
    client.hello()
    measured = client.measure(long)  # waits for the one that runs, then answers from the journal
    assert measured.outcome == "ok"
    assert client.status().trials == 1
    client.close()


def test_a_second_client_is_told_who_has_the_board(agent: Agent, client: Client) -> None:
    other = agent.connect()
    refusal = other.ask(AgentHello("someone else"), AgentFailure)
    assert refusal.code == "board_busy"
    assert "in use by test" in refusal.message
    with pytest.raises((EOFError, ConnectionError)):
        other.reply(other.send(AgentHello("someone else")))
    client.close()
    late = agent.connect()
    while isinstance(reply := late.reply(late.send(AgentHello("someone else"))), AgentFailure):
        late = agent.connect()
    assert reply.device == "virtual:pynq"
    late.close()


def test_a_new_session_of_the_same_client_replaces_the_dead_one(agent: Agent, client: Client) -> None:
    again = agent.connect()
    again.hello("test")
    with pytest.raises((EOFError, ConnectionError)):
        client.ask(HasBlobs(()), MissingBlobs)
    assert again.ask(HasBlobs(()), MissingBlobs).sha256 == ()
    again.close()


def test_without_hello_only_status_is_answered(agent: Agent, client: Client) -> None:
    other = agent.connect()
    assert other.status().holder == "test"
    assert other.refused(HasBlobs(())) == "hello_needed"
    assert other.refused(Shutdown()) == "hello_needed"
    other.close()


def test_connect_bridges_and_answers_after_half_close(agent: Agent, client: Client, golden: Hardware) -> None:
    client.put({golden.bitstream: golden.bitfile})
    client.program(golden.program())
    prepared = short(golden, "run/1/0")
    client.put(prepared.blobs)
    client.close()
    bridge = agent.bridge()
    messages = (AgentHello("test"), Measure(prepared.trial, prepared.code), HasBlobs(("0" * 64,)))
    said = b"".join(encode_frame(to_frame(each, number)) for number, each in enumerate(messages, start=1))
    answered, complaints = bridge.communicate(said, timeout=60)
    assert (bridge.returncode, complaints) == (0, b"")
    replies = {}
    for frame in FrameDecoder().feed(answered):
        number, replies[number] = from_frame(frame)[0], from_frame(frame)[1]
    assert replies[2].outcome == "ok"
    assert replies[3] == MissingBlobs(("0" * 64,))


def test_connect_without_a_daemon_says_so(agent: Agent) -> None:
    bridge = agent.bridge()
    _, complaints = bridge.communicate(b"", timeout=60)
    assert bridge.returncode == 1
    assert complaints == b"hilt agent: no daemon runs: start it first\n"


def test_start_is_idempotent_and_stop_ends_it(agent: Agent) -> None:
    agent.start()
    first = _daemon_pid(agent)
    agent.start()
    assert _daemon_pid(agent) == first
    agent.stop()
    assert _gone(first)
    assert agent.run("status").returncode == 1
    agent.start()
    assert _daemon_pid(agent) != first


def test_a_daemon_that_hangs_is_replaced_by_start(agent: Agent) -> None:
    agent.start()
    first = _daemon_pid(agent)
    os.kill(first, signal.SIGSTOP)
    agent.start()
    assert _gone(first)
    session = agent.connect()
    assert session.hello().device == "virtual:pynq"
    session.close()


def test_shutdown_finishes_the_trial_that_runs(agent: Agent, board: Client, golden: Hardware) -> None:
    long = seconds_long(golden, "run/1/0")
    number, _ = running(board, long)
    queued = short(golden, "run/2/0")
    waiting = board.send(Measure(queued.trial, queued.code))
    daemon = _daemon_pid(agent)
    board.ask(Shutdown(), ShuttingDown)
    assert board.reply(number).outcome == "ok"
    assert board.reply(waiting).code == "shutting_down"
    with pytest.raises(EOFError):
        board.reply(0)
    agent.stop()
    assert _gone(daemon)


def test_the_home_is_private(agent: Agent, client: Client) -> None:
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in agent.home.iterdir()}
    assert stat.S_IMODE(agent.home.stat().st_mode) == 0o700
    assert modes["agent.sock"] == 0o600
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes
    agent.home.chmod(0o755)
    refused = agent.run("status")
    agent.home.chmod(0o700)
    assert refused.returncode == 1 and "open to others" in refused.stderr


def _daemon_pid(agent: Agent) -> int:
    return json.loads((agent.home / "agent.pid").read_text())["pid"]


def _gone(pid: int) -> bool:
    """Ended; a process that nobody has waited for (its parent is not us) counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
    except FileNotFoundError:
        return True
