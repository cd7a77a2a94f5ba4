"""The machine models that a board is compared with, each with figures that measurements determine.

They are the RTL's timing model with an unknown memory, and two families of machines that are built differently,
and known members of one: the machines that published measurements or sources describe (docs/silicon.md). The prior
weights are the probabilities of the models before any measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hilt.simulator.builds import CHISEL, NEWER, OLDER, shipped_builds
from hilt.simulator.machine import MachineParameters
from hilt.tune.model_guided import memories
from hilt.tune.model_guided.analytic_model import AnalyticModel
from hilt.tune.model_guided.prediction import Predictor
from hilt.tune.model_guided.structural import COSTS, DEVIATION, USUAL, StructuralEstimate, Timing
from hilt.vta.accelerator import Accelerator

Floats = npt.NDArray[np.float64]

_MEMORY_STEPS = np.array([0.25, 0.25, 0.15])
"""Differences for numerical derivatives. Latencies are whole cycles: rounding would hide small steps."""
_STEP = 0.1
_MOST_DIFFERENTIATED = 192
"""Rows of a structural machine that have exact derivatives."""
_TWIN_CYCLES = 2.5e8
"""Cycles that the twin simulates at most for one set of derivatives: it takes about a nanosecond for each."""
_OTHER = 0.2
"""Prior weight of each of the five other kinds of machines: together as much as the twin's 1."""
_UNLIKE = 1.3
"""Prior deviations from the usual machine at which each cost of an opening lies."""
_OVERHEADS = frozenset({"instruction", "row", "stored row", "padding", "gemm turn", "alu turn", "alu micro-op"})
"""Costs that decide between few large instructions and many small ones."""
_HIGHEST_COST = 9.0
"""Logarithm of the highest cost in cycles of any kind of work."""
_NAMES = {NEWER: "public HLS", OLDER: "public HLS, older build", CHISEL: "Chisel"}
_WITHOUT_INTERLOCK = 3.0
"""Factor on the weight of a public design if the board's accelerator has no interlock, as the public designs."""
_OWN = 10.0
"""Prior weight of the machine that measurements of the board's own bitstream gave; the twin has 1."""
_LEAST = 0.02
"""Least cost in cycles: logarithms need one."""
_FITTED, _GUESSED = 0.15, 1.0
"""Prior deviations of the logarithm of a cost: from measurements, and otherwise."""
_MEASURED = frozenset(
    {"row", "stored row", "byte", "gemm turn", "gemm micro-op", "alu micro-op", "missed byte"},
)


