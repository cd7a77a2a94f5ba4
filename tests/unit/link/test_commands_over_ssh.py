"""Commands over an open SSH connection: plain words, whole output, and which error a lost or slow board is."""

from __future__ import annotations

import hashlib
import os
import threading
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest

from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import LinkLostError, LinkTimeoutError, UploadError
from hilt.link.session import Completed, ExecStream, SshSession

ENDPOINT = Endpoint("desk", "192.168.2.99")


class Channel:
    """paramiko's channel of a command that has said all it says."""

    def __init__(self, output: bytes = b"", errors: bytes = b"", status: int = 0) -> None:
        self.output, self.stderr, self.status = output, errors, status
        self.status_event = threading.Event()
        self.status_event.set()
        self.eof_received, self.closed = True, False
        self.sent: list[bytes] = []
        self.did: list[str] = []
        self.timeouts: list[float | None] = []
        self.fails: Exception | None = None

    def _act(self, name: str) -> None:
        self.did.append(name)
        if self.fails is not None:
            raise self.fails

    def exec_command(self, words: str) -> None:
        self._act(words)

    def shutdown_write(self) -> None:
        self._act("end of input")

    def settimeout(self, seconds: float | None) -> None:
        self.timeouts.append(seconds)

    def fileno(self) -> int:
        return 0

    def recv_ready(self) -> bool:
        return bool(self.output)

    def recv_stderr_ready(self) -> bool:
        return bool(self.stderr)

    def recv(self, count: int) -> bytes:
        if self.fails is not None:
            raise self.fails
        data, self.output = self.output[:count], self.output[count:]
        return data

    def recv_stderr(self, count: int) -> bytes:
        data, self.stderr = self.stderr[:count], self.stderr[count:]
        return data

    def sendall(self, data: bytes) -> None:
        self._act("send")
        self.sent.append(data)

    def recv_exit_status(self) -> int:
        return self.status

    def close(self) -> None:
        self.did.append("close")


class Client:
    """paramiko's client, with one open connection."""

    def __init__(self, channel: Channel, active: bool = True) -> None:
        self.closed = threading.Event()
        self.close = self.closed.set
        self.channel, self.active = channel, active

    def get_transport(self) -> Any:
        return SimpleNamespace(is_active=lambda: self.active, open_session=lambda timeout: self.channel)


def session(channel: Channel, active: bool = True) -> SshSession:
    return SshSession(ENDPOINT, Client(channel, active))  # type: ignore[arg-type]


def test_a_command_gets_no_input_and_gives_both_outputs_and_its_status() -> None:
    channel = Channel(b"one\n", b"two\n", 3)
    done = session(channel).execute(["sudo", "-n", "true"], Deadline(60))
    assert done == Completed(3, b"one\n", b"two\n")
    assert channel.did == ["sudo -n true", "end of input", "close"]
    assert channel.timeouts[0] is not None and 0 < channel.timeouts[0] <= 60


def test_output_beyond_a_mebibyte_is_read_and_dropped() -> None:
    channel = Channel(bytes(range(256)) * 5000, b"e" * ((1 << 20) + 9))
    done = session(channel).execute(["dmesg"], Deadline(60))
    assert done.output == (bytes(range(256)) * 5000)[: 1 << 20] and done.errors == b"e" * (1 << 20)
    assert (channel.output, channel.stderr) == (b"", b""), "the command would wait for ever"


@pytest.mark.parametrize(
    ("done", "line"),
    [
        (Completed(1, b"out\n", b"first\nlast \n"), "last"),
        (Completed(1, b"a\nb\n\n", b"  \n"), "b"),
        (Completed(7, b"", b""), "exit code 7"),
        (Completed(1, b"", b"\xff" + b"x" * 900), "�" + "x" * 499),
    ],
)
def test_the_last_line_of_a_command_is_its_message(done: Completed, line: str) -> None:
    assert done.last_line == line


