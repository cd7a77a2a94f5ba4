import numpy as np
import pytest

from hilt.vta.isa import INSTRUCTION, MemoryType, Opcode, decode, encode
from hilt.vta.program import Buffer, Program, ProgramError
from tests.unit.vta.variants import PYNQ_A, PYNQ_B


def program(uops: int = 1, element_bytes: int = 16) -> Program:
    stream = np.zeros(3, dtype=INSTRUCTION)
    stream["opcode"] = [Opcode.LOAD, Opcode.STORE, Opcode.FINISH]
    stream["memory_type"] = [MemoryType.INP, MemoryType.OUT, 0]
    stream["dram_base"] = [5, 7, 0]
    buffers = (
        Buffer("inp", MemoryType.INP, 160, element_bytes, np.array([0])),
        Buffer("out", MemoryType.OUT, 160, 16, np.array([1])),
    )
    return Program.assemble(PYNQ_B, encode(stream, PYNQ_B), np.zeros((uops, 1), dtype=np.uint32), buffers)


def test_relocation_adds_addresses_in_elements() -> None:
    one = program()
    placed = decode(one.relocated({"inp": 0x1000, "out": 0x10_0000}), PYNQ_B)
    assert placed["dram_base"].tolist() == [0x100 + 5, 0x1_0000 + 7, 0]
    assert decode(one.instructions, PYNQ_B)["dram_base"].tolist() == [5, 7, 0]


def test_addresses_that_cannot_be_are_refused() -> None:
    one = program()
    with pytest.raises(ProgramError, match="buffer out has no address"):
        one.relocated({"inp": 0})
    with pytest.raises(ProgramError, match="buffer inp at 0x1008 is not aligned to its 16-byte elements"):
        one.relocated({"inp": 0x1008, "out": 0})
    with pytest.raises(ProgramError, match="ends past a 32-bit element index"):
        one.relocated({"inp": (16 << 32) - 128, "out": 0})


def test_the_hash_is_of_everything_that_runs() -> None:
    assert program().sha256 == program().sha256
    assert len({program().sha256, program(uops=2).sha256, program(element_bytes=32).sha256}) == 3


def test_images_that_a_vta_cannot_read_are_refused() -> None:
    with pytest.raises(ProgramError, match="uops take 33554436 bytes; a VTA reads at most 33554432"):
        program(uops=(1 << 23) + 1)


def test_malformed_programs_are_refused() -> None:
    with pytest.raises(ProgramError, match="instructions are int64"):
        Program("x", "A", np.zeros((1, 2), np.int64), np.zeros((1, 1), np.uint32), (), 25)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="counts instructions that the program does not have"):
        Program.assemble(
            PYNQ_A,
            np.zeros((1, 2), np.uint64),
            np.zeros((1, 1), np.uint32),
            (Buffer("inp", MemoryType.INP, 16, 16, np.array([1])),),
        )
    with pytest.raises(ProgramError, match="no buffer 'wgt'; it has inp, out"):
        program().buffer("wgt")
