"""Programs in TVM's form, their cycles, and the numbers of the fits, beside those that were accepted.

Where they are meant to change: `build/host-env/bin/pytest tests/unit/silicon/test_as_it_was.py --snapshot-update`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.schedule import Conv2d, load_workload
from hilt.silicon import calibrate, choose, fit
from hilt.silicon.measured import event_machine, public_accelerator
from hilt.silicon.packed_task import (
    CONV2D,
    CONV2D_TRANSPOSE,
    DENSE,
    GROUP_CONV2D,
    PackedTask,
    TaskError,
    packed_task,
)
from hilt.silicon.relatives import relatives
from hilt.silicon.tvm_nest import alu_kernel, gemm_kernel, reset_kernel, tile_of
from hilt.silicon.tvm_program import tvm_program
from hilt.simulator.builds import NEWER, shipped_builds
from hilt.vta.accelerator import FieldOverflowError
from hilt.vta.isa import Opcode, decode
from hilt.vta.parameters import VTAParameters
from hilt.vta.program import Program, ProgramError

PARAMETERS = VTAParameters.from_name("1x16_i8w8a32_12_12_15_14")
ACCELERATOR = public_accelerator(PARAMETERS)
Shapes = tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int]]
Knobs = dict[str, int]


def tile(*factors: int, **threads: int) -> Knobs:
    return dict(zip(("tile_h", "tile_w", "tile_ci", "tile_co"), factors, strict=False)) | threads


def rows_of(rows: int, ci: int, co: int, **threads: int) -> Knobs:
    return {"tile_b": rows, "tile_ci": ci, "tile_co": co} | threads


TASKS: list[tuple[Shapes, list[Knobs]]] = [
    (
        (CONV2D, (1, 4, 6, 8, 1, 16), (4, 4, 3, 3, 16, 16), (1, 1), (1, 1)),
        [
            *(tile(2, 8, 1, 2, oc_nthread=threads) for threads in (1, 2, 3)),
            tile(3, 2, 1, 1, h_nthread=2),
            tile(6, 4, 1, 1),
            tile(2, 4, 1, 2),
            tile(1, 1, 2, 1),
            tile(6, 8, 1, 1, h_nthread=2),
            tile(3, 8, 1, 1, oc_nthread=2, h_nthread=2),
            *(tile(*factors) for factors in ((4, 8, 1, 1), (6, 3, 1, 1), (6, 8, 3, 1), (0, 8, 1, 1), (6, 8, 1))),
        ],
    ),
    (
        (CONV2D, (2, 2, 9, 7, 1, 16), (2, 2, 3, 1, 16, 16), (2, 1), (0, 0)),
        [tile(2, 7, 1, 2), tile(4, 7, 2, 1, h_nthread=1), tile(1, 1, 2, 1, oc_nthread=2)],
    ),
    ((CONV2D, (1, 2, 8, 8, 1, 16), (4, 2, 1, 1, 16, 16), (2, 2), (0, 0)), [tile(1, 4, 2, 2), tile(2, 4, 1, 4)]),
    (
        (GROUP_CONV2D, (1, 4, 6, 6, 1, 16), (8, 2, 3, 3, 16, 16), (1, 1), (1, 1)),
        [tile(2, 6, 1, 4), tile(6, 6, 1, 2, oc_nthread=2), tile(6, 3, 1, 1, h_nthread=1), tile(6, 6, 1, 8)],
    ),
    (
        (CONV2D_TRANSPOSE, (1, 2, 4, 4, 1, 16), (2, 2, 4, 4, 16, 16), (2, 2), (1, 1)),
        [tile(4, 8, 1, 2), tile(8, 8, 1, 1, oc_nthread=2), tile(4, 2, 1, 1), tile(2, 8, 1, 1), tile(4, 1, 1, 1)],
    ),
    (
        (DENSE, (4, 4, 1, 16), (6, 4, 16, 16), (1, 1), (0, 0)),
        [
            *(rows_of(rows, 2, 3, oc_nthread=2) for rows in (1, 2, 3, 4)),
            rows_of(2, 4, 6),
            rows_of(1, 1, 1),
            tile(1, 1, 4, 6),
            tile(2, 1, 4, 6),
            tile(1, 8, 4, 6),
        ],
    ),
    (
        (CONV2D, (1, 32, 16, 16, 1, 16), (8, 32, 1, 1, 16, 16), (1, 1), (0, 0)),
        [tile(16, 16, 1, 2), tile(16, 16, 1, 4), tile(8, 16, 4, 1), tile(4, 16, 4, 8), tile(8, 16, 4, 8)],
    ),
]
REFUSED: list[Shapes] = [
    ("conv3d", (1, 4, 6, 8, 1, 16), (4, 4, 3, 3, 16, 16), (1, 1), (1, 1)),
    (DENSE, (4, 4, 1, 1, 1, 16), (6, 4, 1, 1, 16, 16), (1, 1), (0, 0)),
    (CONV2D, (1, 4, 6, 8, 1, 16), (4, 4, 3, 3, 16), (1, 1), (1, 1)),
    (CONV2D, (1, 0, 6, 8, 1, 16), (4, 4, 3, 3, 16, 16), (1, 1), (1, 1)),
    (CONV2D, (1, 4, 6, 8, 1, 8), (4, 4, 3, 3, 16, 16), (1, 1), (1, 1)),
    (CONV2D, (1, 4, 6, 8, 1, 16), (4, 4, 3, 3, 8, 16), (1, 1), (1, 1)),
    (GROUP_CONV2D, (1, 6, 6, 8, 1, 16), (4, 4, 3, 3, 16, 16), (1, 1), (1, 1)),
    (GROUP_CONV2D, (1, 6, 6, 8, 1, 16), (4, 2, 3, 3, 16, 16), (1, 1), (1, 1)),
    (CONV2D, (1, 4, 6, 8, 1, 16), (4, 2, 3, 3, 16, 16), (1, 1), (1, 1)),
    (CONV2D, (1, 4, 6, 8, 1, 16), (4, 4, 3, 3, 16, 16), (0, 1), (1, 1)),
    (CONV2D, (1, 4, 2, 8, 1, 16), (4, 4, 3, 3, 16, 16), (1, 1), (0, 0)),
    (CONV2D_TRANSPOSE, (1, 2, 4, 4, 1, 16), (2, 2, 4, 4, 16, 16), (2, 2), (4, 0)),
]


def task_of(shapes: Shapes) -> PackedTask | str:
    try:
        return packed_task(*shapes)
    except TaskError as error:
        return str(error)


def program_of(task: PackedTask, knobs: Knobs) -> Program | str:
    try:
        return tvm_program(task, knobs, ACCELERATOR)
    except (TaskError, FieldOverflowError, ProgramError) as error:
        return str(error)


def words(values: Any) -> str:
    return " ".join(f"{value:.5g}" for value in np.ravel(np.asarray(values, dtype=float)))


def facts(task: PackedTask) -> str:
    sizes = (task.groups, task.input_size, task.slide, task.pads, task.output_size, task.micro_ops)
    return f"{task.name}: {sizes}"


def kernels(task: PackedTask, knobs: Knobs) -> Iterator[str]:
    factors = tile_of(task, knobs)
    gemm, reset = gemm_kernel(task, factors), reset_kernel(task, factors).at(7, 0, 0)
    for kernel in (gemm, reset, alu_kernel(factors).at(1, 2, 3)):
        turns = [(loop.extent, loop.dst, loop.src, loop.wgt) for loop in (kernel.outer, kernel.inner)]
        yield f"    {turns} {kernel.uops[:4]} of {len(kernel.uops)}: {np.sum(kernel.uops, axis=0)}"


def stream(program: Program) -> Iterator[str]:
    """Yield the sizes of a program's parts, the sum of every field, and a digest of the order."""
    instructions = decode(program.instructions, ACCELERATOR)
    kinds = Counter(Opcode(opcode).name for opcode in instructions["opcode"].tolist())
    digest = hashlib.sha256(program.instructions.tobytes() + program.uops.tobytes()).hexdigest()[:16]
    buffers = [
        (buffer.name, buffer.bytes, buffer.element_bytes, buffer.instructions.tolist()[-3:])
        for buffer in program.buffers
    ]
    yield f"    {dict(kinds)} {len(program.uops)} micro-ops {buffers} {digest}"
    sums = {name: int(instructions[name].sum()) for name in instructions.dtype.names or ()}
    yield "    " + " ".join(f"{name} {value}" for name, value in sums.items() if value)