@pytest.mark.parametrize("word", ["a b", "$(reboot)", "a;b", "'", "", "--help", "a\n"])
def test_a_word_that_a_shell_reads_as_more_is_never_sent(word: str) -> None:
    channel = Channel()
    with pytest.raises(ValueError, match="is not a plain word"):
        session(channel).execute(["echo", word], Deadline(60))
    assert channel.did == []


def test_a_closed_connection_runs_nothing() -> None:
    channel = Channel()
    with pytest.raises(LinkLostError, match="connection to desk is closed"):
        session(channel, active=False).execute(["true"], Deadline(60))
    assert channel.did == []


def test_a_command_that_ends_without_a_status_was_lost() -> None:
    channel = Channel(b"half", status=-1)
    with pytest.raises(LinkLostError, match="connection to desk was lost during inspect"):
        session(channel).execute(["inspect"], Deadline(60))
    assert channel.did[-1] == "close"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (paramiko.SSHException("Channel closed."), "connection to desk failed: Channel closed."),
        (EOFError(), "connection to desk failed: closed"),
        (OSError("Socket is closed"), "connection to desk failed: Socket is closed"),
    ],
)
def test_a_connection_that_fails_at_a_command_is_lost(error: Exception, words: str) -> None:
    channel = Channel()
    channel.fails = error
    with pytest.raises(LinkLostError) as caught:
        session(channel).execute(["true"], Deadline(60))
    assert str(caught.value) == words


def test_a_connection_that_fails_at_the_deadline_was_too_slow() -> None:
    """paramiko waits for a server's answer without a limit: the connection is closed to end that."""
    channel = Channel()
    client = Client(channel)

    def hangs(words: str) -> None:
        assert client.closed.wait(60)
        raise EOFError

    channel.exec_command = hangs  # type: ignore[method-assign]
    with pytest.raises(LinkTimeoutError, match="true on desk took too long"):
        SshSession(ENDPOINT, client).execute(["true"], Deadline(0.02))  # type: ignore[arg-type]


def test_a_command_that_does_not_end_in_time_was_too_slow() -> None:
    channel = Channel()
    channel.status_event.clear()
    with pytest.raises(LinkTimeoutError, match="reboot on desk took too long"):
        session(channel).execute(["reboot"], Deadline(0.01))
    silent = Channel()
    silent.eof_received = False
    readable, _ = os.pipe()
    silent.fileno = lambda: readable  # type: ignore[method-assign]
    with pytest.raises(LinkTimeoutError, match="reboot on desk took too long"):
        session(silent).execute(["reboot"], Deadline(0.01))
    slow = Channel()
    slow.fails = TimeoutError()
    slow.exec_command = lambda words: None  # type: ignore[method-assign]
    with pytest.raises(LinkTimeoutError, match="reboot on desk took too long"):
        session(slow).execute(["reboot"], Deadline(60))
    assert [each.did[-1] for each in (channel, silent, slow)] == ["close"] * 3


def test_a_stream_waits_without_a_limit_and_says_when_it_is_lost() -> None:
    channel = Channel(b"x" * 70_000, b" no device \n")
    stream = session(channel).stream(["agent", "connect"], Deadline(60))
    assert channel.timeouts[-1] is None and channel.did == ["agent connect"]
    assert (len(stream.receive()), len(stream.receive()), stream.receive()) == (65_536, 4_464, b"")
    stream.send(b"hello")
    assert channel.sent == [b"hello"] and (stream.errors(), stream.errors()) == ("no device", "")
    channel.fails = EOFError()
    for act in (stream.receive, lambda: stream.send(b"x")):
        with pytest.raises(LinkLostError, match="connection to the board failed: closed"):
            act()
    channel.recv_stderr_ready = lambda: (_ for _ in ()).throw(EOFError())  # type: ignore[method-assign]
    assert stream.errors() == "", "there is nothing more to say"
    stream.close()
    ExecStream(SimpleNamespace(close=lambda: (_ for _ in ()).throw(EOFError()))).close()  # type: ignore[arg-type]


