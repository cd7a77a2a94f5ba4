"""Runs of contenders on datasets, many seeds, in parallel, kept in files: a finished run is not run again.

A file holds one contender on one dataset under one protocol: `seeds` int64 (s,), `indices` int32 (s, trials) in the
order of trials, -1 after the end of a run, `seconds` float64 (s, parts), and `metadata`, a JSON text with the parts'
names, contender, options, protocol, the dataset's key, machine, commit and versions.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt import paths
from hilt.measure.dataset import Dataset, DatasetKey
from hilt.measure.dataset.build import provenance
from hilt.measure.dataset.dataset import write_arrays
from hilt.processes import processes
from hilt.trial import Outcome
from hilt.tune.metrics import trials_to_within
from hilt_experiments.contenders import Contender
from hilt_experiments.datasets import dataset_of
from hilt_experiments.errors import ExperimentError
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Protocol, Replay, replay

SCHEMA = 1
Report = Callable[[str], None]


@dataclass(frozen=True)
class Cell:
    """A contender on a dataset."""

    subject: DatasetKey
    contender: Contender
    protocol: Protocol

    @cached_property
    def path(self) -> Path:
        """Its file: another dataset, another option or other code of the tuner is another file."""
        facts = {
            "schema": SCHEMA,
            "dataset": self.subject.key,
            "tuner": self.contender.tuner,
            "options": self.contender.all_options(),
            "code": self.contender.code(),
            "protocol": asdict(self.protocol),
        }
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
        return paths.home() / "experiments" / "runs" / self.subject.name / f"{self.contender.tuner}.{digest[:16]}.npz"


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one cell: `indices` int64 (s, trials), -1 past the end of a run; `seconds` (s,) by part."""

    cell: Cell
    dataset: Dataset
    seeds: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int64]
    seconds: dict[str, npt.NDArray[np.float64]]

    @cached_property
    def microseconds(self) -> npt.NDArray[np.float64]:
        """Latency of each trial (s, trials), infinite where it is not valid or was not held."""
        return np.where(self.indices >= 0, self.dataset.microseconds[self.indices], np.inf)

    @cached_property
    def best_so_far(self) -> npt.NDArray[np.float64]:
        """Least latency up to each trial (s, trials)."""
        return np.minimum.accumulate(self.microseconds, axis=1)

    def trials_to(self, share: float, optimum: float | None = None) -> list[int | None]:
        """Return, for each run, the trials until it was within `share` of the optimum; None if it never was."""
        aim = self.dataset.optimum if optimum is None else optimum
        return [trials_to_within(row.tolist(), aim, share) for row in self.microseconds]

    def invalid_share(self, until: Sequence[int | None] | None = None) -> npt.NDArray[np.float64]:
        """Return, for each run (s,), the share of its trials that were not valid.

        If `until` is given, only the trials up to it count.
        """
        invalid = (self.indices >= 0) & ~np.isfinite(self.microseconds)
        held = self.indices >= 0
        if until is not None:
            ends = np.array([self.indices.shape[1] if each is None else each for each in until])
            inside = np.arange(self.indices.shape[1]) < ends[:, None]
            invalid, held = invalid & inside, held & inside
        return np.asarray(invalid.sum(axis=1) / np.maximum(held.sum(axis=1), 1))

    def sent(self, until: Sequence[int | None]) -> npt.NDArray[np.int64]:
        """Return, for each run (s,), the number of its trials that went to the board.

        Only trials up to `until` that the compiler did not refuse count.
        """
        refused = np.array([text == Outcome.REJECTED for text in self.dataset.metadata["outcomes"]])
        went = (self.indices >= 0) & ~refused[self.dataset.outcome[self.indices]]
        ends = np.array([self.indices.shape[1] if each is None else each for each in until])
        return np.asarray((went & (np.arange(self.indices.shape[1]) < ends[:, None])).sum(axis=1))

    def seed_rows(self) -> list[dict[str, Any]]:
        """Return a row for each run: trials to within 5, 1 and 0 % (None if it never came there), and invalid ones."""
        reached = {f"to_{share:.0%}": self.trials_to(share) for share in (0.05, 0.01, 0.0)}
        facts = {"dataset": self.cell.subject.name, "tuner": self.cell.contender.label}
        held, invalid = (self.indices >= 0).sum(axis=1), self.invalid_share()
        return [
            {**facts, "seed": int(seed), **{name: trials[run] for name, trials in reached.items()}}
            | {"trials": int(held[run]), "invalid_share": round(float(invalid[run]), 5)}
            for run, seed in enumerate(self.seeds)
        ]

    def take(self, count: int) -> Runs:
        """Return the runs of the first `count` seeds."""
        chosen = {name: values[:count] for name, values in self.seconds.items()}
        return Runs(self.cell, self.dataset, self.seeds[:count], self.indices[:count], chosen)


