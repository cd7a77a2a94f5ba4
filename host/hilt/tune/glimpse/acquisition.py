"""The neural acquisition function (Glimpse section 3.2, after MetaBO): the worth of measuring a configuration now.

The state has three parts. The candidate gives its features, the predictions of surrogate and prior, and its distance
from the measured ones. The search gives step, budget and share of valid trials. Layer and Blueprint come last.
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
    """Return the features (n, SEARCH_FEATURES) of candidates.

    Args:
        progress: the search so far.
        predicted: relative throughput (n,); 1 is the best measured.
        prior: logarithm of the prior (n,).
        distance: number of knobs (n,) that differ from the nearest measured configuration.
    """
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
    """Trials measured, trials in all, and the share of valid ones among those measured."""

    step: int
    budget: int
    valid_share: float


def distance_in_knobs(positions: npt.NDArray[np.int64], measured: npt.NDArray[np.int64]) -> Floats:
    """Return the number of knobs (n,) by which each position differs from the nearest measured one.

    `positions` has shape (n, knobs), `measured` (m, knobs).
    """
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
        """Return the worth (n,) of configurations, larger is better.

        `configurations` are features (n, CONFIGURATION_FEATURES), `search` the search features.
        """
        described = np.tile(self.description, (len(configurations), 1))
        return np.asarray(self.network(np.concatenate([configurations, search, described], axis=1))[:, 0])


def acquisition_inputs(description_size: int) -> int:
    """Return the number of inputs of the network."""
    return CONFIGURATION_FEATURES + SEARCH_FEATURES + description_size