class Files:
    """paramiko's SFTP client: files by name, with their modes."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.did: list[Any] = []
        self.fails: dict[str, Exception] = {}

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        self.did.append("end")

    def act(self, name: str, *given: Any) -> None:
        self.did.append((name, *given))
        if name in self.fails:
            raise self.fails[name]

    def get_channel(self) -> Any:
        return SimpleNamespace(settimeout=lambda seconds: None)

    def mkdir(self, path: str, mode: int) -> None:
        self.act("mkdir", path, mode)

    def open(self, path: str, how: str) -> Any:
        self.act("open", path)
        file = SimpleNamespace(set_pipelined=lambda on: None, chmod=lambda mode: self.act("chmod", mode))
        file.write = lambda data: self.files.__setitem__(path, data)
        return _Opened(file)

    def posix_rename(self, old: str, new: str) -> None:
        self.act("rename", new)
        self.files[new] = self.files.pop(old)


class _Opened:
    def __init__(self, file: Any) -> None:
        self.file = file

    def __enter__(self) -> Any:
        return self.file

    def __exit__(self, *_: object) -> None:
        pass


DATA = b"the agent"
DIGEST = hashlib.sha256(DATA).hexdigest()


def putting(files: Files, read: bytes = DATA) -> SshSession:
    """A session whose board reads a file back as `read`."""
    client: Any = Client(Channel(f"{hashlib.sha256(read).hexdigest()}  name\n".encode()))
    client.open_sftp = lambda: files
    return SshSession(ENDPOINT, client)


def test_a_file_gets_its_name_once_the_board_has_read_it_back() -> None:
    files = Files()
    files.fails["mkdir"] = OSError("it is there")
    putting(files).put(DATA, ".hilt-agents/agent.pyz", Deadline(60))
    temporary = f".hilt-agents/agent.pyz.{DIGEST[:16]}.new"
    assert files.files == {".hilt-agents/agent.pyz": DATA}
    assert files.did == [
        *(("mkdir", ".hilt-agents", 0o700), ("open", temporary), ("chmod", 0o600)),
        *(("rename", ".hilt-agents/agent.pyz"), "end"),
    ]


def test_a_file_that_arrives_damaged_does_not_get_its_name() -> None:
    files = Files()
    with pytest.raises(UploadError, match="a/b arrived damaged on desk: is its disk full or failing?"):
        putting(files, read=DATA[:-1]).put(DATA, "a/b", Deadline(60))
    assert "a/b" not in files.files


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (TimeoutError(), LinkTimeoutError, "the upload to desk took too long"),
        (EOFError(), LinkLostError, "connection to desk failed: closed"),
        (paramiko.SSHException("gone"), LinkLostError, "connection to desk failed: gone"),
        (OSError("Failure"), UploadError, "a/b cannot be written on desk: Failure"),
    ],
)
@pytest.mark.parametrize("at", ["open", "chmod", "rename"])
def test_an_upload_that_fails_says_whether_the_link_or_the_disk_did(
    at: str, error: Exception, kind: type[Exception], words: str
) -> None:
    files = Files()
    files.fails[at] = error
    with pytest.raises(kind) as caught:
        putting(files).put(DATA, "a/b", Deadline(60))
    assert str(caught.value) == words


def test_a_file_that_is_not_there_has_no_hash() -> None:
    assert session(Channel(f"{DIGEST}  a/b\n".encode())).sha256("a/b", Deadline(60)) == DIGEST
    assert session(Channel(b"", b"No such file\n", 1)).sha256("a/b", Deadline(60)) is None


def test_the_end_of_a_session_closes_the_connection() -> None:
    client = Client(Channel())
    with SshSession(ENDPOINT, client) as opened:  # type: ignore[arg-type]
        assert opened.endpoint is ENDPOINT and not client.closed.is_set()
    assert client.closed.is_set()
