"""The features of the models: P and V use the configuration, A also the features that compilation derives."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from hilt.schedule.features import TABLE_5
from hilt.schedule.features.features import Features
from hilt.tune.cost_model import Indices
from hilt.tune.problem import TuningProblem


class Hidden(StrEnum):
    """The hidden features of A: the paper's nineteen, or all that our compiler derives."""

    TABLE_5 = "table5"
    ALL = "all"


def visible_features(problem: TuningProblem, indices: Indices) -> Features:
    """Return the knobs' values, float32 (n, knobs)."""
    columns = problem.space.columns(indices)
    return Features(tuple(columns), np.stack(list(columns.values()), axis=1).astype(np.float32))


def advanced_features(problem: TuningProblem, indices: Indices, hidden: Hidden) -> Features:
    """Return the visible features, then the hidden ones that are not among them. It compiles the configurations."""
    visible, derived = visible_features(problem, indices), problem.hidden_features(indices)
    wanted = TABLE_5 if hidden is Hidden.TABLE_5 else derived.names
    names = tuple(name for name in derived.names if name in wanted and name not in visible.names)
    columns = [derived.names.index(name) for name in names]
    return Features((*visible.names, *names), np.concatenate((visible.values, derived.values[:, columns]), axis=1))
