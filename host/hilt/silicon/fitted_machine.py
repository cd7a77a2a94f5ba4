"""A machine that measurements gave, with its errors."""

from __future__ import annotations

from dataclasses import dataclass

from hilt.simulator.machine import MachineParameters


@dataclass(frozen=True)
class FittedMachine:
    """A machine that measurements gave.

    Attributes:
        machine: Costs in cycles of the clock that the bitstream states.
        call_seconds: Time around each program.
        start: The shipped machine at which the search began.
        measurements: How many were fitted.
        workloads: Of how many workloads they are.
        fitted_error: Root mean square of the logarithm of predicted over measured seconds.
        unseen_error: The same of workloads that a fit did not see; None with one workload.
    """

    machine: MachineParameters
    call_seconds: float
    start: str
    measurements: int
    workloads: int
    fitted_error: float
    unseen_error: float | None
