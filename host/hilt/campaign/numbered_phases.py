"""The last stage of a campaign, which makes and runs the network's bundle, as other processes see it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from hilt.atomic_write import atomic_write
from hilt.engine.run_files import RunFiles

_STAGE = "stage.json"


class NetworkStage:
    """Tells at which of several phases the last stage of a campaign is. A context manager."""

    def __init__(self, home: Path, campaign: str, phases: int, tell: Callable[[str], None]) -> None:
        """Make one.

        Args:
            home: HILT_HOME.
            campaign: The campaign's uuid.
            phases: Their number.
            tell: Gets a line for each phase and each part of one.
        """
        self._path = RunFiles(home, campaign).directory / _STAGE
        self._phases = phases
        self._tell = tell
        self._phase = 0
        self._began = time.monotonic()

    def __enter__(self) -> NetworkStage:
        return self

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)

    def next(self, text: str) -> None:
        """Begin the next phase."""
        self._phase += 1
        self.part(text)

    def part(self, text: str) -> None:
        """Say what the phase does now, for people."""
        done = (self._phase - 1) / self._phases
        left = (time.monotonic() - self._began) * (1 - done) / done if done else None
        words = f"{self._phase} of {self._phases}: {text}" + (f", about {left:.0f} s left" if left is not None else "")
        self._tell(words)
        with atomic_write(self._path) as file:
            json.dump({"pid": os.getpid(), "text": words}, file)


def stage_text(home: Path, campaign: str) -> str:
    """Return the phase of a campaign's last stage; empty if none goes on."""
    try:
        values = json.loads((RunFiles(home, campaign).directory / _STAGE).read_text(encoding="utf-8"))
        os.kill(int(values["pid"]), 0)
        return str(values["text"])[:300]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
