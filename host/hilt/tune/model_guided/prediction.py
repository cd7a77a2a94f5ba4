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
from hilt.tune.model_guided.analytic_model import AnalyticModel
from hilt.tune.model_guided.memories import memory_at
from hilt.tune.problem import Indices, TuningProblem
from hilt.vta.program import Program

Floats = npt.NDArray[np.float64]

_log = logging.getLogger(__name__)


class Predictor(Protocol):
    """Cycles of candidates, which are rows 0..n-1."""

    def programs(self, rows: Sequence[int]) -> list[bytes | None]:
        """What tells the rows' programs apart: the same bytes for the same program; None for what cannot run at all."""

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        """Natural logarithms (rows, memories) of rows that can run, memories being at `coordinates` (memories, 3)."""


class TwinPredictor:
    """Lowers each row once, and predicts each program once for each memory: runs may share it."""

    def __init__(self, problem: TuningProblem, indices: Indices) -> None:
        """`indices` (n,) are the candidates."""
        self._problem = problem
        self._accelerator = problem.accelerator
        self._indices = indices
        self._digests: dict[int, bytes | None] = {}
        self._programs: dict[bytes, Program] = {}
        self._known: dict[MemoryModel, dict[bytes, float]] = {}

    def programs(self, rows: Sequence[int]) -> list[bytes | None]:
        new = [row for row in dict.fromkeys(rows) if row not in self._digests]
        lowered = self._problem.lowered_many(self._indices[np.array(new, dtype=np.int64)])
        for row, program in zip(new, lowered, strict=True):
            self._digests[row] = None if program is None else self._keep(program)
        return [self._digests[row] for row in rows]

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        return np.stack([self._with_memory(rows, memory_at(each, self._accelerator)) for each in coordinates], axis=1)

    def _with_memory(self, rows: Sequence[int], memory: MemoryModel) -> Floats:
        known = self._known.setdefault(memory, {})
        wanted = [digest for digest in self.programs(rows) if digest is not None]
        new = [digest for digest in dict.fromkeys(wanted) if digest not in known]
        cycles = self._problem.cycles_of([self._programs[digest] for digest in new], [memory])[:, 0]
        known.update(zip(new, np.log(np.where(np.isnan(cycles), np.inf, cycles)).tolist(), strict=True))
        return np.array([known[digest] for digest in wanted])

    def _keep(self, program: Program) -> bytes:
        digest = hashlib.blake2b(program.instructions.tobytes(), digest_size=16)
        digest.update(program.uops.tobytes())
        self._programs.setdefault(digest.digest(), program)
        return digest.digest()


class AnalyticPredictor:
    """Coarse: right about what decides, off by some percent."""

    def __init__(self, analytic_model: AnalyticModel) -> None:
        self._analytic_model = analytic_model

    def programs(self, rows: Sequence[int]) -> list[bytes | None]:
        return [row.to_bytes(8, "little") for row in rows]

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        return np.stack([np.log(self._analytic_model.cycles(each)[list(rows)]) for each in coordinates], axis=1)


def predictor_for(problem: TuningProblem, indices: Indices, analytic_model: AnalyticModel) -> Predictor:
    """The twin's where it can be built; else the closed form's, with a warning."""
    try:
        problem.cycles_of([], [memory_at(np.zeros(3), problem.accelerator)])
    except (MissingToolError, BuildError) as error:
        reason = str(error).strip().splitlines()[0]
        _log.warning("tuner hilt goes by closed-form estimates, for the timing model cannot be built: %s", reason)
        return AnalyticPredictor(analytic_model)
    return TwinPredictor(problem, indices)
