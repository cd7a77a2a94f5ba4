"""The interface between search moves and cost models."""

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
    """A model that predicts the worth of a configuration from its features; larger is better."""

    def fit(self, features: Features, labels: Scores) -> None:
        """Fit anew to rows of features (n, features) and labels (n,); everything learnt before is dropped."""

    def predict(self, features: Features) -> Scores:
        """Return the scores, shape (n,), of rows of features. Raises RuntimeError before the first `fit`."""


_TABLE_ROWS = 1 << 17
_TABLE_NUMBERS = 1 << 24
"""Largest number of features that are kept in a table: 64 MB."""


def scorer(model: CostModel, features_of: FeaturesOf, size: int) -> Score:
    """Return the model as it is now, as a score over the indices of a space of that size.

    A space that fits a table is predicted once: annealing takes 64,000 scores, most of them of the same points.
    """
    if size > _TABLE_ROWS:
        return lambda indices: model.predict(features_of(indices))
    table = model.predict(features_of(np.arange(size)))
    return lambda indices: np.asarray(table[indices])


def remembered(features_of: FeaturesOf, size: int) -> FeaturesOf:
    """Return the same features, each computed once if those of a space of that size are few enough to keep."""
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
