"""Builds datasets: chunk by chunk, in other processes or on a cluster, and from where it was left when it was killed.

Datasets of one space on boards that run the same programs (other memories, another clock, no interlock) are built
together: lowering is most of the cost. The chunks of an unfinished dataset lie in a folder beside it.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt import paths
from hilt.measure.dataset import outcomes
from hilt.measure.dataset.check import Sampling, check
from hilt.measure.dataset.dataset import Dataset, DatasetError, write_arrays
from hilt.measure.dataset.dataset_key import SCHEMA, DatasetKey
from hilt.measure.dataset.dataset_store import DatasetStore
from hilt.measure.dataset.outcomes import Predictions
from hilt.schedule import Rejected, lower_many
from hilt.simulator.twin import Twin, TwinStatus
from hilt.vta.accelerator import Accelerator

Indices = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]
"""A callback with (configurations done, all configurations)."""

CHUNK = 512
"""Configurations predicted, and kept, at a time: about a second."""
_PROGRAMS_AT_ONCE = 32
_CHUNKS_AHEAD = 16
_FIELDS = ("status", "fault", "cycles")


def build(
    subjects: Sequence[DatasetKey],
    dataset_store: DatasetStore,
    executor: Executor,
    sampling: Sampling,
    progress: Progress = lambda done, total: None,
) -> list[Dataset]:
    """Build the datasets of these subjects and put them on `dataset_store`.

    Subjects differ only in traits that programs do not depend on.

    Raises DatasetError if they differ in more, MissingToolError or BuildError if a model cannot be built.
    """
    started = time.time()
    first = subjects[0]
    if any(_of_programs(subject) != _of_programs(first) for subject in subjects):
        raise DatasetError("datasets built together must have the same workload, parameters, checks and space")
    for subject in subjects:
        _twin(subject.accelerator)  # built once, here, before other processes ask for it
    folder = dataset_store.chunks_of(subjects)
    folder.mkdir(parents=True, exist_ok=True)
    indices = outcomes.to_lower(first)
    _predict_chunks(subjects, indices, folder, executor, progress)
    made: list[Dataset] = []
    for number, subject in enumerate(subjects):
        predictions = _read_chunks(folder, indices, number)
        dataset = _assemble(subject, predictions, {"seconds": time.time() - started, "at": started})
        checked = check(subject, dataset, predictions, sampling)
        made.append(replace(dataset, metadata={**dataset.metadata, "check": checked}))
    # Only now, so that a build that is killed while it checks finds all of its chunks again.
    for subject, dataset in zip(subjects, made, strict=True):
        dataset.write(dataset_store.path_of(subject))
    shutil.rmtree(folder)
    return made


def predict(subjects: Sequence[DatasetKey], indices: Indices) -> dict[str, npt.NDArray[Any]]:
    """Return the twin's predictions for these configurations.

    The arrays are `status`, `fault` uint8 and `cycles` uint64, all (subjects, m).
    """
    first = subjects[0]
    shape = (len(subjects), len(indices))
    found: dict[str, npt.NDArray[Any]] = {
        "status": np.full(shape, TwinStatus.FAULT, dtype=np.uint8),
        "fault": np.zeros(shape, dtype=np.uint8),
        "cycles": np.zeros(shape, dtype=np.uint64),
    }
    for start in range(0, len(indices), _PROGRAMS_AT_ONCE):
        part = indices[start : start + _PROGRAMS_AT_ONCE]
        programs = []
        lowered = lower_many(first.workload, first.space.columns(part), first.accelerator, first.checks)
        for index, program in zip(part.tolist(), lowered, strict=True):
            if isinstance(program, Rejected):
                raise DatasetError(
                    f"configuration {index} of {first.name} was accepted, yet lowering it says {program}"
                ) from program
            programs.append(program)
        for number, subject in enumerate(subjects):
            predicted = _twin(subject.accelerator).predict(programs, subject.memory)
            for field in _FIELDS:
                found[field][number, start : start + len(part)] = predicted[field]
    return found


@cache
def _twin(accelerator: Accelerator) -> Twin:
    return Twin(accelerator)


def _of_programs(subject: DatasetKey) -> tuple[object, ...]:
    """Return everything that the programs of a subject depend on."""
    accelerator = subject.accelerator
    kind = (subject.checks, subject.kind, subject.orders)
    return (subject.workload, accelerator.parameters, accelerator.isa, *kind)


def _predict_chunks(
    subjects: Sequence[DatasetKey], indices: Indices, folder: Path, executor: Executor, progress: Progress
) -> None:
    """Write every chunk that is not in the folder yet; compute a few ahead of the last one written."""
    starts = range(0, len(indices), CHUNK)
    missing = iter([start for start in starts if not _is_chunk(_chunk_path(folder, start))])
    done = sum(min(CHUNK, len(indices) - start) for start in starts if _is_chunk(_chunk_path(folder, start)))
    progress(done, len(indices))
    pending: deque[tuple[int, Future[dict[str, npt.NDArray[Any]]]]] = deque()

    def submit() -> Iterator[None]:
        for start in missing:
            pending.append((start, executor.submit(predict, subjects, indices[start : start + CHUNK])))
            yield

    submitting = submit()
    for _ in range(_CHUNKS_AHEAD):
        next(submitting, None)
    while pending:
        start, future = pending.popleft()
        write_arrays(_chunk_path(folder, start), future.result())
        next(submitting, None)
        done += min(CHUNK, len(indices) - start)
        progress(done, len(indices))


def _chunk_path(folder: Path, start: int) -> Path:
    return folder / f"{start:09}.npz"


def _is_chunk(path: Path) -> bool:
    """Return True if the file is a readable chunk.

    Chunks are written whole; a file that cannot be opened all the same (a failing disk) is made again.
    """
    return path.is_file() and zipfile.is_zipfile(path)


def _read_chunks(folder: Path, indices: Indices, number: int) -> Predictions:
    parts: dict[str, list[npt.NDArray[Any]]] = {field: [] for field in _FIELDS}
    for start in range(0, len(indices), CHUNK):
        with np.load(_chunk_path(folder, start), allow_pickle=False) as chunk:
            for field in _FIELDS:
                parts[field].append(chunk[field][number])
    empty = {"status": np.uint8, "fault": np.uint8, "cycles": np.uint64}
    joined = {
        field: np.concatenate(arrays) if arrays else np.empty(0, dtype=empty[field]) for field, arrays in parts.items()
    }
    return Predictions(indices, joined["status"], joined["fault"], joined["cycles"])


def _assemble(subject: DatasetKey, predictions: Predictions, made: dict[str, object]) -> Dataset:
    outcome, reason, cycles = outcomes.decide(subject, predictions)
    described = {
        "schema": SCHEMA,
        "name": subject.name,
        "identity": subject.identity,
        "subject": {
            "workload": subject.workload.to_dict(),
            "board_model": subject.board_model,
            "checks": subject.checks,
            "kind": subject.kind,
            "orders": subject.orders,
        },
        "outcomes": [str(outcome) for outcome in outcomes.OUTCOMES],
        "reasons": outcomes.REASONS,
        "made": {**made, **provenance()},
    }
    return Dataset(described, outcome, reason, cycles)


@cache
def provenance() -> dict[str, object]:
    """Return the machine, the versions and, if there is one, the commit that a result was computed with."""
    return {
        "machine": f"{platform.machine()} {_processor()}",
        "python": platform.python_version(),
        "hilt": metadata.version("hilt"),
        "numpy": np.__version__,
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _commit() -> str:
    """Return the commit of the clone, with `+` if files differ from it; empty outside a clone."""
    clone = paths.hls_directory().parent
    try:
        described = subprocess.run(
            ["git", "-C", str(clone), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return described.stdout.strip()
