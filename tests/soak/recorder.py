"""Samples engine, daemon and worker at intervals while something else goes on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hilt.virtual.board_model import board_model
from tests.soak.processes import children, disk_kib, resident_of_size, sample

ROLES = ("engine", "daemon", "worker")
_BOARD_BYTES = board_model("pynq").memory_bytes
"""The virtual board's own memory lies in its worker, and is resident as far as programs have touched it."""


@dataclass
class Series:
    """Rows of samples: seconds since the begin, the count of trials or loads, and every quantity by name."""

    rows: list[dict[str, float]] = field(default_factory=list)

    def column(self, name: str) -> list[float]:
        return [row[name] for row in self.rows if name in row]


class Recorder:
    """Samples the processes of a board and of an engine in a thread of its own. A context manager."""

    def __init__(self, agent_home: Path, engine: int | None, count: Callable[[], int], seconds: float) -> None:
        self.series = Series()
        self.starts: dict[str, set[int]] = {role: set() for role in ROLES}
        """Every process id seen in a role."""
        self._agent_home = agent_home
        self._engine = engine
        self._count = count
        self._seconds = seconds
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._record)

    def __enter__(self) -> Recorder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _record(self) -> None:
        while not self._ended.wait(self._seconds):
            self.series.rows.append(self._row())

    def _row(self) -> dict[str, float]:
        row: dict[str, float] = {"seconds": time.monotonic() - self._began, "count": self._count()}
        for role, pid in self._processes().items():
            state = sample(pid)
            if state is not None:
                self.starts[role].add(pid)
                memory = state.memory_kib - (resident_of_size(pid, _BOARD_BYTES) if role == "worker" else 0)
                row[f"{role} memory"] = memory / 1024
                row[f"{role} descriptors"] = state.descriptors
                row[f"{role} threads"] = state.threads
        row["board disk"] = disk_kib(self._agent_home) / 1024
        row["journal"] = disk_kib_of(self._agent_home / "journal") / 1024
        return row

    def _processes(self) -> dict[str, int]:
        found = {} if self._engine is None else {"engine": self._engine}
        try:
            daemon = int(json.loads((self._agent_home / "agent.pid").read_text())["pid"])
        except (FileNotFoundError, ValueError, KeyError):
            return found
        found["daemon"] = daemon
        workers = children(daemon)
        if workers:
            found["worker"] = workers[0]
        return found


def disk_kib_of(path: Path) -> int:
    """Return the size of a file, or of all files of a folder, in KiB; 0 if there is none."""
    if path.is_dir():
        return disk_kib(path)
    return path.stat().st_blocks // 2 if path.exists() else 0
