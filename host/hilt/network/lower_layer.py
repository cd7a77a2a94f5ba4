"""A layer's code in the form that the network runs: with its shifts by channel block and its residual.

The lowering shifts a whole tile by one instruction. `with_shifts` shifts each channel block of the tile by an
instruction of its own, for weights that were quantised block by block. The clip that follows is still one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.bands import with_bands
from hilt.network.layers import TiledLayer, VtaLayer
from hilt.network.lower_tiles import lower_tiles
from hilt.network.tile_writer import DATA
from hilt.schedule import Rejected, lower
from hilt.schedule.bias_first import LOWER, with_bias_first
from hilt.schedule.bias_product import (
    BIAS,
    BIAS_BLOCKS,
    BIAS_INPUT,
    bias_blocks,
    bias_input,
    fits_product,
    with_bias_product,
)
from hilt.schedule.border import BORDER, with_border
from hilt.schedule.by_table import by_table
from hilt.schedule.code import Code, code_of
from hilt.schedule.interleaved import interleaved
from hilt.schedule.residual import Skip, with_residual
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import UOP, AluOpcode, MemoryType, Opcode
from hilt.vta.layout import pack_bias

_LARGEST_INPUT = 128


def layer_code(layer: VtaLayer | TiledLayer, knobs: Mapping[str, int], accelerator: Accelerator) -> Code:
    """Return a layer's code. Raises Rejected if the accelerator cannot run these knobs."""
    code = _lane_code(layer, knobs, accelerator)
    if layer.bands is not None:
        code = with_bands(code, layer.bands, DATA)
    return by_table(code, layer.tabled.alone) if layer.tabled else code


def _lane_code(layer: VtaLayer | TiledLayer, knobs: Mapping[str, int], accelerator: Accelerator) -> Code:
    """Return the code of a layer without a table, of one lane if it has bands."""
    if isinstance(layer, TiledLayer):
        code = lower_tiles(layer.work, knobs, accelerator)
    else:
        code = _convolution_code(layer, knobs, accelerator)
    return code if layer.border is None else with_border(code, layer.border, accelerator)


def _convolution_code(layer: VtaLayer, knobs: Mapping[str, int], accelerator: Accelerator) -> Code:
    """Return the code of a convolution that reads zeros beside its data."""
    code = code_of(lower(layer.workload, knobs, accelerator), accelerator)
    if layer.shifts:
        plane = layer.workload.out_height * layer.workload.out_width
        output = OutputStage(len(layer.shifts), plane, knobs.get("tile_b", 1))
        code = with_shifts(code, layer.shifts, output, accelerator)
    if layer.interleaved is not None:
        code = interleaved(code, layer.interleaved)
    if layer.skip is not None:
        code = _with_residual(layer, layer.skip, code, accelerator)
    made = with_bias_product(code, accelerator) if multiplies_bias(layer, accelerator) else None
    if made is not None:
        return made
    return code if lowered_bias(layer, accelerator) is None else with_bias_first(code, accelerator)


def _with_residual(layer: VtaLayer, skip: Skip, code: Code, accelerator: Accelerator) -> Code:
    """Return `code` with the layer's residual, which leaves room for the input of the bias where it can."""
    if multiplies_bias(layer, accelerator):
        with suppress(Rejected):
            return with_residual(code, skip, accelerator, spare=1)
    return with_residual(code, skip, accelerator)


def bias_constants(layer: VtaLayer, code: Code, accelerator: Accelerator) -> dict[str, NDArray[Any]]:
    """Return the contents of the buffers with which a layer's code makes its bias, and its border."""
    border = {} if layer.border is None else {BORDER: layer.border.packed(accelerator.parameters)}
    return border | _bias_constants(layer, code, accelerator)


def _bias_constants(layer: VtaLayer, code: Code, accelerator: Accelerator) -> dict[str, NDArray[Any]]:
    if BIAS_INPUT in code.names:
        return {BIAS_BLOCKS: bias_blocks(layer.bias, accelerator), BIAS_INPUT: bias_input(accelerator)}
    lowered = lowered_bias(layer, accelerator)
    return {BIAS: pack_bias(layer.bias if lowered is None else lowered, accelerator.parameters)}


