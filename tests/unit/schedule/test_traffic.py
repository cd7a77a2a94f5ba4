"""The closed form of what a program moves and issues equals what is found in the lowered program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from hilt.schedule import Conv2d, load_workload, lower
from hilt.schedule.checks import analyse
from hilt.schedule.traffic import traffic
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode
from tests.unit.schedule.cases import BATCHED, PYNQ, accepted, small_convolutions


def counted(workload: Conv2d, configuration: dict[str, int], accelerator: Accelerator) -> dict[str, int]:
    """From the instructions themselves."""
    parameters = accelerator.parameters
    instructions = decode(lower(workload, configuration, accelerator).instructions, accelerator)

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


def compare(workload: Conv2d, configuration: dict[str, int], accelerator: Accelerator) -> bool:
    """Asserts that both agree; False where the threads do not share the tiles evenly."""
    analysis = analyse(workload, accelerator, {name: [value] for name, value in configuration.items()})
    tiling = analysis.tiling
    if tiling.h_tiles[0] % tiling.h_threads[0] or tiling.co_tiles[0] % tiling.oc_threads[0]:
        return False
    found = counted(workload, configuration, accelerator)
    said = traffic(analysis)
    assert {name: int(getattr(said, name)[0]) for name in found} == found, configuration
    return True


@pytest.mark.parametrize("name", ["resnet18.C2", "resnet18.C4", "resnet18.C9", "deepbench.8", "deepbench.53"])
def test_known_layers(name: str) -> None:
    workload = load_workload(name)
    compared = [compare(workload, configuration, PYNQ) for configuration in accepted(workload, PYNQ, 12, seed=4)]
    assert sum(compared) >= 6


@settings(max_examples=60, deadline=None, derandomize=True)
@given(small_convolutions())
def test_any_convolution(workload: Conv2d) -> None:
    for accelerator in (PYNQ, BATCHED):
        for configuration in accepted(workload, accelerator, 3, seed=1):
            compare(workload, configuration, accelerator)
