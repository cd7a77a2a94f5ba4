"""The question whether an unknown key is the board's: on a terminal alone, and the key is kept after a yes only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hilt.cli import host_keys
from hilt.cli.host_keys import confirm_host_key
from hilt.link.errors import LinkError, UnknownHostKeyError
from hilt.measure import board_description


class Contact:
    """A board, the keys that are known, a session with it, and the terminal with an answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.known: Any = None
        self.error: Exception | None = UnknownHostKeyError("host", 2222, "ssh-ed25519 AAAA", "SHA256:abc")
        self.terminals = [True, True]
        self.answer = True
        self.did: list[Any] = []
        self.asked: list[str] = []
        self.address = SimpleNamespace(host="host", port=2222)
        stream = SimpleNamespace(isatty=lambda: self.terminals[0]), SimpleNamespace(isatty=lambda: self.terminals[1])
        monkeypatch.setattr(host_keys, "sys", SimpleNamespace(stdin=stream[0], stderr=stream[1]))
        monkeypatch.setattr(host_keys.typer, "confirm", self._confirm)
        monkeypatch.setattr(board_description, "real_target", self._target)
        monkeypatch.setattr("hilt.link.host_keys.HostKeys", lambda: self)
        monkeypatch.setattr("hilt.link.session.SshSession", SimpleNamespace(connect=self._connect))

    def _target(self, name: str) -> Contact:
        self.asked.append(name)
        return self

    def of(self, host: str, port: int) -> Any:
        assert (host, port) == ("host", 2222)
        return self.known

    def prepare(self, tell: Any) -> None:
        tell("held by nobody")

    def endpoint(self) -> str:
        return "endpoint"

    def _connect(self, endpoint: str, known: Contact, deadline: Any) -> Any:
        assert endpoint == "endpoint" and known is self and 0 < deadline.left <= 20
        if self.error is not None:
            raise self.error
        return SimpleNamespace(close=lambda: self.did.append("close"))

    def _confirm(self, text: str, err: bool) -> bool:
        assert text == "Is it the same?" and err
        return self.answer

    def accept(self, unknown: UnknownHostKeyError) -> None:
        self.did.append(unknown)

    def release(self) -> None:
        self.did.append("release")


@pytest.fixture
def contact(monkeypatch: pytest.MonkeyPatch) -> Contact:
    return Contact(monkeypatch)


def test_a_key_that_is_confirmed_is_kept(contact: Contact, capsys: pytest.CaptureFixture[str]) -> None:
    confirm_host_key("desk")
    assert contact.did == [contact.error, "release"]
    assert capsys.readouterr() == (
        "",
        "held by nobody\ndesk (host) is new here. Its key: ssh-ed25519\n  SHA256:abc\n"
        "Compare it on the board: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub\n",
    )


def test_a_key_that_is_not_the_boards_is_refused(contact: Contact) -> None:
    contact.answer = False
    with pytest.raises(UnknownHostKeyError):
        confirm_host_key("desk")
    assert contact.did == ["release"]


@pytest.mark.parametrize("terminals", [[False, True], [True, False], [False, False]])
def test_nobody_is_asked_without_a_terminal(
    contact: Contact, capsys: pytest.CaptureFixture[str], terminals: list[bool]
) -> None:
    contact.terminals = terminals
    with pytest.raises(UnknownHostKeyError):
        confirm_host_key("desk")
    assert contact.did == ["release"] and "Compare" not in capsys.readouterr().err


def test_a_board_whose_key_is_known_is_not_connected_to(contact: Contact) -> None:
    contact.known = "ssh-ed25519 AAAA"
    confirm_host_key("desk")
    assert contact.did == [] and contact.asked == ["desk"]


def test_a_key_that_has_become_known_meanwhile_is_no_question(contact: Contact) -> None:
    contact.error = None
    confirm_host_key("desk")
    assert contact.did == ["close", "release"]


def test_another_fault_is_not_a_question(contact: Contact) -> None:
    contact.error = LinkError("no route")
    with pytest.raises(LinkError, match="no route"):
        confirm_host_key("desk")
    assert contact.did == ["release"]


def test_each_of_several_boards_is_asked_for_and_virtual_ones_are_not(contact: Contact) -> None:
    contact.known = "key"
    confirm_host_key("desk,virtual:pynq,dataset:x,lab")
    assert contact.asked == ["desk", "lab"]
