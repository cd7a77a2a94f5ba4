"""Programs in TVM's form: bit-exact on the golden model, and of the size and order that TVM's have."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.silicon.measured import MeasuredWorkload, public_accelerator
from hilt.silicon.packed_task import CONV2D_TRANSPOSE, GROUP_CONV2D, PackedTask, TaskError, packed_task
from hilt.silicon.tvm_program import tvm_program
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta import reference
from hilt.vta.isa import MemoryType, Opcode, decode
from hilt.vta.parameters import load_parameters
from tests.unit.silicon.published import measured

PYNQ = public_accelerator(load_parameters("pynq"))
ITEMS = measured()


def tensors(task: PackedTask, seed: int) -> tuple[dict[str, NDArray[np.int8]], NDArray[np.int8]]:
    """Packed inputs as the program reads them, and the packed output by numpy."""
    generator = np.random.default_rng(seed)
    height, width = task.input_size
    data = generator.integers(-16, 17, (task.batch, task.in_blocks, height, width, task.images, task.block)).astype(
        np.int8
    )
    if task.kind == CONV2D_TRANSPOSE:
        data[:, :, np.arange(height) % task.strides[0] != 0] = 0
        data[:, :, :, np.arange(width) % task.strides[1] != 0] = 0
    shape = (task.out_blocks, task.reduce_blocks, *task.kernel, task.block, task.block)
    weights = generator.integers(-16, 17, shape).astype(np.int8)
    plain_data = data.transpose(0, 4, 1, 5, 2, 3).reshape(task.batch * task.images, -1, height, width)
    plain_weights = weights.transpose(0, 4, 1, 5, 2, 3).reshape(
        task.out_blocks * task.block, task.reduce_blocks * task.block, *task.kernel
    )
    out = reference.conv2d(
        plain_data, plain_weights, stride=task.slide, padding=task.pads, groups=task.groups, shift=8, clip=(0, 127)
    )
    rows, columns = task.output_size
    packed = out.reshape(task.batch, task.images, task.out_blocks, task.block, rows, columns).transpose(
        0, 2, 4, 5, 1, 3
    )
    return {"inp": data, "wgt": weights}, np.ascontiguousarray(packed)


@pytest.mark.slow
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.record.task.name}-{item.record.date}")
def test_a_published_configuration_computes_its_layer_exactly(item: MeasuredWorkload) -> None:
    inputs, expected = tensors(item.record.task, 3)
    run = run_program(build(public_accelerator(item.record.parameters), "golden"), item.program, inputs)
    assert run.execution.status is DeviceStatus.DONE
    assert np.array_equal(run.output, expected.reshape(-1))
    assert expected.std() > 1


def c2(knobs: dict[str, int]) -> int:
    task = packed_task("conv2d_packed.vta", (1, 4, 56, 56, 1, 16), (4, 4, 3, 3, 16, 16), (1, 1), (1, 1))
    return len(tvm_program(task, knobs, PYNQ).instructions)


@pytest.mark.slow
def test_the_longest_program_of_a_layer_is_as_long_as_tvms() -> None:
    """One pixel of one block a tile and two threads: TVM's own program of C2 has 225,810 instructions at most."""
    knobs = {"tile_h": 1, "tile_w": 1, "tile_ci": 1, "tile_co": 1, "oc_nthread": 2, "h_nthread": 1}
    assert abs(c2(knobs) - 225_810) <= 10


def test_the_stages_see_loads_in_turns_of_the_threads() -> None:
    item = next(item for item in ITEMS if item.record.knobs["oc_nthread"] == 2)
    instructions = decode(item.program.instructions, public_accelerator(item.record.parameters))
    loads = instructions[(instructions["opcode"] == Opcode.LOAD) & (instructions["x_size"] > 0)]
    inputs = loads[loads["memory_type"] == MemoryType.INP]
    places = inputs["sram_base"][:4]
    assert places[0] == places[2] == 0 < places[1] == places[3]


def test_a_tile_that_the_templates_lack_is_refused_by_name() -> None:
    task = packed_task(GROUP_CONV2D, (1, 32, 14, 14, 1, 16), (32, 1, 3, 3, 16, 16), (1, 1), (1, 1))
    knobs = {"tile_h": 14, "tile_w": 14, "tile_ci": 1, "tile_co": 2, "oc_nthread": 1, "h_nthread": 1}
    with pytest.raises(TaskError, match="tile_co 2 spans groups"):
        tvm_program(task, knobs, PYNQ)
    with pytest.raises(TaskError, match="tile_h is 5; give a factor of 14"):
        tvm_program(task, {**knobs, "tile_co": 1, "tile_h": 5}, PYNQ)
    with pytest.raises(TaskError, match="2x2 threads"):
        tvm_program(task, {**knobs, "tile_co": 1, "tile_h": 7, "oc_nthread": 2, "h_nthread": 2}, PYNQ)
