"""A connection that is closed while it is being made leaves no agent behind, and tells nobody that it is ready."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.link.errors import LinkLostError
from hilt.measure import BoardEvent, BoardState
from hilt.measure import connection as module
from hilt.measure.connection import BoardConnection, Connected
from hilt_board.protocol import Measured


class Agent:
    def __init__(self) -> None:
        self.closed = threading.Event()
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


def test_what_is_safe_is_known_by_run_and_never_goes_back() -> None:
    connected = Connected(Agent(), "b" * 64, [], 0.0)  # type: ignore[arg-type]
    for key, sequence in (("one/3/0", 7), ("two/0/0", 9), ("one/1/0", 5)):
        connected.is_safe(Measured(key, "timeout", sequence=sequence))
    assert connected.acknowledge_through == {"one": 7, "two": 9}
