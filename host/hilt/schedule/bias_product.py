"""A convolution whose bias is a product: one input of constants, multiplied by a weight block for each channel block.

A GEMM whose micro-ops have one input and one weight adds to two neighbouring accumulators in a cycle; an addition of
two tensors takes one. The reset in front of it is folded into it, and no LOAD of the bias keeps the compute stage.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.code import Code
from hilt.schedule.residual import output_tiles
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, MemoryType, Opcode, multiplies

BIAS, BIAS_BLOCKS, BIAS_INPUT = "bias", "bias_blocks", "bias_input"
_LARGE = 127
"""The input of all lanes but the first, which has 1."""
_LEAST_PIXELS = {1: 4.0, 2: 2.0, 4: 0.75}
"""A plane has so many pixels for each lane, by read ports, or the blocks take longer to load than the products save.

Over four ports that is less than the wait for a LOAD of the bias.
"""


def bias_input(accelerator: Accelerator) -> NDArray[np.int8]:
    """Return the input (batch, block) that all weight blocks of biases multiply."""
    parameters = accelerator.parameters
    lanes = np.full((parameters.batch, parameters.block), _LARGE, dtype=np.int8)
    lanes[:, 0] = 1
    return lanes


def largest_bias(accelerator: Accelerator) -> int:
    """Return the largest bias that a product can be, of either sign."""
    return (accelerator.parameters.block - 1) * _LARGE * _LARGE + _LARGE // 2


def fits_product(bias: NDArray[np.int32], pixels: int, accelerator: Accelerator) -> bool:
    """Return whether a bias can be a product, and an output plane has enough `pixels` for it to be faster."""
    largest = np.abs(bias.astype(np.int64)).max(initial=0)
    enough = pixels >= _LEAST_PIXELS[accelerator.read_ports] * accelerator.parameters.block
    return enough and bool(largest <= largest_bias(accelerator))


def bias_blocks(bias: NDArray[np.int32], accelerator: Accelerator) -> NDArray[np.int8]:
    """Return weight blocks (channel blocks, block, block) whose products with the input are the bias, if it fits."""
    block = accelerator.parameters.block
    whole = np.pad(bias.astype(np.int64), (0, -len(bias) % block))
    large = (whole + _LARGE // 2) // _LARGE
    lanes = np.arange(block - 1)
    # `large` is spread over the other lanes, each at most one more than the next.
    weights = np.sign(large)[:, None] * ((np.abs(large)[:, None] + block - 2 - lanes) // max(block - 1, 1))
    joined = np.concatenate(((whole - _LARGE * large)[:, None], weights), axis=1)
    return joined.reshape(-1, block, block).astype(np.int8)


def with_bias_product(code: Code, accelerator: Accelerator) -> Code | None:
    """Return `code`, a convolution's with a bias, that reads buffers `bias_blocks` and `bias_input`.

    None if one of the buffers on chip has no room for them.
    """
    tiles = output_tiles(code)
    loads = code.records["opcode"] == Opcode.LOAD
    old = loads & (code.records["memory_type"] == MemoryType.ACC)
    blocks = int(code.records["x_size"][old].sum())
    inp, wgt = code.used(MemoryType.INP), code.used(MemoryType.WGT)
    if inp >= accelerator.parameters.inp_depth or wgt + blocks > accelerator.parameters.wgt_depth:
        return None
    records, uops = code.records.copy(), code.uops.copy()
    products = [_product(records[tile.bias : tile.bias + 1]) for tile in tiles]
    for number in {number for span in products for number in range(*span)}:
        uops["src"][number], uops["wgt"][number] = inp, wgt + uops["src"][number]
    added = np.zeros(2, dtype=INSTRUCTION)
    added["opcode"], added["y_size"] = Opcode.LOAD, 1
    added["memory_type"] = MemoryType.WGT, MemoryType.INP
    added["sram_base"], added["x_size"] = (wgt, inp), (blocks, 1)
    names = (*(BIAS_BLOCKS if name == BIAS else name for name in code.names), BIAS_INPUT)
    # A reset stands in front of the first input, which may wait for the layer before by way of it. The bias comes
    # behind a tile's sums, so its operands may be loaded meanwhile.
    wanted = np.arange(len(records), dtype=np.float64)
    wanted[tiles[0].reset] = np.flatnonzero(loads & (code.records["memory_type"] == MemoryType.UOP))[0] + 0.5
    behind = np.flatnonzero(multiplies(code.records))[0] + 0.5
    order = np.argsort(np.append(wanted, (behind, behind)), kind="stable")
    order = order[~np.append(old, (False, False))[order]]
    owners = np.append(code.buffers, (names.index(BIAS_BLOCKS), len(code.names)))
    return Code(np.concatenate((records, added))[order], owners[order], names, uops)


def _product(record: NDArray[np.void]) -> tuple[int, int]:
    """Turn the addition of a tile's bias into a GEMM; return its micro-ops."""
    record["opcode"], record["alu_opcode"] = Opcode.GEMM, 0
    for place in ("out", "in"):
        record[f"wgt_factor_{place}"] = record[f"src_factor_{place}"]
        record[f"src_factor_{place}"] = 0
    return int(record["uop_bgn"][0]), int(record["uop_end"][0])
