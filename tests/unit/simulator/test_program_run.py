"""A program in the model's memory: the places of its buffers, their first contents, and inputs that are not its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.simulator import program_run
from hilt.simulator.driver import Fault
from hilt.simulator.program_run import UNWRITTEN, place, run_program
from hilt.vta.isa import INSTRUCTION, MemoryType, Opcode, encode
from hilt.vta.program import Buffer, Program, ProgramError
from hilt_runtime.registers import FaultCode
from tests.unit.vta.variants import PYNQ_B

NONE = np.empty(0, np.int64)
INPUT = np.arange(4097, dtype=np.uint8)[:4096].view(np.int8)


def program() -> Program:
    stream = np.zeros(2, dtype=INSTRUCTION)
    stream["opcode"] = [Opcode.LOAD, Opcode.FINISH]
    buffers = (
        Buffer("uop", MemoryType.UOP, 12, 4, NONE),
        Buffer("inp", MemoryType.INP, 4096, 16, np.array([0])),
        Buffer("out", MemoryType.OUT, 4097, 1, NONE),
    )
    return Program.assemble(PYNQ_B, encode(stream, PYNQ_B), np.arange(3, dtype=np.uint32)[:, None], buffers)


def test_each_buffer_has_pages_of_its_own() -> None:
    addresses, free = place(program(), 0x10_0000)
    assert addresses == {"insn": 0x10_0000, "uop": 0x10_1000, "inp": 0x10_2000, "out": 0x10_3000}
    assert free == 0x10_5000


def test_an_empty_buffer_has_a_page_too() -> None:
    buffers = (replace(program().buffers[0], bytes=0), *program().buffers[1:])
    addresses, _ = place(replace(program(), buffers=buffers), 0)
    assert addresses["inp"] - addresses["uop"] == 0x1000


def test_buffers_hold_their_inputs_the_micro_ops_and_bytes_that_nothing_wrote() -> None:
    contents = program_run._contents(program(), {"inp": INPUT})
    assert list(contents) == ["uop", "inp", "out"]
    assert contents["uop"].ravel().tolist() == [0, 1, 2] and contents["inp"] is INPUT
    assert contents["out"].tolist() == [UNWRITTEN] * 4097


def test_memory_of_two_sizes_of_elements_is_filled_once() -> None:
    twice = replace(program(), buffers=(*program().buffers, replace(program().buffers[1], element_bytes=256)))
    assert list(program_run._contents(twice, {"inp": INPUT})) == ["uop", "inp", "out"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "buffer inp was given no contents"),
        ({"inp": INPUT[:-1]}, "buffer inp has 4096 bytes; 4095 were given"),
        ({"inp": INPUT, "wgt": INPUT, "acc": INPUT}, "the program has no buffer wgt, acc"),
    ],
)
def test_inputs_are_those_of_the_program(inputs: dict[str, Any], message: str) -> None:
    """It is said before a model is opened."""
    with pytest.raises(ProgramError, match=f"^{message}$"):
        run_program(Path("no library"), program(), inputs)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (FaultCode.SLVERR, "SLVERR at address 0x1234"),
        (FaultCode.DECERR, "DECERR at address 0x1234"),
        (FaultCode.ILLEGAL_INSTRUCTION, "illegal instruction number 4660"),
        (FaultCode.INP_INDEX, "inp index 4660 is past its buffer"),
        (FaultCode.ACC_INDEX, "acc index 4660 is past its buffer"),
    ],
)
def test_a_fault_says_where_it_is(code: FaultCode, text: str) -> None:
    assert str(Fault(code, 0x1234)) == text
