"""Commands, streams and uploads of a session, with an SSH server of asyncssh that has a folder and a few commands."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncssh
import paramiko
import pytest

from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import (
    AuthenticationError,
    HostKeyChangedError,
    LinkLostError,
    LinkTimeoutError,
    UnknownHostKeyError,
    UnreachableError,
    UploadError,
)
from hilt.link.host_keys import HostKeys
from hilt.link.session import Completed, ExecStream, SshSession

pytestmark = pytest.mark.ssh  # an SSH server of asyncssh


class Folder(asyncssh.SFTPServer):
    """The files of a machine. One whose name has `stalled` in it never opens."""

    async def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        if b"stalled" in path:
            await asyncio.sleep(30)
        return super().open(path, pflags, attrs)


class Machine:
    """An SSH server with the folder `home`; `damage` changes bytes of a file when it is read back."""

    def __init__(self, home: Path, keys: Path) -> None:
        self.home = home
        self.damage = False
        self.ran: list[str] = []
        self.host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        user_key.write_private_key(keys / "key")
        user_key.write_private_key(keys / "locked", passphrase="secret")
        (keys / "key.pub").write_text(user_key.export_public_key().decode())
        self.keys = keys
        self._ready, self._end = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(20)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[self.host_key],
            authorized_client_keys=str(self.keys / "key.pub"),
            process_factory=self._run,
            sftp_factory=lambda channel: Folder(channel, chroot=str(self.home)),
            encoding=None,
        ) as server:
            self.port = server.get_port()
            self._ready.set()
            await self._end.wait()

    async def _run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        self.ran.append(command)
        name, _, word = command.partition(" ")
        status = 0
        if name == "sha256sum":
            file = self.home / word
            if file.is_file():
                data = file.read_bytes() + (b"!" if self.damage else b"")
                process.stdout.write(f"{hashlib.sha256(data).hexdigest()}  {word}\n".encode())
            else:
                status = 1
        elif name == "say":
            process.stdout.write(b"out\n" * int(word))
            process.stderr.write(b"first\nlast line\n")
            status = 3
        elif name == "echo":
            while data := await process.stdin.read(1 << 16):
                process.stdout.write(data.upper())
        elif name == "sleep":
            await asyncio.sleep(30)
        elif name == "linger":
            process.stdout.write(b"all of it")
            process.stdout.write_eof()
            await asyncio.sleep(30)
        elif name == "drop":
            process.channel.get_connection().abort()
        elif name == "flood":
            process.stderr.write(b"e" * int(word))
            await process.stderr.drain()
            process.stdout.write(b"done")
        elif name == "grumble":
            process.stderr.write(b"x" * int(word))
        process.exit(status)

    def endpoint(self, **changes: Any) -> Endpoint:
        public = " ".join(self.host_key.export_public_key().decode().split()[:2])
        values = {"key_file": self.keys / "key", "host_key": public} | changes
        return Endpoint("desk", "127.0.0.1", self.port, "xilinx", **values)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    made = Machine(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("keys"))
    yield made
    made.close()


@pytest.fixture
def session(machine: Machine) -> Iterator[SshSession]:
    machine.damage = False
    machine.ran.clear()
    with SshSession.connect(machine.endpoint(), HostKeys(), Deadline(20)) as made:
        yield made


def test_a_command_has_its_output_errors_and_status(session: SshSession, machine: Machine) -> None:
    done = session.execute(["say", "2"], Deadline(20))
    assert (done.status, done.output, done.errors) == (3, b"out\nout\n", b"first\nlast line\n")
    assert done.last_line == "last line"
    assert machine.ran == ["say 2"]


def test_output_beyond_a_mebibyte_is_dropped(session: SshSession) -> None:
    done = session.execute(["say", "600000"], Deadline(60))
    assert 1 << 20 <= len(done.output) < (1 << 20) + (1 << 16)
    assert done.status == 3


@pytest.mark.parametrize(
    ("completed", "line"),
    [
        (Completed(1, b"out\n", b"bad\nworse\n"), "worse"),
        (Completed(1, b"one\ntwo\n\n", b" \n"), "two"),
        (Completed(7, b"", b""), "exit code 7"),
        (Completed(1, b"", b"x" * 900), "x" * 500),
    ],
)
def test_the_last_line_is_of_the_errors_else_of_the_output(completed: Completed, line: str) -> None:
    assert completed.last_line == line


@pytest.mark.parametrize("words", [["say", "a b"], ["say;", "1"], ["say", "$HOME"], ["say", ""], ["say", "`x`"]])
def test_only_plain_words_travel(session: SshSession, machine: Machine, words: list[str]) -> None:
    with pytest.raises(ValueError, match="is not a plain word"):
        session.execute(words, Deadline(20))
    assert machine.ran == []


def test_an_option_is_a_plain_word(session: SshSession) -> None:
    assert session.execute(["sha256sum", "-missing"], Deadline(20)).status == 1


def test_a_stream_carries_bytes_both_ways_until_it_is_closed(session: SshSession) -> None:
    stream = session.stream(["echo"], Deadline(20))
    stream.send(b"abc")
    assert stream.receive() == b"ABC"
    assert stream.errors() == ""
    stream.close()
    assert stream.receive() == b""
    with pytest.raises(LinkLostError, match="connection to the board failed"):
        stream.send(b"late")


def test_a_stream_tells_the_end_of_its_errors(session: SshSession) -> None:
    stream = session.stream(["say", "1"], Deadline(20))
    while stream.receive():
        pass
    assert stream.errors() == "first\nlast line"


def test_errors_beyond_the_window_stall_no_command(session: SshSession) -> None:
    completed = session.execute(["flood", str(6 << 20)], Deadline(20))  # paramiko's window is 2 MiB
    assert (completed.status, completed.output) == (0, b"done")
    assert completed.errors == b"e" * (1 << 20)


def test_a_command_that_takes_too_long_is_given_up(session: SshSession) -> None:
    with pytest.raises(LinkTimeoutError, match="sleep on desk took too long"):
        session.execute(["sleep", "30"], Deadline(0.5))


def test_a_command_whose_output_ends_before_it_does_is_given_up(session: SshSession) -> None:
    with pytest.raises(LinkTimeoutError, match="^linger on desk took too long$"):
        session.execute(["linger"], Deadline(0.5))


def test_an_upload_that_stands_still_is_given_up(session: SshSession) -> None:
    with pytest.raises(LinkTimeoutError, match="^the upload to desk took too long$"):
        session.put(b"data", "stalled", Deadline(1))


def test_a_session_ends_with_its_block(machine: Machine) -> None:
    with SshSession.connect(machine.endpoint(), HostKeys(), Deadline(20)) as session:
        transport = session._client.get_transport()
    assert transport is not None and not transport.is_active()


def test_paramiko_writes_nothing_of_its_own() -> None:
    logger = logging.getLogger("paramiko")
    assert not logger.propagate
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]


@pytest.mark.parametrize("path", ["agents/agent.pyz", "agent.pyz"])
def test_a_file_arrives_whole_under_its_name(session: SshSession, machine: Machine, path: str) -> None:
    data = bytes(range(256)) * 1000
    session.put(data, path, Deadline(30))
    file = machine.home / path
    assert file.read_bytes() == data
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent == machine.home or file.parent.stat().st_mode & 0o777 == 0o700
    assert session.sha256(path, Deadline(20)) == hashlib.sha256(data).hexdigest()
    assert [each.name for each in file.parent.iterdir() if each.name.endswith(".new")] == []
    session.put(b"again", path, Deadline(30))
    assert file.read_bytes() == b"again"


def test_a_file_that_arrives_damaged_does_not_take_its_name(session: SshSession, machine: Machine) -> None:
    session.put(b"old", "kept", Deadline(30))
    machine.damage = True
    with pytest.raises(UploadError, match="kept arrived damaged on desk: is its disk full"):
        session.put(b"new", "kept", Deadline(30))
    assert (machine.home / "kept").read_bytes() == b"old"


def test_a_file_that_cannot_be_written_says_why(session: SshSession, machine: Machine) -> None:
    (machine.home / "folder").mkdir(exist_ok=True)
    (machine.home / "folder" / "x").touch()
    with pytest.raises(UploadError, match="missing/deep/file cannot be written on desk"):
        session.put(b"data", "missing/deep/file", Deadline(30))


def test_a_file_that_is_not_there_has_no_digest(session: SshSession) -> None:
    assert session.sha256("nothing", Deadline(20)) is None


def test_a_closed_session_is_lost(session: SshSession) -> None:
    session.close()
    with pytest.raises(LinkLostError, match="^connection to desk is closed$"):
        session.execute(["say", "1"], Deadline(20))


def test_a_connection_that_has_ended_by_itself_is_lost(session: SshSession) -> None:
    transport = session._client.get_transport()
    assert transport is not None
    transport.close()
    with pytest.raises(LinkLostError, match="^connection to desk is closed$"):
        session.execute(["say", "1"], Deadline(20))


def test_an_unknown_host_key_is_told_with_its_fingerprint(machine: Machine, tmp_path: Path) -> None:
    known = HostKeys(tmp_path / "known_hosts")
    with pytest.raises(UnknownHostKeyError) as raised:
        SshSession.connect(machine.endpoint(host_key=None), known, Deadline(20))
    assert machine.host_key.get_fingerprint() in str(raised.value)


def test_a_known_host_key_is_accepted_and_a_changed_one_is_not(machine: Machine, tmp_path: Path) -> None:
    public = " ".join(machine.host_key.export_public_key().decode().split()[:2])
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{machine.port} {public}\n")
    SshSession.connect(machine.endpoint(host_key=None), HostKeys(tmp_path / "known_hosts"), Deadline(20)).close()
    other = asyncssh.generate_private_key("ssh-ed25519")
    changed = " ".join(other.export_public_key().decode().split()[:2])
    with pytest.raises(HostKeyChangedError) as raised:
        SshSession.connect(machine.endpoint(host_key=changed), HostKeys(), Deadline(20))
    assert other.get_fingerprint() in str(raised.value) and machine.host_key.get_fingerprint() in str(raised.value)


def test_a_key_with_a_passphrase_or_without_a_file_names_the_remedy(machine: Machine) -> None:
    with pytest.raises(
        AuthenticationError, match=f"^key {machine.keys / 'locked'} has a passphrase: add it to the SSH"
    ):
        SshSession.connect(machine.endpoint(key_file=machine.keys / "locked"), HostKeys(), Deadline(20))
    with pytest.raises(AuthenticationError, match="there is no key .*gone: mend `key` of board desk"):
        SshSession.connect(machine.endpoint(key_file=machine.keys / "gone"), HostKeys(), Deadline(20))


def test_a_port_where_nobody_listens_is_not_reachable(machine: Machine) -> None:
    endpoint = Endpoint("desk", "127.0.0.1", 1, "xilinx", machine.keys / "key", machine.endpoint().host_key)
    with pytest.raises(UnreachableError, match="board desk is not reachable at 127.0.0.1 port 1"):
        SshSession.connect(endpoint, HostKeys(), Deadline(20))


def test_a_silent_board_is_noticed_by_keepalives(session: SshSession) -> None:
    transport: Any = session._client.get_transport()
    assert transport.packetizer._Packetizer__keepalive_interval == 5
    sock = transport.sock
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 15_000  # milliseconds
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_a_connection_that_ends_during_a_command_is_lost(session: SshSession) -> None:
    """It has no exit code then: neither a file nor a setting is missing."""
    with pytest.raises(LinkLostError, match="^connection to desk was lost during drop$"):
        session.execute(["drop"], Deadline(20))


def test_a_command_has_no_input_and_its_channel_ends_with_it(session: SshSession) -> None:
    assert session.execute(["echo"], Deadline(20)).output == b""
    transport: Any = session._client.get_transport()
    assert [channel for channel in transport._channels.values() if not channel.closed] == []


def test_errors_of_more_than_a_window_do_not_stop_a_command(session: SshSession) -> None:
    done = session.execute(["grumble", "100000"], Deadline(20))
    assert done.status == 0 and 0 < len(done.errors) <= 100_000 and set(done.errors) == {ord("x")}


def test_a_stream_waits_as_long_as_nobody_closes_it(session: SshSession) -> None:
    stream = session.stream(["echo"], Deadline(20))
    assert stream._channel.gettimeout() is None
    stream.close()
    assert stream._channel.closed


class BrokenChannel:
    """A channel that fails with `error` whatever it is asked for."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def fail(self, *_: object) -> Any:
        raise self.error

    recv = sendall = recv_stderr_ready = close = fail


