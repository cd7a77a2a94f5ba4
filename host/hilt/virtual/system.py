"""Process 1 of a virtual board: keeps its SSH server up, adopts its daemons, takes all with it when power goes.

`python -m hilt.virtual.system NAME BOOT_ID`: power is standard input staying open; "kill-ssh" on it kills the server.
SIGUSR1, which the board's own `reboot` command sends, ends it with the exit code REBOOT; SIGUSR2 freezes the board: all
that runs on it stops, and only its power switch helps.
It is a process apart from the supervisor so that the board goes dark also when the supervisor is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import socket
import sys
import time

from hilt.virtual.directory import BoardDirectory
from hilt.virtual.processes import adopt_orphans, descendants, end_descendants

REBOOT = 64
"""Exit code: power stays on, and the board is to start again."""
_QUICK_DEATH_SECONDS = 2.0
_QUICK_DEATHS_ALLOWED = 5


def main() -> None:
    name, boot_id = sys.argv[1:]
    adopt_orphans()
    events = selectors.DefaultSelector()
    events.register(_signal_wakeups(), selectors.EVENT_READ, "signal")
    events.register(sys.stdin.fileno(), selectors.EVENT_READ, "power")
    if not _boot(BoardDirectory(name)):
        return
    server = _Server([sys.executable, "-m", "hilt.virtual.ssh_server", name, boot_id])
    try:
        while True:
            for key, _ in events.select():
                if key.data == "signal":
                    numbers = key.fileobj.recv(64)  # type: ignore[union-attr]
                    if signal.SIGUSR1 in numbers:
                        sys.exit(REBOOT)
                    if signal.SIGUSR2 in numbers:
                        _freeze()
                    server.reap()
                elif not _obey(sys.stdin.fileno(), server):
                    return
    finally:
        end_descendants()


def _boot(directory: BoardDirectory) -> bool:
    """Wait for the requested time of a slow reboot, if any; return False if power is gone meanwhile."""
    seconds = float(directory.take_chaos("slow") or 0.0)
    if not seconds:
        return True
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0] and not os.read(sys.stdin.fileno(), 4096):
            return False
    return True


def _freeze() -> None:
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)


def _obey(descriptor: int, server: _Server) -> bool:
    """Obey a command of the power switch; return False when power is gone."""
    command = os.read(descriptor, 4096)
    if b"kill-ssh" in command:
        server.kill()
    return bool(command)


def _signal_wakeups() -> socket.socket:
    """Return a socket that becomes readable when a child ends, or at a reboot: a byte for each signal."""
    reading, writing = socket.socketpair()
    reading.setblocking(False)
    writing.setblocking(False)
    for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing.detach())
    return reading


class _Server:
    """The SSH server as a service that is restarted when it dies. The supervisor reads its standard output."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._quick_deaths = 0
        self._asked_to_die = False
        self._start()

    def _start(self) -> None:
        self._started = time.monotonic()
        # An input of its own: power and commands are not for the server and its children.
        null = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
        self._pid = os.posix_spawn(self._command[0], self._command, os.environ, file_actions=[null], setpgroup=0)

    def kill(self) -> None:
        self._asked_to_die = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def reap(self) -> None:
        """Collect ended processes, orphans included; start the server again if it is among them."""
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if pid == self._pid:
                    self._restart()

    def _restart(self) -> None:
        quick = time.monotonic() - self._started < _QUICK_DEATH_SECONDS and not self._asked_to_die
        self._asked_to_die = False
        self._quick_deaths = self._quick_deaths + 1 if quick else 0
        if self._quick_deaths > _QUICK_DEATHS_ALLOWED:
            sys.exit("the SSH server keeps dying at its start")
        self._start()


if __name__ == "__main__":
    main()
