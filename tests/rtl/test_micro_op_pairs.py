"""GEMM and ALU with collisions everywhere: few accumulators, few operands and small loops.

Micro-ops go in pairs, wait for each other's results, or lose them. The tests hold the results against numpy and the
cycles against the twin.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.vta.isa import UOP, AluOpcode, MemoryType, encode_uops
from tests.rtl.assembly import (
    BASE,
    DATA,
    INSN,
    MEMORY_BYTES,
    RESULT,
    UOP_POOL,
    Fields,
    alu,
    finish,
    gemm,
    load,
    store,
    words,
)
from tests.rtl.beside_twin import run_beside_twin
from tests.rtl.hazard_interpreter import HazardInterpreter
from tests.rtl.numpy_interpreter import NumpyInterpreter
from tests.rtl.variants import VARIANTS

PYNQ = VARIANTS["pynq A"]
INTERPRETERS = {"interlock": NumpyInterpreter, "none": HazardInterpreter}
ELEMENTS = 64  # of the accumulator that are used, and stored byte by byte at the end
NESTS = 150


def _micro_ops(generator: np.random.Generator) -> NDArray[np.void]:
    """Return micro-ops in eights, each within a small window of each buffer; the last is zero."""
    uops = np.zeros(129, dtype=UOP)
    for first in range(0, 128, 8):
        for name, windows in (("dst", (1, 2, 3, 8)), ("src", (1, 1, 2, 8)), ("wgt", (1, 1, 2))):
            uops[name][first : first + 8] = generator.integers(generator.choice(windows), size=8)
    return uops


def _nest(generator: np.random.Generator) -> Fields:
    begin = int(generator.integers(120))
    loops = [int(generator.choice((1, 1, 2, 3, 4, 5))) for _ in range(2)]
    factors = {
        f"{name}_factor_{loop}": int(generator.choice((0, 1, 1, 2, 3, 5)))
        for name in ("dst", "src")
        for loop in ("in", "out")
    }
    end = begin + int(generator.choice((1, 2, 3, 4, 5, 8)))
    if generator.random() < 0.4:
        if generator.random() < 0.5:
            factors["src_factor_in"] = factors["src_factor_out"] = 0
        return gemm(begin, end, *loops, **factors, reset=int(generator.random() < 0.2))
    operation = AluOpcode(int(generator.integers(4)))
    immediate = {"use_imm": int(generator.random() < 0.5), "imm": int(generator.integers(-9, 9))}
    return alu(operation, begin, end, *loops, **factors, **immediate)


def _program(seed: int) -> tuple[list[Fields], NDArray[np.void]]:
    generator = np.random.default_rng(seed)
    uops = _micro_ops(generator)
    program = [
        load(MemoryType.UOP, 0, UOP_POOL // 4, 1, len(uops)),
        load(MemoryType.INP, 0, DATA // 16, 1, ELEMENTS),
        load(MemoryType.WGT, 0, DATA // 256, 1, 8, push_next=1),
        load(MemoryType.ACC, 0, DATA // 64, 1, ELEMENTS, pop_prev=1),
        *(_nest(generator) for _ in range(NESTS)),
    ]
    for byte in range(4):  # a shift by 0, then by 8 each
        everywhere = {"dst_factor_in": 1, "use_imm": 1, "imm": 8 * (byte > 0)}
        program.append(alu(AluOpcode.SHR, 128, 129, 1, ELEMENTS, **everywhere, push_next=1, pop_next=int(byte > 0)))
        program.append(store(0, RESULT // 16 + byte * ELEMENTS, 1, ELEMENTS, pop_prev=1, push_prev=1))
    return [*program, finish(pop_next=1)], uops


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("hazards", INTERPRETERS)
def test_collisions(hazards: str, seed: int) -> None:
    accelerator = replace(PYNQ, hazards=hazards)
    instructions, uops = _program(seed)
    encoded, pool = words(accelerator, instructions), encode_uops(uops, accelerator)
    data = np.random.default_rng(seed).integers(-128, 128, 8192, dtype=np.int8)
    run = run_beside_twin(accelerator, encoded, pool.tobytes(), data)
    expected = run.before.copy()
    INTERPRETERS[hazards](accelerator, BASE, expected).run(INSN, len(encoded))
    assert np.array_equal(run.after, expected)


def test_the_programs_collide() -> None:
    """They lose sums without an interlock, most of them."""
    lost = 0
    for seed in range(8):
        instructions, uops = _program(seed)
        memories = []
        for interpreter in INTERPRETERS.values():
            memory = np.zeros(MEMORY_BYTES, np.uint8)
            memory[DATA - BASE :][:8192] = np.random.default_rng(seed).integers(0, 256, 8192, dtype=np.uint8)
            memory[UOP_POOL - BASE :][: 4 * len(uops)] = encode_uops(uops, PYNQ).view(np.uint8).ravel()
            encoded = words(PYNQ, instructions)
            memory[INSN - BASE :][: encoded.nbytes] = encoded.view(np.uint8).ravel()
            interpreter(PYNQ, BASE, memory).run(INSN, len(encoded))
            memories.append(memory)
        lost += not np.array_equal(*memories)
    assert lost >= 6
