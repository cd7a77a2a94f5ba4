"""The training data of the networks: configurations of many layers on many accelerators, measured by the twin."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import Conv2d, Space, space_for, verdicts
from hilt.schedule.checks import Checks, analyse
from hilt.schedule.operator import convolution
from hilt.schedule.traffic import traffic
from hilt.tune.problem import TuningProblem
from hilt_experiments.glimpse_training.held_out import require_not_held_out
from hilt_experiments.glimpse_training.population import Generation

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Kind = SpaceName

LONGEST_PROGRAM = 3_000
"""Most instructions of a measured program.

A longer program is not measured, and counts as the slowest measured one: long programs take most of the time and are
far from the best.
"""
LONGEST_COMPUTATION = 500_000
"""Most cycles of multiplication.

The twin's time grows with it, and more so if an element is narrower than the bus.
"""
_RANDOM = 80
_OF_TVM = 24
"""Additional configurations that TVM would run, which are rare."""
_CLIMBS = 2
_CLIMB_FROM = 8
_CLIMB_STEPS = 28


@dataclass(frozen=True)
class LayerTask:
    """One layer on one accelerator. `indices` (n,) compile; `cycles` (n, memories) is the twin's."""

    workload: Conv2d
    generation: Generation
    kind: Kind
    orders: Literal[1, 4]
    indices: Indices
    cycles: Floats

    @cached_property
    def space(self) -> Space:
        return space_for(self.workload, self.generation.accelerator, orders=self.orders, kind=self.kind)

    @property
    def levels(self) -> tuple[Checks, ...]:
        """The check levels that apply to the kind of space."""
        return (
            (CheckLevel.COMPILER, CheckLevel.STRICT, CheckLevel.TVM)
            if self.kind is SpaceName.AUTOTVM
            else (CheckLevel.COMPILER, CheckLevel.STRICT)
        )

    def valid(self, indices: Indices, checks: Checks) -> Booleans:
        """Return whether each is valid at a level, (n,)."""
        columns = self.space.columns(indices)
        return np.asarray(verdicts(self.workload, self.generation.accelerator, columns, checks) == 0)


def build_tasks(
    layers: list[Conv2d], generations: list[Generation], count: int, seed: int, jobs: int = 1
) -> Iterator[LayerTask]:
    """Yield `count` tasks, each of a layer and an accelerator, in an order that does not depend on `jobs`.

    Pairs with fewer than sixteen configurations that compile are left out, and so are those that take the twin long.

    Raises HeldOutError, and MissingToolError or BuildError if the twin cannot be built.
    """
    arguments: list[tuple[Conv2d, Generation, np.random.SeedSequence]] = []
    for pair in np.random.default_rng(seed).permutation(len(layers) * len(generations)).tolist():
        layer, generation = layers[pair // len(generations)], generations[pair % len(generations)]
        if len(arguments) < count and _is_short(layer, generation):
            arguments.append((layer, generation, np.random.SeedSequence([seed, pair])))
    if jobs == 1:
        found = map(_build_task, *zip(*arguments, strict=True))
        yield from (task for task in found if task is not None)
        return
    with ProcessPoolExecutor(jobs) as pool:
        results = pool.map(_build_task, *zip(*arguments, strict=True))
        yield from (task for task in results if task is not None)


def _is_short(layer: Conv2d, generation: Generation) -> bool:
    accelerator = generation.accelerator
    narrow = accelerator.parameters.inp_element_bytes * 8 < accelerator.bus_bits
    return not narrow and layer.macs <= LONGEST_COMPUTATION * accelerator.macs_per_cycle


def _build_task(workload: Conv2d, generation: Generation, seed: np.random.SeedSequence) -> LayerTask | None:
    require_not_held_out(workload, generation.accelerator.parameters)
    generator = np.random.default_rng(seed)
    kind: Kind = SpaceName.ML2 if generator.random() < 0.15 else SpaceName.AUTOTVM
    orders: Literal[1, 4] = 1 if kind is SpaceName.ML2 or generator.random() < 0.15 else 4
    problem = TuningProblem.of(workload, generation.accelerator, orders=orders, kind=kind)
    candidates = np.flatnonzero(problem.compiles)
    if len(candidates) < 16:
        return None
    measured = _Measured(problem, generation)
    measured.add(_some(candidates, _RANDOM, generator))
    if kind == "autotvm":
        columns = problem.space.columns(candidates)
        of_tvm = verdicts(workload, generation.accelerator, columns, CheckLevel.TVM) == 0
        measured.add(_some(candidates[of_tvm], _OF_TVM, generator))
    for _ in range(_CLIMBS):
        neighbours = [problem.space.neighbours(int(index)) for index in measured.best(_CLIMB_FROM)]
        around = np.unique(np.concatenate(neighbours))
        measured.add(_some(around[problem.compiles[around]], _CLIMB_STEPS, generator))
    return LayerTask(workload, generation, kind, orders, measured.indices, measured.filled())


class _Measured:
    """Configurations and their cycles with each memory, NaN if the program is too long to be measured."""

    def __init__(self, problem: TuningProblem, generation: Generation) -> None:
        self._problem = problem
        self._memories = [target.memory for target in generation.memories]
        self.indices: Indices = np.empty(0, dtype=np.int64)
        self._cycles: Floats = np.empty((0, len(self._memories)))

    def add(self, indices: Indices) -> None:
        """Measure and add those configurations that are new."""
        new = np.setdiff1d(indices, self.indices)
        columns = self._problem.space.columns(new)
        analysis = analyse(convolution(self._problem.workload), self._problem.accelerator, columns)
        short = traffic(analysis).instructions <= LONGEST_PROGRAM
        cycles = np.full((len(new), len(self._memories)), np.nan)
        cycles[short] = self._problem.predicted_cycles(new[short], self._memories)
        self.indices = np.concatenate([self.indices, new])
        self._cycles = np.concatenate([self._cycles, cycles])

    def best(self, count: int) -> Indices:
        """Return the `count` best indices by the mean of the memories' relative cycles."""
        with np.errstate(invalid="ignore"):
            relative = (self._cycles / np.nanmin(self._cycles, axis=0, initial=np.inf)).mean(axis=1)
        return self.indices[np.argsort(np.where(np.isnan(relative), np.inf, relative), kind="stable")[:count]]

    def filled(self) -> Floats:
        slowest = np.nanmax(self._cycles, axis=0, initial=1.0)
        return np.where(np.isnan(self._cycles), slowest, self._cycles)


def _some(indices: Indices, count: int, generator: np.random.Generator) -> Indices:
    if len(indices) <= count:
        return indices
    return generator.choice(indices, size=count, replace=False)
