"""Records with the program that the board ran, and machine models evaluated on many of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hilt.silicon.packed_task import TaskError
from hilt.silicon.records import BoardRecord, Skipped
from hilt.silicon.tvm_program import tvm_program
from hilt.simulator.builds import build_of
from hilt.simulator.machine import EventMachine, MachineParameters
from hilt.vta.accelerator import Accelerator, FieldOverflowError, IsaRevision
from hilt.vta.parameters import VTAParameters
from hilt.vta.program import Program, ProgramError


@dataclass(frozen=True, eq=False)
class MeasuredWorkload:
    """One record, its program in TVM's form, and the public build that ran it."""

    record: BoardRecord
    program: Program
    build: str

    @property
    def instructions(self) -> int:
        """Length of the program."""
        return len(self.program.instructions)


@lru_cache(maxsize=16)
def public_accelerator(parameters: VTAParameters) -> Accelerator:
    """Return a public bitstream of this geometry: ISA A, no interlock of the accumulator, no table, no window."""
    return Accelerator.for_parameters(parameters, IsaRevision.A, hazards="none", table=False, window=False)


@lru_cache(maxsize=16)
def event_machine(parameters: VTAParameters) -> EventMachine:
    """Return the machine models' library for a public bitstream of this geometry."""
    return EventMachine(public_accelerator(parameters))


def with_programs(records: Sequence[BoardRecord]) -> tuple[list[MeasuredWorkload], list[Skipped]]:
    """Return the records with their programs, and those whose configuration TVM's templates do not have."""
    measured: list[MeasuredWorkload] = []
    skipped: list[Skipped] = []
    for record in records:
        try:
            program = tvm_program(record.task, record.knobs, public_accelerator(record.parameters))
        except (TaskError, FieldOverflowError, ProgramError) as error:
            skipped.append(Skipped(record.line, str(error)))
            continue
        measured.append(MeasuredWorkload(record, program, build_of(record.task.images, record.date)))
    return measured, skipped


def cycles_of(measured: Sequence[MeasuredWorkload], machines: Mapping[str, MachineParameters]) -> NDArray[np.float64]:
    """Return the cycles (records,) of each program on the machine of its build."""
    cycles = np.zeros(len(measured))
    kinds = {(item.record.parameters, item.build) for item in measured}
    for parameters, build in kinds:
        rows = [row for row, item in enumerate(measured) if (item.record.parameters, item.build) == (parameters, build)]
        results = event_machine(parameters).predict([measured[row].program for row in rows], machines[build])
        cycles[rows] = results["cycles"]
    return cycles
