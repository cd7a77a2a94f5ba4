"""Programs of a few instructions, as trials; the effect of each on a VTA is known without running one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode, encode, encode_uops
from hilt_board.protocol import Input, Output, Relocation, TrialRequest

ELEMENTS = 64
ADDED = 3
MANY = 16383
"""Iterations that the loop fields of 14 bits hold."""


@dataclass(frozen=True)
class Prepared:
    """A trial, its code, and the blobs that it needs by SHA-256."""

    trial: TrialRequest
    code: bytes
    blobs: dict[str, bytes] = field(default_factory=dict)


def instruction(opcode: Opcode, **fields: int) -> np.void:
    record = np.zeros((), dtype=INSTRUCTION)
    record["opcode"] = opcode
    for name, value in fields.items():
        record[name] = value
    return record[()]


def add_constant(
    accelerator: Accelerator,
    bitstream: str,
    key: str,
    *,
    seed: int = 1,
    elements: int = ELEMENTS,
    corrupt_item: int | None = None,
    lose_token: bool = False,
    uop_end: int = 1,
    relocate_output: bool = True,
    rounds: int = 1,
    **trial: Any,
) -> Prepared:
    """Return a trial with out = low 8 bits of bias + ADDED * rounds.

    `corrupt_item` falsifies an item of the expected tensor. `lose_token` leaves FINISH waiting for ever. A
    `uop_end` past the buffer is a fault. An output that is not relocated lies outside memory. `rounds` makes the
    program long.
    """
    parameters = accelerator.parameters
    lanes = parameters.batch * parameters.block
    bias = np.random.default_rng(seed).integers(-(2**20), 2**20, (elements, lanes), dtype=np.int32)
    expected = (bias.astype(np.int64) + ADDED * rounds).astype(np.int8)
    if corrupt_item is not None:
        expected.reshape(-1)[corrupt_item] += 5
    instructions = np.array(
        [
            instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=1, x_stride=1),
            instruction(Opcode.LOAD, memory_type=MemoryType.ACC, y_size=1, x_size=elements, x_stride=elements),
            instruction(
                Opcode.ALU,
                alu_opcode=AluOpcode.ADD,
                use_imm=1,
                imm=ADDED,
                uop_end=uop_end,
                iter_out=rounds,
                iter_in=elements,
                dst_factor_in=1,
                src_factor_in=1,
                push_next=1,
            ),
            instruction(
                Opcode.STORE,
                memory_type=MemoryType.OUT,
                y_size=1,
                x_size=elements,
                x_stride=elements,
                pop_prev=1,
                push_prev=0 if lose_token else 1,
            ),
            instruction(Opcode.FINISH, pop_next=1),
        ]
    )
    words = encode(instructions, accelerator)
    uops = encode_uops(np.zeros(1, dtype=UOP), accelerator)
    return _trial(accelerator, bitstream, key, words, uops, bias, expected, relocate_output, trial)


def _trial(
    accelerator: Accelerator,
    bitstream: str,
    key: str,
    words: np.ndarray,
    uops: np.ndarray,
    bias: np.ndarray,
    expected: np.ndarray,
    relocate_output: bool,
    trial: dict[str, Any],
) -> Prepared:
    lanes = expected.shape[1]
    bias_bytes, expected_bytes = bias.tobytes(), expected.tobytes()
    relocations = {"uop": [0], "bias": [1], "out": [3] if relocate_output else []}
    indices = np.concatenate([np.array(each, dtype="<u4") for each in relocations.values()])
    settings: dict[str, Any] = {"limit_seconds": 0.01, **trial}
    return Prepared(
        TrialRequest(
            key=key,
            bitstream=bitstream,
            instructions=len(words),
            instruction_bytes=8 * words.shape[1],
            uops=len(uops),
            uop_bytes=4 * uops.shape[1],
            inputs=(Input("bias", "acc", sha256(bias_bytes), len(bias_bytes), 4 * lanes),),
            output=Output("out", len(expected_bytes), lanes, sha256(expected_bytes), "int8"),
            relocations=tuple(Relocation(name, len(each)) for name, each in relocations.items()),
            dram_base_bit=accelerator.formats.memory.by_name["dram_base"].bit,
            **settings,
        ),
        words.astype("<u8").tobytes() + uops.astype("<u4").tobytes() + indices.tobytes(),
        {sha256(each): each for each in (bias_bytes, expected_bytes)},
    )


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
