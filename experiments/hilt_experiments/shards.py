"""Tables whose rows are computed one shard at a time, in parallel, and kept in files.

A finished shard is not computed again; a killed experiment goes on with the shard that it was at.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.measure.dataset import DatasetKey
from hilt.processes import processes
from hilt_experiments.contenders import code_of
from hilt_experiments.datasets import dataset_of

Row = dict[str, Any]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Shard:
    """Rows of plain values that a module's function computes from datasets and other arguments.

    `make(subjects, *told)` is called in another process; `told` are numbers and texts.
    """

    experiment: str
    make: Callable[..., list[Row]]
    subjects: tuple[DatasetKey, ...]
    told: tuple[str | int | float, ...]
    recorded: bool = True
    """True if it needs the subjects' recorded spaces."""

    @cached_property
    def path(self) -> Path:
        """Its file: other datasets, other arguments or other code is another file."""
        facts = {
            "datasets": [each.key for each in self.subjects],
            "make": self.make.__qualname__,
            "code": code_of(self.make.__module__),
            "told": self.told,
        }
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return paths.home() / "experiments" / "pieces" / f"{self.experiment}.{digest[:24]}.json"


def rows_of(shards: Sequence[Shard], jobs: int, report: Report) -> list[Row]:
    """Return the rows of all shards in their order; read those on disk and compute the others.

    `jobs` is the number of processes; 0 means one for each core.

    Raises MissingDatasetError before anything is computed. An error in a shard is raised after the shards under way
    are kept.
    """
    for subject in {subject for shard in shards if shard.recorded for subject in shard.subjects}:
        dataset_of(subject)
    waiting = [shard for shard in shards if not shard.path.is_file()]
    if waiting:
        waiting[0].path.parent.mkdir(parents=True, exist_ok=True)
        with processes(min(jobs or os.cpu_count() or 1, len(waiting))) as pool:
            pending = [pool.submit(_compute, shard) for shard in waiting]
            started = time.monotonic()
            try:
                for number, future in enumerate(as_completed(pending), 1):
                    future.result()
                    left = (time.monotonic() - started) / number * (len(waiting) - number)
                    report(f"{number}/{len(waiting)} pieces, about {left / 60:.0f} min left")
            except Exception:
                pool.shutdown(cancel_futures=True)
                raise
    return [row for shard in shards for row in json.loads(shard.path.read_text(encoding="utf-8"))]


def _compute(shard: Shard) -> None:
    rows = shard.make(shard.subjects, *shard.told)
    with atomic_write(shard.path) as file:
        json.dump(rows, file)