def test_programs(snapshot: SnapshotAssertion) -> None:
    lines: list[str] = []
    for shapes, every in TASKS:
        task = packed_task(*shapes)
        lines.append(facts(task))
        for knobs in every:
            program = program_of(task, knobs)
            lines.append(f"  {knobs}: {program if isinstance(program, str) else 'a program'}")
            if not isinstance(program, str):
                lines += [*kernels(task, knobs), *stream(program)]
    lines += [str(task_of(shapes)) for shapes in REFUSED]
    assert "\n".join(lines) == snapshot


def test_blocks_of_another_geometry() -> None:
    other = packed_task(CONV2D, (1, 4, 6, 8, 2, 16), (4, 4, 3, 3, 16, 16), (1, 1), (1, 1))
    with pytest.raises(TaskError, match=r"blocks of 2x16, but the board's are 1x16"):
        other.check_geometry(PARAMETERS)


def test_cycles(snapshot: SnapshotAssertion) -> None:
    every = [(packed_task(*shapes), knobs) for shapes, of_task in TASKS for knobs in of_task]
    made = [program for each in every if isinstance(program := program_of(*each), Program)]
    lines = [f"{len(made)} programs"]
    for name, machine in shipped_builds().machines.items():
        lines.append(f"{name}: {words(event_machine(PARAMETERS).predict(made, machine)['cycles'])}")
        items = [calibrate.Measurement("a", program, 1e-4) for program in made]
        lines.append(f"  errors: {words(calibrate.log_errors(items, machine, 2e-5, ACCELERATOR))}")
    assert "\n".join(lines) == snapshot


