"""The compiler's verdicts on a whole space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilt.run_choices import CheckLevel
from hilt.schedule.checks import Checks
from hilt.schedule.operator import Workload, verdicts
from hilt.schedule.reasons import TVM_RUNTIME, Reason
from hilt.schedule.space import Space
from hilt.schedule.tiling import IntArray
from hilt.vta.accelerator import Accelerator

CHECK_LEVELS: tuple[CheckLevel, ...] = tuple(CheckLevel)

_AT_ONCE = 1 << 16
"""Configurations analysed together: fast, and a space of millions still fits in memory."""


@dataclass(frozen=True)
class ValiditySummary:
    """The verdicts of one level on every configuration of a space: Reason numbers (len(space),), 0 is accepted."""

    checks: Checks
    verdicts: IntArray

    @property
    def size(self) -> int:
        return len(self.verdicts)

    @property
    def valid(self) -> int:
        return int(np.count_nonzero(self.verdicts == Reason.OK))

    @property
    def valid_ratio(self) -> float:
        return self.valid / self.size

    @property
    def compiled(self) -> int:
        """Return the compiled configurations, including those that only TVM's runtime refuses."""
        return int(np.count_nonzero(np.isin(self.verdicts, [Reason.OK, *TVM_RUNTIME])))

    @property
    def reasons(self) -> dict[str, int]:
        """Configurations by reason, most frequent first; those that are accepted are not among them."""
        counts = np.bincount(self.verdicts, minlength=len(Reason))
        order = sorted(np.flatnonzero(counts).tolist(), key=lambda reason: (-counts[reason], reason))
        return {Reason(reason).text: int(counts[reason]) for reason in order if reason != Reason.OK}


def summarize_validity(workload: Workload, accelerator: Accelerator, space: Space, checks: Checks) -> ValiditySummary:
    """Return every configuration's verdict."""
    found = np.empty(len(space), dtype=np.int64)
    for first in range(0, len(space), _AT_ONCE):
        indices = np.arange(first, min(first + _AT_ONCE, len(space)))
        found[indices] = verdicts(workload, accelerator, space.columns(indices), checks)
    return ValiditySummary(checks, found)
