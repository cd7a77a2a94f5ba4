"""Tasks as arrays of one shape for the trainings: a pool of configurations each, with all known about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.run_choices import CheckLevel
from hilt.schedule.checks import Checks
from hilt.tune.glimpse.blueprint import BlueprintEncoder
from hilt.tune.glimpse.encoding import (
    CONFIGURATION_FEATURES,
    LAYER_FEATURES,
    SLOTS,
    VALUE_FEATURES,
    KnobSpace,
    layer_features,
)
from hilt_experiments.glimpse_training.dataset import LayerTask

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

POOL = 448
"""Configurations of a pool: the measured ones, then drawn ones that do not compile, then none."""
LEVELS: tuple[Checks, ...] = (CheckLevel.COMPILER, CheckLevel.STRICT, CheckLevel.TVM)


@dataclass(frozen=True)
class Example:
    """One layer on one target at one check level: numbers of the task, of its memory, and of the level in LEVELS."""

    task: int
    memory: int
    level: int


@dataclass(frozen=True)
class Pools:
    """The pools of `tasks`; arrays begin (tasks, ...).

    `speed` is the best cycles over a configuration's with each memory, for those that compile; `valid` is by level.
    `weight` is the number of configurations of the space that one stands for. `values` are the features of each value
    of each slot, and `positions` are the values of a configuration.
    """

    tasks: list[LayerTask]
    indices: Indices  # (tasks, POOL), -1 for none
    features: Floats  # (tasks, POOL, CONFIGURATION_FEATURES)
    speed: Floats  # (tasks, POOL, memories)
    valid: Booleans  # (tasks, POOL, levels)
    weight: Floats  # (tasks, POOL)
    values: Floats  # (tasks, slots, most values, VALUE_FEATURES)
    value_exists: Booleans  # (tasks, slots, most values)
    positions: Indices  # (tasks, POOL, slots)
    examples: list[Example]
    layers: Floats  # (examples, LAYER_FEATURES)
    figures: npt.NDArray[np.float64]  # (examples, figures)

    def descriptions(self, blueprint: BlueprintEncoder) -> Floats:
        """Return the descriptions (examples, LAYER_FEATURES + blueprint.size)."""
        return np.concatenate([self.layers, blueprint.encode(self.figures)], axis=1).astype(np.float32)

    def merit(self, example: Example) -> Floats:
        """Return the merit (POOL,): the speed if valid, else 0."""
        return self.speed[example.task, :, example.memory] * self.valid[example.task, :, example.level]


def pool_tasks(tasks: list[LayerTask], seed: int) -> Pools:
    """Return the pools of tasks, with drawn configurations that do not compile for each."""
    generator = np.random.default_rng(seed)
    count, memories = len(tasks), tasks[0].cycles.shape[1]
    most = max(int(task.space.sizes.max()) for task in tasks)
    pools = Pools(
        tasks,
        np.full((count, POOL), -1),
        np.zeros((count, POOL, CONFIGURATION_FEATURES), dtype=np.float32),
        np.zeros((count, POOL, memories), dtype=np.float32),
        np.zeros((count, POOL, len(LEVELS)), dtype=np.bool_),
        np.zeros((count, POOL), dtype=np.float32),
        np.zeros((count, len(SLOTS), most, VALUE_FEATURES), dtype=np.float32),
        np.zeros((count, len(SLOTS), most), dtype=np.bool_),
        np.zeros((count, POOL, len(SLOTS)), dtype=np.int64),
        examples := _examples(tasks),
        np.zeros((len(examples), LAYER_FEATURES), dtype=np.float32),
        np.array([tasks[each.task].generation.memories[each.memory].figures() for each in examples]),
    )
    for number in range(count):
        _fill(pools, number, generator)
    for row, example in enumerate(pools.examples):
        task = tasks[example.task]
        accelerator = task.generation.accelerator
        pools.layers[row] = layer_features(task.workload, accelerator, task.space, LEVELS[example.level])
    return pools


def _examples(tasks: list[LayerTask]) -> list[Example]:
    """Return every memory at every level at which four of the measured configurations are valid."""
    return [
        Example(number, memory, level)
        for number, task in enumerate(tasks)
        for memory in range(task.cycles.shape[1])
        for level, checks in enumerate(LEVELS)
        if checks in task.levels and np.count_nonzero(task.valid(task.indices, checks)) >= 4
    ]


def _fill(pools: Pools, number: int, generator: np.random.Generator) -> None:
    task = pools.tasks[number]
    measured = task.indices[:POOL]
    drawn = task.space.sample(4 * POOL, generator)
    compiles = task.valid(drawn, CheckLevel.COMPILER)
    others = drawn[~compiles][: POOL - len(measured)]
    both = np.concatenate([measured, others])
    used = len(both)
    knobs = KnobSpace.of(task.space, task.workload)
    pools.indices[number, :used] = both
    pools.features[number, :used] = knobs.configuration_features(both)
    pools.speed[number, : len(measured)] = (task.cycles.min(axis=0) / task.cycles)[:POOL]
    for level, checks in enumerate(LEVELS):
        if checks in task.levels:
            pools.valid[number, : len(measured), level] = task.valid(measured, checks)
    share = float(compiles.mean())
    pools.weight[number, : len(measured)] = share * len(task.space) / max(len(measured), 1)
    pools.weight[number, len(measured) : used] = (1 - share) * len(task.space) / max(len(others), 1)
    positions = task.space.positions(both)
    for knob, slot in enumerate(knobs.slots):
        features = knobs.value_features(knob)
        pools.values[number, slot, : len(features)] = features
        pools.value_exists[number, slot, : len(features)] = True
        pools.positions[number, :used, slot] = positions[:, knobs.known[knob]]
