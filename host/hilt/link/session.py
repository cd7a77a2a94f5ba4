"""An SSH session with a board: strict host keys, public keys only, fixed commands, verified uploads.

The only module that imports paramiko. Every call takes a Deadline; everything raised is a LinkError.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import posixpath
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import paramiko

from hilt.link.board_registry import REMOTE_PATH, Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import (
    AuthenticationError,
    HostKeyChangedError,
    KnownHostsError,
    LinkError,
    LinkLostError,
    LinkTimeoutError,
    UnknownHostKeyError,
    UnreachableError,
    UploadError,
)
from hilt.link.host_keys import HostKeys, fingerprint, host_pattern

KEEPALIVE_SECONDS = 5
SILENT_KEEPALIVES = 3
"""A peer that is silent for so many keepalives is gone."""
_OUTPUT_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 15
_FAILURES = (paramiko.SSHException, OSError, EOFError)
_NO_STATUS = -1
"""paramiko's exit code of a command whose connection ended, or that a signal ended."""

# paramiko logs every failed connection on its own; here each becomes an error with a line of its own.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


@dataclass(frozen=True)
class Completed:
    """A command that has ended. Output beyond 1 MiB was dropped."""

    status: int
    output: bytes
    errors: bytes

    @property
    def last_line(self) -> str:
        """The last line of its errors, else of its output: most often its error message."""
        lines = (self.errors.strip() or self.output.strip()).decode("utf-8", "replace").splitlines()
        return lines[-1][:500] if lines else f"exit code {self.status}"