def perform(cells: Sequence[Cell], seeds: int, jobs: int, report: Report) -> list[Runs]:
    """Return the runs of every cell with seeds 0..seeds-1; read those on disk and run the others.

    Raises MissingDatasetError before anything runs, and ExperimentError if a tuner failed.
    """
    for cell in cells:
        dataset_of(cell.subject)
    waiting = [cell for cell in dict.fromkeys(cells) if len(_read_seeds(cell.path)) < seeds]
    if waiting:
        _run_all(waiting, seeds, jobs, report)
    return [read(cell).take(seeds) for cell in cells]


def _run_all(cells: Sequence[Cell], seeds: int, jobs: int, report: Report) -> None:
    failures: list[str] = []
    with processes(min(jobs or os.cpu_count() or 1, len(cells))) as pool:
        pending = {pool.submit(run_cell, cell, seeds): cell for cell in cells}
        for number, future in enumerate(as_completed(pending), 1):
            cell = pending[future]
            name = f"{cell.contender.label} on {cell.subject.name}"
            error = future.exception()
            if error is not None:
                failures.append(f"{name}: {type(error).__name__}: {error}")
                report(f"FAILED {failures[-1]}")
            else:
                report(f"{number}/{len(cells)} {name}: {future.result():.1f} s")
    if failures:
        raise ExperimentError(f"{len(failures)} of {len(cells)} did not run, the first: {failures[0]}")


def run_cell(cell: Cell, seeds: int) -> float:
    """Run the seeds that its file does not have and write it. Return the tuner's processor seconds."""
    dataset = dataset_of(cell.subject)
    problem = _shared_problem(cell.subject)
    there = read(cell) if cell.path.is_file() else None
    first = 0 if there is None else len(there.seeds)
    made = []
    for seed in range(first, seeds):
        made.append(run_once(cell, dataset, problem, seed))
    if len(_read_seeds(cell.path)) < seeds:  # else another process ran them meanwhile
        _write(cell, there, made)
    return sum(sum(run.seconds[part] for part in ("make", "ask", "tell")) for run in made)


def run_once(cell: Cell, dataset: Dataset, problem: SharedTuningProblem, seed: int) -> Replay:
    """Run the contender once; the result's `seconds` have `make`, the time before the tuner's first question."""
    import time

    started = time.process_time()
    tuner = cell.contender.make(problem, seed)
    made = time.process_time() - started
    run = replay(tuner, dataset, cell.protocol)
    return Replay(run.indices, {"make": made, **run.seconds})


@lru_cache(maxsize=2)
def _shared_problem(subject: DatasetKey) -> SharedTuningProblem:
    return SharedTuningProblem.of_subject(subject)


def read(cell: Cell) -> Runs:
    """Return the runs on disk. Raises ExperimentError for a file that cannot be read."""
    try:
        with np.load(cell.path, allow_pickle=False) as file:
            parts = json.loads(str(file["metadata"]))["parts"]
            seconds = dict(zip(parts, file["seconds"].T, strict=True))
            indices = file["indices"].astype(np.int64)
            return Runs(cell, dataset_of(cell.subject), file["seeds"], indices, seconds)
    except (OSError, KeyError, ValueError) as error:
        raise ExperimentError(f"{cell.path} cannot be read ({error}); remove it to run it again") from error


def _read_seeds(path: Path) -> npt.NDArray[np.int64]:
    if not path.is_file():
        return np.empty(0, dtype=np.int64)
    with np.load(path, allow_pickle=False) as file:
        return np.asarray(file["seeds"])


def _write(cell: Cell, there: Runs | None, made: Iterable[Replay]) -> None:
    runs = list(made)
    parts = list(runs[0].seconds if there is None else there.seconds)
    indices = np.full((len(runs), cell.protocol.trials), -1, dtype=np.int32)
    for row, run in enumerate(runs):
        indices[row, : len(run.indices)] = run.indices
    seconds = np.array([[run.seconds.get(part, 0.0) for part in parts] for run in runs])
    if there is not None:
        indices = np.concatenate((there.indices.astype(np.int32), indices))
        seconds = np.concatenate((np.stack(list(there.seconds.values()), axis=1), seconds))
    described: dict[str, Any] = {
        "schema": SCHEMA,
        "parts": parts,
        "contender": cell.contender.label,
        "tuner": cell.contender.tuner,
        "options": cell.contender.all_options(),
        "protocol": asdict(cell.protocol),
        "dataset": cell.subject.name,
        "dataset_key": cell.subject.key,
        **provenance(),
    }
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {
        "seeds": np.arange(len(indices)),
        "indices": indices,
        "seconds": seconds,
        "metadata": np.array(json.dumps(described, default=str)),
    }
    write_arrays(cell.path, arrays)
