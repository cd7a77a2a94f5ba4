"""The machines that a bitstream of one's own may be a relative of, and how far its costs may be from theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hilt.silicon.changed_costs import PriorCosts
from hilt.simulator.builds import NEWER, shipped_builds
from hilt.simulator.machine import MachineParameters
from hilt.vta.accelerator import Accelerator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Cost:
    """A free cost: the parameters that it sets, and its prior as deviations of its logarithm.

    Attributes:
        parameters: They have this cost in common.
        least: The start's least value, in their unit; a shipped machine with less does not tell this cost.
        changed: Deviation of a cost that differs from the shipped machine's.
        kept: Deviation of one that does not: the shipped machine's standard error (docs/silicon.md).
    """

    parameters: tuple[str, ...]
    least: float
    changed: float
    kept: float


_COSTS = (
    _Cost(("hit_bytes", "store_bytes"), 1.0, 0.5, 0.02),
    _Cost(("miss_bytes",), 0.5, 0.5, 0.03),
    _Cost(("load_start", "store_start"), 3.0, 1.0, 0.1),
    _Cost(("load_row",), 3.0, 0.7, 0.03),
    _Cost(("store_row",), 3.0, 0.7, 0.16),
    _Cost(("pad_element",), 0.5, 0.8, 0.5),
    _Cost(("gemm_iteration", "reset_iteration"), 0.5, 1.2, 0.35),
    _Cost(("gemm_micro_op",), 0.5, 0.5, 0.02),
    _Cost(("alu_iteration",), 0.3, 1.0, 0.3),
    _Cost(("alu_micro_op",), 0.5, 1.2, 0.06),
    _Cost(("instruction",), 2.0, 1.0, 0.1),
    _Cost(("cache_bytes",), 65536.0, 0.4, 0.06),  # last: machines that differ in others have one cache
)
_CLOCK_DEVIATION, _CLOCK_ERROR = 0.35, 0.02
"""Prior deviations of the logarithm of the true clock over the stated one: if they differ, and if not."""
_CALL_SECONDS, _CALL_DEVIATION = 1e-5, 1.5
"""Time around a program: writing registers and reading a clock."""


@dataclass(frozen=True, eq=False)
class Relative:
    """A shipped machine as the start of a search; logarithms (d,) of costs, clock and call stand for its relatives."""

    name: str
    base: MachineParameters
    prior: PriorCosts

    def machine(self, logarithms: Floats) -> tuple[MachineParameters, float]:
        """Return the machine of logarithms (d,), in cycles of the stated clock, and seconds a call."""
        values = np.exp(logarithms)
        clock, call = values[-2:]
        costs = {name: float(value) for cost, value in zip(_COSTS, values, strict=False) for name in cost.parameters}
        costs["miss_bytes"] = min(costs["miss_bytes"], costs["hit_bytes"])
        if not self.base.cache_bytes:
            costs["cache_bytes"] = 0.0
        return _at_clock(replace(self.base, **costs), float(clock)), float(call)


def relatives(accelerator: Accelerator) -> list[Relative]:
    """Return the starts: each shipped machine with and without a cache, and with rows that overlap and that do not."""
    machines = shipped_builds().machines
    of_newer = machines[NEWER]
    cached = {name: getattr(of_newer, name) for name in ("cache_bytes", "miss_bytes", "store_allocates")}
    found = []
    for (name, base), cache, overlap in product(machines.items(), (True, False), (0.0, 1.0)):
        kind = replace(base, rows_overlap=overlap)
        if cache != bool(base.cache_bytes):
            kind = replace(kind, **cached) if cache else replace(kind, cache_bytes=0.0)
        found.append(_relative(name, kind, accelerator))
    return found


def _relative(name: str, base: MachineParameters, accelerator: Accelerator) -> Relative:
    """Return the start at a shipped machine, with the bus of this bitstream."""
    wider = accelerator.bus_bits / 64
    base = replace(base, hit_bytes=base.hit_bytes * wider, store_bytes=base.store_bytes * wider)
    shipped = np.array([getattr(base, cost.parameters[0]) for cost in _COSTS])
    least = np.array([cost.least for cost in _COSTS])
    prior = PriorCosts(
        means=np.log([*np.maximum(shipped, least), 1.0, _CALL_SECONDS]),
        changed=np.array([*(cost.changed for cost in _COSTS), _CLOCK_DEVIATION, _CALL_DEVIATION]),
        kept=np.array([*(cost.kept for cost in _COSTS), _CLOCK_ERROR, _CALL_DEVIATION]),
        unknown=np.array([*(shipped < least), False, True]),
    )
    return Relative(name, base, prior)


def _at_clock(machine: MachineParameters, factor: float) -> MachineParameters:
    """Return a machine at `factor` times the stated clock in cycles of the stated one."""
    kept = ("rows_overlap", "store_allocates", "cache_bytes")
    rates = ("hit_bytes", "miss_bytes", "store_bytes")
    values = {
        name: value * factor if name in rates else value / factor
        for name, value in vars(machine).items()
        if name not in kept
    }
    return replace(machine, **values)
