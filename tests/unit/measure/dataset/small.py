"""A small space, built in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from hilt.measure.dataset import Dataset, DatasetKey, DatasetStore
from hilt.measure.dataset.build import build
from hilt.measure.dataset.check import Sampling
from hilt.schedule import load_workload
from hilt.virtual.board_model import BoardModel, board_model

WORKLOAD = load_workload("conv2d:n=1,ci=16,h=4,w=6,co=32,k=3x3,p=1x1")
PYNQ = board_model("pynq")
FAR = replace(PYNQ, name="far", read_latency=90, write_latency=60)
NO_INTERLOCK = replace(PYNQ, name="bare", hazards="none")
NO_SAMPLE = Sampling(rtl=0, golden=0)


class Here(Executor):
    """An executor that runs each call at once; after `limit` calls it fails, like a machine that is switched off."""

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


def small_subject(board: BoardModel = PYNQ, **space: Any) -> DatasetKey:
    return DatasetKey.on(WORKLOAD, board, **({"orders": 1} | space))


def built(folder: Path, subjects: Sequence[DatasetKey], sampling: Sampling = NO_SAMPLE) -> list[Dataset]:
    return build(subjects, DatasetStore(folder), Here(), sampling)
