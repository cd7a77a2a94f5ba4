"""The machines that published measurements or sources describe, as hypotheses about a board (docs/silicon.md).

They are members of the overlapping family with known costs: two builds of the public HLS design, and the Chisel
design. Their prior deviations are small, so a few measurements confirm or refute them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from hilt.simulator.builds import CHISEL, NEWER, OLDER, shipped_builds
from hilt.simulator.machine import MachineParameters
from hilt.tune.model_guided.machines import StructuralMachine
from hilt.tune.model_guided.structural import COSTS, StructuralEstimate, StructuralTiming
from hilt.vta.accelerator import Accelerator

Floats = npt.NDArray[np.float64]

_NAMES = {NEWER: "public HLS", OLDER: "public HLS, older build", CHISEL: "Chisel"}
_WEIGHTS = {NEWER: 0.3, OLDER: 0.15, CHISEL: 0.15}
"""Prior weights of a board whose accelerator has an interlock; the twin has 1."""
_WITHOUT_INTERLOCK = 3.0
"""Factor on the weights if it has none, as the public designs."""
_LEAST = 0.02
"""Least cost in cycles: logarithms need one."""
_FITTED, _GUESSED = 0.15, 1.0
"""Prior deviations of the logarithm of a cost: from measurements, and otherwise."""
_MEASURED = frozenset(
    {"row", "stored row", "byte", "gemm turn", "gemm micro-op", "alu micro-op", "missed byte"},
)


def public_machines(
    timing: StructuralTiming, rough: StructuralEstimate, accelerator: Accelerator
) -> list[StructuralMachine]:
    """Return the known machines of the overlapping family."""
    factor = _WITHOUT_INTERLOCK if accelerator.hazards == "none" else 1.0
    deviation = np.array([_FITTED if name in _MEASURED else _GUESSED for name in COSTS])
    found = []
    for key, parameters in shipped_builds().machines.items():
        prior = _log_costs(parameters)
        found.append(
            StructuralMachine(timing, rough, True, factor * _WEIGHTS[key], _NAMES[key], prior, deviation, prior[None])
        )
    return found


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
