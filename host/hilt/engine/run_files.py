"""A run's directory: the engine's socket, lock and log. Everything that must not be lost is in the store."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from hilt.engine.errors import RunBusyError
from hilt.store import StoreWriteError
from hilt.store.upgrade import LOCK

_RESERVED_BYTES = 256 << 10
"""SQLite writes a page of 4 KiB for each table and index that a change of state touches."""


class DiskReserve:
    """A file of zeros in a run's directory: room for the record of the run's end on a full disk."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "reserve"

    def take(self) -> None:
        """Allocate the room; a disk that has none is met by the run itself."""
        with suppress(OSError), self._path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _RESERVED_BYTES)

    def give_back(self) -> None:
        """Free the room."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


_POLL_SECONDS = 0.02
_LOOK_SECONDS = 0.5
"""A look whether an engine runs (`is_running`) holds the lock for an instant; this is the patience for it."""


class RunFiles:
    """`<home>/runs/<uuid>/`, mode 0700, made when first asked for. Raises StoreWriteError if it cannot be made."""

    def __init__(self, home: Path, uuid: str) -> None:
        self.uuid = uuid
        self.home = home
        self.directory = home / "runs" / uuid
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot be made ({error.strerror}); give yourself write permission there"
            raise StoreWriteError(f"directory {self.directory} {reason}") from error

    @property
    def log_path(self) -> Path:
        return self.directory / "engine.log"

    @property
    def event_log_path(self) -> Path:
        return self.directory / "events.jsonl"

    @property
    def lock_path(self) -> Path:
        return self.directory / LOCK

    @property
    def socket_path(self) -> Path:
        return self.directory / "engine.sock"

    def listen(self) -> socket.socket:
        """Return the engine's socket, mode 0600, in place of that of a dead engine. For the holder of the lock only."""
        self.socket_path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._at_short_path(listener.bind)
        self.socket_path.chmod(0o600)  # before it listens, so that nobody got in
        listener.listen(16)
        return listener

    def connect(self) -> socket.socket:
        """Connect to the engine.

        Raises OSError if no engine listens, BlockingIOError if one has long accepted nobody: a blocking
        connection would wait for ever.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            self._at_short_path(connection.connect)
        except BaseException:
            connection.close()
            raise
        connection.setblocking(True)
        return connection

    def _at_short_path(self, act: Callable[[str], None]) -> None:
        """Act on the socket through its open directory: the path of a Unix socket is at most 107 bytes."""
        directory = os.open(self.directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            act(f"/proc/self/fd/{directory}/{self.socket_path.name}")
        finally:
            os.close(directory)

    @contextmanager
    def locked(self, patience: float = _LOOK_SECONDS) -> Iterator[None]:
        """Hold the run for this process; the kernel releases it however the process ends.

        Raises RunBusyError where another process still holds it after `patience` seconds.
        """
        with self._open_lock() as file:
            deadline = monotonic() + patience
            while not _is_locked_now(file):
                if monotonic() > deadline:
                    holder = file.read().strip() or "unknown"
                    raise RunBusyError(
                        f"run {self.uuid[:8]} is already running in process {holder}; "
                        f"`hilt tui {self.uuid[:8]}` or `hilt resume {self.uuid[:8]}` attaches to it"
                    )
                sleep(_POLL_SECONDS)
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()}\n")
            file.flush()
            try:
                yield
            finally:
                with suppress(OSError):
                    file.truncate(0)

    def wait_until_free(self, seconds: float) -> bool:
        """Return True once no engine holds the run, False if one still does after so many seconds."""
        deadline = monotonic() + seconds
        while self.is_running():
            if monotonic() > deadline:
                return False
            sleep(_POLL_SECONDS)  # flock has no time limit of its own
        return True

    def is_running(self) -> bool:
        """Return True if an engine holds the run now."""
        if not self.lock_path.exists():
            return False
        with self._open_lock() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def _open_lock(self) -> IO[str]:
        return os.fdopen(os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")


def _is_locked_now(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
