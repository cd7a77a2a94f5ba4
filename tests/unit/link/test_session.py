"""What becomes of a login, against an SSH server that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh
import pytest

from hilt.link.boards import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import AuthenticationError, LinkError, LinkTimeoutError, UnreachableError
from hilt.link.host_keys import HostKeys
from hilt.link.session import Session


class Leaves(asyncssh.SSHServer):
    """As a board that reboots while it is shown a key."""

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
        (Stalls, 1.0, LinkTimeoutError, False),
        (Refuses, 20.0, AuthenticationError, True),
    ],
)
def test_only_a_refused_key_is_for_somebody_to_mend(
    kind: type[asyncssh.SSHServer], seconds: float, error: type[LinkError], permanent: bool, tmp_path: Path
) -> None:
    """A board that goes away in the middle of a login comes back: the recovery ladder tries again."""
    with served(kind, tmp_path) as endpoint, pytest.raises(LinkError) as raised:
        Session.connect(endpoint, HostKeys(), Deadline(seconds))
    assert type(raised.value) is error
    assert raised.value.permanent is permanent
