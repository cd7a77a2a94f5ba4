"""Predicted cycles of configurations: by the twin, or in closed form where there is no compiler to build it with."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hilt.simulator.build import BuildError
from hilt.simulator.device import MemoryModel
from hilt.simulator.toolchain import MissingToolError
from hilt.tune.problem import Indices, Problem
from hilt.tune.twin_guided.closed_form import ClosedForm
from hilt.tune.twin_guided.memories import memory_at
from hilt.vta.program import Program

Floats = npt.NDArray[np.float64]

_log = logging.getLogger(__name__)


class Predictor(Protocol):
    """Cycles of candidates, which are rows 0..n-1."""

    def distinct(self, rows: Sequence[int]) -> list[int]:
        """Those of the rows that can run at all and are not the same program as a row before."""

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        """Natural logarithms (rows, memories) with the memories at `coordinates` (memories, 3)."""


class TwinPredictor:
    """Lowers each row once, and predicts it once for each memory."""

    def __init__(self, problem: Problem, indices: Indices) -> None:
        """`indices` (n,) are the candidates."""
        self._problem = problem
        self._accelerator = problem.accelerator
        self._indices = indices
        self._programs: dict[int, Program] = {}
        self._first_with: dict[bytes, int] = {}
        self._known: dict[MemoryModel, dict[int, float]] = {}

    def distinct(self, rows: Sequence[int]) -> list[int]:
        programs = self._problem.lowered_many(self._indices[np.asarray(rows, dtype=np.int64)])
        return [
            row
            for row, program in zip(rows, programs, strict=True)
            if program is not None and self._is_new(row, program)
        ]

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        return np.stack([self._with_memory(rows, memory_at(each, self._accelerator)) for each in coordinates], axis=1)

    def _with_memory(self, rows: Sequence[int], memory: MemoryModel) -> Floats:
        known = self._known.setdefault(memory, {})
        new = [row for row in dict.fromkeys(rows) if row not in known]
        cycles = self._problem.cycles_of([self._programs[row] for row in new], [memory])[:, 0]
        known.update(zip(new, np.log(np.where(np.isnan(cycles), np.inf, cycles)).tolist(), strict=True))
        return np.array([known[row] for row in rows])

    def _is_new(self, row: int, program: Program) -> bool:
        digest = hashlib.blake2b(program.instructions.tobytes(), digest_size=16)
        digest.update(program.uops.tobytes())
        if self._first_with.setdefault(digest.digest(), row) != row:
            return False
        self._programs[row] = program
        return True


class ClosedFormPredictor:
    """Coarse: right about what decides, off by some percent."""

    def __init__(self, closed_form: ClosedForm) -> None:
        self._closed_form = closed_form

    def distinct(self, rows: Sequence[int]) -> list[int]:
        return list(rows)

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        return np.stack([np.log(self._closed_form.cycles(each)[list(rows)]) for each in coordinates], axis=1)


def predictor_for(problem: Problem, indices: Indices, closed_form: ClosedForm) -> Predictor:
    """The twin's where it can be built; else the closed form's, with a warning."""
    try:
        problem.cycles_of([], [memory_at(np.zeros(3), problem.accelerator)])
    except (MissingToolError, BuildError) as error:
        reason = str(error).strip().splitlines()[0]
        _log.warning("tuner hilt goes by closed-form estimates, for the timing model cannot be built: %s", reason)
        return ClosedFormPredictor(closed_form)
    return TwinPredictor(problem, indices)
