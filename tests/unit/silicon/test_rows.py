"""hilt's row programs: exact with padding, strides and lost sums in play, and the choice of a schedule."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from hilt.cli.silicon import application
from hilt.schedule import load_workload, make_tensors
from hilt.silicon.choose import choose, task_of
from hilt.silicon.measured import event_machine, public_accelerator
from hilt.silicon.packed_task import TaskError
from hilt.silicon.row_nest import RowTile
from hilt.silicon.row_program import RowSchedule, row_program
from hilt.simulator.build import build
from hilt.simulator.builds import NEWER, shipped_builds
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.parameters import load_parameters

PYNQ = public_accelerator(load_parameters("pynq"))
BATCHED = public_accelerator(load_parameters("pynq_batched"))


def schedule(height: int, co: int, ci: int, resident: bool = False) -> RowSchedule:
    return RowSchedule(RowTile(height, co, ci), resident)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "rows", "accelerator"),
    [
        ("conv2d:n=1,ci=32,h=8,w=8,co=64,k=3x3,s=1x1,p=1x1", schedule(2, 2, 1), PYNQ),
        ("conv2d:n=1,ci=32,h=8,w=8,co=64,k=3x3,s=1x1,p=1x1", schedule(4, 1, 2, True), PYNQ),
        ("conv2d:n=1,ci=64,h=9,w=7,co=32,k=3x3,s=2x2,p=1x1", schedule(5, 2, 2), PYNQ),
        ("conv2d:n=1,ci=64,h=9,w=7,co=32,k=3x3,s=2x2,p=1x1", schedule(1, 1, 4), PYNQ),
        ("conv2d:n=2,ci=32,h=8,w=8,co=32,k=1x1,s=2x2,p=0x0", schedule(2, 2, 2, True), PYNQ),
        ("conv2d:n=1,ci=32,h=11,w=11,co=32,k=5x5,s=1x1,p=2x2", schedule(11, 1, 1), PYNQ),
        ("conv2d:n=4,ci=16,h=6,w=6,co=32,k=3x3,s=1x1,p=1x1", schedule(3, 2, 1), BATCHED),
    ],
)
def test_a_row_program_computes_its_layer_exactly(text: str, rows: RowSchedule, accelerator: object) -> None:
    on = BATCHED if accelerator is BATCHED else PYNQ
    workload = load_workload(text)
    task = task_of(workload, on)
    assert task is not None
    program = row_program(task, rows, on)
    tensors = make_tensors(workload, on, 7)
    run = run_program(build(on, "golden"), program, tensors.inputs)
    assert run.execution.status is DeviceStatus.DONE
    assert np.array_equal(run.output, tensors.expected.reshape(-1))


def test_products_with_padding_are_left_out() -> None:
    workload = load_workload("resnet18.C11")
    task = task_of(workload, PYNQ)
    assert task is not None
    machine = shipped_builds().machines[NEWER]
    (result,) = event_machine(PYNQ.parameters).predict([row_program(task, schedule(7, 1, 16, True), PYNQ)], machine)
    assert result["gemm_cycles"] < 0.86 * task.micro_ops


def test_a_tile_that_does_not_fit_is_refused() -> None:
    task = task_of(load_workload("resnet18.C2"), PYNQ)
    assert task is not None
    with pytest.raises(TaskError, match="elements of acc"):
        row_program(task, schedule(8, 4, 1), PYNQ)
    with pytest.raises(TaskError, match="does not divide"):
        row_program(task, schedule(5, 1, 1), PYNQ)


def test_only_plain_convolutions_of_whole_blocks_have_row_programs() -> None:
    assert task_of(load_workload("conv2d:n=1,ci=24,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1"), PYNQ) is None
    assert task_of(load_workload("conv2d:n=1,ci=32,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1,groups=2"), PYNQ) is None


@pytest.mark.slow
def test_the_choice_is_faster_than_tvms_published_one() -> None:
    """C10: TVM's best took 1,080.9 us on a board, with some 100 us of runtime."""
    choice = choose(load_workload("resnet18.C10"), PYNQ, shipped_builds().machines[NEWER])
    assert 251e2 < choice.cycles < 600e2


def test_choose_refuses_a_machine_that_is_not() -> None:
    printed = CliRunner().invoke(application, ["choose", "--machine", "abacus", "--json"])
    assert isinstance(printed.exception, TaskError) and "abacus" in str(printed.exception)
    assert "layers" not in json.dumps(printed.stdout)
