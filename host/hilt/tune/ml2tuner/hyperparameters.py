"""The settings of XGBoost in ML2Tuner (its Table 3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters of the paper; all others are XGBoost's defaults.

    The paper names them boost round, max depth, min child weight, gamma, subsample, colsample bytree, learning rate and
    reg alpha.
    """

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
        """Return the parameters for XGBoost, with one thread: sums in another order would make other trees."""
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
"""The hyperparameters of models P and A."""

VALIDITY = Hyperparameters(
    "binary:hinge",
    max_depth=6,
    min_child_weight=1,
    learning_rate=0.1,
    reg_alpha=1e-2,
    subsample=0.6,
    colsample_bytree=0.6,
)
"""The hyperparameters of model V.

Its depth and child weight are not legible in the paper's text: XGBoost's defaults.
"""
