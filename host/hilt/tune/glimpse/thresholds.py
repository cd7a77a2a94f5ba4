"""Hardware-aware sampling (Glimpse section 3.3): light predictors of validity, one a knob, generated from layer and
Blueprint, that vote.

A knob's predictor says from which value on its configuration is invalid. What a VTA can hold is a product of several
knobs, so the threshold of one depends on the others: it is the least of PIECES linear functions of the configuration's
features, whose coefficients the generator puts out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.tune.glimpse.encoding import CONFIGURATION_FEATURES, SLOTS, KnobSpace
from hilt.tune.glimpse.network import NumpyPerceptron

Floats = npt.NDArray[np.float32]
Booleans = npt.NDArray[np.bool_]

PIECES = 3
COEFFICIENTS = len(SLOTS) * PIECES * (CONFIGURATION_FEATURES + 1)


@dataclass(frozen=True)
class ThresholdEnsemble:
    """One predictor for each known knob: `coefficients` (knobs, PIECES, CONFIGURATION_FEATURES), `offsets` (knobs,
    PIECES). A predictor rejects where any of its pieces is above 0."""

    coefficients: Floats
    offsets: Floats

    @classmethod
    def generate(cls, network: NumpyPerceptron, description: Floats, knobs: KnobSpace) -> ThresholdEnsemble:
        """`description` is the layer's features, then the Blueprint."""
        generated = network(description).reshape(len(SLOTS), PIECES, CONFIGURATION_FEATURES + 1)[list(knobs.slots)]
        return cls(generated[..., :-1], generated[..., -1])

    def votes(self, features: Floats) -> Booleans:
        """Which predictors reject, (n, knobs), of configuration features (n, CONFIGURATION_FEATURES)."""
        knobs, shards, size = self.coefficients.shape
        above = features @ self.coefficients.reshape(knobs * shards, size).T + self.offsets.ravel()
        return np.asarray((above > 0).reshape(len(features), knobs, shards).any(axis=2))

    def rejects(self, features: Floats, tau: float) -> Booleans:
        """(n,): whether more than `tau` of the predictors reject."""
        # In whole votes: of six knobs, two are exactly a third and not more.
        return np.asarray(self.votes(features).sum(axis=1) > tau * len(self.offsets) + 1e-9)
