"""The system behind the power switch of a virtual board: its first process, and the messages of that process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys

from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.system import REBOOT

_SYSTEM = "hilt.virtual.system"


class PoweredSystem:
    """A board that is on. Made by `boot`; its descendants are the supervisor' to end should it not do so itself."""

    def __init__(self, name: str, boot_id: str, computer: str = "") -> None:
        """Start the first process. `computer`: the architecture that QEMU emulates; empty: a tree of processes."""
        program = ["hilt.virtual.linux.system", name, boot_id, computer] if computer else [_SYSTEM, name, boot_id]
        self.boot_id = boot_id
        self.ssh: dict[str, int] = {}
        """`port` and `pid` of the SSH server that accepts; empty until the first one does."""
        self.ended = asyncio.Event()
        self.reboots = False
        """It ended because it was told to start again."""
        self._accepts = asyncio.Event()
        self._process = subprocess.Popen(
            [sys.executable, "-m", *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        # asyncio's own subprocess is not said to have ended while a grandchild holds its pipe, as the SSH server does.
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pidfd, self._has_ended)
        assert self._process.stdout is not None
        self._announcements = self._process.stdout
        os.set_blocking(self._announcements.fileno(), False)
        self._unfinished = b""
        self._loop.add_reader(self._announcements.fileno(), self._hear)

    async def accepting(self, seconds: float) -> None:
        """Wait until the SSH server accepts. Raises VirtualBoardError if it does not."""
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._accepts, self.ended)]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for process in waiting:
                process.cancel()
        if self.ended.is_set():
            raise VirtualBoardError("its first process ended")
        if not self._accepts.is_set():
            raise VirtualBoardError(f"its SSH server did not accept within {seconds:.0f} s")

    def kill_ssh(self) -> None:
        self._command(b"kill-ssh\n")

    async def off(self) -> None:
        """Switch off; return when the first process has ended, and with it all that it could end."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        await self.ended.wait()

    def _command(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has just died: then there is nothing to command
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _hear(self) -> None:
        data: bytes | None = self._announcements.read()
        if data is None:  # nothing to read now
            return
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        for line in filter(None, lines):
            self.ssh = json.loads(line)
            self._accepts.set()
        if not data:
            self._loop.remove_reader(self._announcements.fileno())

    def _has_ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self._loop.remove_reader(self._announcements.fileno())
        os.close(self._pidfd)
        self._announcements.close()
        self.reboots = self._process.wait() == REBOOT
        self.ended.set()