def multiplies_bias(layer: VtaLayer, accelerator: Accelerator) -> bool:
    """Return whether a layer's bias is made of products, where there is room for them."""
    return fits_product(layer.bias, layer.workload.out_height * layer.workload.out_width, accelerator)


@dataclass(frozen=True)
class OutputStage:
    """A convolution's output in memory: channel blocks, elements of one block's plane, images of one tile."""

    blocks: int
    plane: int
    images: int


def with_shifts(code: Code, shifts: Sequence[int], output: OutputStage, accelerator: Accelerator) -> Code:
    """Return `code` with the channel block b shifted right by `shifts[b]`.

    `code` is a convolution's that shifts by one or more. Raises Rejected if the micro-op buffer is too small.
    """
    records = code.records
    is_shift = (records["opcode"] == Opcode.ALU) & (records["alu_opcode"] == AluOpcode.SHR) & (records["imm"] > 0)
    is_store = records["opcode"] == Opcode.STORE
    numbers: dict[int, int] = {}
    shards, owners, done = [], [], 0
    for place in np.flatnonzero(is_shift).tolist():
        store = place + int(np.argmax(is_store[place:]))
        channel = int(records["dram_base"][store]) // output.plane % output.blocks
        whole = records[place : place + 1]
        rows, pixels = int(whole["iter_out"][0]), int(whole["iter_in"][0])
        start = int(code.uops["dst"][int(whole["uop_bgn"][0])])
        for row in range(rows):
            target = start + row * pixels
            number = len(code.uops) + numbers.setdefault(target, len(numbers))
            one = whole.copy()
            one["uop_bgn"], one["uop_end"], one["iter_out"] = number, number + 1, 1
            one["dst_factor_out"] = one["src_factor_out"] = 0
            one["imm"] = shifts[channel + row % (rows // output.images)]
            shards += [records[done:place], one]
            owners += [code.buffers[done:place], code.buffers[place : place + 1]]
            done = place
        done = place + 1
    return _with_uops(code, [*shards, records[done:]], [*owners, code.buffers[done:]], list(numbers), accelerator)


def _with_uops(
    code: Code,
    shards: list[NDArray[np.void]],
    owners: list[NDArray[np.int64]],
    targets: list[int],
    accelerator: Accelerator,
) -> Code:
    """Return the joined pieces with a micro-op for each target behind the code's own."""
    uops = np.zeros(len(targets), dtype=UOP)
    uops["dst"] = targets
    every = np.concatenate((code.uops, uops))
    if len(every) > accelerator.uop_depth:
        raise Rejected("uop_overflow", f"{len(every)} micro-ops with the shifts', of {accelerator.uop_depth}")
    records = np.concatenate(shards)
    loads = (records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP)
    records["x_size"][loads] = len(every)
    return Code(records, np.concatenate(owners), code.names, every)


def lowered_bias(layer: VtaLayer, accelerator: Accelerator) -> NDArray[np.int32] | None:
    """Return a layer's bias for `with_bias_first`, for whole channel blocks; None if it is not below the clip's bounds.

    A layer with a residual has none either: its accumulators are shifted left before the convolution.
    """
    shift, clip, block = layer.workload.shift, layer.workload.clip, accelerator.parameters.block
    if layer.residual or shift is None or clip is None:
        return None
    channels = len(layer.bias)
    shifts = np.repeat(layer.shifts or (shift,), block if layer.shifts else -(-channels // block) * block)
    bias = np.zeros(len(shifts), dtype=np.int64)
    bias[:channels] = layer.bias
    largest = np.zeros(len(shifts), dtype=np.int64)
    largest[:channels] = np.abs(layer.weights.astype(np.int64)).reshape(channels, -1).sum(axis=1) * _LARGEST_INPUT
    lowered = bias - (LOWER << shifts)
    fits = lowered <= clip[0] - LOWER
    exact = np.abs(bias) + largest + (LOWER << shifts) < 1 << 31
    return lowered.astype(np.int32) if shifts.min() > 0 and (fits & exact).all() else None
