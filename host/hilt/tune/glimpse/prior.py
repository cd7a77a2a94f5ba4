"""The prior distribution generator H (Glimpse section 3.1): from layer and Blueprint to a distribution over each knob.

As in a HyperNetwork, H outputs the parameters of the distributions: weights of VALUE_FEATURES, one set a slot. A knob
may therefore have as many values as the layer gives it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.tune.glimpse.encoding import SLOTS, VALUE_FEATURES, KnobSpace
from hilt.tune.glimpse.network import NumpyPerceptron

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

_BEST_OF_EACH = 5
"""Values of a knob whose combinations are enumerated for the first samples."""


@dataclass(frozen=True)
class Prior:
    """Logarithms of the probabilities of each value of each known knob."""

    knobs: KnobSpace
    logarithms: tuple[Floats, ...]

    @classmethod
    def generate(cls, network: NumpyPerceptron, description: Floats, knobs: KnobSpace) -> Prior:
        """Generate the prior from `description`, the layer's features and then the Blueprint."""
        parameters = network(description).reshape(len(SLOTS), VALUE_FEATURES)
        logits = [knobs.value_features(knob) @ parameters[slot] for knob, slot in enumerate(knobs.slots)]
        return cls(knobs, tuple(logit - np.logaddexp.reduce(logit) for logit in logits))

    def logarithm(self, indices: Indices) -> Floats:
        """Return the logarithm of the product of the knobs' probabilities, float32 (n,)."""
        positions = self.knobs.space.positions(indices)
        total = np.zeros(len(indices), dtype=np.float32)
        for knob, logarithms in zip(self.knobs.known, self.logarithms, strict=True):
            total += logarithms[positions[:, knob]]
        return total

    def first_samples(self, generator: np.random.Generator) -> Indices:
        """Return combinations of the best values of each knob, in random order.

        The order is drawn without replacement, with the product of the values' probabilities as weight.
        """
        space = self.knobs.space
        best = [np.array([0])] * len(space.knobs)
        for knob, logarithms in zip(self.knobs.known, self.logarithms, strict=True):
            best[knob] = np.argsort(-logarithms, kind="stable")[:_BEST_OF_EACH]
        positions = np.stack([axis.ravel() for axis in np.meshgrid(*best, indexing="ij")], axis=1)
        indices = space.indices(positions)
        keys = self.logarithm(indices) + generator.gumbel(size=len(indices))
        return indices[np.argsort(-keys, kind="stable")]
