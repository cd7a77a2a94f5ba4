"""The interface of a space for the tuners: `hilt.schedule.space.Space` implements it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt


class SearchSpace(Protocol):
    """A Cartesian product of knobs.

    A point is an index 0..len-1, or a position on each knob. With every position of a knob, the index grows by the same
    step.
    """

    def __len__(self) -> int: ...

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of values of each knob, shape (knobs,)."""

    def positions(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the position on each knob, shape (n, knobs), of indices (n,)."""

    def indices(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the indices (n,) of positions (n, knobs)."""
