"""The canary: a small known program that decides whether a board is sane.

It goes through every stage and memory: loads of micro-ops, inputs, weights and accumulators, a GEMM, an ALU
instruction, a store. Every element of its output is compared.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode, encode, encode_uops
from hilt_board.protocol import Input, Output, Relocation, TrialRequest

ELEMENTS = 8
"""The number of inputs, accumulators and outputs; the canary has one weight block."""
_SEED = 2026
_LIMIT_SECONDS = 0.01
_ADDED = 5


@dataclass(frozen=True)
class Canary:
    """A trial with its code, and its blobs by SHA-256."""

    trial: TrialRequest
    code: bytes
    blobs: dict[str, bytes]


@functools.lru_cache(maxsize=4)
def make_canary(accelerator: Accelerator, bitstream: str) -> Canary:
    """Return the canary for the bitstream of that SHA-256.

    It computes out[i] = low 8 bits of (bias[i] + inp[i] . wgt^T + 5).
    """
    parameters = accelerator.parameters
    batch, block = parameters.batch, parameters.block
    random = np.random.default_rng(_SEED)
    data = random.integers(-128, 128, (ELEMENTS, batch, block), dtype=np.int8)
    weights = random.integers(-128, 128, (1, block, block), dtype=np.int8)
    bias = random.integers(-(2**20), 2**20, (ELEMENTS, batch, block), dtype=np.int32)
    sums = bias + data.astype(np.int32) @ weights[0].astype(np.int32).T + _ADDED
    expected = sums.astype(np.int8)
    tensors: dict[str, NDArray[Any]] = {"inp": data, "wgt": weights, "acc": bias}

    words = encode(_instructions(), accelerator)
    uops = encode_uops(np.zeros(1, dtype=UOP), accelerator)
    relocated = {"uop": 0, "inp": 1, "wgt": 2, "acc": 3, "out": 6}
    blobs = {name: tensor.tobytes() for name, tensor in tensors.items()}
    element_bytes = {
        "inp": parameters.inp_element_bytes,
        "wgt": parameters.wgt_element_bytes,
        "acc": parameters.acc_element_bytes,
    }
    trial = TrialRequest(
        key="canary/0/0",
        bitstream=bitstream,
        instructions=len(words),
        instruction_bytes=8 * words.shape[1],
        uops=len(uops),
        uop_bytes=4 * uops.shape[1],
        inputs=tuple(Input(name, name, _sha256(blob), len(blob), element_bytes[name]) for name, blob in blobs.items()),
        output=Output("out", expected.nbytes, parameters.out_element_bytes, _sha256(expected.tobytes()), "int8"),
        relocations=tuple(Relocation(name, 1) for name in relocated),
        dram_base_bit=accelerator.formats.memory.by_name["dram_base"].bit,
        limit_seconds=_LIMIT_SECONDS,
    )
    indices = np.array(list(relocated.values()), dtype="<u4")
    code = words.astype("<u8").tobytes() + uops.astype("<u4").tobytes() + indices.tobytes()
    return Canary(trial, code, {_sha256(blob): blob for blob in (*blobs.values(), expected.tobytes())})


def _instructions() -> NDArray[np.void]:
    single = {"opcode": Opcode.LOAD, "y_size": 1, "x_size": 1, "x_stride": 1}
    many = {"y_size": 1, "x_size": ELEMENTS, "x_stride": ELEMENTS}
    loop = {"uop_end": 1, "iter_out": 1, "iter_in": ELEMENTS, "dst_factor_in": 1, "src_factor_in": 1}
    rows = [
        {**single, "memory_type": MemoryType.UOP},
        {**single, **many, "memory_type": MemoryType.INP},
        {**single, "memory_type": MemoryType.WGT, "push_next": 1},
        {**single, **many, "memory_type": MemoryType.ACC},
        {**loop, "opcode": Opcode.GEMM, "pop_prev": 1},
        {**loop, "opcode": Opcode.ALU, "alu_opcode": AluOpcode.ADD, "use_imm": 1, "imm": _ADDED, "push_next": 1},
        {**many, "opcode": Opcode.STORE, "memory_type": MemoryType.OUT, "pop_prev": 1, "push_prev": 1},
        {"opcode": Opcode.FINISH, "pop_next": 1},
    ]
    instructions = np.zeros(len(rows), dtype=INSTRUCTION)
    for index, row in enumerate(rows):
        for name, value in row.items():
            instructions[name][index] = value
    return instructions


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
