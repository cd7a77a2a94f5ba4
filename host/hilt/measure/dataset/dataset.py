"""A dataset in memory and in its file.

The file is an npz (no pickled objects) with `outcome` uint8 (n,), an index into the metadata's `outcomes`; `reason`
uint8 (n,), an index into its `reasons`; `cycles` uint32 or uint64 (n,), 0 unless the outcome is ok; and `metadata`,
one JSON text: `schema`, `name`, `identity` (DatasetKey.identity), `subject` (the fields of the key), `outcomes`,
`reasons`, `check` (hilt.measure.dataset.check) and `made` (commit, versions, machine, time, seconds).
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset.dataset_key import SCHEMA, DatasetKey
from hilt.schedule import workload_of
from hilt.simulator.device import MemoryModel
from hilt.trial import Outcome, Result
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters

LARGEST_METADATA = 1 << 20
_LARGEST_SPACE = 1 << 28
_ARRAYS = ("outcome", "reason", "cycles")


class DatasetError(ValueError):
    """A file that is no dataset, or not the requested one."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Outcome, reason and cycles of every configuration of a space, all (n,) by index."""

    metadata: dict[str, Any]
    outcome: npt.NDArray[np.uint8]
    reason: npt.NDArray[np.uint8]
    cycles: npt.NDArray[np.unsignedinteger[Any]]

    def __post_init__(self) -> None:
        size = len(self.outcome)
        if any(getattr(self, name).shape != (size,) for name in _ARRAYS):
            raise DatasetError("its arrays differ in length")
        codes, texts = len(self.metadata["outcomes"]), len(self.metadata["reasons"])
        if size and (int(self.outcome.max()) >= codes or int(self.reason.max()) >= texts):
            raise DatasetError("an outcome or a reason has no name")

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def identity(self) -> dict[str, Any]:
        return dict(self.metadata["identity"])

    @property
    def clock_hz(self) -> int:
        return int(self.identity["clock_hz"])

    @cached_property
    def valid(self) -> npt.NDArray[np.bool_]:
        """True for each configuration whose outcome is ok, (n,)."""
        return np.asarray(self.outcome == self._outcomes.index(Outcome.OK))

    @cached_property
    def microseconds(self) -> npt.NDArray[np.float64]:
        """Latency (n,); infinite where the outcome is not ok."""
        return np.where(self.valid, self.cycles * 1e6 / self.clock_hz, np.inf)

    @cached_property
    def best(self) -> int:
        """The index of the fewest cycles; of equals the first. Raises DatasetError where nothing is valid."""
        if not self.valid.any():
            raise DatasetError(f"{self.name} has no valid configuration")
        return int(np.argmin(self.microseconds))

    @property
    def optimum(self) -> float:
        """The least latency, in microseconds."""
        return float(self.microseconds[self.best])

    def subject(self) -> DatasetKey:
        """Return the dataset's key.

        Raises:
            DatasetError: The compiler or the twin of today makes another key of it, or it was imported.
        """
        identity = self.identity
        if "imported" in identity:
            raise DatasetError(
                f"dataset {self.name} is of another accelerator: no program of hilt's runs on it; "
                f"`hilt dataset replay {self.name}` runs tuners on its records"
            )
        described = self.metadata["subject"]
        memory = identity["memory"]
        accelerator = Accelerator(
            VTAParameters.from_name(identity["parameters"]),
            IsaRevision(identity["isa"]),
            bus_bits=identity["bus_bits"],
            hazards=identity["hazards"],
            instruction_queue_depth=identity["instruction_queue_depth"],
            clock_hz=identity["clock_hz"],
            read_ports=identity.get("read_ports", 1),
        )
        subject = DatasetKey(
            workload_of(described["workload"]),
            described.get("board_model") or described["personality"],  # the name of hilt 0.1
            accelerator,
            MemoryModel(**{**memory, "bandwidth": tuple(memory["bandwidth"])}),
            *(described[name] for name in ("checks", "kind", "orders")),
        )
        if subject.identity != identity:
            differences = "; ".join(differing(identity, subject.identity))
            raise DatasetError(f"dataset {self.name} is outdated: {differences}; build it again")
        return subject

    def outcome_of(self, index: int) -> Outcome:
        return self._outcomes[int(self.outcome[index])]

    def reason_of(self, index: int) -> str:
        """Return the reason; empty for ok."""
        return str(self.metadata["reasons"][self.reason[index]])

    def result(self, index: int) -> Result:
        """Return the result that a board would report; no output was compared, so it never counts as verified."""
        outcome = self.outcome_of(index)
        return Result(
            outcome,
            reason=self.reason_of(index),
            cycles=int(self.cycles[index]) if outcome is Outcome.OK else None,
            microseconds=float(self.microseconds[index]) if outcome is Outcome.OK else None,
            board=f"dataset:{self.name}",
        )

    def counts(self) -> dict[str, int]:
        """Return the number of configurations by `outcome` or `outcome:reason`, most frequent first."""
        pairs = self.outcome.astype(np.int64) * 256 + self.reason
        found, counts = np.unique(pairs, return_counts=True)
        reasons = self.metadata["reasons"]
        named = {
            ":".join(filter(None, (self._outcomes[pair >> 8], reasons[pair & 255]))): count
            for pair, count in zip(found.tolist(), counts.tolist(), strict=True)
        }
        return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def _outcomes(self) -> list[Outcome]:
        return [Outcome(text) for text in self.metadata["outcomes"]]

    def write(self, path: Path) -> None:
        """Write the dataset, whole or not at all."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        write_arrays(path, {**arrays, "metadata": np.array(json.dumps(self.metadata))})

    @classmethod
    def read(cls, path: Path) -> Dataset:
        """Read a dataset. Raises DatasetError for a file that is not there, is damaged, or is of another schema."""
        try:
            with np.load(path, allow_pickle=False) as file:
                metadata = file["metadata"]
                if metadata.nbytes > LARGEST_METADATA or metadata.shape != ():
                    raise DatasetError("its metadata are too large")
                described = json.loads(str(metadata))
                if described.get("schema") != SCHEMA:
                    raise DatasetError(f"its schema is {described.get('schema')}, this hilt reads {SCHEMA}")
                arrays = [file[name] for name in _ARRAYS]
            if len(arrays[0]) > _LARGEST_SPACE or any(array.dtype.kind != "u" for array in arrays):
                raise DatasetError("its arrays are not those of a dataset")
            return cls(described, *arrays)
        except Exception as error:  # a damaged archive fails in a dozen ways: zlib, zipfile, struct, numpy, json
            raise DatasetError(f"{path} cannot be read as a dataset ({error}); build it again") from error


def differing(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the fields in which two identities differ, each with both values."""
    return [
        f"{name} was {_short(then.get(name))}, is {_short(now.get(name))}"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:12]}…"


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write an npz that takes the place of `path` when all of it is on disk."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez_compressed(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
