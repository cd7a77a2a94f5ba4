"""The best schedule of every layer of a network on a design, by the analytic model and the twin.

The search is bounded: the analytic model orders all configurations that compile, the twin predicts the best of them and
those that a surrogate of the twin takes to be as good (hilt.tune.model_guided.shortlist). No board is involved.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from hilt.explore.design import Design
from hilt.explore.errors import ExploreError
from hilt.schedule import Workload, load_convolution
from hilt.schedule.onnx_model import Network
from hilt.simulator.twin import Twin
from hilt.tune.model_guided.candidates import candidates_of
from hilt.tune.model_guided.lowered import LoweredPrograms
from hilt.tune.model_guided.machines import TwinMachine
from hilt.tune.model_guided.prediction import TwinPredictor
from hilt.tune.model_guided.shortlist import Shortlist
from hilt.tune.problem import TuningProblem

_ROUNDS = 2
"""Rounds in which the surrogate adds programs. Of eight, the last six found nothing better for ResNet-18 on pynq."""


@dataclass(frozen=True)
class LayerSchedule:
    """The fastest schedule found for a layer; `cycles` are the twin's."""

    workload: str
    count: int
    index: int
    knobs: dict[str, int]
    cycles: int
    predicted: int
    """Programs that the twin predicted to find it."""


@dataclass(frozen=True)
class NetworkSchedule:
    """A network on a design. `reason` says why a layer has no schedule; then there are no layers."""

    layers: tuple[LayerSchedule, ...]
    images: int
    """Images of one pass: the design's batch."""
    reason: str = ""

    @property
    def cycles(self) -> int:
        """Return the cycles of one pass over all layers."""
        return sum(layer.cycles * layer.count for layer in self.layers)

    def microseconds(self, clock_hz: float) -> float:
        """Return the microseconds of one pass: the latency of each of its images."""
        return self.cycles / clock_hz * 1e6

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> NetworkSchedule:
        """Return the schedule that `to_dict` described."""
        layers = tuple(LayerSchedule(**layer) for layer in values["layers"])
        return cls(layers, values["images"], values["reason"])


def schedule_network(network: Network, design: Design, orders: int = 1) -> NetworkSchedule:
    """Return the best schedules of the network's VTA layers on a design.

    Raises:
        MissingToolError: There is no compiler to build the twin with.
        BuildError: The twin cannot be built for the design.
    """
    Twin(design.accelerator)
    images = design.parameters.batch
    layers = []
    for layer in network.supported:
        workload = load_batched(layer.workload, images)
        found = best_schedule(workload, design, orders)
        if found is None:
            return NetworkSchedule((), images, f"{layer.workload}: none of its configurations fits the buffers")
        index, knobs, cycles, predicted = found
        layers.append(LayerSchedule(layer.workload, layer.count, index, knobs, cycles, predicted))
    if not layers:
        raise ExploreError(f"network {network.name} has no layer that VTA can run")
    return NetworkSchedule(tuple(layers), images)


def load_batched(text: str, images: int) -> Workload:
    """Return a convolution with the design's batch, where it has fewer images."""
    workload = load_convolution(text)
    return workload if workload.batch >= images else replace(workload, batch=images)


def best_schedule(workload: Workload, design: Design, orders: int) -> tuple[int, dict[str, int], int, int] | None:
    """Return (index, knobs, cycles, programs predicted) of the fastest configuration; None where none compiles."""
    problem = TuningProblem.of(workload, design.accelerator, orders=1 if orders == 1 else 4)
    candidates = candidates_of(problem)
    if not len(candidates):
        return None
    lowered = LoweredPrograms(problem, candidates.indices)
    machine = TwinMachine(design.accelerator, TwinPredictor(problem, lowered), candidates.analytic_model)
    shortlist = Shortlist(candidates, lowered, machine)
    shortlist.open(design.coordinates[None], _ROUNDS)
    if not len(shortlist.rows):
        return None
    cycles = np.exp(machine.log_cycles(shortlist.rows.tolist(), design.coordinates[None])[:, 0])
    best = int(np.argmin(cycles))
    if not np.isfinite(cycles[best]):
        return None
    index = int(candidates.indices[shortlist.rows[best]])
    knobs = {name: int(value) for name, value in problem.space.knobs_at(index).items()}
    return index, knobs, round(float(cycles[best])), len(shortlist.rows)
