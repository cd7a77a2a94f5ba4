"""What the tuners need of a space: `hilt.schedule.space.Space` is one."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt


class SearchSpace(Protocol):
    """A Cartesian product of knobs. A point is an index 0..len-1, or a position on each knob; of each knob, the index
    grows by as much with every position."""

    def __len__(self) -> int: ...

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of values of each knob, shape (knobs,)."""

    def positions(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Position on each knob, shape (n, knobs), of indices (n,)."""

    def indices(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Indices (n,) of positions (n, knobs)."""
