"""A connection that is closed while it is being made leaves no agent behind, and tells nobody that it is ready."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.link.deadline import Deadline
from hilt.link.errors import AgentError, LinkLostError
from hilt.measure import BoardEvent, BoardState
from hilt.measure import connection as module
from hilt.measure.board_description import resolve
from hilt.measure.connection import BoardConnection, Connected
from hilt_board.protocol import Measured, TrialRequest


class Agent:
    def __init__(self) -> None:
        self.closed = threading.Event()
        self.uploaded, self.replaced = True, False
        self.welcome = SimpleNamespace(boot_id="b", agent="a", pynq="3")
        self.client = SimpleNamespace()

    def close(self) -> None:
        self.closed.set()


def made(agent: Agent, events: list[BoardEvent]) -> BoardConnection:
    target = SimpleNamespace(
        description=SimpleNamespace(name="desk"),
        prepare=lambda report: None,
        bitstream=lambda: b"x",
        release=lambda: None,
        endpoint=lambda: None,
    )
    return BoardConnection(target, events.append)  # type: ignore[arg-type]


def test_closed_at_the_moment_that_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, events = Agent(), list[BoardEvent]()
    connection = made(agent, events)

    def at_once(closing: threading.Event, work: Any, discard: Any) -> Any:
        value = work()
        if isinstance(value, Connected):
            closing.set()  # after the wait for it was over
        return value

    monkeypatch.setattr(module, "unless_closed", at_once)
    monkeypatch.setattr(connection, "_open", lambda *_: Connected(agent, "b" * 64, [], 0.0))  # type: ignore[arg-type]
    connection.connect(20.0)
    assert connection.connected is None and agent.closed.is_set()


def test_closed_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, events = Agent(), list[BoardEvent]()
    connection = made(agent, events)
    begun, go_on = threading.Event(), threading.Event()

    def slowly(*_: object) -> Connected:
        begun.set()
        assert go_on.wait(20)
        connection.tell(BoardState.READY, "programmed")
        return Connected(agent, "b" * 64, [], 0.0)  # type: ignore[arg-type]

    monkeypatch.setattr(connection, "_open", slowly)
    threading.Thread(target=lambda: begun.wait(20) and connection.close()).start()
    with pytest.raises(LinkLostError):
        connection.connect(20.0)
    go_on.set()
    assert agent.closed.wait(20)
    assert connection.connected is None
    assert [event.state for event in events if event.state is BoardState.READY] == []


def test_a_connection_that_is_open_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent()
    connection = made(agent, [])
    monkeypatch.setattr(connection, "_open", lambda *_: Connected(agent, "b" * 64, [], 0.0))  # type: ignore[arg-type]
    connection.connect(20.0)
    assert connection.connected is not None and connection.boot_id == "b" and not agent.closed.is_set()
    connection.close()
    assert agent.closed.is_set()


def test_the_acknowledged_sequence_is_kept_by_run_and_never_goes_back() -> None:
    connected = Connected(Agent(), "b" * 64, [], 0.0)  # type: ignore[arg-type]
    for key, sequence in (("one/3/0", 7), ("two/0/0", 9), ("one/1/0", 5)):
        connected.is_safe(Measured(key, "timeout", sequence=sequence))
    assert connected.acknowledge_through == {"one": 7, "two": 9}


class Client:
    """An agent's client that lacks some blobs, and notes its requests."""

    def __init__(self, lacks: Callable[[list[str]], list[str]]) -> None:
        self.lacks = lacks
        self.put: dict[str, bytes] = {}
        self.programmed: list[tuple[object, ...]] = []

    def missing_blobs(self, names: list[str], deadline: Deadline) -> list[str]:
        self.asked = names
        return self.lacks(names)

    def upload_blob(self, name: str, contents: bytes, deadline: Deadline) -> None:
        self.put[name] = contents

    def program(self, digest: str, manifest: object, deadline: Deadline, *canary: object) -> SimpleNamespace:
        self.programmed.append((digest, manifest, *canary))
        return SimpleNamespace(clock_hz=100e6, seconds=0.25)

    def results(self, since: int, deadline: Deadline) -> list[Measured]:
        assert since == 0
        return [Measured("run/1/0", "timeout", sequence=4)]

    def status(self, deadline: Deadline) -> SimpleNamespace:
        return SimpleNamespace(temperature=self.celsius, uptime_seconds=100.0)

    celsius: float | None = 41.4


def programmable(events: list[BoardEvent]) -> BoardConnection:
    target = resolve("virtual:pynq")
    target.bitstream = lambda: b"bits"  # type: ignore[method-assign]
    target.prepare = lambda report: report("environment made")  # type: ignore[method-assign]
    target.endpoint = lambda: None  # type: ignore[method-assign, assignment, return-value]
    return BoardConnection(target, events.append)


def opened(monkeypatch: pytest.MonkeyPatch, client: Client, uploaded: bool = True) -> Agent:
    agent = Agent()
    agent.client = client  # type: ignore[assignment]
    agent.welcome = SimpleNamespace(boot_id="boot", agent="0123456789abcdef", pynq="3.0.1")
    agent.uploaded = uploaded  # type: ignore[attr-defined]
    monkeypatch.setattr(module.AgentConnection, "open", lambda *_: agent)
    return agent


