"""Every tuner over a grid, and the engine's order of calls. Also a program, so that another process can be asked.

    python -m tests.unit.tune.conformance TUNER SEED TRIALS    prints the indices asked, one a line
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from hilt.tune import Feedback, Tuner
from hilt.tune.random_tuner import RandomOptions, RandomTuner
from hilt.tune.autotvm.tuner import XGBOptions, XGBTuner

from .grids import Grid

Build = Callable[[Grid, int], Tuner]

TUNERS: dict[str, Build] = {
    "random": lambda grid, seed: RandomTuner(grid, seed, RandomOptions()),
    "xgb": lambda grid, seed: XGBTuner(grid, seed, XGBOptions(plan_size=32), grid.features),
    "xgb-regression": lambda grid, seed: XGBTuner(
        grid, seed, XGBOptions(plan_size=32, loss="regression"), grid.features
    ),
}


def run(
    tuner: Tuner, trials: int, batch: int, measure: Callable[[int], Feedback], lag: bool = True
) -> list[Feedback]:
    """The engine's order: batch k+1 is asked before batch k is told (with `lag`). What was told, in order."""
    told: list[Feedback] = []
    asked = 0
    waiting: list[list[int]] = []
    while asked < trials or waiting:
        indices = tuner.ask(min(batch, trials - asked)) if asked < trials else []
        asked = asked + len(indices) if indices else trials
        if indices:
            waiting.append(indices)
        if waiting and (not indices or not lag or len(waiting) > 1):
            results = [measure(index) for index in waiting.pop(0)]
            tuner.tell(results)
            told += results
    return told


if __name__ == "__main__":
    grid = Grid((8, 6, 6, 2, 2), valid_share=0.4, seed=5)
    for feedback in run(TUNERS[sys.argv[1]](grid, int(sys.argv[2])), int(sys.argv[3]), 16, grid.measure):
        print(feedback.index)
