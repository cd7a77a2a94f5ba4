"""A table of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Features:
    """`values` float32 (n, features), a row for each configuration and a column for each of `names`."""

    names: tuple[str, ...]
    values: NDArray[np.float32]

    def column(self, name: str) -> NDArray[np.float32]:
        """(n,). Raises ValueError for a name that is not there."""
        return np.asarray(self.values[:, self.names.index(name)])