@pytest.mark.parametrize(
    ("uploaded", "celsius", "how", "heat"),
    [(True, 41.4, "sent to the board", ", chip at 41 °C"), (False, None, "was there", "")],
)
def test_connecting_programs_the_board_and_says_each_step(
    monkeypatch: pytest.MonkeyPatch, uploaded: bool, celsius: float | None, how: str, heat: str
) -> None:
    events: list[BoardEvent] = []
    client = Client(lambda names: names)
    client.celsius = celsius
    connection = programmable(events)
    agent = opened(monkeypatch, client, uploaded)
    monkeypatch.setattr(module.time, "monotonic", lambda: 1000.0)
    connection.connect(20.0)
    said = [(event.state, event.detail) for event in events]
    assert said == [
        (BoardState.CONNECTING, "environment made"),
        (BoardState.CONNECTING, "preparing its bitstream"),
        (BoardState.CONNECTING, ""),
        (BoardState.LOADED, f"agent 0123456789ab {how}, pynq 3.0.1"),
        (BoardState.READY, f"1x16_i8w8a32_15_15_18_17 at 100 MHz programmed in 0.2 s{heat}"),
    ]
    assert events[-1].celsius == celsius and {event.board for event in events} == {"virtual:pynq"}
    connected = connection.connected
    assert connected is not None and connected.agent is agent  # type: ignore[comparison-overlap]
    assert connected.bitstream == hashlib.sha256(b"bits").hexdigest()
    assert list(connected.journal) == ["run/1/0"]
    assert connected.agent_began == 900.0, "its daemon has been up for 100 s"
    assert connection.boot_id == "boot"
    connection.disconnect()
    connection.disconnect()
    assert agent.closed.is_set() and connection.connected is None
    events.clear()
    connection.connect(20.0)
    assert [event.state for event in events] == [BoardState.CONNECTING, BoardState.LOADED, BoardState.READY]


def test_only_blobs_that_are_missing_are_sent_and_the_canary_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(b"bits").hexdigest()
    client = Client(lambda names: [name for name in names if name != digest])
    opened(monkeypatch, client)
    connection = programmable([])
    connection.connect(20.0)
    assert client.asked == sorted(client.asked) and digest in client.asked
    assert client.put.keys() == set(client.asked) - {digest}
    assert all(hashlib.sha256(contents).hexdigest() == name for name, contents in client.put.items())
    ((programmed, manifest, trial, code),) = client.programmed
    assert (programmed, manifest) == (digest, connection.target.manifest)
    assert isinstance(trial, TrialRequest) and trial.bitstream == digest and isinstance(code, bytes)


def test_an_agent_that_took_the_place_of_another_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[BoardEvent] = []
    agent = opened(monkeypatch, Client(lambda names: []))
    agent.replaced = "replaced agent 0123 of another version"  # type: ignore[assignment]
    programmable(events).connect(20.0)
    loaded = next(event.detail for event in events if event.state is BoardState.LOADED)
    assert loaded == "agent 0123456789ab sent to the board, replaced agent 0123 of another version, pynq 3.0.1"


def test_a_board_that_has_not_rebooted_yet_is_no_other_board(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = programmable([])
    agent = opened(monkeypatch, Client(lambda names: []))
    with pytest.raises(AgentError, match="virtual:pynq has not rebooted yet"):
        connection.connect(20.0, rebooted_from="boot")
    assert agent.closed.is_set() and connection.connected is None
    connection.connect(20.0, rebooted_from="the boot before")
    assert connection.connected is not None


def test_an_agent_that_fails_while_it_is_programmed_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(names: list[str]) -> list[str]:
        raise AgentError("disk failed")

    connection = programmable([])
    agent = opened(monkeypatch, Client(fail))
    with pytest.raises(AgentError, match="disk failed"):
        connection.connect(20.0)
    assert agent.closed.is_set() and connection.connected is None


def test_after_its_end_a_board_is_only_released(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[BoardEvent] = []
    released: list[None] = []
    connection = made(Agent(), events)
    connection.target.release = lambda: released.append(None)  # type: ignore[method-assign]
    connection.close()
    connection.tell(BoardState.READY, "too late")
    connection.tell(BoardState.RELEASED, "7 trials answered")
    assert [(event.state, event.detail) for event in events] == [(BoardState.RELEASED, "7 trials answered")]
    assert released == [None]


def test_a_stop_is_heard_while_a_place_is_waited_for() -> None:
    connection, waits, go_on = made(Agent(), []), threading.Event(), threading.Event()

    def wait(report: object) -> None:
        waits.set()
        assert go_on.wait(20)

    connection.target.prepare = wait  # type: ignore[method-assign]
    threading.Thread(target=lambda: waits.wait(20) and connection.close()).start()
    with pytest.raises(LinkLostError):
        connection.connect(20.0)
    go_on.set()


def test_who_we_are_names_user_host_and_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.getpass, "getuser", lambda: "somebody")
    monkeypatch.setattr(module.socket, "gethostname", lambda: "desk")
    assert module.who() == f"hilt of somebody@desk, process {os.getpid()}"
    monkeypatch.setattr(module.socket, "gethostname", lambda: "d" * 300)
    assert len(module.who()) == 200

    def nameless() -> str:
        raise KeyError

    monkeypatch.setattr(module.getpass, "getuser", nameless)
    assert module.who().startswith(f"hilt of user {os.getuid()}@")
