"""The Blueprint: a target's public figures, reduced by principal component analysis (Glimpse section 3.1, Figure 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ALLOWED_LOSS = 0.005
"""Root mean square of the information loss, relative to that of the figures: the paper's 0.5 %."""


@dataclass(frozen=True)
class BlueprintEncoder:
    """Standardisation of figures by `mean` and `scale` (figures,), then projection on `components` (size, figures)."""

    mean: Floats
    scale: Floats
    components: Floats

    @classmethod
    def fit(cls, figures: Floats, allowed_loss: float = ALLOWED_LOSS) -> BlueprintEncoder:
        """Fit the fewest components whose loss is within `allowed_loss` of figures (targets, figures).

        The figures are those of a population of targets. A figure that is the same for all has scale 1; dropping it
        loses no information.
        """
        mean, spread = figures.mean(axis=0), figures.std(axis=0)
        scale = np.where(spread > 1e-9, spread, 1.0)
        _, singular, axes = np.linalg.svd((figures - mean) / scale, full_matrices=False)
        losses = np.sqrt(np.maximum(1 - np.cumsum(singular**2) / np.sum(singular**2), 0))
        size = int(np.argmax(losses < allowed_loss)) + 1
        # An axis has no sign of its own: its largest entry is made positive.
        signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
        return cls(mean, scale, (axes * signs[:, None])[:size])

    @property
    def size(self) -> int:
        return len(self.components)

    def encode(self, figures: Floats) -> Floats:
        """Return the Blueprint (..., size) of figures (..., figures)."""
        return np.asarray((figures - self.mean) / self.scale @ self.components.T)
