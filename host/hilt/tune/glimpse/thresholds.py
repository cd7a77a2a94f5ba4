"""Hardware-aware sampling (Glimpse section 3.3): a vote of light predictors of validity, one a knob.

A generator makes the predictors from layer and Blueprint. A knob's predictor gives the value from which its
configuration is invalid. The capacity of a VTA is a product of several knobs, so the threshold of one depends on the
others. It is the least of PIECES linear functions of the configuration's features; the generator outputs their
coefficients.
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
    """One predictor for each known knob; a predictor rejects if any of its pieces is above 0.

    `coefficients` has shape (knobs, PIECES, CONFIGURATION_FEATURES), `offsets` (knobs, PIECES).
    """

    coefficients: Floats
    offsets: Floats

    @classmethod
    def generate(cls, network: NumpyPerceptron, description: Floats, knobs: KnobSpace) -> ThresholdEnsemble:
        """Generate the ensemble from `description`, the layer's features and then the Blueprint."""
        generated = network(description).reshape(len(SLOTS), PIECES, CONFIGURATION_FEATURES + 1)[list(knobs.slots)]
        return cls(generated[..., :-1], generated[..., -1])

    def votes(self, features: Floats) -> Booleans:
        """Return the predictors' rejections, (n, knobs), of configuration features (n, CONFIGURATION_FEATURES)."""
        knobs, shards, size = self.coefficients.shape
        above = features @ self.coefficients.reshape(knobs * shards, size).T + self.offsets.ravel()
        return np.asarray((above > 0).reshape(len(features), knobs, shards).any(axis=2))

    def rejects(self, features: Floats, tau: float) -> Booleans:
        """Return whether more than `tau` of the predictors reject, (n,)."""
        # Count whole votes: of six knobs, two are exactly a third and not more.
        return np.asarray(self.votes(features).sum(axis=1) > tau * len(self.offsets) + 1e-9)
