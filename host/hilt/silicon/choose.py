"""The schedule that a machine model finds fastest for a layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hilt.run_choices import CheckLevel
from hilt.schedule import Conv2d, Reason, Workload, convolution, lower_many, space_for
from hilt.schedule.checks import analyse
from hilt.silicon.measured import event_machine
from hilt.silicon.packed_task import CONV2D, PackedTask, TaskError, packed_task
from hilt.silicon.row_nest import RowTile
from hilt.silicon.row_program import RowSchedule, row_program
from hilt.simulator.builds import CLOCK_HZ, shipped_builds
from hilt.simulator.machine import EventMachine, MachineParameters, MachineStatus
from hilt.vta.accelerator import Accelerator, FieldOverflowError
from hilt.vta.program import Program, ProgramError

_TOGETHER = 128
_LONGEST = 6000
"""Instructions: longer programs cost more in the runtime than any schedule gains."""
_LONGEST_OF_SPACE = 1500


@dataclass(frozen=True, eq=False)
class Choice:
    """A program, how it came about, and its cycles by the model."""

    schedule: str
    program: Program
    cycles: float


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
    for candidates in (_row_candidates(workload, accelerator), _space_candidates(workload, accelerator)):
        best = _fastest(candidates, model, careful, best)
    if best is None:
        raise TaskError(f"workload {workload.name}: no schedule of hilt's fits {accelerator.parameters.name}")
    return replace(best, cycles=float(model.predict([best.program], machine)["cycles"][0]))


def _careful_cycles() -> float:
    """Return half of the runtime's cycles for an instruction."""
    return shipped_builds().runtime.instruction_seconds * CLOCK_HZ / 2


def _fastest(
    candidates: Iterator[tuple[str, Program]], model: EventMachine, machine: MachineParameters, best: Choice | None
) -> Choice | None:
    batch: list[tuple[str, Program]] = []
    for candidate in candidates:
        batch.append(candidate)
        if len(batch) == _TOGETHER:
            best, batch = _better(batch, model, machine, best), []
    return _better(batch, model, machine, best)


def _better(
    batch: list[tuple[str, Program]], model: EventMachine, machine: MachineParameters, best: Choice | None
) -> Choice | None:
    if not batch:
        return best
    results = model.predict([program for _, program in batch], machine)
    cycles = np.where(results["status"] == MachineStatus.DONE, results["cycles"], np.inf)
    row = int(np.argmin(cycles))
    if not np.isfinite(cycles[row]) or (best is not None and best.cycles <= cycles[row]):
        return best
    return Choice(*batch[row], float(cycles[row]))


def _space_candidates(workload: Conv2d, accelerator: Accelerator) -> Iterator[tuple[str, Program]]:
    """The configurations of hilt's space that its compiler accepts."""
    space = space_for(workload, accelerator, orders=4)
    analysis = analyse(workload, accelerator, space.columns(range(len(space))))
    instructions, _ = analysis.needs[Reason.INSN_LIMIT]
    indices = np.flatnonzero((analysis.verdict(CheckLevel.COMPILER) == 0) & (instructions <= _LONGEST_OF_SPACE))
    for index, program in zip(indices, lower_many(workload, space.columns(indices), accelerator), strict=True):
        if isinstance(program, Program):
            knobs = space.knobs_at(int(index))
            yield " ".join(f"{name}={value}" for name, value in knobs.items()), program


def task_of(workload: Conv2d, accelerator: Accelerator) -> PackedTask | None:
    """Return the packed task of a plain convolution in whole blocks; None of any other."""
    parameters = accelerator.parameters
    blocks = (workload.in_channels % parameters.block, workload.out_channels % parameters.block)
    plain = workload.groups == 1 and workload.input_dilation == (1, 1) and workload.padding_end is None
    clipped = (workload.bias, workload.shift, workload.clip) == (False, 8, (0, 127))
    if any(blocks) or workload.batch % parameters.batch or not plain or not clipped:
        return None
    ci, co = workload.in_channels // parameters.block, workload.out_channels // parameters.block
    data = (workload.batch // parameters.batch, ci, workload.height, workload.width, parameters.batch, parameters.block)
    kernel = (co, ci, *workload.kernel, parameters.block, parameters.block)
    return packed_task(CONV2D, data, kernel, workload.stride, workload.padding)


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


def _row_candidates(workload: Conv2d, accelerator: Accelerator) -> Iterator[tuple[str, Program]]:
    task = task_of(workload, accelerator)
    if task is None:
        return
    for height in _factors(task.output_size[0]):
        for co in _factors(task.out_blocks):
            for ci in _factors(task.reduce_blocks):
                for resident in (False, True):
                    schedule = RowSchedule(RowTile(height, co, ci), resident)
                    steps = task.output_size[0] // height * (task.out_blocks // co) * (task.reduce_blocks // ci)
                    if steps * 3 > _LONGEST:
                        continue
                    try:
                        program = row_program(task, schedule, accelerator)
                    except (TaskError, FieldOverflowError, ProgramError):
                        continue
                    kept = " resident" if resident else ""
                    yield f"rows height={height} co={co} ci={ci}{kept}", program


def _factors(size: int) -> list[int]:
    return [factor for factor in range(1, size + 1) if size % factor == 0]