class Machine(Protocol):
    """A model of a board's timing. Coordinates (d,) are logarithms of figures that differ from board to board."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float:
        """Prior probability, relative to the others."""

    @property
    def is_broadest(self) -> bool:
        """True for the model that can follow the most machines, so that it stays while others explain more."""

    @property
    def prior(self) -> Floats:
        """The assumed coordinates (d,)."""

    @property
    def deviation(self) -> Floats:
        """Prior deviation of each coordinate (d,)."""

    @property
    def openings(self) -> Floats:
        """Coordinates (m, d) of unlike machines of the family, the assumed one first."""

    def clipped(self, coordinates: Floats) -> Floats:
        """Return the nearest coordinates that a machine can have."""

    def estimate(self, coordinates: Floats) -> Floats:
        """Return rough logarithms of cycles (n,) of all candidates, at coordinates (d,)."""

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        """Return exact logarithms of cycles (rows, m) at coordinates (m, d)."""

    def derivatives(self, rows: Sequence[int], coordinates: Floats) -> tuple[Floats, Floats]:
        """Return the same logarithms (rows,) at coordinates (d,), and their derivatives (rows, d)."""

    def rough_derivatives(self, coordinates: Floats) -> Floats:
        """Return the derivatives (n, d) of `estimate` at coordinates (d,)."""

    def affordable(self, fewest_cycles: float) -> int:
        """Return the number of rows that may have derivatives, given the fewest cycles of any."""


@dataclass(frozen=True, eq=False)
class TwinMachine:
    """The RTL's timing model; its coordinates are the memory's (hilt.tune.model_guided.memories)."""

    accelerator: Accelerator
    predictor: Predictor
    analytic_model: AnalyticModel
    weight: float = 1.0
    name: str = "RTL"
    is_broadest: bool = False

    @property
    def deviation(self) -> Floats:
        return memories.PRIOR_DEVIATION

    @property
    def prior(self) -> Floats:
        return memories.prior_mean(self.accelerator)

    @property
    def openings(self) -> Floats:
        slow, fast = self.prior + 1.3 * self.deviation, self.prior - 1.3 * self.deviation
        fast[2] = 0.0
        return np.stack((self.prior, slow, fast))

    def clipped(self, coordinates: Floats) -> Floats:
        return memories.clipped(coordinates)

    def estimate(self, coordinates: Floats) -> Floats:
        return np.asarray(np.log(self.analytic_model.cycles(coordinates)))

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        return self.predictor.log_cycles(rows, coordinates)

    def derivatives(self, rows: Sequence[int], coordinates: Floats) -> tuple[Floats, Floats]:
        around = self.clipped(coordinates + np.diag(_MEMORY_STEPS))
        cycles = self.log_cycles(rows, np.concatenate((coordinates[None], around)))
        return cycles[:, 0], (cycles[:, 1:] - cycles[:, :1]) / _MEMORY_STEPS

    def rough_derivatives(self, coordinates: Floats) -> Floats:
        around = self.clipped(coordinates + np.diag(_MEMORY_STEPS))
        return _differences(self, coordinates, around, _MEMORY_STEPS)

    def affordable(self, fewest_cycles: float) -> int:
        return int(np.clip(_TWIN_CYCLES / fewest_cycles, 24, 96))


@dataclass(frozen=True, eq=False)
class StructuralMachine:
    """A family of hilt.tune.model_guided.structural."""

    timing: Timing
    rough: StructuralEstimate
    overlap: bool
    weight: float
    name: str
    prior: Floats
    deviation: Floats
    openings: Floats
    is_broadest: bool = False

    def clipped(self, coordinates: Floats) -> Floats:
        return np.asarray(np.clip(coordinates, -_HIGHEST_COST, _HIGHEST_COST))

    def estimate(self, coordinates: Floats) -> Floats:
        return self.rough.log_cycles(coordinates, self.overlap)

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        return self.timing.log_cycles(rows, coordinates, self.overlap)

    def derivatives(self, rows: Sequence[int], coordinates: Floats) -> tuple[Floats, Floats]:
        return self.timing.derivatives(rows, coordinates, self.overlap)

    def rough_derivatives(self, coordinates: Floats) -> Floats:
        steps = np.full(len(coordinates), _STEP)
        return _differences(self, coordinates, coordinates + np.diag(steps), steps)

    def affordable(self, fewest_cycles: float) -> int:
        return _MOST_DIFFERENTIATED


def _differences(machine: Machine, coordinates: Floats, around: Floats, steps: Floats) -> Floats:
    base = machine.estimate(coordinates)
    return np.stack([machine.estimate(point) - base for point in around], axis=1) / steps


def usual_costs(accelerator: Accelerator) -> Floats:
    """Return logarithms of COSTS in the middle of their ranges, for this bus."""
    usual = USUAL.copy()
    usual[COSTS.index("byte")] -= np.log(accelerator.bytes_per_cycle)
    return usual


def structural_families(timing: Timing, rough: StructuralEstimate, accelerator: Accelerator) -> list[StructuralMachine]:
    """Return the two families of unknown machines: with stages side by side, and in turn."""
    prior = usual_costs(accelerator)
    away = _UNLIKE * DEVIATION * np.array([name in _OVERHEADS for name in COSTS])
    openings = np.stack((prior, prior + away, prior - away))
    return [
        StructuralMachine(timing, rough, overlap, _OTHER, name, prior, DEVIATION, openings, overlap)
        for overlap, name in ((True, "overlapping stages"), (False, "stages in turn"))
    ]


def spread(machine: Machine, count: int) -> Floats:
    """Return coordinates (count, d) distributed as the prior, with the machine's openings first.

    The others are the multiples of irrational numbers (Roberts, 2018).
    """
    size = len(machine.prior)
    root = 2.0
    for _ in range(32):
        root = (1 + root) ** (1 / (size + 1))
    shares = (0.5 + np.arange(1, count + 1)[:, None] * root ** -np.arange(1.0, size + 1)) % 1.0
    drawn = machine.prior + ndtri(shares) * machine.deviation
    return machine.clipped(np.concatenate((machine.openings, drawn))[:count])


def public_machines(timing: Timing, rough: StructuralEstimate, accelerator: Accelerator) -> list[StructuralMachine]:
    """Return the known machines of the overlapping family: two builds of the public HLS design, and the Chisel design.

    Their prior deviations are small, so a few measurements confirm or refute them.
    """
    factor = _WITHOUT_INTERLOCK if accelerator.hazards == "none" else 1.0
    deviation = np.array([_FITTED if name in _MEASURED else _GUESSED for name in COSTS])
    found = []
    for key, parameters in shipped_builds().machines.items():
        prior = _log_costs(parameters)
        found.append(
            StructuralMachine(timing, rough, True, factor * _OTHER, _NAMES[key], prior, deviation, prior[None])
        )
    return found


def measured_machine(timing: Timing, rough: StructuralEstimate, parameters: MachineParameters) -> StructuralMachine:
    """Return the machine that measurements of the board's own bitstream gave; it is expected before all others."""
    prior = _log_costs(parameters)
    deviation = np.full(len(prior), _FITTED)
    return StructuralMachine(timing, rough, True, _OWN, "this bitstream's machine", prior, deviation, prior[None])


def _log_costs(parameters: MachineParameters) -> Floats:
    """Return the logarithms of COSTS of a machine; a row that overlaps its beats costs next to nothing."""
    overlap = parameters.rows_overlap != 0
    byte = 1 / parameters.hit_bytes
    cost: Mapping[str, float] = {
        "instruction": parameters.instruction,
        "row": 0.0 if overlap else parameters.load_row,
        "stored row": 0.0 if overlap else parameters.store_row,
        "byte": byte,
        "padding": parameters.pad_element,
        "gemm turn": parameters.gemm_iteration,
        "gemm micro-op": parameters.gemm_micro_op,
        "alu turn": parameters.alu_iteration,
        "alu micro-op": parameters.alu_micro_op,
        "transfer": parameters.load_start,
        "missed byte": 1 / parameters.miss_bytes - byte if parameters.cache_bytes else 0.0,
    }
    return np.log([max(cost[name], _LEAST if "byte" not in name else 1e-4) for name in COSTS])
