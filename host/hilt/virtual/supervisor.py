"""The supervisor of a virtual board: its power switch. A process that holds the board's process tree while power is on.

It listens on a Unix socket (mode 0600) in the board's directory and speaks JSON lines: {"command": "on" | "switch_on"
| "off" | "cycle" | "status" | "kill_ssh" | "stop"} is answered by control.SupervisorStatus' fields, or by {"error"}.
An open connection is a lease: when nobody has held one for `idle_seconds`, the supervisor switches off and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import uuid
from collections.abc import Callable
from typing import Any

from hilt import paths
from hilt.virtual.directory import CONTROL_SOCKET, BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.power import PoweredSystem
from hilt.virtual.processes import adopt_orphans, end_descendants

_BOOT_SECONDS = 60.0
_COMPUTER_BOOT_SECONDS = 600.0
"""Debian's boot under QEMU, on a machine that is busy with others."""
_FIRST_LEASE_SECONDS = 30.0
"""Whoever started it needs a moment to connect."""
_LINE_BYTES = 4096


class Supervisor:
    """Power and control of one virtual board. One event loop, one board."""

    def __init__(self, directory: BoardDirectory, idle_seconds: float, computer: str = "") -> None:
        self._directory = directory
        self._computer = computer
        self._idle_seconds = idle_seconds
        self._system: PoweredSystem | None = None
        self._switching = asyncio.Lock()
        self._leases: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()
        self._watching: set[asyncio.Task[None]] = set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until stopped, idle or terminated; then the board is dark. `ready` is called once it listens."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopped.set)
        server = await asyncio.start_unix_server(self._serve, sock=self._listening_socket(), limit=_LINE_BYTES)
        self._start_idling(max(self._idle_seconds, _FIRST_LEASE_SECONDS))
        ready()
        try:
            await self._stopped.wait()
        finally:
            # From now on no client learns that this board exists.
            with contextlib.suppress(FileNotFoundError):
                (self._directory.root / CONTROL_SOCKET).unlink()
            server.close()
            async with self._switching:
                await self._power_off()
            for writer in self._leases.values():
                writer.close()
            await asyncio.gather(*self._leases)

    def _listening_socket(self) -> socket.socket:
        with contextlib.suppress(FileNotFoundError):
            (self._directory.root / CONTROL_SOCKET).unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with self._directory.short_path(CONTROL_SOCKET) as path:
            listening.bind(path)
        (self._directory.root / CONTROL_SOCKET).chmod(0o600)
        listening.listen()
        return listening

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lease = asyncio.current_task()
        assert lease is not None
        self._leases[lease] = writer
        if self._idle is not None:
            self._idle.cancel()
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass  # gone, or a line too long: either way it is over
        finally:
            writer.close()
            del self._leases[lease]
            if not self._leases:
                self._start_idling(self._idle_seconds)

    def _start_idling(self, seconds: float) -> None:
        self._idle = asyncio.get_running_loop().call_later(seconds, self._stopped.set)

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            command = json.loads(line)["command"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"error": "not a command"}
        try:
            async with self._switching:
                refusal = await self._obey(command)
        except VirtualBoardError as error:
            return {"error": str(error)}
        return {"error": refusal} if refusal else self._status()

    async def _obey(self, command: object) -> str:
        """Carry a command out; return why it cannot be done, or an empty text. Raises VirtualBoardError."""
        if command in ("off", "cycle"):
            await self._power_off()
        if command in ("on", "switch_on", "cycle"):
            await self._switch_on(wait=command == "on" or not self._computer)
        elif command == "kill_ssh":
            return self._kill_ssh()
        elif command == "stop":
            self._stopped.set()
        elif command not in ("off", "status"):
            return f"unknown command {str(command)[:40]!r}"
        return ""

    async def _switch_on(self, *, wait: bool) -> None:
        """Give the board power, and wait for its boot, or do not, as a relay does."""
        if wait:
            await self._power_on()
        elif self._system is None:
            self._start_system()

    def _kill_ssh(self) -> str:
        if self._computer:
            return "the SSH server of an emulated board is killed on the board itself"
        if self._system is not None:
            self._system.kill_ssh()
        return ""

    def _status(self) -> dict[str, Any]:
        system = self._system
        return {
            "power": "on" if system else "off",
            "boot_id": system.boot_id if system else None,
            "port": system.ssh.get("port") if system else None,
            "ssh_pid": system.ssh.get("pid") if system else None,
            "supervisor_pid": os.getpid(),
            "python": str(paths.board_python()),
            "leases": len(self._leases),
        }

    async def _power_on(self) -> None:
        system = self._system or self._start_system()
        try:
            await system.accepting(_COMPUTER_BOOT_SECONDS if self._computer else _BOOT_SECONDS)
        except VirtualBoardError as error:
            await self._power_off()
            name, log = self._directory.name, self._directory.log
            raise VirtualBoardError(f"virtual board {name} does not boot: {error}; see {log}") from None

    def _start_system(self) -> PoweredSystem:
        self._system = PoweredSystem(self._directory.name, str(uuid.uuid4()), self._computer)
        watching = asyncio.create_task(self._watch(self._system))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        return self._system

    async def _watch(self, system: PoweredSystem) -> None:
        """Switch off a board whose first process dies; switch it on again after a reboot."""
        await system.ended.wait()
        async with self._switching:
            if self._system is system:
                await self._power_off()
                if system.reboots:
                    with contextlib.suppress(VirtualBoardError):  # it stays off, and whoever switches it on hears why
                        await self._power_on()

    async def _power_off(self) -> None:
        system, self._system = self._system, None
        if system is not None:
            await system.off()
        # Nothing is left unless the board's first process was killed itself.
        await asyncio.get_running_loop().run_in_executor(None, end_descendants)


def run_supervisor(
    directory: BoardDirectory, idle_seconds: float, ready: Callable[[], None], computer: str = ""
) -> None:
    """Run the supervisor in this process, once the one before it has ended: it may be switching off still."""
    os.umask(0o077)
    adopt_orphans()
    with (directory.root / "supervisor.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asyncio.run(Supervisor(directory, idle_seconds, computer).run(ready))
