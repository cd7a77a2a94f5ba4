"""QEMU's monitor (QMP): freezes an emulated board, cuts its network, pulls its reset line."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

from hilt.virtual.directory import BoardDirectory
from hilt.virtual.errors import VirtualBoardError

MONITOR_SOCKET = "monitor.sock"
NETWORK = "net0"
_SECONDS = 30.0


class Monitor:
    """A connection to the monitor of a board that is on; QEMU serves one at a time. A context manager.

    Raises VirtualBoardError if the board is off, and from every call that QEMU refuses.
    """

    def __init__(self, directory: BoardDirectory) -> None:
        self._name = directory.name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_SECONDS)
        try:
            with directory.short_path(MONITOR_SOCKET) as path:
                self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise VirtualBoardError(f"virtual board {self._name} has no monitor: {error.strerror}") from None
        self._lines = self._socket.makefile("rb")
        self._lines.readline()  # the greeting
        self.execute("qmp_capabilities")

    def freeze(self) -> None:
        """Stop the processor; nothing on the board moves any more."""
        self.execute("stop")

    def set_network(self, up: bool) -> None:
        """Plug the network cable in, or pull it."""
        self.execute("set_link", name=NETWORK, up=up)

    def execute(self, command: str, **arguments: Any) -> Any:
        """Run a QMP command and return its result."""
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while line := self._lines.readline():
                answer = json.loads(line)
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    raise VirtualBoardError(f"{command} on virtual board {self._name}: {answer['error']['desc']}")
        except (OSError, ValueError) as error:
            raise VirtualBoardError(f"the monitor of virtual board {self._name} does not answer: {error}") from None
        raise VirtualBoardError(f"virtual board {self._name} went off during {command}")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._lines.close()
        self._socket.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