class ExecStream:
    """A command on the board that is spoken with: bytes to its standard input, bytes from its standard output."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def receive(self) -> bytes:
        """Return 1 to 64 KiB, or b"" when it ended. Block until then or until the stream is closed elsewhere."""
        try:
            return self._channel.recv(1 << 16)
        except _FAILURES as error:
            raise LinkLostError(f"connection to the board failed: {_why(error)}") from None

    def send(self, data: bytes) -> None:
        """Send bytes; block while the board does not take them. Closing the stream elsewhere ends that."""
        try:
            self._channel.sendall(data)
        except _FAILURES as error:
            raise LinkLostError(f"connection to the board failed: {_why(error)}") from None

    def errors(self) -> str:
        """Return the end of its standard error so far."""
        with contextlib.suppress(*_FAILURES):
            if self._channel.recv_stderr_ready():
                return self._channel.recv_stderr(4096).decode("utf-8", "replace").strip()
        return ""

    def close(self) -> None:
        with contextlib.suppress(*_FAILURES):
            self._channel.close()


class SshSession:
    """An authenticated connection. Made by `connect`; a context manager."""

    def __init__(self, endpoint: Endpoint, client: paramiko.SSHClient) -> None:
        self.endpoint = endpoint
        self._client = client

    @classmethod
    def connect(cls, endpoint: Endpoint, host_keys: HostKeys, deadline: Deadline) -> SshSession:
        """Connect to a board.

        Raises UnknownHostKeyError, HostKeyChangedError, KnownHostsError, AuthenticationError, UnreachableError,
        LinkTimeoutError.
        """
        client = paramiko.SSHClient()
        known = [endpoint.host_key] if endpoint.host_key else host_keys.of(endpoint.host, endpoint.port)
        for key in known:
            kind, blob = key.split()[:2]
            try:
                entry = paramiko.hostkeys.HostKeyEntry.from_line(f"host {kind} {blob}")
            except (paramiko.hostkeys.InvalidHostKey, *_FAILURES):
                client.close()
                pattern = host_pattern(endpoint.host, endpoint.port)
                raise KnownHostsError(
                    f"the line of {pattern} in {host_keys.path} holds no key of {kind}: remove it and connect again"
                ) from None
            if entry is not None and entry.key is not None:
                client.get_host_keys().add(host_pattern(endpoint.host, endpoint.port), kind, entry.key)
        client.set_missing_host_key_policy(_RefuseUnknown(endpoint))
        try:
            with _translated(endpoint, host_keys, client, deadline):
                client.connect(
                    endpoint.host,
                    endpoint.port,
                    endpoint.user,
                    sock=_open_socket(endpoint, deadline),
                    key_filename=str(endpoint.key_file) if endpoint.key_file else None,
                    allow_agent=endpoint.key_file is None,
                    look_for_keys=endpoint.key_file is None,
                    timeout=deadline.remaining("connecting"),
                    banner_timeout=deadline.remaining("connecting"),
                    auth_timeout=deadline.remaining("connecting"),
                    channel_timeout=deadline.remaining("connecting"),
                )
        except BaseException:
            client.close()
            raise
        transport = client.get_transport()
        assert transport is not None
        transport.set_keepalive(KEEPALIVE_SECONDS)
        return cls(endpoint, client)

    def execute(self, words: Sequence[str], deadline: Deadline) -> Completed:
        """Run a command to its end. `words` are plain words: no spaces, quotes or other characters of a shell.

        Raises LinkLostError if the command ended without an exit code, LinkTimeoutError, ValueError.
        """
        channel = self._open(words, deadline)
        try:
            channel.shutdown_write()
            output, errors = self._collect(channel, deadline, f"{words[0]} on {self.endpoint.name}")
            if not channel.status_event.wait(deadline.remaining(f"{words[0]} on {self.endpoint.name}")):
                raise LinkTimeoutError(f"{words[0]} on {self.endpoint.name} took too long")
            status = channel.recv_exit_status()
            if status == _NO_STATUS:
                raise LinkLostError(f"connection to {self.endpoint.name} was lost during {words[0]}")
            return Completed(status, output, errors)
        except TimeoutError:
            raise LinkTimeoutError(f"{words[0]} on {self.endpoint.name} took too long") from None
        except _FAILURES as error:
            raise LinkLostError(f"connection to {self.endpoint.name} failed: {_why(error)}") from None
        finally:
            channel.close()

    def stream(self, words: Sequence[str], deadline: Deadline) -> ExecStream:
        """Start a command with a stream to and from it. `words` as in `execute`."""
        channel = self._open(words, deadline)
        channel.settimeout(None)
        return ExecStream(channel)

    def put(self, data: bytes, path: str, deadline: Deadline) -> None:
        """Write a file whose name has no characters of a shell, whole or not at all.

        The file gets a temporary name, its size and SHA-256 are compared as the board reads it back, then it is
        renamed. `path` counts from the user's home. Raises UploadError.
        """
        digest = hashlib.sha256(data).hexdigest()
        temporary = f"{path}.{digest[:16]}.new"
        with self._ended_at(deadline, "the upload"):
            sftp = self._client.open_sftp()
        with sftp:
            channel = sftp.get_channel()
            assert channel is not None
            channel.settimeout(deadline.remaining("the upload"))
            try:
                with contextlib.suppress(OSError):  # it exists: then writing tells
                    sftp.mkdir(posixpath.dirname(path), 0o700)
                with sftp.open(temporary, "wb") as file:
                    file.set_pipelined(True)
                    file.chmod(0o600)
                    file.write(data)
                if self.sha256(temporary, deadline) != digest:
                    raise UploadError(f"{path} arrived damaged on {self.endpoint.name}: is its disk full or failing?")
                sftp.posix_rename(temporary, path)
            except TimeoutError:
                raise LinkTimeoutError(f"the upload to {self.endpoint.name} took too long") from None
            except (EOFError, paramiko.SSHException) as error:
                raise LinkLostError(f"connection to {self.endpoint.name} failed: {_why(error)}") from None
            except OSError as error:
                raise UploadError(f"{path} cannot be written on {self.endpoint.name}: {error}") from None

    def sha256(self, path: str, deadline: Deadline) -> str | None:
        """Return the SHA-256 of a file as the board reads it; None if there is no such file."""
        completed = self.execute(["sha256sum", path], deadline)
        return completed.output[:64].decode("ascii", "replace") if completed.status == 0 else None

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> SshSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, words: Sequence[str], deadline: Deadline) -> paramiko.Channel:
        for word in words:
            if not REMOTE_PATH.match(word.removeprefix("-")):
                raise ValueError(f"{word!r} is not a plain word")
        transport = self._client.get_transport()
        task = f"{words[0]} on {self.endpoint.name}"
        with self._ended_at(deadline, task):
            if transport is None or not transport.is_active():
                raise LinkLostError(f"connection to {self.endpoint.name} is closed")
            channel = transport.open_session(timeout=deadline.remaining(task))
            channel.settimeout(deadline.remaining(task))
            channel.exec_command(" ".join(words))
        return channel

    @contextlib.contextmanager
    def _ended_at(self, deadline: Deadline, task: str) -> Iterator[None]:
        """Close the whole connection at the deadline, if the block has not ended by then.

        paramiko waits without a limit for a server's answer to a request on a channel; closing the connection ends
        that wait. Raises LinkTimeoutError, LinkLostError.
        """
        timer = threading.Timer(deadline.remaining(task), self._client.close)
        timer.daemon = True
        timer.start()
        try:
            yield
        except _FAILURES as error:
            deadline.remaining(task)
            raise LinkLostError(f"connection to {self.endpoint.name} failed: {_why(error)}") from None
        finally:
            timer.cancel()

    @staticmethod
    def _collect(channel: paramiko.Channel, deadline: Deadline, task: str) -> tuple[bytes, bytes]:
        """Return standard output and standard error, the beginning of each.

        Both are read as they come: a command that fills the window of one of them would wait for ever.
        """
        output, errors = bytearray(), bytearray()
        readable = channel.fileno()
        while True:
            ended = channel.eof_received or channel.closed
            if not (channel.recv_ready() or channel.recv_stderr_ready()):
                if ended:
                    return bytes(output), bytes(errors)
                select.select([readable], [], [], deadline.remaining(task))
            for ready, take, kept in (
                (channel.recv_ready, channel.recv, output),
                (channel.recv_stderr_ready, channel.recv_stderr, errors),
            ):
                if ready():
                    data = take(_CHUNK_BYTES)
                    kept += data[: max(_OUTPUT_BYTES - len(kept), 0)]


def _why(error: Exception) -> str:
    """Return the text of an error; an EOFError has none."""
    return str(error) or "closed"


class _RefuseUnknown(paramiko.MissingHostKeyPolicy):
    """paramiko asks this for a host that it was given no key of."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        text = _key_text(key)
        raise UnknownHostKeyError(self._endpoint.host, self._endpoint.port, text, fingerprint(text))


