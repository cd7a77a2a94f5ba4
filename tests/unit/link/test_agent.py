"""The agent on a board whose session is a double: when it is sent, how it is started, and the error of each refusal."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.link import agent
from hilt.link.agent import AgentConnection, Archive, command, deploy, run_agent
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import AgentError, BoardBusyError, LinkError
from hilt.link.session import Completed

ARCHIVE = Archive(b"the agent", "a1" * 32)
PATH = f".hilt-agents/agent-{ARCHIVE.sha256}.pyz"
DEADLINE = Deadline(60.0)


@dataclass
class Session:
    """A session whose commands end with `status`, by their last word."""

    sudo: bool = False
    status: dict[str, int] = field(default_factory=dict)
    output: bytes = b""
    there: str | None = None
    done: list[tuple[object, ...]] = field(default_factory=list)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(name="desk", host="desk.lab", user="xilinx", python="/usr/bin/python3", sudo=self.sudo)

    def execute(self, words: list[str], deadline: Deadline) -> Completed:
        self.done.append(tuple(words))
        return Completed(self.status.get(words[-1], 0), self.output, b"")

    def stream(self, words: list[str], deadline: Deadline) -> tuple[str, ...]:
        self.done.append(("stream", *words))
        return ("stream",)

    def sha256(self, path: str, deadline: Deadline) -> str | None:
        assert path == PATH
        return self.there

    def put(self, data: bytes, path: str, deadline: Deadline) -> None:
        self.done.append(("put", data, path))

    def close(self) -> None:
        self.done.append(("closed",))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """A client whose agent names the version `agent`, or whose hello fails."""

    agent = ARCHIVE.sha256
    error: LinkError | None = None
    closed = 0

    def __init__(self, stream: object, board: str) -> None:
        assert (stream, board) == (("stream",), "desk")
        type(self).closed = 0

    def hello(self, who: str, deadline: Deadline) -> Any:
        assert who == "me"
        if self.error is not None:
            raise self.error
        return SimpleNamespace(agent=self.agent)

    def close(self) -> None:
        type(self).closed += 1


def use(session: Session, monkeypatch: pytest.MonkeyPatch, **values: Any) -> type[Client]:
    """Let every connection be this session, with a client of these values."""
    client = type("OneClient", (Client,), values)
    monkeypatch.setattr(agent.SshSession, "connect", lambda endpoint, keys, deadline: session)
    monkeypatch.setattr(agent, "archive_for", lambda *_: ARCHIVE)
    monkeypatch.setattr(agent, "AgentClient", client)
    return client


@pytest.mark.parametrize(
    ("there", "sent"), [(ARCHIVE.sha256, False), (None, True), ("b2" * 32, True)], ids=["whole", "absent", "cut"]
)
def test_the_agent_is_sent_unless_it_is_there_whole(there: str | None, sent: bool) -> None:
    session: Any = Session(there=there)
    assert deploy(session, ARCHIVE, DEADLINE) is sent
    assert session.done == ([("put", ARCHIVE.data, PATH)] if sent else [])


@pytest.mark.parametrize("sudo", [False, True])
def test_a_connection_starts_the_agent_and_greets_it(sudo: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*(["sudo", "-n"] if sudo else []), "/usr/bin/python3", PATH]
    session = Session(sudo=sudo, output=b"  \x1b[2Jended an older daemon" + b"." * 300)
    client = use(session, monkeypatch)
    with AgentConnection.open(session.endpoint, "me", DEADLINE) as connection:
        assert connection.uploaded and connection.welcome.agent == ARCHIVE.sha256
        assert connection.replaced.endswith("ended an older daemon" + "." * 175)
        assert "\x1b" not in connection.replaced
        assert session.done == [
            ("put", ARCHIVE.data, PATH),
            (*words, "start"),
            ("stream", *words, "connect"),
        ]
        assert not client.closed
    assert client.closed == 1 and session.done[-1] == ("closed",)
    assert command(session.endpoint, PATH) == words


@pytest.mark.parametrize(
    ("status", "values", "error", "words", "closed"),
    [
        ({"start": 3}, {}, BoardBusyError, "^board desk is in use: of another hilt$", 0),
        ({"start": 1}, {}, AgentError, "^agent does not start on desk: of another hilt$", 0),
        ({}, {"agent": "b2" * 32}, AgentError, "^agent on desk is b2b2b2b2b2b2, not a1a1a1a1a1a1: another hilt", 1),
        ({}, {"agent": ""}, AgentError, "^agent on desk is run from a folder, not a1a1a1a1a1a1", 1),
        ({}, {"error": LinkError("silent")}, LinkError, "^silent$", 1),
    ],
)
def test_what_refuses_closes_all(
    status: dict[str, int],
    values: dict[str, Any],
    error: type[LinkError],
    words: str,
    closed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session(status=status, output=b"first\nof another hilt\n", there=ARCHIVE.sha256)
    client = use(session, monkeypatch, **values)
    with pytest.raises(error, match=words) as raised:
        AgentConnection.open(session.endpoint, "me", DEADLINE)
    assert type(raised.value) is error
    assert session.done[-1] == ("closed",) and client.closed == closed


def test_a_command_of_the_agents_runs_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(output=b"clean \xff\nall of it\n")
    use(session, monkeypatch)
    assert run_agent(session.endpoint, ["clean", "all"], DEADLINE) == "clean \N{REPLACEMENT CHARACTER}\nall of it\n"
    assert session.done[-2:] == [("/usr/bin/python3", PATH, "clean", "all"), ("closed",)]
    session.status = {"all": 2}
    with pytest.raises(AgentError, match="^agent on desk: all of it$"):
        run_agent(session.endpoint, ["clean", "all"], DEADLINE)
    assert session.done[-1] == ("closed",)
