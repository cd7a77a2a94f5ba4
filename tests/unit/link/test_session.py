"""The result of a login, against an SSH server that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh
import paramiko
import pytest

from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import AuthenticationError, KnownHostsError, LinkError, LinkTimeoutError, UnreachableError
from hilt.link.host_keys import HostKeys
from hilt.link.session import SshSession

pytestmark = pytest.mark.ssh  # an SSH server of asyncssh


class Leaves(asyncssh.SSHServer):
    """A server that leaves during authentication, like a board that reboots while it is shown a key."""

    def connection_made(self, connection: asyncssh.SSHServerConnection) -> None:
        self._connection = connection

    def begin_auth(self, username: str) -> bool:
        self._connection.abort()
        return True


class Refuses(asyncssh.SSHServer):
    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return False


class Stalls(asyncssh.SSHServer):
    async def begin_auth(self, username: str) -> bool:
        await asyncio.Event().wait()
        return True


@contextmanager
def served(kind: type[asyncssh.SSHServer], tmp_path: Path) -> Iterator[Endpoint]:
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_key.write_private_key(tmp_path / "key")
    port, ready, end = 0, threading.Event(), asyncio.Event()
    loop: asyncio.AbstractEventLoop

    async def serve() -> None:
        nonlocal port, loop
        loop = asyncio.get_running_loop()
        async with asyncssh.listen("127.0.0.1", 0, server_factory=kind, server_host_keys=[host_key]) as server:
            port = server.get_port()
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(20)
        public = host_key.export_public_key().decode()
        yield Endpoint("odd", "127.0.0.1", port, "xilinx", tmp_path / "key", " ".join(public.split()[:2]))
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(20)


@pytest.mark.parametrize(
    ("kind", "seconds", "error", "permanent"),
    [
        (Leaves, 20.0, UnreachableError, False),
        (Stalls, 3.0, LinkTimeoutError, False),
        (Refuses, 20.0, AuthenticationError, True),
    ],
)
def test_only_a_refused_key_is_for_somebody_to_mend(
    kind: type[asyncssh.SSHServer], seconds: float, error: type[LinkError], permanent: bool, tmp_path: Path
) -> None:
    """A board that goes away in the middle of a login comes back: the recovery ladder tries again."""
    with served(kind, tmp_path) as endpoint, pytest.raises(LinkError) as raised:
        SshSession.connect(endpoint, HostKeys(), Deadline(seconds))
    assert type(raised.value) is error
    assert raised.value.permanent is permanent


class Deaf(paramiko.ServerInterface):
    """A server that accepts every login and channel but never answers a request, like a board whose disk stalls."""

    def __init__(self) -> None:
        self.end = threading.Event()

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, number: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        return self.end.wait(60)

    def check_channel_subsystem_request(self, channel: paramiko.Channel, name: str) -> bool:
        return self.end.wait(60)


@pytest.fixture
def deaf(tmp_path: Path) -> Iterator[Endpoint]:
    host_key, user_key, server = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate(), Deaf()
    user_key.write_private_key_file(str(tmp_path / "key"))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            transport = paramiko.Transport(listener.accept()[0])
            transport.add_server_key(host_key)
            transport.start_server(server=server)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        key = f"{host_key.get_name()} {host_key.get_base64()}"
        yield Endpoint("deaf", "127.0.0.1", port, "xilinx", tmp_path / "key", key)
        server.end.set()
        thread.join(20)


@pytest.mark.parametrize(
    "call",
    [
        lambda session: session.execute(["true"], Deadline(0.5)),
        lambda session: session.stream(["true"], Deadline(0.5)),
        lambda session: session.put(b"data", "folder/file", Deadline(0.5)),
    ],
    ids=["execute", "stream", "put"],
)
def test_a_server_that_answers_no_request_is_given_up_at_the_deadline(
    call: Callable[[SshSession], object], deaf: Endpoint
) -> None:
    with SshSession.connect(deaf, HostKeys(), Deadline(20)) as session:
        raised: list[Exception] = []

        def run() -> None:
            try:
                call(session)
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(20)
        assert raised and isinstance(raised[0], LinkTimeoutError)


@pytest.mark.parametrize("blob", ["AAAA", "no+base64"])
def test_a_damaged_line_of_known_hosts_is_named(blob: str, tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:2222 ssh-ed25519 {blob}\n")
    with pytest.raises(KnownHostsError, match=r"\[127.0.0.1\]:2222 in .*known_hosts .*remove it"):
        SshSession.connect(Endpoint("desk", "127.0.0.1", 2222), HostKeys(tmp_path / "known_hosts"), Deadline(5))
