"""Small programs written by hand: a dot product, repeated; right, wrong, hanging and malformed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hilt.measure import Request
from hilt.schedule import Tensors
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, MemoryType, Opcode, encode, encode_uops
from hilt.vta.program import Buffer, Program


def dot_product(
    accelerator: Accelerator, number: int, rounds: int = 1, run: str = "small", limit_seconds: float = 0.01
) -> Request:
    """Multiply one input tensor by one weight tensor and add it to the accumulator `rounds` times (to 2^26)."""
    outer = next(n for n in range(1, 1 << 13) if rounds % n == 0 and rounds // n < 1 << 13)
    program = _program(accelerator, outer, rounds // outer)
    parameters = accelerator.parameters
    generator = np.random.default_rng(7)
    inp = generator.integers(-128, 128, (parameters.batch, parameters.block), dtype=np.int8)
    wgt = generator.integers(-128, 128, (parameters.block, parameters.block), dtype=np.int8)
    total = rounds * (inp.astype(np.int64) @ wgt.astype(np.int64).T)
    tensors = Tensors({"inp": inp, "wgt": wgt}, (total & 0xFF).astype(np.uint8).view(np.int8))
    return Request(number, f"{run}/{number}/0", program, tensors, limit_seconds)


def wrong(request: Request) -> Request:
    """Return a trial with a wrong output: exactly one element differs from the expected one, by 3."""
    expected = request.tensors.expected.astype(np.int16)
    expected[0, 5] += 3 if expected[0, 5] < 100 else -3
    return replace(request, tensors=Tensors(request.tensors.inputs, expected.astype(np.int8)))


def hanging(accelerator: Accelerator, number: int, run: str = "small") -> Request:
    """The last STORE waits for a token that never comes."""
    request = dot_product(accelerator, number, run=run)
    return replace(request, program=_program(accelerator, 1, 1, push_to_store=0))


def _program(accelerator: Accelerator, outer: int, inner: int, push_to_store: int = 1) -> Program:
    load = {"opcode": Opcode.LOAD, "y_size": 1, "x_size": 1, "x_stride": 1}
    gemm = {"opcode": Opcode.GEMM, "uop_end": 1}
    rows = [
        {**load, "memory_type": MemoryType.UOP},
        {**load, "memory_type": MemoryType.INP},
        {**load, "memory_type": MemoryType.WGT, "push_next": 1},
        {**gemm, "pop_prev": 1, "reset": 1, "iter_out": 1, "iter_in": 1},
        {**gemm, "iter_out": outer, "iter_in": inner, "push_next": push_to_store},
        {**load, "opcode": Opcode.STORE, "memory_type": MemoryType.OUT, "pop_prev": 1, "push_prev": 1},
        {"opcode": Opcode.FINISH, "pop_next": 1},
    ]
    instructions = np.zeros(len(rows), dtype=INSTRUCTION)
    for index, row in enumerate(rows):
        for name, value in row.items():
            instructions[name][index] = value
    parameters = accelerator.parameters
    buffers = (
        _buffer("uop", MemoryType.UOP, accelerator.uop_element_bytes, 0),
        _buffer("inp", MemoryType.INP, parameters.inp_element_bytes, 1),
        _buffer("wgt", MemoryType.WGT, parameters.wgt_element_bytes, 2),
        _buffer("out", MemoryType.OUT, parameters.out_element_bytes, 5),
    )
    uops = encode_uops(np.zeros(1, dtype=UOP), accelerator)
    return Program.assemble(accelerator, encode(instructions, accelerator), uops, buffers)


def _buffer(name: str, memory_type: MemoryType, element_bytes: int, instruction: int) -> Buffer:
    return Buffer(name, memory_type, element_bytes, element_bytes, np.array([instruction], dtype=np.int64))
