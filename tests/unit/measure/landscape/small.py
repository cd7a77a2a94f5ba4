"""A small space, built in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from hilt.measure.landscape import Landscape, Shelf, Subject
from hilt.measure.landscape.build import build
from hilt.measure.landscape.check import Sampling
from hilt.schedule import load_workload
from hilt.virtual.personality import Personality, personality

WORKLOAD = load_workload("conv2d:n=1,ci=16,h=4,w=6,co=32,k=3x3,p=1x1")
PYNQ = personality("pynq")
FAR = replace(PYNQ, name="far", read_latency=90, write_latency=60)
NO_INTERLOCK = replace(PYNQ, name="bare", hazards="none")
NO_SAMPLE = Sampling(rtl=0, golden=0)


class Here(Executor):
    """Runs what it is given at once; after `limit` calls it fails, as a machine that is switched off."""

    def __init__(self, limit: int | None = None) -> None:
        self.calls = 0
        self._limit = limit

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if self.calls == self._limit:
            raise KeyboardInterrupt
        self.calls += 1
        future: Future[Any] = Future()
        future.set_result(call(*arguments, **named))
        return future


def small_subject(board: Personality = PYNQ, **space: Any) -> Subject:
    return Subject.on(WORKLOAD, board, **({"orders": 1} | space))


def built(folder: Path, subjects: Sequence[Subject], sampling: Sampling = NO_SAMPLE) -> list[Landscape]:
    return build(subjects, Shelf(folder), Here(), sampling)
