"""A residual added in the convolution's own accumulators: out = clip((conv + bias + (residual << r)) >> shift).

When a tile's accumulators have been reset, its residual is loaded to the input buffer and multiplied by an identity
block of 2^min(r, 6); what is left of r shifts the accumulators left. The convolution accumulates on top. The residual
lies in memory as the output does, so the tile's STOREs say which part of it belongs to the tile. It costs one GEMM
micro-op for each output element, and no pass over memory of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.lower import Code
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode

RESIDUAL, IDENTITY = "residual", "identity"
LARGEST_SHIFT = 22
"""What an identity of 2^6 and a left shift by 16 reach; 2^7 is no int8."""
_IDENTITY_SHIFT = 6


def identity_block(shift: int, accelerator: Accelerator) -> NDArray[np.int8]:
    """Return the weight block (block, block) of the residual's GEMM for a left shift of `shift`."""
    return (np.eye(accelerator.parameters.block, dtype=np.int64) << min(shift, _IDENTITY_SHIFT)).astype(np.int8)


def with_residual(code: Code, shift: int, accelerator: Accelerator) -> Code:
    """Return `code` with buffers `residual`, packed as the output, and `identity` (`identity_block`).

    `code` is a convolution's with a bias. Raises Rejected where its tiles leave no room for a residual on chip.
    """
    depths = accelerator.parameters
    tiles = _tiles(code)
    largest = max(tile.rows * tile.pixels for tile in tiles)
    first, identity = code.used(MemoryType.INP), code.used(MemoryType.WGT)
    places = min(2, (depths.inp_depth - first) // largest)
    if not places:
        raise Rejected("inp_overflow", f"the residual of a tile takes {largest} of {depths.inp_depth - first} elements")
    if identity >= depths.wgt_depth:
        raise Rejected("wgt_overflow", f"no block of {depths.wgt_depth} is left for the residual's identity")
    sources = [first + place * largest for place in range(places)]
    targets = sorted({tile.accumulator for tile in tiles})
    begin = len(code.uops)
    pairs = [(target, source) for target in targets for source in sources]
    uops = np.zeros(len(pairs), dtype=UOP)
    uops["dst"], uops["src"], uops["wgt"] = *np.array(pairs).T, identity
    if begin + len(uops) > accelerator.uop_depth:
        raise Rejected("uop_overflow", f"{begin + len(uops)} micro-ops with the residual's, of {accelerator.uop_depth}")
    numbers = {pair: begin + number for number, pair in enumerate(pairs)}

    names = (*code.names, RESIDUAL, IDENTITY)
    pieces = [_load_identity(identity)]
    owners = [np.array([names.index(IDENTITY)])]
    done = 0
    for number, tile in enumerate(tiles):
        source = sources[number % places]
        loads = code.records[tile.stores].copy()
        loads["opcode"], loads["memory_type"] = Opcode.LOAD, MemoryType.INP
        loads["sram_base"] = loads["sram_base"].astype(np.int64) + (source - tile.accumulator)
        behind = tile.reset + 1
        adds = _adds(tile, numbers[tile.accumulator, source], shift)
        pieces += [code.records[done : tile.reset], loads, code.records[tile.reset : behind], adds]
        owners += [code.buffers[done : tile.reset], np.full(len(loads), names.index(RESIDUAL))]
        owners += [code.buffers[tile.reset : behind], np.full(len(adds), -1)]
        done = behind
    pieces.append(code.records[done:])
    owners.append(code.buffers[done:])
    records = np.concatenate(pieces)
    loads_uops = (records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP)
    records["x_size"][loads_uops] = begin + len(uops)
    return Code(records, np.concatenate(owners), names, np.concatenate((code.uops, uops)))


@dataclass(frozen=True)
class _Tile:
    """An output tile: where its accumulators are reset and where it is stored."""

    reset: int
    stores: slice
    accumulator: int
    """Its first element in the accumulator buffer."""
    rows: int
    pixels: int


def _tiles(code: Code) -> list[_Tile]:
    """Return the tiles in order; each is reset once, and its bias added once."""
    records = code.records
    resets = np.flatnonzero((records["opcode"] == Opcode.GEMM) & (records["reset"] == 1))
    is_alu = records["opcode"] == Opcode.ALU
    begins = np.flatnonzero(is_alu & (records["alu_opcode"] == AluOpcode.ADD) & (records["use_imm"] == 0))
    is_store = records["opcode"] == Opcode.STORE
    ends = np.append(begins[1:], len(records))
    tiles = []
    for reset, begin, end in zip(resets.tolist(), begins.tolist(), ends.tolist(), strict=True):
        stores = begin + np.flatnonzero(is_store[begin:end])
        whole = records[reset]
        assert code.uops["dst"][whole["uop_bgn"]] == records["sram_base"][stores[0]], "tiles end in another order"
        tiles.append(
            _Tile(
                reset,
                slice(int(stores[0]), int(stores[-1]) + 1),
                int(records["sram_base"][stores[0]]),
                int(whole["iter_out"]),
                int(whole["iter_in"]),
            )
        )
    return tiles


def _adds(tile: _Tile, number: int, shift: int) -> NDArray[np.void]:
    """Return the instructions that put residual << shift into a tile's accumulators, by micro-op `number`."""
    adds = np.zeros(1 if shift <= _IDENTITY_SHIFT else 2, dtype=INSTRUCTION)
    adds["opcode"], adds["uop_bgn"], adds["uop_end"] = Opcode.GEMM, number, number + 1
    adds["iter_out"], adds["iter_in"] = tile.rows, tile.pixels
    for field in ("dst", "src"):
        adds[f"{field}_factor_out"] = tile.pixels if tile.rows > 1 else 0
        adds[f"{field}_factor_in"] = 1 if tile.pixels > 1 else 0
    if len(adds) > 1:
        last = adds[1:]
        last["opcode"], last["alu_opcode"], last["use_imm"] = Opcode.ALU, AluOpcode.SHR, 1
        last["imm"] = _IDENTITY_SHIFT - shift
        last["src_factor_out"] = last["src_factor_in"] = 0
    return adds


def _load_identity(place: int) -> NDArray[np.void]:
    load = np.zeros(1, dtype=INSTRUCTION)
    load["opcode"], load["memory_type"], load["sram_base"] = Opcode.LOAD, MemoryType.WGT, place
    load["y_size"] = load["x_size"] = 1
    return load
