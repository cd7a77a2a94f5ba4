"""Evaluates the designs of a sweep, in parallel, keeps each result in a file, and finds the Pareto front."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.atomic_write import atomic_write
from hilt.explore.area import Area, modelled_area, over, synthesised_area
from hilt.explore.design import Design, compiling_apart
from hilt.explore.errors import ExploreError
from hilt.explore.inference import DesignInference, infer
from hilt.explore.subject import Subject
from hilt.simulator.build import design_key


def pareto_front(measures: Sequence[Sequence[float]]) -> list[int]:
    """Return the rows that no other row beats, ordered by the first measure; less is better in each.

    Args:
        measures: One row for each design, shape (designs, measures). Equal rows count once, the first of them.
    """
    if not len(measures):
        return []
    values: npt.NDArray[np.float64] = np.asarray(measures, dtype=np.float64)
    _, first = np.unique(values, axis=0, return_index=True)
    distinct = sorted(first.tolist())
    front = []
    for row in distinct:
        others = values[distinct]
        beaten = np.all(others <= values[row], axis=1) & np.any(others < values[row], axis=1)
        if not beaten.any():
            front.append(row)
    return sorted(front, key=lambda row: tuple(values[row]))


SCHEMA = 2
Progress = Callable[[int, int, "Evaluation | None"], None]
"""Called with (designs done, all of them, the newest)."""


@dataclass(frozen=True)
class Task:
    """A network on a design, and how its area is counted."""

    subject: Subject
    design: Design
    area: str = "model"

    @property
    def key(self) -> str:
        """Return a digest of everything that decides the result, the twin's sources among it."""
        facts = {
            "schema": SCHEMA,
            "network": self.subject.key,
            "design": self.design.to_dict() | {"name": ""},
            "area": self.area,
            "twin": design_key(self.design.accelerator, "timing"),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Evaluation:
    """A design's latency, throughput and area."""

    design: Design
    inference: DesignInference
    area: Area
    seconds: float
    """Wall-clock seconds that the evaluation took."""

    @property
    def microseconds(self) -> float:
        """Return the latency of one pass, its processor's part included; infinite where there is none."""
        return float("inf") if self.inference.reason else self.inference.latency.total

    @property
    def images_a_second(self) -> float:
        """Return the throughput of passes that overlap; 0 where there is none."""
        return 0.0 if self.inference.reason else self.inference.images * self.inference.latency.rate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "design": self.design.to_dict(),
            "inference": self.inference.to_dict(),
            "area": self.area.to_dict(),
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Evaluation:
        """Return the evaluation that `to_dict` described."""
        return cls(
            Design.from_dict(values["design"]),
            DesignInference.from_dict(values["inference"]),
            Area(**values["area"]),
            values["seconds"],
        )


def evaluate(task: Task) -> Evaluation:
    """Return the latency and area of a design. Raises MissingToolError, BuildError, ExploreError."""
    started = time.monotonic()
    inference = infer(task.subject, task.design)
    area = synthesised_area(task.design) if task.area == "yosys" else modelled_area(task.design)
    return Evaluation(task.design, inference, area, time.monotonic() - started)


def explore(
    tasks: Sequence[Task], folder: Path, executor: Executor, progress: Progress = lambda done, total, newest: None
) -> list[Evaluation]:
    """Return the evaluation of each task, in order; those in `folder` are read, the others are made and kept there.

    Raises ExploreError where a design cannot be evaluated, after all others are done and kept.
    """
    kept = {task.key: _read(folder / f"{task.key[:32]}.json") for task in tasks}
    order = compiling_apart([task.design for task in tasks])
    waiting = [tasks[place] for place in order if kept[tasks[place].key] is None]
    done = len(tasks) - len(waiting)
    progress(done, len(tasks), None)
    failures: list[str] = []
    pending = {executor.submit(evaluate, task): task for task in waiting}
    for future in as_completed(pending):
        task = pending[future]
        error = future.exception()
        done += 1
        if error is not None:
            failures.append(f"{task.design.title}: {' '.join(str(error).split())}")
            continue
        evaluation = future.result()
        kept[task.key] = evaluation
        with atomic_write(folder / f"{task.key[:32]}.json") as file:
            json.dump(evaluation.to_dict(), file)
        progress(done, len(tasks), evaluation)
    if failures:
        raise ExploreError(f"{len(failures)} of {len(tasks)} designs failed, the first: {failures[0]}")
    return [_of_today(task, kept[task.key]) for task in tasks]


def _of_today(task: Task, evaluation: Evaluation | None) -> Evaluation:
    """Return a task's evaluation with the area of today's figures where it is the model's."""
    assert evaluation is not None
    area = modelled_area(task.design) if task.area == "model" else evaluation.area
    return Evaluation(task.design, evaluation.inference, area, evaluation.seconds)


def front(evaluations: Sequence[Evaluation], part: str | None = None) -> list[int]:
    """Return the places on the Pareto front of latency, throughput, look-up tables, DSP slices and block RAM.

    Designs without a schedule are left out, and with `part` those that do not fit it.
    """
    return _front_of(evaluations, _usable(evaluations, part))


def spread(evaluations: Sequence[Evaluation], count: int, part: str | None = None) -> list[int]:
    """Return `count` places evenly along the front, its ends first among them.

    A front of fewer is taken whole, then the front of the designs that are left, and so on.
    """
    chosen: list[int] = []
    left = _usable(evaluations, part)
    while left and len(chosen) < count:
        on_front, wanted = _front_of(evaluations, left), count - len(chosen)
        left = [place for place in left if place not in on_front]
        if wanted == 1:
            on_front = on_front[:1]
        elif wanted < len(on_front):
            on_front = [on_front[round(step * (len(on_front) - 1) / (wanted - 1))] for step in range(wanted)]
        chosen += on_front
    return chosen


def _usable(evaluations: Sequence[Evaluation], part: str | None) -> list[int]:
    return [
        place
        for place, evaluation in enumerate(evaluations)
        if not evaluation.inference.reason and not (part and over(evaluation.area, part))
    ]


def _front_of(evaluations: Sequence[Evaluation], places: Sequence[int]) -> list[int]:
    measures = [
        (result.microseconds, -result.images_a_second, result.area.lut, result.area.dsp, result.area.bram36)
        for result in (evaluations[place] for place in places)
    ]
    return [places[row] for row in pareto_front(measures)]


def _read(path: Path) -> Evaluation | None:
    """Return the kept evaluation; None where there is none, or it cannot be read and is made again."""
    try:
        return Evaluation.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None