@pytest.mark.parametrize(("error", "words"), [(EOFError(), "closed"), (OSError("reset"), "reset")])
def test_a_broken_stream_is_a_lost_link(error: Exception, words: str) -> None:
    stream = ExecStream(BrokenChannel(error))  # type: ignore[arg-type]
    with pytest.raises(LinkLostError, match=f"^connection to the board failed: {words}$"):
        stream.receive()
    with pytest.raises(LinkLostError, match=f"^connection to the board failed: {words}$"):
        stream.send(b"x")
    assert stream.errors() == ""
    stream.close()


def test_the_watch_over_a_request_ends_with_it(session: SshSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that went on would close the connection at the deadline of a command that ended long before."""
    watches: list[threading.Timer] = []

    class Watch(threading.Timer):
        def start(self) -> None:
            watches.append(self)
            super().start()

    monkeypatch.setattr("hilt.link.session.threading.Timer", Watch)
    session.execute(["say", "1"], Deadline(20))
    session.put(b"data", "watched", Deadline(20))
    assert len(watches) == 3, "two commands and the start of the upload"
    for watch in watches:
        watch.join(10)
        assert watch.daemon and not watch.is_alive()


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (TimeoutError(), LinkTimeoutError, "^the upload to desk took too long$"),
        (EOFError(), LinkLostError, "^connection to desk failed: closed$"),
        (paramiko.SSHException("gone"), LinkLostError, "^connection to desk failed: gone$"),
    ],
)
def test_an_upload_that_breaks_off_says_how(
    session: SshSession, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception], words: str
) -> None:
    def fails(path: str, deadline: Deadline) -> None:
        raise error

    monkeypatch.setattr(session, "sha256", fails)
    with pytest.raises(kind, match=words):
        session.put(b"data", "broken", Deadline(20))


def test_a_known_host_may_have_a_comment(machine: Machine, tmp_path: Path) -> None:
    public = " ".join(machine.host_key.export_public_key().decode().split()[:2])
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{machine.port} {public} the board on the desk\n")
    SshSession.connect(machine.endpoint(host_key=None), HostKeys(tmp_path / "known_hosts"), Deadline(20)).close()


@pytest.mark.parametrize("with_file", [True, False])
def test_a_key_file_is_the_only_key_that_is_shown(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, with_file: bool
) -> None:
    """Without one, the SSH agent's keys and those of ~/.ssh are; a refusal names them."""
    shown: dict[str, Any] = {}
    closed: list[object] = []

    def refuse(self: paramiko.SSHClient, *_: object, **options: Any) -> None:
        shown.update(options)
        options["sock"].close()
        raise paramiko.AuthenticationException("refused")

    monkeypatch.setattr(paramiko.SSHClient, "connect", refuse)
    monkeypatch.setattr(paramiko.SSHClient, "get_transport", lambda self: SimpleNamespace(is_active=lambda: True))
    monkeypatch.setattr(paramiko.SSHClient, "close", lambda self: closed.append(self))
    endpoint = machine.endpoint() if with_file else machine.endpoint(key_file=None)
    used = f"key {machine.keys / 'key'}" if with_file else "the SSH agent's keys and those of ~/.ssh"
    where = f"xilinx@127.0.0.1 port {machine.port}"
    with pytest.raises(AuthenticationError, match=f"^{where} refuses {used}: put the public key"):
        SshSession.connect(endpoint, HostKeys(), Deadline(20))
    assert (shown["allow_agent"], shown["look_for_keys"]) == (not with_file, not with_file)
    assert shown["key_filename"] == (str(machine.keys / "key") if with_file else None)
    assert len(closed) == 1, "a client that could not connect is closed"


@pytest.mark.parametrize("transport", [None, SimpleNamespace(is_active=lambda: False)])
def test_a_board_that_leaves_while_it_is_shown_keys_is_unreachable(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, transport: object
) -> None:
    def leaves(self: paramiko.SSHClient, *_: object, **options: Any) -> None:
        options["sock"].close()
        raise paramiko.AuthenticationException("no answer")

    monkeypatch.setattr(paramiko.SSHClient, "connect", leaves)
    monkeypatch.setattr(paramiko.SSHClient, "get_transport", lambda self: transport)
    with pytest.raises(UnreachableError, match="it closed the connection while it was shown keys"):
        SshSession.connect(machine.endpoint(), HostKeys(), Deadline(20))


@pytest.mark.parametrize(("error", "words"), [(EOFError(), "closed"), (OSError("reset"), "reset")])
def test_a_login_that_breaks_off_says_how(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def breaks(self: paramiko.SSHClient, *_: object, **options: Any) -> None:
        options["sock"].close()
        raise error

    monkeypatch.setattr(paramiko.SSHClient, "connect", breaks)
    where = f"xilinx@127.0.0.1 port {machine.port}"
    with pytest.raises(UnreachableError, match=f"^no SSH session with {where}: {words}$"):
        SshSession.connect(machine.endpoint(), HostKeys(), Deadline(20))
