"""The neural acquisition function (Glimpse section 3.2, after MetaBO): how much a configuration is worth measuring now.

Its state is of the candidate (its features, what the surrogate and the prior say of it, how far it is from what was
measured), of the search (step and budget, how many were valid), and of layer and Blueprint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.tune.glimpse.encoding import CONFIGURATION_FEATURES
from hilt.tune.glimpse.network import NumpyPerceptron

Floats = npt.NDArray[np.float32]

LONGEST_BUDGET = 128
"""Trials of the longest search in training; a longer budget counts as this one."""

SEARCH_FEATURES = 7


def search_features(progress: SearchProgress, predicted: Floats, prior: Floats, distance: Floats) -> Floats:
    """(n, SEARCH_FEATURES) of candidates whose relative throughput is `predicted` (n,) (1 is the best measured), whose
    prior's logarithm is `prior` (n,), and which differ in `distance` (n,) knobs from the nearest measured one."""
    count = len(predicted)
    ranks = np.empty(count, dtype=np.float32)
    ranks[np.argsort(predicted, kind="stable")] = np.arange(count) / max(count - 1, 1)
    standard = (prior - prior.mean()) / (prior.std() + 1e-3)
    budget = min(progress.budget, LONGEST_BUDGET)
    step = min(progress.step / budget, 1.0)
    shared = np.array([step, np.log2(budget), progress.valid_share])
    return np.column_stack([predicted, ranks, standard, distance, np.tile(shared, (count, 1))]).astype(np.float32)


@dataclass(frozen=True)
class SearchProgress:
    """Trials measured, trials in all, and which share of those measured was valid."""

    step: int
    budget: int
    valid_share: float


def distance_in_knobs(positions: npt.NDArray[np.int64], measured: npt.NDArray[np.int64]) -> Floats:
    """In how many knobs each of `positions` (n, knobs) differs from the nearest of `measured` (m, knobs), (n,)."""
    if not len(measured):
        return np.full(len(positions), positions.shape[1], dtype=np.float32)
    least = np.full(len(positions), positions.shape[1], dtype=np.int64)
    for first in range(0, len(measured), 64):  # bounded memory
        differs = positions[:, None, :] != measured[None, first : first + 64, :]
        least = np.minimum(least, differs.sum(axis=2).min(axis=1))
    return least.astype(np.float32)


@dataclass(frozen=True)
class NeuralAcquisition:
    """The function for one layer on one target."""

    network: NumpyPerceptron
    description: Floats

    def __call__(self, configurations: Floats, search: Floats) -> Floats:
        """Worth (n,), larger is better, of configuration features (n, CONFIGURATION_FEATURES) and search features."""
        described = np.tile(self.description, (len(configurations), 1))
        return np.asarray(self.network(np.concatenate([configurations, search, described], axis=1))[:, 0])


def acquisition_inputs(description_size: int) -> int:
    """Inputs of the network."""
    return CONFIGURATION_FEATURES + SEARCH_FEATURES + description_size
