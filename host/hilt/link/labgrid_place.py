"""Places of a labgrid coordinator: who they are, and holding one (`--board labgrid:PLACE`)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from hilt.link.errors import BoardFileError, LinkError

PREFIX = "labgrid:"
_PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_LOOK_SECONDS = 30.0
_RELEASE_SECONDS = 10.0


class PlaceError(LinkError):
    """A place that the coordinator does not have, or that cannot be held."""

    permanent = True


@dataclass(frozen=True)
class LabgridPlace:
    """Facts of a place: its tags, and the parameters of its resources by labgrid's class."""

    tags: Mapping[str, str]
    resources: Mapping[str, Mapping[str, Any]]


def coordinator() -> str:
    """Return the coordinator's address, as labgrid's own client takes it: LG_COORDINATOR, else this machine."""
    return os.environ.get("LG_COORDINATOR", "127.0.0.1:20408")


def look(place: str) -> LabgridPlace:
    """Return the facts of a place, without reserving it. Raises PlaceError, BoardFileError."""
    with _keeper(place, "--look") as keeper:
        timer = threading.Timer(_LOOK_SECONDS, keeper.kill)
        timer.start()
        try:
            for state, answer in _answers(keeper, place):
                if state == "facts":
                    return LabgridPlace(answer["tags"], answer["resources"])
        finally:
            timer.cancel()
            keeper.kill()
    raise PlaceError(f"place {place}: the labgrid coordinator at {coordinator()} gave no answer")


class HeldPlace:
    """A place that is reserved in its turn, held, and given back by `release`, or when this process dies."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._keeper: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._released = False

    def hold(self, report: Callable[[str], None]) -> None:
        """Wait for the place's turn and hold it; return at once if it is held. Raises PlaceError."""
        with self._lock:
            if self._released:
                raise PlaceError(f"place {self._place} was released")
            if self._keeper is not None and self._keeper.poll() is None:
                return
            keeper = self._keeper = _keeper(self._place)
        for state, answer in _answers(keeper, self._place):
            if state == "waiting":
                report(f"waiting for place {self._place}, which {answer['holder']} has")
            elif state == "held":
                return
        raise PlaceError(f"place {self._place}: its reservation ended before its turn")

    def release(self) -> None:
        """Give the place back, or the place in the queue."""
        with self._lock:
            self._released = True
            keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        assert keeper.stdin is not None
        keeper.stdin.close()
        try:
            keeper.wait(_RELEASE_SECONDS)
        except subprocess.TimeoutExpired:
            keeper.kill()


def _keeper(place: str, *more: str) -> subprocess.Popen[str]:
    if not _PLACE.match(place):
        raise BoardFileError(f"{place!r} cannot name a labgrid place: take letters, digits, ., - and _")
    if find_spec("labgrid") is None:
        raise PlaceError("places of labgrid need labgrid: pip install 'hilt[power]'")
    command = [sys.executable, "-m", "hilt.link.labgrid_keeper", coordinator(), place, *more]
    # A session of its own: a Ctrl-C of the terminal is for us, and the place is given back after the last trial.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _answers(keeper: subprocess.Popen[str], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the keeper's lines as (state, values). Raises PlaceError for a refusal."""
    assert keeper.stdout is not None
    for line in keeper.stdout:
        answer = json.loads(line)
        if answer["state"] == "refused":
            raise PlaceError(f"place {place}: {answer['reason']}")
        yield answer["state"], answer
