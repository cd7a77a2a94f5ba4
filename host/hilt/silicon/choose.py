"""The schedule that a machine model finds fastest for a layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import Conv2d, Reason, Space, Workload, convolution, lower_many, space_for
from hilt.schedule.checks import analyse
from hilt.schedule.rows.checks import alus_of_tile
from hilt.schedule.rows.plans import RowPlans
from hilt.silicon.measured import event_machine
from hilt.silicon.packed_task import PackedTask, TaskError
from hilt.simulator.builds import CLOCK_HZ, shipped_builds
from hilt.simulator.machine import EventMachine, MachineParameters, MachineStatus
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

_TOGETHER = 64
_LONGEST = 6000
"""Instructions: longer programs cost more in the runtime than any schedule gains."""
_LONGEST_OF_SPACE = 1500


@dataclass(frozen=True, eq=False)
class Choice:
    """A program, how it came about, and its cycles by the model."""

    schedule: str
    program: Program
    cycles: float


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A schedule, its program, and cycles that it cannot be below."""

    floor: float
    schedule: str
    program: Program


def choose(layer: Workload, accelerator: Accelerator, machine: MachineParameters) -> Choice:
    """Return the fastest of hilt's schedules for a layer: of its space, and of row programs.

    The measurements do not tell an instruction's cost in its stage from the runtime's. The choice counts half of it in
    the stage, so that it does not rest on instructions being free; the cycles it states are the model's own.

    Raises:
        TaskError: No schedule fits the accelerator.
    """
    workload = convolution(layer)
    model = event_machine(accelerator.parameters)
    careful = replace(machine, instruction=machine.instruction + _careful_cycles())
    best: Choice | None = None
    for candidates in (_row_candidates(workload, accelerator, careful), _space_candidates(workload, accelerator)):
        best = _fastest(candidates, model, careful, best)
    if best is None:
        raise TaskError(f"workload {workload.name}: no schedule of hilt's fits {accelerator.parameters.name}")
    return replace(best, cycles=float(model.predict([best.program], machine)["cycles"][0]))


def _careful_cycles() -> float:
    """Return half of the runtime's cycles for an instruction."""
    return shipped_builds().runtime.instruction_seconds * CLOCK_HZ / 2


def _fastest(
    candidates: Iterator[_Candidate], model: EventMachine, machine: MachineParameters, best: Choice | None
) -> Choice | None:
    """Return the fastest; the search ends where a candidate can be no faster, as those behind it."""
    batch: list[_Candidate] = []
    for candidate in candidates:
        if best is not None and candidate.floor >= best.cycles:
            break
        batch.append(candidate)
        if len(batch) == _TOGETHER:
            best, batch = _better(batch, model, machine, best), []
    return _better(batch, model, machine, best)


def _better(
    batch: list[_Candidate], model: EventMachine, machine: MachineParameters, best: Choice | None
) -> Choice | None:
    if not batch:
        return best
    results = model.predict([candidate.program for candidate in batch], machine)
    cycles = np.where(results["status"] == MachineStatus.DONE, results["cycles"], np.inf)
    row = int(np.argmin(cycles))
    if not np.isfinite(cycles[row]) or (best is not None and best.cycles <= cycles[row]):
        return best
    return Choice(batch[row].schedule, batch[row].program, float(cycles[row]))


def _space_candidates(workload: Conv2d, accelerator: Accelerator) -> Iterator[_Candidate]:
    """The configurations of hilt's space that its compiler accepts."""
    space = space_for(workload, accelerator, orders=4)
    analysis = analyse(workload, accelerator, space.columns(range(len(space))))
    instructions, _ = analysis.needs[Reason.INSN_LIMIT]
    indices = np.flatnonzero((analysis.verdict(CheckLevel.COMPILER) == 0) & (instructions <= _LONGEST_OF_SPACE))
    for index, program in zip(indices, lower_many(workload, space.columns(indices), accelerator), strict=True):
        if isinstance(program, Program):
            yield _Candidate(0.0, _schedule(space, int(index)), program)


def workload_of(task: PackedTask) -> Conv2d:
    """Return a packed convolution as hilt's workload."""
    return Conv2d(
        name=task.name,
        batch=task.batch * task.images,
        in_channels=task.in_blocks * task.block,
        height=task.height,
        width=task.width,
        out_channels=task.out_blocks * task.block,
        kernel=task.kernel,
        stride=task.strides,
        padding=task.padding,
    )


def _row_candidates(workload: Conv2d, accelerator: Accelerator, machine: MachineParameters) -> Iterator[_Candidate]:
    """The row programs that the compiler accepts, the least possible cycles first."""
    space = space_for(workload, accelerator, kind=SpaceName.ROWS)
    analysis = analyse(workload, accelerator, space.columns(range(len(space))))
    if analysis.rows is None:
        return
    instructions, _ = analysis.needs[Reason.INSN_LIMIT]
    floors = _floors(analysis.rows, accelerator, machine)
    indices = np.flatnonzero((analysis.verdict(CheckLevel.COMPILER) == 0) & (instructions <= _LONGEST))
    indices = indices[np.argsort(floors[indices], kind="stable")]
    for index, program in zip(indices, lower_many(workload, space.columns(indices), accelerator), strict=True):
        if isinstance(program, Program):
            yield _Candidate(float(floors[index]), _schedule(space, int(index)), program)


def _floors(plans: RowPlans, accelerator: Accelerator, machine: MachineParameters) -> NDArray[np.float64]:
    """Return cycles (n,) that no row program is below: those of its slowest stage, had all data been in the cache."""
    tiling, parameters = plans.tiling, accelerator.parameters
    sums = tiling.tiles * tiling.acc_elements
    loaded = plans.inp_elements * parameters.inp_element_bytes
    loaded = loaded + plans.wgt_boxes * tiling.wgt_elements * parameters.wgt_element_bytes
    rows, beats = plans.load_rows * machine.load_row, loaded / machine.hit_bytes
    load = np.maximum(rows, beats) if machine.rows_overlap else rows + beats
    load = load + (plans.inp_loads + plans.wgt_loads) * machine.instruction
    alus = alus_of_tile(plans)
    compute = plans.products * machine.gemm_micro_op + plans.turns * machine.gemm_iteration
    compute = compute + sums * (machine.gemm_micro_op + alus * (machine.alu_iteration + machine.alu_micro_op))
    compute = compute + (plans.gemms + tiling.tiles * (1 + alus)) * machine.instruction
    return np.asarray(np.maximum(load, compute), dtype=np.float64)


def _schedule(space: Space, index: int) -> str:
    return " ".join(f"{name}={value}" for name, value in space.knobs_at(index).items())
