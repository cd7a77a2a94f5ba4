"""Holding a virtual board: starts its supervisor where none runs, works its power switch, and keeps the lease."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any

from hilt import paths
from hilt.virtual.board_model import BoardModel
from hilt.virtual.directory import CONTROL_SOCKET, BoardDirectory
from hilt.virtual.errors import VirtualBoardError

IDLE_SECONDS = 60.0
"""A supervisor that nobody holds ends after this long, so that runs in a row find the board up."""
_START_SECONDS = 60.0
_ANSWER_SECONDS = 660.0
"""More than the boot of an emulated board may take."""


@dataclass(frozen=True)
class SupervisorStatus:
    """`boot_id`, `port` and `ssh_pid` are None while power is off."""

    power: str
    boot_id: str | None
    port: int | None
    ssh_pid: int | None
    supervisor_pid: int
    python: str = ""
    """Interpreter of the board's sessions."""
    leases: int = 1


_FIELDS = {field.name for field in fields(SupervisorStatus)}


class SupervisorControl:
    """An open connection to a supervisor, which is the lease on it. Not for several threads at once.

    Every call raises VirtualBoardError if the supervisor is gone or refuses.
    """

    def __init__(self, directory: BoardDirectory, connection: socket.socket) -> None:
        self.directory = directory
        self._connection = connection
        self._lines = connection.makefile("rb")

    @classmethod
    def hold(
        cls, directory: BoardDirectory, board_model: BoardModel, idle_seconds: float = IDLE_SECONDS
    ) -> SupervisorControl:
        """Return the board's supervisor, started if none runs. Power stays as it is.

        A supervisor that only waits for its next user and runs with another interpreter than this process is
        set to is restarted.
        """
        directory.create()
        with directory.locked("start"):
            connection = _connect(directory)
            if connection is not None and _is_outdated(cls(directory, connection)):
                connection = None
            if connection is None:
                directory.write_board_model(board_model.device_settings())
                _start(directory, board_model, idle_seconds)
                connection = _connect(directory)
        if connection is None:
            raise VirtualBoardError(f"virtual board {directory.name} went away at once; see {directory.log}")
        return cls(directory, connection)

    @classmethod
    def find(cls, directory: BoardDirectory) -> SupervisorControl | None:
        """Return the board's supervisor if one runs."""
        connection = _connect(directory) if directory.root.is_dir() else None
        return cls(directory, connection) if connection is not None else None

    def power_on(self) -> SupervisorStatus:
        """Switch the board on; return when its SSH server accepts."""
        return self._ask("on")

    def switch_on(self) -> SupervisorStatus:
        """Switch the board on; return at once if it is an emulated one, whose boot takes minutes."""
        return self._ask("switch_on")

    def power_off(self) -> SupervisorStatus:
        """Switch the board off; return when nothing of the board runs any more."""
        return self._ask("off")

    def power_cycle(self) -> SupervisorStatus:
        return self._ask("cycle")

    def status(self) -> SupervisorStatus:
        return self._ask("status")

    def kill_ssh_server(self) -> SupervisorStatus:
        """Kill the SSH server and with it every session; the board starts another."""
        return self._ask("kill_ssh")

    def stop(self) -> None:
        """Switch the board off and end the supervisor, whoever else holds it; return when it is dark."""
        with contextlib.suppress(VirtualBoardError):
            self._ask("stop")
            self._lines.readline()  # the end of the connection is the end of the process
        self.close()

    def close(self) -> None:
        """Give up the lease."""
        self._lines.close()
        self._connection.close()

    def __enter__(self) -> SupervisorControl:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, command: str) -> SupervisorStatus:
        try:
            self._connection.sendall(json.dumps({"command": command}).encode() + b"\n")
            line = self._lines.readline()
        except (OSError, ValueError) as error:
            raise VirtualBoardError(f"virtual board {self.directory.name} does not answer: {error}") from None
        if not line:
            raise VirtualBoardError(f"the supervisor of virtual board {self.directory.name} is gone")
        try:
            answer: dict[str, Any] = json.loads(line)
            if "error" not in answer:  # of another version it may have more fields
                return SupervisorStatus(**{name: answer[name] for name in _FIELDS & answer.keys()})
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise VirtualBoardError(f"the supervisor of virtual board {self.directory.name} gave no status") from None
        raise VirtualBoardError(answer["error"])


def _is_outdated(control: SupervisorControl) -> bool:
    """Return whether the supervisor ran with another interpreter; if so it has been stopped."""
    status, wanted = control.status(), str(paths.board_python())
    if status.python == wanted:
        return False
    if status.leases > 1:
        raise VirtualBoardError(
            f"virtual board {control.directory.name} is in use with the interpreter {status.python}, not {wanted}; "
            f"wait until it is free, or name another board, as in pynq@other"
        )
    control.stop()
    return True


def _connect(directory: BoardDirectory) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_ANSWER_SECONDS)
    try:
        with directory.short_path(CONTROL_SOCKET) as path:
            connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def _start(directory: BoardDirectory, board_model: BoardModel, idle_seconds: float) -> None:
    """Start a supervisor; return when it listens. The process started here is its parent and ends then."""
    command = [sys.executable, "-m", "hilt.virtual", f"{board_model.name}@{directory.name}"]
    try:
        subprocess.run(
            [*command, "--detach", "--idle-seconds", str(idle_seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
            timeout=_START_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or [f"exit code {error.returncode}"]
        raise VirtualBoardError(f"virtual board {directory.name} does not start: {lines[-1]}") from None
    except subprocess.TimeoutExpired:
        raise VirtualBoardError(
            f"virtual board {directory.name} did not start within {_START_SECONDS:.0f} s; see {directory.log}"
        ) from None
