"""The results of a workload's trials, as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from hilt.trial import Outcome
from hilt.tune.cost_model import Indices
from hilt.tune.feedback import Feedback


@dataclass(frozen=True, eq=False)
class Records:
    """The `indices` (n,) of configurations, and their `microseconds` (n,): NaN if not valid."""

    indices: Indices
    microseconds: npt.NDArray[np.float64]

    @classmethod
    def of(cls, feedback: Sequence[Feedback]) -> Self:
        """Return the records of trials, without those of a lost board, which carry no result."""
        kept = [item for item in feedback if item.outcome is not Outcome.BOARD_LOST]
        latencies = [math.nan if item.microseconds is None else item.microseconds for item in kept]
        return cls(np.array([item.index for item in kept], dtype=np.int64), np.array(latencies, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def is_valid(self) -> npt.NDArray[np.bool_]:
        """The validity of each configuration (n,)."""
        return np.isfinite(self.microseconds)

    @property
    def valid(self) -> Records:
        """The records of valid configurations."""
        return self.take(np.flatnonzero(self.is_valid))

    def take(self, rows: npt.NDArray[np.int64]) -> Records:
        """Return the records at these places."""
        return Records(self.indices[rows], self.microseconds[rows])