def test_starts_of_a_fit(snapshot: SnapshotAssertion) -> None:
    lines: list[str] = []
    for accelerator in (ACCELERATOR, replace(ACCELERATOR, bus_bits=128)):
        for start in relatives(accelerator):
            prior = start.prior
            lines.append(f"{start.name}: {words(prior.means)} within {words(prior.changed)} or {words(prior.kept)}")
            lines.append(f"  unknown: {np.flatnonzero(prior.unknown).tolist()}")
            for point in (np.zeros(len(prior.means)), np.linspace(-1, 1, len(prior.means))):
                machine, call = start.machine(prior.means + prior.changed * point)
                lines.append(f"  {words(list(vars(machine).values()))} call {call:.5g}")
    names = ["a", "b", "a", "c", "d", "e", "f", "g", "b"]
    program: Any = None
    items = [calibrate.Measurement(name, program, 1.0) for name in names]
    lines += [f"{calibrate._folds(items[:count])} {calibrate._refits(items[:count])}" for count in (1, 3, 4, 9)]
    lines.append(f"{calibrate._evenly(5)} {calibrate._evenly(160)[-3:]} {calibrate._evenly(1000)[::20]}")
    lines.append(words(calibrate._robust(np.array([-50.0, -3.0, -0.1, 0.0, 1.0, 9.0]))))
    lines.append(words(calibrate._rms(np.array([3.0, -4.0]))))
    assert "\n".join(lines) == snapshot


def test_published_fits(snapshot: SnapshotAssertion) -> None:
    lines = [str(free) for free in fit.FREE]
    builds = fit.builds_of({free.name: free.start for free in fit.FREE})
    lines += [f"{name}: {machine}" for name, machine in builds.machines.items()]
    lines.append(f"{builds.runtime} {builds.seconds(1000, 10):.5g}")
    jacobian = np.random.default_rng(1).normal(0, 1, (20, len(fit.FREE)))
    errors, correlations = fit._uncertainty(jacobian, np.arange(1.0, 12.0), np.linspace(-0.1, 0.2, 20))
    lines += [words(list(errors.values())), words(correlations[:3])]
    deviations, _ = fit._uncertainty(jacobian[:5], np.arange(1.0, 12.0), np.ones(5))
    lines.append(words(list(deviations.values())))
    assert "\n".join(lines) == snapshot


def test_candidates(snapshot: SnapshotAssertion) -> None:
    layer = load_workload("conv2d:n=1,ci=32,h=6,w=6,co=32,k=3x3,s=1x1,p=1x1")
    assert isinstance(layer, Conv2d)
    machine = replace(shipped_builds().machines[NEWER], instruction=choose._careful_cycles())
    lines = [f"{choose._careful_cycles():.5g} cycles an instruction"]
    for overlap in (0.0, 1.0):
        rows = choose._row_candidates(layer, ACCELERATOR, replace(machine, rows_overlap=overlap))
        lines += [f"{each.floor:.6g} {each.schedule} {len(each.program.instructions)}" for each in islice(rows, 12)]
    whole = choose._space_candidates(layer, ACCELERATOR)
    lines += [f"{each.floor:.6g} {each.schedule} {len(each.program.instructions)}" for each in islice(whole, 12)]
    assert "\n".join(lines) == snapshot
