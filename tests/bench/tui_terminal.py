"""The TUI in a pseudo-terminal, as a person has it: keys go in, drawn text comes out."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

_QUIET_SECONDS = 0.6
_MOST_SECONDS = 60.0


class TuiTerminal:
    """`python -m hilt.tui RUN` in a terminal of its own. Times are of the wall clock, in seconds."""

    def __init__(self, home: Path, uuid: str, columns: int, lines: int) -> None:
        self.started = time.perf_counter()
        self.pid, self._terminal = os.forkpty()
        if self.pid == 0:
            environment = os.environ | {"HILT_HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execve(sys.executable, [sys.executable, "-m", "hilt.tui", uuid], environment)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def seconds_until(self, wanted: str, key: str = "") -> float:
        """Return the seconds from the key (or from the start) until the text is drawn.

        Raises:
            TimeoutError: The text was not drawn.
        """
        began = time.perf_counter() if key else self.started
        os.write(self._terminal, key.encode())
        seen = ""
        while wanted not in seen:
            if time.perf_counter() - began > _MOST_SECONDS:
                raise TimeoutError(f"{wanted!r} was not drawn; the last was {seen[-2000:]!r}")
            seen += self._read(0.05)
        return time.perf_counter() - began

    def drawn_after(self, key: str) -> str:
        """Return all text drawn until nothing is drawn for a while, or for a few seconds."""
        os.write(self._terminal, key.encode())
        seen, end = "", time.monotonic() + 3.0
        while time.monotonic() < end and (more := self._read(_QUIET_SECONDS)):
            seen += more
        return seen

    def processor_share(self, seconds: float) -> float:
        """Return the share of one core that the process uses while nobody presses a key."""
        before, began = self.processor_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            self._read(0.2)
        return (self.processor_seconds() - before) / (time.monotonic() - began)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def _read(self, seconds: float) -> str:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return ""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(self._terminal, 1 << 16).decode("utf-8", "replace"))

    def processor_seconds(self) -> float:
        """Return the processor seconds of the whole process since it began."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
