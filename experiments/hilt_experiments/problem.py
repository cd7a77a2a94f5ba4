"""A tuner's problem that many runs share: each of its results is computed once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset import DatasetKey
from hilt.simulator.device import MemoryModel
from hilt.tune import TuningProblem
from hilt.tune.problem import Found, Indices
from hilt.vta.program import Program

_LARGEST_BYTES = 512 << 20
"""The largest size in bytes of the programs that are kept for the next run."""


class SharedTuningProblem(TuningProblem):
    """A TuningProblem that remembers programs and the twin's cycles.

    A run asks for thousands, the next one for most of them again. So the seconds of a run on it are not those of a
    run alone.
    """

    @classmethod
    def of_subject(cls, subject: DatasetKey) -> SharedTuningProblem:
        """Return the problem of a dataset's space. Its memory stays unknown: tuners get no more than in a run."""
        return cls(subject.workload, subject.accelerator, subject.space, subject.checks)

    def once(self, key: Hashable, find: Callable[[], Found]) -> Found:
        kept: dict[Hashable, Any] = self.__dict__.setdefault("_found_once", {})
        if key not in kept:
            kept[key] = find()
        found: Found = kept[key]
        return found

    def lowered_many(self, indices: Indices) -> Iterator[Program | None]:
        kept: OrderedDict[int, Program | None] = self.__dict__.setdefault("_kept", OrderedDict())
        asked = np.asarray(indices).tolist()
        missing = [index for index in dict.fromkeys(asked) if index not in kept]
        found = zip(missing, super().lowered_many(np.array(missing, dtype=np.int64)), strict=True)
        for index in asked:
            while index not in kept:
                # One that was kept may have been dropped since, and is not among the missing.
                lowered = next(found, None) or (index, next(super().lowered_many(np.array([index]))))
                self._keep(kept, *lowered)
            kept.move_to_end(index)
            yield kept[index]

    def _keep(self, kept: OrderedDict[int, Program | None], index: int, program: Program | None) -> None:
        kept[index] = program
        self.__dict__["_kept_bytes"] = self.__dict__.get("_kept_bytes", 0) + _bytes(program)
        while self.__dict__["_kept_bytes"] > _LARGEST_BYTES:
            self.__dict__["_kept_bytes"] -= _bytes(kept.popitem(last=False)[1])

    def predicted_cycles(self, indices: Indices, memories: Sequence[MemoryModel]) -> npt.NDArray[np.float64]:
        known = self._known
        indices = np.asarray(indices, dtype=np.int64)
        for memory in memories:
            if memory not in known:
                known[memory] = (np.zeros(len(self.space), dtype=np.bool_), np.full(len(self.space), np.nan))
        unknown = [memory for memory in memories if not known[memory][0][indices].all()]
        if unknown:
            missing = np.unique(indices[~np.all([known[memory][0][indices] for memory in unknown], axis=0)])
            found = super().predicted_cycles(missing, unknown)
            for column, memory in enumerate(unknown):
                known[memory][0][missing] = True
                known[memory][1][missing] = found[:, column]
        return np.stack([known[memory][1][indices] for memory in memories], axis=1)

    @property
    def _known(self) -> dict[MemoryModel, tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]]:
        """Return by memory: True for each configuration that was asked for, and its cycles."""
        found: dict[MemoryModel, tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]]
        found = self.__dict__.setdefault("_known_cycles", {})
        return found


def _bytes(program: Program | None) -> int:
    return 0 if program is None else program.instructions.nbytes + program.uops.nbytes
