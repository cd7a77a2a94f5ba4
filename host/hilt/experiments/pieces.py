"""Tables whose rows are computed a piece at a time, in parallel, and kept in files: what was computed once is not
computed again, and what is killed goes on with the piece that it was at."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hilt import paths
from hilt.experiments.contenders import code_of
from hilt.experiments.landscapes import landscape_of
from hilt.measure.landscape import Subject
from hilt.processes import processes
from hilt.whole_file import whole_file

Row = dict[str, Any]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Piece:
    """Rows of plain values that a module's function makes of landscapes and of what else it is told.

    `make(subjects, *told)` is called in another process; `told` are numbers and texts.
    """

    experiment: str
    make: Callable[..., list[Row]]
    subjects: tuple[Subject, ...]
    told: tuple[str | int | float, ...]
    recorded: bool = True
    """Whether it needs the subjects' recorded spaces."""

    @cached_property
    def path(self) -> Path:
        """Its file: other landscapes, other arguments or other code is another file."""
        facts = {
            "landscapes": [each.key for each in self.subjects],
            "make": self.make.__qualname__,
            "code": code_of(self.make.__module__),
            "told": self.told,
        }
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return paths.home() / "experiments" / "pieces" / f"{self.experiment}.{digest[:24]}.json"


def rows_of(pieces: Sequence[Piece], jobs: int, report: Report) -> list[Row]:
    """The rows of all pieces in their order, those on disk read and the others computed; `jobs` 0: one a core.

    Raises MissingLandscapeError before anything is computed; what a piece raises is raised once those that were being
    computed are kept.
    """
    for subject in {subject for piece in pieces if piece.recorded for subject in piece.subjects}:
        landscape_of(subject)
    waiting = [piece for piece in pieces if not piece.path.is_file()]
    if waiting:
        waiting[0].path.parent.mkdir(parents=True, exist_ok=True)
        with processes(min(jobs or os.cpu_count() or 1, len(waiting))) as pool:
            pending = [pool.submit(_compute, piece) for piece in waiting]
            try:
                for number, future in enumerate(as_completed(pending), 1):
                    future.result()
                    report(f"{number}/{len(waiting)} pieces")
            except Exception:
                pool.shutdown(cancel_futures=True)
                raise
    return [row for piece in pieces for row in json.loads(piece.path.read_text(encoding="utf-8"))]


def _compute(piece: Piece) -> None:
    rows = piece.make(piece.subjects, *piece.told)
    with whole_file(piece.path) as file:
        json.dump(rows, file)
