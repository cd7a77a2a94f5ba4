"""Predicted cycles of configurations: by the twin, or by the analytic model if no compiler can build the twin."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hilt.simulator.compilation import BuildError
from hilt.simulator.device import MemoryModel
from hilt.simulator.toolchain import MissingToolError
from hilt.tune.model_guided.analytic_model import AnalyticModel
from hilt.tune.model_guided.lowered import LoweredPrograms
from hilt.tune.model_guided.memories import memory_at
from hilt.tune.problem import TuningProblem

Floats = npt.NDArray[np.float64]

_log = logging.getLogger(__name__)


class Predictor(Protocol):
    """Cycles of candidates, which are rows 0..n-1."""

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        """Return natural logarithms (rows, memories) of rows that can run, memories at `coordinates` (memories, 3)."""


class TwinPredictor:
    """The twin's predictions, computed once for each program and memory. Runs of one problem may share it."""

    def __init__(self, problem: TuningProblem, lowered: LoweredPrograms) -> None:
        self._problem = problem
        self._lowered = lowered
        self._known: dict[MemoryModel, dict[bytes, float]] = {}

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        """Return natural logarithms (rows, memories); infinite if a program would never end."""
        memories = [memory_at(point, self._problem.accelerator) for point in coordinates]
        return np.stack([self._with_memory(rows, memory) for memory in memories], axis=1)

    def _with_memory(self, rows: Sequence[int], memory: MemoryModel) -> Floats:
        known = self._known.setdefault(memory, {})
        wanted = [digest for digest in self._lowered.digests(rows) if digest is not None]
        new = [digest for digest in dict.fromkeys(wanted) if digest not in known]
        cycles = self._problem.cycles_of([self._lowered.program(digest) for digest in new], [memory])[:, 0]
        known.update(zip(new, np.log(np.where(np.isnan(cycles), np.inf, cycles)).tolist(), strict=True))
        return np.array([known[digest] for digest in wanted])


class AnalyticPredictor:
    """The analytic model's predictions: coarse, right about the decisive costs, off by some percent."""

    def __init__(self, analytic_model: AnalyticModel) -> None:
        self._analytic_model = analytic_model

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        """Return natural logarithms (rows, memories)."""
        return np.stack([np.log(self._analytic_model.cycles(point)[list(rows)]) for point in coordinates], axis=1)


def predictor_for(problem: TuningProblem, lowered: LoweredPrograms, analytic_model: AnalyticModel) -> Predictor:
    """Return the twin's predictor if it can be built; else the analytic model's, with a warning."""
    try:
        problem.cycles_of([], [memory_at(np.zeros(3), problem.accelerator)])
    except (MissingToolError, BuildError) as error:
        reason = str(error).strip().splitlines()[0]
        _log.warning("tuner hilt goes by closed-form estimates, for the timing model cannot be built: %s", reason)
        return AnalyticPredictor(analytic_model)
    return TwinPredictor(problem, lowered)
