"""Programs of the selftest, written by hand: each has a known output, compared in every element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.measure.interfaces import Request
from hilt.schedule import Tensors
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode, encode, encode_uops
from hilt.vta.program import Buffer, Program

LIMIT_SECONDS = 2.0
_SEED = 18
_MAX_LOOP = (1 << 14) - 1
"""The largest `iter_out` and `iter_in`."""

Row = Mapping[str, int]


def loads(accelerator: Accelerator, elements: int, times: int) -> Request:
    """Load so many input elements, one after another in memory, and do so `times` times; the output is one zero."""
    load = {"opcode": Opcode.LOAD, "memory_type": MemoryType.INP, **_block(elements)}
    rows = [_load_uops(1), *[load] * (times - 1), {**load, "push_next": 1}]
    rows += [_reset(1, pop_prev=1), _copy(1, push_next=1), {**_store(1), "pop_prev": 1, "push_prev": 1}, _finish()]
    inp = _tensor(accelerator, "inp", elements)
    places = {"uop": [0], "inp": list(range(1, times + 1)), "out": [times + 3]}
    return _request(accelerator, rows, [(0, 0, 0)], {"inp": inp}, places, _zeros(accelerator, 1))


def stores(accelerator: Accelerator, elements: int, times: int) -> Request:
    """Store so many zeros, one after another in memory, and do so `times` times."""
    rows: list[Row] = [_load_uops(1), _reset(elements), _copy(elements, push_next=1)]
    for turn in range(times):
        rows.append({**_store(elements), "pop_prev": int(turn == 0), "push_prev": int(turn == times - 1)})
    places = {"uop": [0], "out": list(range(3, times + 3))}
    expected = _zeros(accelerator, elements)
    return _request(accelerator, [*rows, _finish()], [(0, 0, 0)], {}, places, expected)


def input_depth(accelerator: Accelerator, seed: int = _SEED) -> Request:
    """Multiply every element of the input buffer, random by `seed`, by one weight element."""
    count = min(accelerator.parameters.inp_depth, accelerator.parameters.acc_depth)
    inp, wgt = _tensor(accelerator, "inp", count, seed), _tensor(accelerator, "wgt", 1, seed)
    gemm = {"opcode": Opcode.GEMM, "uop_end": 1, **_loop(count), "dst_factor_in": 1, "src_factor_in": 1}
    expected = inp.astype(np.int64) @ wgt[0].T.astype(np.int64)
    return _products(accelerator, gemm, [(0, 0, 0)], inp, wgt, expected, count)


def weight_depth(accelerator: Accelerator) -> Request:
    """Multiply one input element by every element of the weight buffer."""
    count = min(accelerator.parameters.wgt_depth, accelerator.parameters.acc_depth)
    inp, wgt = _tensor(accelerator, "inp", 1), _tensor(accelerator, "wgt", count)
    gemm = {"opcode": Opcode.GEMM, "uop_end": 1, **_loop(count), "dst_factor_in": 1, "wgt_factor_in": 1}
    expected = np.stack([inp[0].astype(np.int64) @ wgt[index].T.astype(np.int64) for index in range(count)])
    return _products(accelerator, gemm, [(0, 0, 0)], inp, wgt, expected, count)


def micro_op_depth(accelerator: Accelerator) -> Request:
    """Execute every micro-op of the buffer once, each with other elements than the one before."""
    parameters = accelerator.parameters
    count = accelerator.uop_depth
    outputs = min(64, parameters.acc_depth)
    random = np.random.default_rng(_SEED)
    sources = random.integers(0, 32, count), random.integers(0, 8, count)
    uops = [(index % outputs, int(src), int(wgt)) for index, src, wgt in zip(range(count), *sources, strict=True)]
    inp, wgt = _tensor(accelerator, "inp", 32), _tensor(accelerator, "wgt", 8)
    expected = np.zeros((outputs, parameters.batch, parameters.block), dtype=np.int64)
    for dst, src, weight in uops:
        expected[dst] += inp[src].astype(np.int64) @ wgt[weight].T.astype(np.int64)
    gemm = {"opcode": Opcode.GEMM, "uop_end": count, "iter_out": 1, "iter_in": 1}
    return _products(accelerator, gemm, uops, inp, wgt, expected, outputs)


def accumulator_depth(accelerator: Accelerator) -> Request:
    """Add 5 to every element of the accumulator buffer; the output buffer is as deep."""
    parameters = accelerator.parameters
    count = parameters.acc_depth
    random = np.random.default_rng(_SEED)
    bias = random.integers(-(2**20), 2**20, (count, parameters.batch, parameters.block), dtype=np.int32)
    add = {"opcode": Opcode.ALU, "alu_opcode": AluOpcode.ADD, "use_imm": 1, "imm": 5, "uop_end": 1}
    rows = [
        _load_uops(1),
        {"opcode": Opcode.LOAD, "memory_type": MemoryType.ACC, **_block(count)},
        {**add, **_loop(count), "dst_factor_in": 1, "src_factor_in": 1, "push_next": 1},
        {**_store(count), "pop_prev": 1, "push_prev": 1},
        _finish(),
    ]
    expected = ((bias.astype(np.int64) + 5) & 0xFF).astype(np.uint8).view(np.int8)
    return _request(accelerator, rows, [(0, 0, 0)], {"bias": bias}, {"uop": [0], "bias": [1], "out": [3]}, expected)


def chained_sums(accelerator: Accelerator, distance: int, rounds: int = 64) -> Request:
    """Add one product to each of `distance` sums in turn, `rounds` times: a sum is written so long before it is read.

    Without the hazard interlock, sums are lost where the distance is shorter than the pipeline.
    """
    inp, wgt = _tensor(accelerator, "inp", 1), _tensor(accelerator, "wgt", 1)
    product = inp[0].astype(np.int64) @ wgt[0].T.astype(np.int64)
    gemm = {"opcode": Opcode.GEMM, "uop_end": 1, "iter_out": rounds, "iter_in": distance, "dst_factor_in": 1}
    expected = np.stack([rounds * product] * distance)
    return _products(accelerator, gemm, [(0, 0, 0)], inp, wgt, expected, distance)


def long_run(accelerator: Accelerator, rounds: int) -> Request:
    """Execute about so many GEMM micro-ops, with no memory traffic between."""
    outer = max(1, rounds // _MAX_LOOP)
    inner = min(rounds, _MAX_LOOP)
    inp, wgt = _tensor(accelerator, "inp", 1), _tensor(accelerator, "wgt", 1)
    product = inp[0].astype(np.int64) @ wgt[0].T.astype(np.int64)
    # Neighbours in time go to other sums, so that no hazard is met.
    gemm = {"opcode": Opcode.GEMM, "uop_end": 4, "iter_out": outer, "iter_in": inner}
    uops = [(index, 0, 0) for index in range(4)]
    return _products(accelerator, gemm, uops, inp, wgt, np.stack([outer * inner * product] * 4), 4)


def _products(
    accelerator: Accelerator,
    gemm: Row,
    uops: Sequence[tuple[int, int, int]],
    inp: NDArray[Any],
    wgt: NDArray[Any],
    expected: NDArray[Any],
    outputs: int,
) -> Request:
    """Clear the sums, load both tensors whole, multiply, store the low 8 bits of the first `outputs` sums."""
    rows = [
        _load_uops(len(uops)),
        {"opcode": Opcode.LOAD, "memory_type": MemoryType.INP, **_block(len(inp))},
        {"opcode": Opcode.LOAD, "memory_type": MemoryType.WGT, **_block(len(wgt)), "push_next": 1},
        _reset(outputs, pop_prev=1),
        {**gemm, "push_next": 1},
        {**_store(outputs), "pop_prev": 1, "push_prev": 1},
        _finish(),
    ]
    low = (expected & 0xFF).astype(np.uint8).view(np.int8)
    places = {"uop": [0], "inp": [1], "wgt": [2], "out": [5]}
    return _request(accelerator, rows, uops, {"inp": inp, "wgt": wgt}, places, low)


def _request(
    accelerator: Accelerator,
    rows: Sequence[Row],
    uops: Sequence[tuple[int, int, int]],
    inputs: dict[str, NDArray[Any]],
    places: Mapping[str, Sequence[int]],
    expected: NDArray[Any],
) -> Request:
    """Return the request of a program whose buffers are used by the instructions `places` names."""
    instructions = np.zeros(len(rows), dtype=INSTRUCTION)
    for index, row in enumerate(rows):
        for name, value in row.items():
            instructions[name][index] = value
    words = encode(instructions, accelerator)
    codes = encode_uops(np.array(uops, dtype=UOP), accelerator)
    parameters = accelerator.parameters
    kinds = {
        "uop": (MemoryType.UOP, accelerator.uop_element_bytes, len(codes)),
        "inp": (MemoryType.INP, parameters.inp_element_bytes, len(inputs.get("inp", ()))),
        "wgt": (MemoryType.WGT, parameters.wgt_element_bytes, len(inputs.get("wgt", ()))),
        "bias": (MemoryType.ACC, parameters.acc_element_bytes, len(inputs.get("bias", ()))),
        "out": (MemoryType.OUT, parameters.out_element_bytes, len(expected)),
    }
    buffers = tuple(
        Buffer(name, kind, count * element_bytes, element_bytes, np.array(places[name], dtype=np.int64))
        for name, (kind, element_bytes, count) in kinds.items()
        if name in places
    )
    program = Program.assemble(accelerator, words, codes, buffers)
    return Request(0, "", program, Tensors(inputs, expected), LIMIT_SECONDS)


def _tensor(accelerator: Accelerator, kind: str, elements: int, seed: int = _SEED) -> NDArray[np.int8]:
    parameters = accelerator.parameters
    rows = parameters.batch if kind == "inp" else parameters.block
    random = np.random.default_rng(seed)
    return random.integers(-128, 128, (elements, rows, parameters.block), dtype=np.int8)


def _zeros(accelerator: Accelerator, elements: int) -> NDArray[np.int8]:
    return np.zeros((elements, accelerator.parameters.batch, accelerator.parameters.block), dtype=np.int8)


def _block(elements: int) -> dict[str, int]:
    return {"y_size": 1, "x_size": elements, "x_stride": elements}


def _loop(count: int) -> dict[str, int]:
    return {"iter_out": 1, "iter_in": count}


def _load_uops(count: int) -> dict[str, int]:
    return {"opcode": Opcode.LOAD, "memory_type": MemoryType.UOP, **_block(count)}


def _store(elements: int) -> dict[str, int]:
    return {"opcode": Opcode.STORE, "memory_type": MemoryType.OUT, **_block(elements)}


def _reset(elements: int, **tokens: int) -> dict[str, int]:
    return {"opcode": Opcode.GEMM, "reset": 1, "uop_end": 1, **_loop(elements), "dst_factor_in": 1, **tokens}


def _copy(elements: int, **tokens: int) -> dict[str, int]:
    """Add 0 to the sums, which writes their low bits to the output buffer. A reset clears the sums alone."""
    add = {"opcode": Opcode.ALU, "alu_opcode": AluOpcode.ADD, "use_imm": 1, "uop_end": 1}
    return {**add, **_loop(elements), "dst_factor_in": 1, "src_factor_in": 1, **tokens}


def _finish() -> dict[str, int]:
    return {"opcode": Opcode.FINISH, "pop_next": 1}
