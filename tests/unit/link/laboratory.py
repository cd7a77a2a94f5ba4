"""A labgrid coordinator with an exporter and one place, on 127.0.0.1: labgrid's own programs."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)  # another process' state: nothing to wait for


class Laboratory:
    """A coordinator with an exporter and the place desk."""

    def __init__(self, folder: Path, exported: str) -> None:
        """`exported`: the exporter's configuration, with the resources of the group desk."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        (folder / "exporter.yaml").write_text(exported)
        self._folder = folder
        self._started = [self._start("labgrid-coordinator", "-l", self.address)]

    def open(self, bitstream: str) -> None:
        """Return when the exporter's resources are at the place, whose tag `bitstream` is set."""
        until(self._answers)
        self._started.append(self._start("labgrid-exporter", "-c", self.address, "-n", "lab", "exporter.yaml"))
        self.client("-p", "desk", "create")
        self.client("-p", "desk", "add-match", "lab/desk/*")
        self.client("-p", "desk", "set-tags", f"bitstream={bitstream}")
        until(lambda: "NetworkService" in self.client("resources"))

    def _start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        nothing = subprocess.DEVNULL
        return subprocess.Popen([program(name), *words], cwd=self._folder, stdout=nothing, stderr=nothing)

    def _answers(self) -> bool:
        host, port = self.address.split(":")
        try:
            socket.create_connection((host, int(port)), 1).close()
        except OSError:
            return False
        return True

    def client(self, *words: str) -> str:
        command = [program("labgrid-client"), "-x", self.address, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    def holder(self) -> str:
        """Return the holder that labgrid's own client shows; empty if the place is free."""
        shown = self.client("-p", "desk", "show")
        return next(line.split(":")[1].strip() for line in shown.splitlines() if "acquired:" in line).replace(
            "None", ""
        )

    def close(self) -> None:
        for process in reversed(self._started):
            process.terminate()
            process.wait(20)
