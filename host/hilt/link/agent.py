"""The agent on a board: built into one file, deployed by content, started, and connected to."""

from __future__ import annotations

import functools
import hashlib
import io
import platform
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from hilt import paths
from hilt.link.board_registry import Endpoint
from hilt.link.client import AgentClient
from hilt.link.deadline import Deadline
from hilt.link.engine_library import engine_library, library_name
from hilt.link.errors import AgentError, BoardBusyError
from hilt.link.host_keys import HostKeys
from hilt.link.session import SshSession
from hilt.plain_text import plain
from hilt_board.protocol import Welcome

DIRECTORY = ".hilt-agents"
"""A folder on the board, in the user's home; apart from the agent's own ~/.hilt, which may be root's."""

_IN_USE = 3
"""Exit code of the agent's `start` where its daemon is another version that somebody uses."""

# Zip files cannot be older. A fixed date, order and mode make the archive a function of its contents.
_DATE = (1980, 1, 1, 0, 0, 0)
_MAIN = b"import sys\n\nfrom hilt_board.__main__ import main\n\nsys.exit(main())\n"


@dataclass(frozen=True)
class Archive:
    """The agent as one file that Python runs."""

    data: bytes
    sha256: str

    @property
    def remote_path(self) -> str:
        return f"{DIRECTORY}/agent-{self.sha256}.pyz"


_SUFFIXES = (".py", ".c", ".h")
"""Python, and the sources of the native engine, which a board without its library compiles."""
PACKAGES = ("hilt_board", "hilt_runtime")
"""The packages of a real board's archive."""
VIRTUAL_PACKAGE = "hilt_virtual_board"
"""The package that a virtual board's archive has too: its device and its injected faults."""
VIRTUAL_SETTING = "HILT_VERILATED"
"""Set in every session on a virtual board, however it was registered: the path of its board model."""


def archive_for(session: SshSession, deadline: Deadline) -> Archive:
    """Return the archive of the agent for this board, which knows its processor and whether it is a virtual one.

    Raises LinkError.
    """
    virtual = session.execute(["printenv", VIRTUAL_SETTING], deadline).status == 0
    return build_archive(virtual, session.execute(["uname", "-m"], deadline).last_line)


def build_archive(virtual: bool = False, machine: str | None = None) -> Archive:
    """Return the archive for a real or a virtual board; the same sources and compilers make the same bytes.

    `machine` is the board's processor (`uname -m`), whose native engine is in it; a virtual board's is this one's.
    """
    return _archive(virtual, machine if machine is not None else platform.machine() if virtual else "")


@functools.cache
def _archive(virtual: bool, machine: str) -> Archive:
    board = paths.board_package_directory()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, "__main__.py", _MAIN)
        for package in map(board.with_name, (*PACKAGES, *([VIRTUAL_PACKAGE] if virtual else []))):
            for path in sorted(file for file in package.rglob("*") if file.suffix in _SUFFIXES):
                _add(archive, f"{package.name}/{path.relative_to(package).as_posix()}", path.read_bytes())
        library = engine_library(machine, here=virtual)
        if library is not None:
            _add(archive, f"hilt_runtime/native/{library_name(machine)}", library)
    data = buffer.getvalue()
    return Archive(data, hashlib.sha256(data).hexdigest())


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.create_system = 3  # Unix, wherever this is built
    entry.external_attr = 0o100644 << 16
    archive.writestr(entry, data)


class AgentConnection:
    """A session, the agent's client on it, and the agent's Welcome. A context manager."""

    def __init__(
        self, session: SshSession, client: AgentClient, welcome: Welcome, uploaded: bool, replaced: str = ""
    ) -> None:
        self.session = session
        self.client = client
        self.welcome = welcome
        self.uploaded = uploaded
        """A flag: the agent had to be sent."""
        self.replaced = replaced
        """The line of the agent's `start` about a daemon of another version that it ended; else empty."""

    @classmethod
    def open(cls, endpoint: Endpoint, who: str, deadline: Deadline) -> AgentConnection:
        """Connects, deploys where needed, starts the daemon where it does not run, takes the lease for `who`.

        Raises LinkError: of the session (see SshSession.connect), UploadError, AgentError, BoardBusyError.
        """
        session = SshSession.connect(endpoint, HostKeys(), deadline)
        try:
            return cls._on(session, who, deadline)
        except BaseException:
            session.close()
            raise

    @classmethod
    def _on(cls, session: SshSession, who: str, deadline: Deadline) -> AgentConnection:
        archive = archive_for(session, deadline)
        uploaded = deploy(session, archive, deadline)
        client, welcome, replaced = _connect(session, archive, who, deadline)
        if welcome.agent != archive.sha256:
            # `start` replaces a daemon of another version; this one came in between.
            client.close()
            raise AgentError(
                f"agent on {session.endpoint.name} is {welcome.agent[:12] or 'run from a folder'}, "
                f"not {archive.sha256[:12]}: another hilt uses this board"
            )
        return cls(session, client, welcome, uploaded, replaced)

    def close(self) -> None:
        """End lease and session. The daemon stays, with its journal."""
        self.client.close()
        self.session.close()

    def __enter__(self) -> AgentConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def deploy(session: SshSession, archive: Archive, deadline: Deadline) -> bool:
    """Ensure that the board holds this agent, whole. Returns whether it had to be sent."""
    # Asked of the board each time: a file that lost its tail with the power is sent again.
    if session.sha256(archive.remote_path, deadline) == archive.sha256:
        return False
    session.put(archive.data, archive.remote_path, deadline)
    return True


def run_agent(endpoint: Endpoint, words: Sequence[str], deadline: Deadline) -> str:
    """Run a command of the agent's to its end and return its output. Raises LinkError."""
    with SshSession.connect(endpoint, HostKeys(), deadline) as session:
        archive = archive_for(session, deadline)
        deploy(session, archive, deadline)
        completed = session.execute([*command(endpoint, archive.remote_path), *words], deadline)
    if completed.status != 0:
        raise AgentError(f"agent on {endpoint.name}: {completed.last_line}")
    return completed.output.decode("utf-8", "replace")


def command(endpoint: Endpoint, archive: str) -> list[str]:
    """Return the words that run the agent `archive` (its path on the board); a command of the agent's follows."""
    return [*(["sudo", "-n"] if endpoint.sudo else []), endpoint.python, archive]


def _connect(session: SshSession, archive: Archive, who: str, deadline: Deadline) -> tuple[AgentClient, Welcome, str]:
    endpoint = session.endpoint
    run = command(endpoint, archive.remote_path)
    started = session.execute([*run, "start"], deadline)
    if started.status == _IN_USE:
        raise BoardBusyError(f"board {endpoint.name} is in use: {started.last_line}")
    if started.status != 0:
        raise AgentError(f"agent does not start on {endpoint.name}: {started.last_line}")
    client = AgentClient(session.stream([*run, "connect"], deadline), endpoint.name)
    try:
        return client, client.hello(who, deadline), plain(started.output.decode("utf-8", "replace").strip()[:200])
    except BaseException:
        client.close()
        raise
