"""The bias of annealing by known validity (Rieber et al. 2022, section IV-C)."""

from __future__ import annotations

import numpy as np

from hilt.tune.cost_model import Indices, Score, Scores
from hilt.tune.hardware_aware.presampling import Presamples

KNOWN_INVALID = np.float32(-1e6)
"""The score of a configuration that is known to be invalid."""
KNOWN_VALID = np.float32(1)
"""The bonus on the score of a configuration that is known to be valid: predictions were mostly between -7 and 7."""


def biased(score: Score, presamples: Presamples) -> Score:
    """Return the score with the paper's bias for presampled configurations; others keep their score."""
    order = np.argsort(presamples.indices)
    known, valid = presamples.indices[order], presamples.valid[order]

    def with_bias(indices: Indices) -> Scores:
        scores = score(indices)
        places = np.minimum(np.searchsorted(known, indices), len(known) - 1)
        is_known = known[places] == indices
        better = np.where(is_known & valid[places], scores + KNOWN_VALID, scores)
        return np.where(is_known & ~valid[places], KNOWN_INVALID, better)

    return with_bias
