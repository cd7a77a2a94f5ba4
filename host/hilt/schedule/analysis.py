"""The findings of the compiler's checks on configurations, many at once, and the verdict of each level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.run_choices import CheckLevel
from hilt.schedule.loops import LoopChoice
from hilt.schedule.reasons import Needs, Reason, Rejected, detail
from hilt.schedule.rows.plans import RowPlans
from hilt.schedule.tiling import IntArray, Tiling
from hilt.schedule.tvm_rules import tvm_needs
from hilt.vta.program import MAX_IMAGE_BYTES

Checks = CheckLevel
"""Check levels. compiler: buffers, fields and limits of hilt's lowering. strict: also schedules that lose sums without
interlock. tvm: only configurations that TVM v0.9 compiles and runs. off: whatever can be encoded."""

_LEVELS = tuple(CheckLevel)


@dataclass(frozen=True)
class Analysis:
    """The findings of the checks, arrays (n,) over configurations. Lowering uses the same findings."""

    tiling: Tiling
    loops: LoopChoice
    """Sizes of whole tiles."""
    edges: list[tuple[Tiling, NDArray[np.bool_], LoopChoice]]
    """Smaller tiles (Tiling.edges), each kind with its own loops."""
    resident: NDArray[np.bool_]
    """All weights stay on chip and are loaded once."""
    hazard_distance: IntArray
    """The least of any tile's loops."""
    needs: Needs
    rows: RowPlans | None = None
    """The row programs, where the configurations are of that kind; else None."""

    def verdict(self, checks: Checks) -> IntArray:
        """Return the first Reason that holds, as its number (n,); 0 is accepted."""
        found = np.zeros(len(self.tiling.batch), dtype=np.int64)
        needs = self._needs_of(checks)
        for reason in sorted(needs, reverse=True):
            need, limit = needs[reason]
            found[need > limit] = reason
        if checks == "tvm":  # configurations that TVM accepts must be lowered here too
            found = np.where(found == 0, self.verdict(CheckLevel.COMPILER), found)
        return found

    def rejection(self, checks: Checks, row: int = 0) -> Rejected | None:
        """Return the rejection of one configuration."""
        needs = self._needs_of(checks)
        for reason in sorted(needs):
            need, limit = needs[reason]
            if need[row] > limit:
                return Rejected(reason.text, detail(reason, int(need[row]), limit))
        return self.rejection(CheckLevel.COMPILER, row) if checks == "tvm" else None

    def _needs_of(self, checks: Checks) -> Needs:
        if checks not in _LEVELS:
            raise ValueError(f"check level {checks!r} is none of {', '.join(_LEVELS)}")
        if checks == "tvm":
            return tvm_needs(self.tiling) if self.rows is None else {Reason.TVM_ROWS: (self.tiling.height, 0)}
        if checks == "strict" or (checks == "compiler" and self.rows is not None):
            return self.needs
        if checks == "off":
            image = MAX_IMAGE_BYTES // self.tiling.problem.accelerator.uop_element_bytes
            uops, _ = self.needs[Reason.UOP_OVERFLOW]
            return {Reason.UOP_OVERFLOW: (uops, image), Reason.INSN_LIMIT: self.needs[Reason.INSN_LIMIT]}
        return {reason: need for reason, need in self.needs.items() if reason is not Reason.ACC_HAZARD}
