"""Results of other workloads for models with transfer, in a file that is complete by itself.

Engines and experiments fill it, from a store's trials or from datasets; a run records its sha256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.atomic_write import atomic_write
from hilt.schedule import Workload, workload_of
from hilt.schedule.space import Space
from hilt.tune.feedback import Feedback
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters

SCHEMA = "hilt history 1"
LARGEST_FILE = 256 << 20
"""Largest size of a history file in bytes."""


class HistoryError(ValueError):
    """A file that is not a history, or one that is too small to learn from."""


@dataclass(frozen=True, eq=False)
class WorkloadHistory:
    """The results of one workload on one accelerator."""

    workload: Workload
    accelerator: Accelerator
    columns: dict[str, npt.NDArray[np.int64]]
    """Knob values by name, each (n,)."""
    throughput: npt.NDArray[np.float64]
    """(n,) in multiply-accumulates a microsecond; 0 for a failure."""

    @classmethod
    def of(
        cls, workload: Workload, accelerator: Accelerator, space: Space, results: Sequence[Feedback]
    ) -> WorkloadHistory:
        """Return the history of trials in `space`."""
        columns = space.columns(np.array([item.index for item in results], dtype=np.int64))
        rates = [0.0 if item.microseconds is None else workload.macs / item.microseconds for item in results]
        return cls(workload, accelerator, columns, np.array(rates))

    def __len__(self) -> int:
        return len(self.throughput)


@dataclass(frozen=True, eq=False)
class History:
    """The results of several workloads, in the order in which models learn from them."""

    parts: tuple[WorkloadHistory, ...]

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def save(self, path: Path | str) -> None:
        """Write the file, whole or not at all; equal histories give equal files. Raises UnwritableFileError."""
        parts = [
            {
                "workload": part.workload.to_dict(),
                "accelerator": _accelerator_to_dict(part.accelerator),
                "columns": {name: column.tolist() for name, column in part.columns.items()},
                "throughput": part.throughput.tolist(),
            }
            for part in self.parts
        ]
        with atomic_write(Path(path)) as file:
            json.dump({"schema": SCHEMA, "parts": parts}, file, separators=(",", ":"))

    @classmethod
    def load(cls, path: Path | str) -> History:
        """Read a history from a file. Raises HistoryError, which names the fault of the file."""
        content = _content(path)
        try:
            document = json.loads(content)
            if document["schema"] != SCHEMA:
                raise HistoryError(f"{path} has the schema {document['schema']!r}; this hilt reads {SCHEMA!r}")
            return cls(tuple(_part(part) for part in document["parts"]))
        except HistoryError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise HistoryError(f"{path} is not a history: {error or type(error).__name__}") from error


def digest_of(path: Path | str) -> str:
    """Return the sha256 of the file, in hexadecimal. Raises HistoryError if it cannot be read."""
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: Path | str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise HistoryError(f"history {path} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_FILE:
        raise HistoryError(f"history {path} is larger than {LARGEST_FILE >> 20} MB")
    return content


def _part(part: dict[str, Any]) -> WorkloadHistory:
    throughput = np.array(part["throughput"], dtype=np.float64)
    columns = {str(name): _whole_numbers(column) for name, column in part["columns"].items()}
    lengths = {throughput.shape, *(column.shape for column in columns.values())}
    if not columns or len(lengths) != 1 or throughput.ndim != 1:
        raise HistoryError("columns and throughput of a history are lists of one length")
    if not np.all(np.isfinite(throughput) & (throughput >= 0)):
        raise HistoryError("a throughput of a history is not a number from 0 on")
    workload = workload_of(part["workload"])
    return WorkloadHistory(workload, _accelerator_from_dict(part["accelerator"]), columns, throughput)


def _whole_numbers(column: list[int]) -> npt.NDArray[np.int64]:
    found = np.array(column)
    if len(found) and (found.dtype != np.int64 or found.min() < 1):
        raise HistoryError("a knob's value in a history is not a whole number from 1 on")
    return found.astype(np.int64)


def _accelerator_to_dict(accelerator: Accelerator) -> dict[str, object]:
    return {
        "parameters": accelerator.parameters.to_mapping(),
        "isa": str(accelerator.isa),
        "bus_bits": accelerator.bus_bits,
        "hazards": accelerator.hazards,
        "instruction_queue_depth": accelerator.instruction_queue_depth,
        "clock_hz": accelerator.clock_hz,
        **({"read_ports": accelerator.read_ports} if accelerator.read_ports != 1 else {}),
    }


def _accelerator_from_dict(values: dict[str, Any]) -> Accelerator:
    others = dict(values)
    parameters = VTAParameters.from_mapping(others.pop("parameters"))
    return Accelerator(parameters, IsaRevision(others.pop("isa")), **others)
