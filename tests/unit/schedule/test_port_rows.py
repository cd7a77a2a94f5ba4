"""LOADs of one row of inputs, which several read ports bring in rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.schedule.port_rows import in_port_rows
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, MemoryType, Opcode
from hilt.vta.parameters import VTAParameters

ONE = Accelerator.for_parameters(VTAParameters.from_name("2x32_i8w8a32_15_16_19_18"), bus_bits=128)
FOUR = replace(ONE, read_ports=4)


def load(**fields: int) -> NDArray[np.void]:
    record = np.zeros(1, dtype=INSTRUCTION)
    values = {"opcode": Opcode.LOAD, "memory_type": MemoryType.INP, "sram_base": 5, "dram_base": 7, "y_size": 1}
    for name, value in {**values, **fields}.items():
        record[name] = value
    return record


@pytest.mark.parametrize(("elements", "rows"), [(56, 4), (98, 7), (3, 3), (1, 1), (131, 1), (14, 7)])
def test_all_ports_bring_rows_of_one_run(elements: int, rows: int) -> None:
    """98 elements: with 7 rows a port brings at most 28, with 49 rows 26. 131 is prime, and above the most rows."""
    (made,) = in_port_rows(load(x_size=elements), FOUR)
    assert int(made["y_size"]) == rows
    assert int(made["y_size"]) * int(made["x_size"]) == elements
    assert int(made["x_stride"]) == int(made["x_size"])
    assert (made["sram_base"], made["dram_base"]) == (5, 7)


def test_other_loads_stay_as_they_are() -> None:
    others = np.concatenate(
        [
            load(x_size=0),
            load(x_size=56, x_pad_0=1),
            load(x_size=56, y_pad_1=1),
            load(x_size=14, x_stride=28, y_size=4),
            load(x_size=56, memory_type=MemoryType.WGT),
            load(x_size=56, memory_type=MemoryType.UOP),
            load(x_size=56, opcode=Opcode.STORE),
        ]
    )
    assert np.array_equal(in_port_rows(others, FOUR), others)
    assert np.array_equal(in_port_rows(load(x_size=56), ONE), load(x_size=56))
