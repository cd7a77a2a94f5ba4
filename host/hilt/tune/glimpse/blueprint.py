"""The Blueprint: a target's public figures, reduced by principal component analysis (Glimpse section 3.1, Figure 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ALLOWED_LOSS = 0.005
"""Root mean square of what is lost, of that of the figures: the paper's 0.5 %."""


@dataclass(frozen=True)
class BlueprintEncoder:
    """Figures are standardised by `mean` and `scale` (figures,), then projected on `components` (size, figures)."""

    mean: Floats
    scale: Floats
    components: Floats

    @classmethod
    def fit(cls, figures: Floats, allowed_loss: float = ALLOWED_LOSS) -> BlueprintEncoder:
        """The fewest components that lose no more than allowed of a population of targets, figures (targets, figures).
        A figure that is the same for all has scale 1 and is lost without loss."""
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
        """The Blueprint (..., size) of figures (..., figures)."""
        return np.asarray((figures - self.mean) / self.scale @ self.components.T)

    def information_loss(self, figures: Floats) -> float:
        """Root mean square of (figures - what the Blueprint says they are), over that of the figures, standardised."""
        standard = (figures - self.mean) / self.scale
        lost = standard - self.encode(figures) @ self.components
        return float(np.sqrt(np.mean(lost**2) / np.mean(standard**2)))
