"""Features as a table with names, and those of the configuration itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilt.schedule.space import Space


@dataclass(frozen=True, eq=False)
class Features:
    """`values` float32 (n, features), a row for each configuration and a column for each of `names`."""

    names: tuple[str, ...]
    values: NDArray[np.float32]

    def column(self, name: str) -> NDArray[np.float32]:
        """(n,). Raises ValueError for a name that is not there."""
        return np.asarray(self.values[:, self.names.index(name)])


def knob_features(space: Space, indices: ArrayLike) -> NDArray[np.float32]:
    """AutoTVM's knob features (n, features).

    Each split as (-1, inner factor), any other knob as its value; twelve for TVM's seven knobs.
    """
    columns: list[NDArray[np.int64]] = []
    for knob, values in zip(space.knobs, np.moveaxis(space.values(indices), -1, 0), strict=True):
        if knob.split:
            columns.append(np.full_like(values, -1))
        columns.append(values)
    return np.stack(columns, axis=-1).astype(np.float32)


def knob_feature_names(space: Space) -> tuple[str, ...]:
    """Return the names of knob_features' columns.

    A split has two columns; the outer one is implied by the inner one.
    """
    names: list[str] = []
    for knob in space.knobs:
        names += [f"{knob.name}.outer", f"{knob.name}.inner"] if knob.split else [knob.name]
    return tuple(names)