def _key_text(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.get_base64()}"


def _open_socket(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    """TCP, with a kernel that gives up on a peer that has been silent for too long, as the agent's heartbeat does."""
    try:
        connection = socket.create_connection((endpoint.host, endpoint.port), deadline.remaining("connecting"))
    except OSError as error:
        raise UnreachableError(
            f"board {endpoint.name} is not reachable at {endpoint.host} port {endpoint.port} "
            f"({error.strerror or error}): is it switched on and on this network?"
        ) from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        milliseconds = 1000 * KEEPALIVE_SECONDS * SILENT_KEEPALIVES
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    return connection


@contextlib.contextmanager
def _translated(
    endpoint: Endpoint, host_keys: HostKeys, client: paramiko.SSHClient, deadline: Deadline
) -> Iterator[None]:
    where = f"{endpoint.user}@{endpoint.host} port {endpoint.port}"
    try:
        yield
    except LinkError:
        raise
    except paramiko.BadHostKeyException as error:
        expected, received = fingerprint(_key_text(error.expected_key)), fingerprint(_key_text(error.key))
        file = "the board's directory" if endpoint.host_key else str(host_keys.path)
        raise HostKeyChangedError(endpoint.host, endpoint.port, expected, received, file) from None
    except paramiko.PasswordRequiredException:
        raise AuthenticationError(
            f"key {endpoint.key_file or 'of ~/.ssh'} has a passphrase: "
            f"add it to the SSH agent (ssh-add) and leave `key` out"
        ) from None
    except paramiko.AuthenticationException:
        # paramiko says the same of a key that was refused and of a board that went away, or silent, before it answered.
        deadline.remaining("logging in")
        transport = client.get_transport()
        if transport is None or not transport.is_active():
            raise UnreachableError(
                f"no SSH session with {where}: it closed the connection while it was shown keys"
            ) from None
        used = f"key {endpoint.key_file}" if endpoint.key_file else "the SSH agent's keys and those of ~/.ssh"
        raise AuthenticationError(
            f"{where} refuses {used}: put the public key into its ~/.ssh/authorized_keys (ssh-copy-id)"
        ) from None
    except FileNotFoundError as error:
        raise AuthenticationError(f"there is no key {error.filename}: mend `key` of board {endpoint.name}") from None
    except _FAILURES as error:
        raise UnreachableError(f"no SSH session with {where}: {_why(error)}") from None
