"""XGBoost as ML2Tuner sets it (its Table 3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hyperparameters:
    """What the paper calls boost round, max depth, min child weight, gamma, subsample, colsample bytree, learning rate
    and reg alpha. All else is XGBoost's own default."""

    objective: str
    max_depth: int
    min_child_weight: float
    learning_rate: float
    reg_alpha: float
    gamma: float = 0.0
    subsample: float = 1.0
    colsample_bytree: float = 1.0
    boost_rounds: int = 300

    def parameters(self, seed: int) -> dict[str, object]:
        """As XGBoost takes them; one thread, for sums in another order would make other trees."""
        return {
            "objective": self.objective,
            "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight,
            "eta": self.learning_rate,
            "alpha": self.reg_alpha,
            "gamma": self.gamma,
            "subsample": self.subsample,
            "colsample_bytree": self.colsample_bytree,
            "nthread": 1,
            "seed": seed,
            "verbosity": 0,
        }


PERFORMANCE = Hyperparameters("reg:squarederror", max_depth=14, min_child_weight=3, learning_rate=0.01, reg_alpha=1e-5)
"""Of models P and A."""

VALIDITY = Hyperparameters(
    "binary:hinge",
    max_depth=6,
    min_child_weight=1,
    learning_rate=0.1,
    reg_alpha=1e-2,
    subsample=0.6,
    colsample_bytree=0.6,
)
"""Of model V. Its depth and child weight are not legible in the paper's text: XGBoost's defaults."""
