"""Every tuner over a grid, and the engine's order of calls. Also a program, so that another process can be asked.

python -m tests.unit.tune.conformance SEED TRIALS    prints the indices that each tuner asks, as JSON
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np

from hilt.tune import Feedback, Tuner
from hilt.tune.autotvm.trees import AutoTVMOptions, trees_tuner
from hilt.tune.genetic_tuner import GeneticOptions, GeneticTuner
from hilt.tune.hardware_aware.tuner import HardwareAwareOptions, HardwareAwareTuner
from hilt.tune.ml2tuner.tuner import ML2Tuner, ML2TunerOptions
from hilt.tune.plain_tuners import GridOptions, GridTuner, RandomOptions, RandomTuner

from .grids import Grid

Build = Callable[[Grid, int], Tuner]


def autotvm(**options: object) -> Build:
    chosen = AutoTVMOptions(plan_size=32, **options)  # type: ignore[arg-type]
    return lambda grid, seed: trees_tuner(grid, seed, chosen, grid.features)


def hardware_aware(grid: Grid, seed: int) -> Tuner:
    options = HardwareAwareOptions(samples=100, epoch=32)
    return HardwareAwareTuner(grid, seed, options, grid.features, lambda indices: np.isfinite(grid.latencies(indices)))


def ml2tuner(grid: Grid, seed: int) -> Tuner:
    return ML2Tuner(grid, seed, ML2TunerOptions(N=32, annealing_iterations=20), grid.features, grid.features)


TUNERS: dict[str, Build] = {
    "random": lambda grid, seed: RandomTuner(grid, seed, RandomOptions()),
    "grid": lambda grid, seed: GridTuner(grid, GridOptions()),
    "ga": lambda grid, seed: GeneticTuner(grid, seed, GeneticOptions(population=40)),
    "hw-aware": hardware_aware,
    "ml2tuner": ml2tuner,
    "autotvm": autotvm(),
    "autotvm-regression": autotvm(loss="regression"),
    "autotvm-diverse": autotvm(diversity=3),
    "autotvm-ei": autotvm(loss="regression", acquisition="ei", bootstraps=2),
}


def run(tuner: Tuner, trials: int, batch: int, measure: Callable[[int], Feedback], lag: bool = True) -> list[Feedback]:
    """Run a tuner in the engine's order and return its feedback in that order.

    With `lag`, batch k+1 is asked before the results of batch k arrive.
    """
    told: list[Feedback] = []
    asked = 0
    waiting: list[list[int]] = []
    while True:
        indices = tuner.ask(min(batch, trials - asked)) if asked < trials else []
        asked += len(indices)
        if indices:
            waiting.append(indices)
        elif not waiting:
            return told
        if not indices or not lag or len(waiting) > 1:
            results = [measure(index) for index in waiting.pop(0)]
            tuner.tell(results)
            told += results


def every_search(seed: int, trials: int) -> dict[str, list[int]]:
    """The indices that each of TUNERS asks of one and the same grid."""
    grid = Grid((8, 6, 6, 2, 2), valid_share=0.4, seed=5)
    return {
        name: [feedback.index for feedback in run(build(grid, seed), trials, 16, grid.measure)]
        for name, build in TUNERS.items()
    }


if __name__ == "__main__":
    print(json.dumps(every_search(int(sys.argv[1]), int(sys.argv[2]))))
