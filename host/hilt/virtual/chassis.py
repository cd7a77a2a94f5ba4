"""The chassis of a virtual board: its power switch. A process that holds the board's process tree while power is on.

It listens on a Unix socket (mode 0600) in the board's directory and speaks JSON lines: {"command": "on" | "off" |
"cycle" | "status" | "kill_ssh" | "stop"} is answered by control.ChassisStatus' fields, or by {"error"}.
An open connection is a lease: when nobody has held one for `idle_seconds`, the chassis switches off and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable
from typing import Any, BinaryIO

from hilt.virtual.directory import CONTROL_SOCKET, BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.processes import adopt_orphans, end_descendants

_BOOT_SECONDS = 60.0
_LINE_BYTES = 4096


class Chassis:
    """Power and control of one virtual board. One event loop, one board."""

    def __init__(self, directory: BoardDirectory, idle_seconds: float) -> None:
        self._directory = directory
        self._idle_seconds = idle_seconds
        self._system: asyncio.subprocess.Process | None = None
        self._boot_id: str | None = None
        self._ssh: dict[str, int] = {}
        self._switching = asyncio.Lock()
        self._leases: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()
        self._watchers: set[asyncio.Task[None]] = set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serves until stopped, idle or terminated; then the board is dark. `ready` is called once it listens."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopped.set)
        server = await asyncio.start_unix_server(self._serve, sock=self._listening_socket(), limit=_LINE_BYTES)
        self._start_idling()
        ready()
        try:
            await self._stopped.wait()
        finally:
            # Nobody who asks from now on is told that this board exists.
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
                self._start_idling()

    def _start_idling(self) -> None:
        self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._stopped.set)

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            command = json.loads(line)["command"]
        except (ValueError, KeyError, TypeError):
            return {"error": "not a command"}
        try:
            async with self._switching:
                if command in ("off", "cycle"):
                    await self._power_off()
                if command in ("on", "cycle"):
                    await self._power_on()
                elif command == "kill_ssh":
                    self._kill_ssh()
                elif command == "stop":
                    self._stopped.set()
                elif command not in ("off", "status"):
                    return {"error": f"unknown command {str(command)[:40]!r}"}
        except VirtualBoardError as error:
            return {"error": str(error)}
        return self._status()

    def _status(self) -> dict[str, Any]:
        return {
            "power": "off" if self._system is None else "on",
            "boot_id": self._boot_id,
            "port": self._ssh.get("port"),
            "ssh_pid": self._ssh.get("pid"),
            "chassis_pid": os.getpid(),
        }

    async def _power_on(self) -> None:
        if self._system is not None:
            return
        self._boot_id = str(uuid.uuid4())
        self._system = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "hilt.virtual.system",
            self._directory.name,
            self._boot_id,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        accepting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watcher = asyncio.create_task(self._watch(self._system, accepting))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        try:
            await asyncio.wait_for(accepting, _BOOT_SECONDS)
        except (TimeoutError, VirtualBoardError) as error:
            await self._power_off()
            reason = str(error) or f"its SSH server did not accept within {_BOOT_SECONDS:.0f} s"
            raise VirtualBoardError(
                f"virtual board {self._directory.name} does not boot: {reason}; see {self._directory.log}"
            ) from None

    async def _watch(self, system: asyncio.subprocess.Process, accepting: asyncio.Future[None]) -> None:
        """Learns of every SSH server that accepts, and of the board's end if nobody switched it off."""
        assert system.stdout
        while line := await system.stdout.readline():
            self._ssh = json.loads(line)
            if not accepting.done():
                accepting.set_result(None)
        await system.wait()
        if not accepting.done():
            accepting.set_exception(VirtualBoardError("its first process ended"))
        elif self._system is system:
            await self._power_off()

    def _kill_ssh(self) -> None:
        if self._system is not None and self._system.stdin is not None:
            self._system.stdin.write(b"kill-ssh\n")

    async def _power_off(self) -> None:
        system, self._system = self._system, None
        self._boot_id, self._ssh = None, {}
        if system is not None:
            assert system.stdin
            system.stdin.close()
            await system.wait()
        # Nothing is left unless the board's first process was killed itself.
        await asyncio.get_running_loop().run_in_executor(None, end_descendants)


def run_chassis(directory: BoardDirectory, idle_seconds: float, ready: Callable[[], None]) -> None:
    """Runs the chassis in this process. Raises VirtualBoardError where the board has one already."""
    os.umask(0o077)
    adopt_orphans()
    with _only_chassis(directory):
        asyncio.run(Chassis(directory, idle_seconds).run(ready))


@contextlib.contextmanager
def _only_chassis(directory: BoardDirectory) -> Any:
    lock: BinaryIO
    with (directory.root / "chassis.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise VirtualBoardError(f"virtual board {directory.name} has a chassis running already") from None
        yield
