"""Clusters of the valid configurations of a space in the grid graph over its knobs.

Source: Rieber et al. 2022, section III-A, Figure 1 and Table II.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from hilt.schedule.space import Space

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Clusters:
    """The connected components of the valid configurations; cluster 0 is the largest."""

    size: int
    """Configurations of the space."""
    members: IntArray
    """The valid ones' indices (valid,), ascending."""
    labels: IntArray
    """The cluster (valid,) of each member."""
    edges: IntArray
    """Pairs of indices (edges, 2) of valid configurations one step of one knob apart, the lower first."""

    @property
    def sizes(self) -> IntArray:
        """Members of each cluster (clusters,), largest first."""
        return np.bincount(self.labels).astype(np.int64)

    @property
    def valid_ratio(self) -> float:
        """Table II's v / t."""
        return len(self.members) / self.size

    @property
    def neighbours(self) -> float:
        """Valid neighbours of a valid configuration, on average; 0 if none is valid."""
        return 2 * len(self.edges) / max(len(self.members), 1)


def clusters(space: Space, valid: NDArray[np.bool_]) -> Clusters:
    """Return the clusters of the configurations marked `valid`, shape (len(space),).

    Two configurations are joined if the Manhattan distance between their positions is 1. Clusters of one size are
    in the
    order of their least index.

    Raises:
        ValueError: The marks are those of another space.
    """
    if valid.shape != (len(space),):
        raise ValueError(f"{valid.shape} marks for a space of {len(space)} configurations")
    members = np.flatnonzero(valid)
    edges = _edges(space, members, valid)
    rows = np.searchsorted(members, edges)
    graph = coo_array((np.ones(len(rows), dtype=np.int8), (rows[:, 0], rows[:, 1])), shape=(len(members),) * 2)
    found = connected_components(graph, directed=False)[1].astype(np.int64)
    return Clusters(len(space), members, _largest_first(found), edges)


def _edges(space: Space, members: IntArray, valid: NDArray[np.bool_]) -> IntArray:
    positions = space.positions(members)
    strides = np.concatenate(([1], np.cumprod(space.sizes)[:-1]))
    pairs = []
    for knob, stride in enumerate(strides.tolist()):
        lower = members[positions[:, knob] < space.sizes[knob] - 1]
        lower = lower[valid[lower + stride]]
        pairs.append(np.stack((lower, lower + stride), axis=1))
    return np.concatenate(pairs)


def _largest_first(labels: IntArray) -> IntArray:
    """Return the same clusters with new numbers."""
    _, first, counts = np.unique(labels, return_index=True, return_counts=True)
    number = np.empty(len(counts), dtype=np.int64)
    number[np.lexsort((first, -counts))] = np.arange(len(counts))
    return number[labels]
