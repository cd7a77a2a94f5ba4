"""The daemon's address for clients: a Unix socket in the agent's private directory."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from .home import Home

_BACKLOG = 8


def listen(home: Home) -> socket.socket:
    """Return the agent's socket, of mode 0600.

    The caller holds the agent's lock, so an old socket file is a left-over.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        home.socket.unlink()
    with _short_name(home.socket) as name:
        listening.bind(name)
        home.socket.chmod(0o600)
    listening.listen(_BACKLOG)
    listening.setblocking(False)
    return listening


def connect(home: Home) -> socket.socket:
    """Return a connection to the agent. Raises ConnectionRefusedError or FileNotFoundError if none runs."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short_name(home.socket) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _short_name(path: Path):  # type: ignore[no-untyped-def]  # the context manager's own type says it
    """A name for a socket path of any length: the kernel takes 107 bytes."""
    directory = os.open(str(path.parent), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield "/proc/self/fd/{}/{}".format(directory, path.name)
    finally:
        os.close(directory)
