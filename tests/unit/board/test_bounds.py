"""Bounds of LOADs and STOREs against a plain walk over every byte that each would touch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.vta.accelerator import Accelerator, load_parameters
from hilt.vta.isa import INSTRUCTION, MemoryType, Opcode, encode
from hilt_runtime import program_check
from hilt_runtime.isa import geometry
from hilt_runtime.program_check import InstructionSet, ProgramCheckError, check_bounds

ACCELERATORS = {name: Accelerator.for_parameters(load_parameters(name)) for name in ("pynq", "pynq_batched", "zcu102")}
ACCELERATORS["rev_b"] = replace(ACCELERATORS["pynq"], isa=type(ACCELERATORS["pynq"].isa).B)


def bytes_of(accelerator: Accelerator, memory_type: MemoryType) -> int:
    parameters = accelerator.parameters
    return {
        MemoryType.UOP: accelerator.uop_element_bytes,
        MemoryType.WGT: parameters.wgt_element_bytes,
        MemoryType.INP: parameters.inp_element_bytes,
        MemoryType.ACC: parameters.acc_element_bytes,
        MemoryType.OUT: parameters.out_element_bytes,
    }[memory_type]


def touched(row: dict[str, int], size: int) -> set[int]:
    """Return the first and last byte of every element, by the definition of a 2D transfer (HARDWARE.md section 3)."""
    # Micro-ops are one row, whatever y_size says: 0 rows of them once passed as no access.
    rows = 1 if row["memory_type"] == MemoryType.UOP else row["y_size"]
    elements = (row["dram_base"] + y * row["x_stride"] + x for y in range(rows) for x in range(row["x_size"]))
    return {element * size + byte for element in elements for byte in (0, size - 1)}


def is_refused(
    accelerator: Accelerator, row: dict[str, int], buffers: list[tuple[str, int, int]], **options: bool
) -> bool:
    record = np.zeros(1, dtype=INSTRUCTION)
    for name, value in row.items():
        record[name] = value
    machine = InstructionSet(geometry(accelerator.parameters.name), str(accelerator.isa), **options)
    try:
        check_bounds(encode(record, accelerator), machine, buffers)
    except ProgramCheckError:
        return True
    return False


@pytest.mark.parametrize("name", ACCELERATORS)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_accesses_outside_every_buffer_are_refused(name: str, data: st.DataObject) -> None:
    accelerator = ACCELERATORS[name]
    kind = data.draw(st.sampled_from([MemoryType.WGT, MemoryType.INP, MemoryType.ACC, MemoryType.UOP, MemoryType.OUT]))
    size = bytes_of(accelerator, kind)
    row = {
        "opcode": Opcode.STORE if kind is MemoryType.OUT else Opcode.LOAD,
        "memory_type": kind,
        "dram_base": data.draw(st.integers(0, 40)),
        "y_size": data.draw(st.integers(0, 4)),
        "x_size": data.draw(st.integers(0, 5)),
        "x_stride": data.draw(st.integers(0, 9)),
    }
    low, length = data.draw(st.integers(0, 30)), data.draw(st.integers(1, 30))
    buffers = [("far", 1 << 24, 4096), ("near", low * size, length * size)]
    inside = all(low * size <= byte < (low + length) * size for byte in touched(row, size))
    assert is_refused(accelerator, row, buffers) is not inside


def test_the_largest_fields_do_not_wrap() -> None:
    row = {"opcode": Opcode.STORE, "memory_type": MemoryType.OUT, "dram_base": 0xFFFFFFFF}
    row |= {"y_size": 0xFFFF, "x_size": 0xFFFF, "x_stride": 0xFFFF}
    assert is_refused(ACCELERATORS["pynq"], row, [("out", 0, 1 << 31)])
    assert not is_refused(ACCELERATORS["pynq"], row, [("all", 0, 1 << 60)])


@pytest.mark.parametrize("name", ACCELERATORS)
def test_a_store_by_way_of_the_table_is_bounded_and_one_to_it_touches_no_memory(name: str) -> None:
    accelerator = ACCELERATORS[name]
    size, count = bytes_of(accelerator, MemoryType.OUT), accelerator.table_elements
    buffers = [("near", 0, 32 * size)]
    by_table = {"opcode": Opcode.STORE, "memory_type": MemoryType.OUT_BY_TABLE, "y_size": 1, "x_size": 8}
    assert not is_refused(accelerator, by_table | {"dram_base": 24}, buffers, table=True)
    assert is_refused(accelerator, by_table | {"dram_base": 25}, buffers, table=True)
    fill = by_table | {"memory_type": MemoryType.TABLE, "dram_base": 1 << 30, "x_size": count}
    assert not is_refused(accelerator, fill, buffers, table=True)
    for wrong in ({"y_size": 0}, {"y_size": 2}, {"x_size": count - 1}, {"x_size": count + 1}):
        assert is_refused(accelerator, fill | wrong, buffers, table=True)
    assert is_refused(accelerator, by_table, buffers)
    assert is_refused(accelerator, fill, buffers)


def test_a_load_that_moves_lanes_is_refused_where_none_can() -> None:
    lanes = Accelerator.for_parameters(load_parameters("pynq_batched"), bands=True)
    row = {"opcode": Opcode.LOAD, "memory_type": MemoryType.INP, "y_size": 1, "x_size": 1}
    buffers = [("near", 0, 32)]
    for moved in ({"lane_shift": 2}, {"lanes_kept": 1}):
        assert is_refused(lanes, row | moved, buffers)
        assert not is_refused(lanes, row | moved, buffers, bands=True)
    assert not is_refused(lanes, row, buffers)


def test_other_instructions_have_no_memory() -> None:
    for opcode in (Opcode.GEMM, Opcode.ALU, Opcode.FINISH):
        assert not is_refused(ACCELERATORS["pynq"], {"opcode": opcode}, [])


@pytest.mark.parametrize("count", [3, 40, 1000])
def test_the_largest_of_ranges_is_that_of_each(count: int) -> None:
    """A few ranges are reduced one by one, many long ones by a table of powers of two."""
    random = np.random.default_rng(count)
    values = random.integers(0, 1 << 30, 100)
    begins = np.sort(random.integers(0, 100, count))
    ends = np.array([random.integers(begin + 1, 101) for begin in begins])
    ends[-2:], begins[0], ends[0] = 100, 0, 100
    found = program_check._range_max(values, begins, ends)
    assert found.tolist() == [values[begin:end].max() for begin, end in zip(begins, ends, strict=True)]
