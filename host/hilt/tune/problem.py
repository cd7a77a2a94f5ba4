"""The input of a tuner: the space to search, and the facts about it before any measurement."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import Conv2d, Rejected, Space, Workload, convolution, features, lower_many, space_for
from hilt.schedule.checks import Checks
from hilt.schedule.features import Features, LoopContext
from hilt.schedule.reasons import TVM_RUNTIME, Reason
from hilt.schedule.space import SpaceKind
from hilt.schedule.tvm_rules import as_tvm
from hilt.schedule.validity_summary import summarize_validity
from hilt.simulator.device import MemoryModel
from hilt.simulator.machine import MachineParameters, MachineTwin, timing_of
from hilt.simulator.twin import Twin, TwinStatus
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

Indices = npt.NDArray[np.int64]
Found = TypeVar("Found")

_PROGRAMS_AT_ONCE = 64
"""Programs given to the twin in one call: many enough to be cheap, few enough to hold in memory."""


@dataclass(frozen=True, eq=False)
class TuningProblem:
    """A workload's space on an accelerator, and the facts about its configurations without a board.

    Each tuner uses the parts that its paper allows. The order of measurements is all that a tuner decides.
    """

    workload: Workload
    accelerator: Accelerator
    space: Space
    checks: Checks = CheckLevel.COMPILER
    machine: MachineParameters | None = None
    """The machine that gives predicted cycles; None is hilt's RTL."""

    @classmethod
    def of(
        cls,
        workload: Workload,
        accelerator: Accelerator,
        *,
        checks: Checks = CheckLevel.COMPILER,
        orders: Literal[1, 4] = 1,
        kind: SpaceKind = SpaceName.AUTOTVM,
        machine: MachineParameters | None = None,
    ) -> TuningProblem:
        """Return the problem over the space that `space_for` makes of the arguments."""
        return cls(workload, accelerator, space_for(workload, accelerator, orders=orders, kind=kind), checks, machine)

    @cached_property
    def compiles(self) -> npt.NDArray[np.bool_]:
        """The compiler's verdict on each configuration, shape (len(space),).

        Configurations that only the runtime or the board refuses count as compiled. At checks `off` the compiler
        refuses nothing.
        """
        if self.checks == "off":
            return np.ones(len(self.space), dtype=np.bool_)
        verdicts = summarize_validity(self.workload, self.accelerator, self.space, self.checks).verdicts
        return np.isin(verdicts, [Reason.OK, *TVM_RUNTIME])

    def knob_features(self, indices: Indices) -> npt.NDArray[np.float32]:
        """Return TVM's flattened configuration, float32 (n, features)."""
        return features.knob_features(self.space, indices)

    def hidden_features(self, indices: Indices) -> Features:
        """Return the features that the compiler derives of each configuration."""
        return features.hidden_features(convolution(self.workload), self.accelerator, self.columns(indices))

    def ast_features(self, indices: Indices) -> Features:
        """Return the loops' contexts, flattened."""
        return features.ast_features(convolution(self.workload), self.accelerator, self.columns(indices))

    def context_relation_features(self, indices: Indices) -> Features:
        """Return the context relation features, which transfer: they are the same for all loops and workloads."""
        return features.context_relation_features(convolution(self.workload), self.accelerator, self.columns(indices))

    def loop_context(self, indices: Indices) -> LoopContext:
        """Return the loops' contexts, loop by loop."""
        return features.loop_context(convolution(self.workload), self.accelerator, self.columns(indices))

    def lowered(self, index: int) -> Program | None:
        """Return the program of a configuration in the plain form; None if it does not compile.

        Configurations that TVM's runtime would refuse have a program too. The form of a compiled network takes many
        times as long to lower, and about as many cycles.
        """
        return next(self.lowered_many(np.array([index])))

    def lowered_many(self, indices: Indices) -> Iterator[Program | None]:
        """Return the programs of the configurations, in their order, which is faster than one by one."""
        compiles, checks = np.ones(len(indices), dtype=np.bool_), self.checks
        if checks == "tvm":  # the runtime's verdict is unknown before the run: a refusal here would reveal it
            compiles, checks = self.compiles[indices], CheckLevel.COMPILER
        found = lower_many(_plain(self.workload), self.columns(indices[compiles]), self.accelerator, checks)
        for valid in compiles.tolist():
            program = next(found) if valid else None
            yield None if isinstance(program, Rejected) else program

    def predicted_cycles(self, indices: Indices, memories: Sequence[MemoryModel]) -> npt.NDArray[np.float64]:
        """Return the twin's cycles, shape (n, memories), of each configuration with each memory.

        NaN if it does not compile or would never end. Lowering takes about a millisecond a configuration, and each
        memory less.

        Raises MissingToolError or BuildError if the twin cannot be built.
        """
        cycles = np.full((len(indices), len(memories)), np.nan)
        for first in range(0, len(indices), _PROGRAMS_AT_ONCE):
            chosen = indices[first : first + _PROGRAMS_AT_ONCE]
            cycles[first : first + len(chosen)] = self.cycles_of(list(self.lowered_many(chosen)), memories)
        return cycles

    def cycles_of(self, programs: Sequence[Program | None], memories: Sequence[MemoryModel]) -> npt.NDArray[np.float64]:
        """Return the twin's cycles, shape (n, memories), of existing programs; NaN for None."""
        cycles = np.full((len(programs), len(memories)), np.nan)
        rows = [row for row, program in enumerate(programs) if program is not None]
        there = [program for program in programs if program is not None]
        for column, memory in enumerate(memories):
            predicted = self._twin.predict(there, memory)
            done = predicted["status"] == TwinStatus.DONE
            cycles[rows, column] = np.where(done, predicted["cycles"].astype(np.float64), np.nan)
        return cycles

    @cached_property
    def _twin(self) -> Twin | MachineTwin:
        return timing_of(self.accelerator, self.machine)

    def once(self, key: Hashable, find: Callable[[], Found]) -> Found:
        """Return the result of `find`, which depends on this problem and the key alone and is never changed.

        A problem that many runs share keeps it for the next one (hilt_experiments.problem). The problem of a single run
        calls `find` each time.
        """
        return find()

    def columns(self, indices: Indices) -> dict[str, npt.NDArray[np.int64]]:
        """Return the knob values by name, each (n,), as the compiler applies them: TVM v0.9 never applies tile_b."""
        columns = self.space.columns(indices)
        if self.checks != "tvm":
            return columns
        return {name: np.asarray(values, dtype=np.int64) for name, values in as_tvm(columns).items()}


def _plain(workload: Workload) -> Workload:
    return workload.plain if isinstance(workload, Conv2d) else workload
