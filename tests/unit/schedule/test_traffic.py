"""The closed form of a program's moves and instructions, against the counts in the lowered program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from hilt.schedule import Conv2d, load_workload, lower, space_for, verdicts
from hilt.schedule.checks import analyse
from hilt.schedule.tiling import TilingProblem
from hilt.schedule.traffic import _moves, traffic
from hilt.schedule.transfers import fold
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode
from tests.unit.schedule.cases import BATCHED, PYNQ, accepted, small_convolutions


def counted(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> dict[str, int]:
    """Return the counts from the instructions themselves."""
    parameters = accelerator.parameters
    instructions = decode(lower(workload, knobs, accelerator).instructions, accelerator)

    def chosen(opcode: Opcode, memory: MemoryType | None = None) -> NDArray[Any]:
        found = instructions["opcode"] == opcode
        return instructions[found if memory is None else found & (instructions["memory_type"] == memory)]

    def elements(transfers: NDArray[Any]) -> int:
        return int((transfers["y_size"].astype(np.int64) * transfers["x_size"]).sum())

    inp, wgt = chosen(Opcode.LOAD, MemoryType.INP), chosen(Opcode.LOAD, MemoryType.WGT)
    bias, stores, alus = chosen(Opcode.LOAD, MemoryType.ACC), chosen(Opcode.STORE), chosen(Opcode.ALU)
    return {
        "inp_bytes": elements(inp) * parameters.inp_element_bytes,
        "wgt_bytes": elements(wgt) * parameters.wgt_element_bytes,
        "bias_bytes": elements(bias) * parameters.acc_element_bytes,
        "out_bytes": elements(stores) * parameters.out_element_bytes,
        "inp_loads": len(inp),
        "wgt_loads": len(wgt),
        "gemms": len(chosen(Opcode.GEMM)),
        "alus": len(alus),
        "stores": len(stores),
        "instructions": len(instructions),
        "load_tokens": int(inp["push_next"].sum() + wgt["push_next"].sum()),
        "store_tokens": int(alus["push_next"].sum()),
    }


def compare(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> bool:
    """Assert that both agree; return False if the threads do not share the tiles evenly."""
    analysis = analyse(workload, accelerator, {name: [value] for name, value in knobs.items()})
    tiling = analysis.tiling
    mixed = tiling.problem.groups > 1 and max(tiling.problem.co // tiling.co[0], 1) % tiling.oc_threads[0]
    if tiling.h_tiles[0] % tiling.h_threads[0] or tiling.co_tiles[0] % tiling.oc_threads[0]:
        return False
    if mixed and not tiling.problem.block_by_block:
        return False
    found = counted(workload, knobs, accelerator)
    said = traffic(analysis)
    assert {name: int(getattr(said, name)[0]) for name in found} == found, knobs
    return True


@pytest.mark.parametrize("columns_apart", [False, True])
def test_the_moves_of_a_box_are_those_of_its_transfers(columns_apart: bool) -> None:
    """Boxes of four dimensions with strides that merge, and that do not, and rows further apart than a stride is."""
    problem = TilingProblem.of(load_workload("resnet18.C2"), PYNQ)
    limit = PYNQ.formats.memory.by_name["x_stride"].high
    random, none = np.random.default_rng(6), np.zeros(200, dtype=np.int64)
    for columns in (1, 2, 5):
        for row in (columns, columns + 3, limit, limit + 1):
            for plane in (row * 4, row * 7, 5 * limit):
                counts = random.integers(1, 5, (3, 200))
                sizes = [*counts, np.full(200, columns)]
                strides = [plane * 3, plane, row, 1]
                dimensions = list(zip(sizes, strides, strict=True))
                pads = (np.full(200, int(columns_apart)), none)
                wanted = fold(dimensions, limit, (none, none), pads).counts
                if columns_apart:
                    dimensions = dimensions[:3]
                found = _moves(problem, dimensions, columns_apart=columns_apart)
                np.testing.assert_array_equal(found, wanted, err_msg=f"{columns} {row} {plane}")


SPACES: dict[str, dict[str, Any]] = {
    "autotvm": {},
    "orders": {"orders": 4},
    "ml2": {"kind": "ml2"},
    "rows": {"kind": "rows"},
}
GROUPED = "conv2d:n=1,ci=64,h=12,w=10,co=128,k=3x3,s=1x1,p=1x1,groups=2"
TRANSPOSED = "conv2d_transpose:n=1,ci=32,h=6,w=7,co=64,k=3x3,s=2x2,p=1x1,op=1x1"


@pytest.mark.parametrize(("name", "space"), [("resnet18.C9", "autotvm"), (GROUPED, "orders"), (TRANSPOSED, "autotvm")])
def test_a_few_configurations(name: str, space: str) -> None:
    workload = load_workload(name)
    chosen = space_for(workload, PYNQ, **SPACES[space])
    indices = chosen.sample(120, np.random.default_rng(5))
    valid = indices[verdicts(workload, PYNQ, chosen.columns(indices)) == 0][:6]
    assert sum(compare(workload, chosen.knobs_at(int(index)), PYNQ) for index in valid) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(
    "name", ["resnet18.C2", "resnet18.C4", "resnet18.C9", "deepbench.8", "mobilenet.D1", GROUPED, TRANSPOSED]
)
def test_known_layers(name: str, space: str) -> None:
    workload = load_workload(name)
    chosen = space_for(workload, PYNQ, **SPACES[space])
    indices = chosen.sample(200, np.random.default_rng(4))
    valid = indices[verdicts(workload, PYNQ, chosen.columns(indices)) == 0][:10]
    assert sum(compare(workload, chosen.knobs_at(int(index)), PYNQ) for index in valid) >= 4


@settings(max_examples=10, deadline=None, derandomize=True)
@given(small_convolutions())
def test_a_few_convolutions(workload: Conv2d) -> None:
    for accelerator in (PYNQ, BATCHED):
        for knobs in accepted(workload, accelerator, 2, seed=2):
            compare(workload, knobs, accelerator)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(small_convolutions())
@pytest.mark.slow
def test_any_convolution(workload: Conv2d) -> None:
    for accelerator in (PYNQ, BATCHED):
        for knobs in accepted(workload, accelerator, 3, seed=1):
            compare(workload, knobs, accelerator)
