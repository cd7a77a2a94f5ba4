"""What a search move asks of a cost model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Features = npt.NDArray[np.float32]

FeaturesOf = Callable[[Indices], Features]
"""Rows of features, shape (n, features), of the configurations with these indices."""

Score = Callable[[Indices], Scores]
"""Predicted worth of configurations, shape (n,); larger is better."""


class CostModel(Protocol):
    """Predicts the worth of a configuration from its features; larger is better."""

    def fit(self, features: Features, labels: Scores) -> None:
        """Learns anew from rows of features (n, features) and labels (n,); what was learnt before is dropped."""

    def predict(self, features: Features) -> Scores:
        """Scores, shape (n,), of rows of features. Raises RuntimeError before the first `fit`."""


_TABLE_ROWS = 1 << 17
_TABLE_NUMBERS = 1 << 24
"""Of features that are kept: 64 MB."""


def scorer(model: CostModel, features_of: FeaturesOf, size: int) -> Score:
    """The model as it is now, over the indices of a space of that size.

    A space that fits a table is predicted once: annealing asks for 64,000 scores, most of them of the same points.
    """
    if size > _TABLE_ROWS:
        return lambda indices: model.predict(features_of(indices))
    table = model.predict(features_of(np.arange(size)))
    return lambda indices: np.asarray(table[indices])


def remembered(features_of: FeaturesOf, size: int) -> FeaturesOf:
    """The same features, each worked out once where those of a space of that size are few enough to keep."""
    table: Features | None = None

    def look_up(indices: Indices) -> Features:
        nonlocal table
        if table is None:
            found = features_of(indices)
            if size > _TABLE_ROWS or size * math.prod(found.shape[1:]) > _TABLE_NUMBERS:
                return found
            table = features_of(np.arange(size))
        return np.asarray(table[indices])

    return look_up
