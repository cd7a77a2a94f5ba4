"""What the models see: P and V the configuration, A also what compilation derives of it."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from hilt.schedule.features import TABLE_5
from hilt.schedule.features.features import Features
from hilt.tune.cost_model import Indices
from hilt.tune.problem import TuningProblem


class Hidden(StrEnum):
    """Which hidden features A has: the paper's nineteen, or all that our compiler derives."""

    TABLE_5 = "table5"
    ALL = "all"


def visible_features(problem: TuningProblem, indices: Indices) -> Features:
    """The knobs' values, float32 (n, knobs)."""
    columns = problem.space.columns(indices)
    return Features(tuple(columns), np.stack(list(columns.values()), axis=1).astype(np.float32))


def advanced_features(problem: TuningProblem, indices: Indices, hidden: Hidden) -> Features:
    """The visible features, then the hidden ones that are not among them. These configurations are compiled."""
    visible, derived = visible_features(problem, indices), problem.hidden_features(indices)
    wanted = TABLE_5 if hidden is Hidden.TABLE_5 else derived.names
    names = tuple(name for name in derived.names if name in wanted and name not in visible.names)
    columns = [derived.names.index(name) for name in names]
    return Features((*visible.names, *names), np.concatenate((visible.values, derived.values[:, columns]), axis=1))
