"""The whole training: draw layers and targets, measure with the twin, fit Blueprint, prior, thresholds, acquisition."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata as packages
from pathlib import Path
from typing import Any

import numpy as np

from hilt.schedule.workload_syntax import format_workload
from hilt.simulator.build import design_key
from hilt.tune.glimpse.blueprint import ALLOWED_LOSS, BlueprintEncoder
from hilt.tune.glimpse.network import NumpyPerceptron
from hilt_experiments.glimpse_training.dataset import LONGEST_PROGRAM, LayerTask, build_tasks
from hilt_experiments.glimpse_training.fit_acquisition import AcquisitionSchedule, fit_acquisition
from hilt_experiments.glimpse_training.fit_prior import fit_prior
from hilt_experiments.glimpse_training.fit_thresholds import fit_thresholds
from hilt_experiments.glimpse_training.held_out import HELD_OUT_NETWORKS, held_out_parameters
from hilt_experiments.glimpse_training.modules import Floats, begin
from hilt_experiments.glimpse_training.pools import Pools, pool_tasks
from hilt_experiments.glimpse_training.population import (
    draw_generations,
    draw_layers,
    random_accelerator,
    random_target,
)
from hilt_experiments.glimpse_training.searches import Course

Report = Callable[[str], None]


@dataclass(frozen=True)
class TrainingPlan:
    """The sizes of all parts of the training."""

    seed: int = 11
    layers: int = 120
    accelerators: int = 16
    memories: int = 2
    """Memories of each accelerator."""
    tasks: int = 130
    """Pairs of a layer and an accelerator."""
    targets: int = 2000
    """Targets for the Blueprint's components: only figures, no measurements."""
    prior_steps: int = 600
    threshold_steps: int = 600
    acquisition: AcquisitionSchedule = field(default_factory=AcquisitionSchedule)


def train(plan: TrainingPlan, report: Report, jobs: int = 1) -> tuple[dict[str, Floats], Mapping[str, Any]]:
    """Return arrays and metadata for save_weights.

    The same plan gives the same arrays on one machine for any `jobs`.

    Raises MissingToolError or BuildError if the twin cannot be built.
    """
    began = time.perf_counter()
    generator = np.random.default_rng(plan.seed)
    layers = draw_layers(plan.layers, generator)
    generations = draw_generations(plan.accelerators, plan.memories, generator)
    tasks = []
    for task in build_tasks(layers, generations, plan.tasks, plan.seed, jobs):
        tasks.append(task)
        if len(tasks) % 20 == 0:
            report(f"measured {len(tasks)} of up to {plan.tasks} tasks after {time.perf_counter() - began:.0f} s")
    arrays = fit(tasks, plan, report)
    seconds = time.perf_counter() - began
    report(f"trained in {seconds:.0f} s")
    return arrays, _metadata(plan, tasks, seconds)


def fit(tasks: list[LayerTask], plan: TrainingPlan, report: Report) -> dict[str, Floats]:
    """Return all fitted parts, as arrays."""
    begin(plan.seed)
    blueprint = _fit_blueprint(plan)
    report(f"Blueprint of {blueprint.size} components")
    pools = pool_tasks(tasks, plan.seed)
    configurations = sum(len(task.indices) for task in tasks)
    report(f"{len(tasks)} tasks, {configurations} configurations, {len(pools.examples)} examples")
    descriptions = pools.descriptions(blueprint)
    every = np.arange(len(pools.examples))
    prior = fit_prior(pools, descriptions, every, plan.prior_steps)
    report("prior generator trained")
    thresholds = fit_thresholds(pools, descriptions, every, plan.threshold_steps)
    report("threshold ensemble trained")
    courses = _courses(pools, descriptions, plan)
    report("courses prepared")
    acquisition = fit_acquisition(courses, plan.acquisition, plan.seed, report)
    return {
        "blueprint.mean": blueprint.mean.astype(np.float32),
        "blueprint.scale": blueprint.scale.astype(np.float32),
        "blueprint.components": blueprint.components.astype(np.float32),
        **prior.arrays("prior"),
        **thresholds.arrays("thresholds"),
        **acquisition.arrays("acquisition"),
    }


def _fit_blueprint(plan: TrainingPlan) -> BlueprintEncoder:
    generator = np.random.default_rng(plan.seed)
    targets = [random_target(random_accelerator(generator), generator) for _ in range(plan.targets)]
    # A margin for targets that are not among them.
    return BlueprintEncoder.fit(np.array([target.figures() for target in targets]), ALLOWED_LOSS / 2)


def _courses(pools: Pools, descriptions: Floats, plan: TrainingPlan) -> list[Course]:
    """Return the courses for training the acquisition function.

    In use the function works beside a prior and a vote that were not trained on the layer. Here too, half of the layers
    use networks that were trained on the other half.
    """
    layers = {
        text: number for number, text in enumerate(sorted({format_workload(task.workload) for task in pools.tasks}))
    }
    half = np.array([layers[format_workload(pools.tasks[each.task].workload)] % 2 for each in pools.examples])
    found = []
    for side in (0, 1):
        taught = np.flatnonzero(half != side)
        prior = fit_prior(pools, descriptions, taught, plan.prior_steps // 2)
        thresholds = fit_thresholds(pools, descriptions, taught, plan.threshold_steps // 2)
        networks = [NumpyPerceptron.from_arrays(module.arrays("it"), "it") for module in (prior, thresholds)]
        numbers = np.flatnonzero(half == side).tolist()
        found += [Course(pools, number, descriptions[number], *networks) for number in numbers]
    return found


def _metadata(plan: TrainingPlan, tasks: Sequence[LayerTask], seconds: float) -> dict[str, Any]:
    accelerators = {task.generation.accelerator for task in tasks}
    held_out = sorted(parameters.name for parameters in held_out_parameters())
    return {
        "seed": plan.seed,
        "commit": _commit(),
        "seconds": round(seconds),
        "versions": {name: packages.version(name) for name in ("numpy", "torch")},
        "layers": sorted({format_workload(task.workload) for task in tasks}),
        "accelerators": sorted(
            f"{each.parameters.name} bus {each.bus_bits} hazards {each.hazards} {each.clock_hz // 1_000_000} MHz"
            for each in accelerators
        ),
        "designs": sorted(design_key(each, "timing") for each in accelerators),
        "measurements": int(sum(task.cycles.size for task in tasks)),
        "statement": (
            f"Cycles are the twin's (design keys above) for {len(tasks)} pairs of layer and accelerator, "
            f"{plan.memories} memories each; programs of more than {LONGEST_PROGRAM} instructions count as the slowest "
            f"that was measured. Never seen: any layer with the shape of one of {' or '.join(HELD_OUT_NETWORKS)}; the "
            f"parameter sets {', '.join(held_out)} with any bus, clock or memory, and so every board model; any RTL "
            f"simulation or board."
        ),
    }


def _commit() -> str:
    """Return the commit of the clone that trains, or unknown."""
    try:
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
