"""A convolution whose neighbouring outputs are computed as channels of one pixel, stored as pixels.

A row of few channels, with several outputs' kernels side by side in one block, is loaded once for all of them: output
x * n + k of block b is channel block b * n + k of pixel x. A tile has all n blocks of some pixels. Its sums lie pixel
by pixel, then block by block, which is how the output lies in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.code import Code
from hilt.schedule.reasons import Reason, Rejected
from hilt.schedule.residual import OutputTile, output_tiles
from hilt.vta.isa import Opcode

_MOST_ELEMENTS = 1 << 14
"""Elements of a row: an instruction counts fewer."""


@dataclass(frozen=True)
class Interleaved:
    """Outputs that are channels of one pixel, and the pixels of a plane: height and width."""

    outputs: int
    height: int
    width: int


def interleaved(code: Code, form: Interleaved) -> Code:
    """Return `code`, a convolution's with a bias of one image, that stores its channel blocks as neighbouring pixels.

    Raises Rejected if a tile has other blocks than those of one output's.
    """
    tiles = output_tiles(code)
    records, uops = code.records.copy(), code.uops.copy()
    keep = np.ones(len(records), dtype=np.bool_)
    moved: set[tuple[int, int]] = set()
    for place, tile in _sums(code, tiles):
        _turn_sums(records[place : place + 1], uops, tile, form, int(code.uops["dst"][_first(code, tile)]), moved)
    for tile in tiles:
        if tile.rows != form.outputs:
            raise Rejected(
                Reason.GROUP_SPLIT.text, f"a tile has {tile.rows} channel blocks; {form.outputs} are one output's"
            )
        _add_one_bias(records[tile.bias : tile.bias + 1], tile)
        keep[tile.stores] = False
        keep[tile.stores.start] = True
        _store(records[tile.stores.start : tile.stores.start + 1], tile, form)
    return Code(records[keep], code.buffers[keep], code.names, uops)


def _add_one_bias(record: NDArray[np.void], tile: OutputTile) -> None:
    """Let a tile's bias be that of its first block, which all others repeat: its sums follow each other in one loop."""
    record["iter_out"], record["iter_in"] = 1, tile.rows * tile.pixels
    record["dst_factor_out"], record["dst_factor_in"] = 0, int(tile.rows * tile.pixels > 1)
    record["src_factor_out"] = record["src_factor_in"] = 0


def _first(code: Code, tile: OutputTile) -> int:
    return int(code.records["uop_bgn"][tile.reset])


def _sums(code: Code, tiles: list[OutputTile]) -> list[tuple[int, OutputTile]]:
    """Return the places of the GEMMs that add products, each with its tile: the last one begun where it adds."""
    records = code.records
    by_reset = {tile.reset: tile for tile in tiles}
    begun: dict[int, OutputTile] = {}
    found = []
    for place in np.flatnonzero(records["opcode"] == Opcode.GEMM).tolist():
        target = int(code.uops["dst"][int(records["uop_bgn"][place])])
        if place in by_reset:
            begun[target] = by_reset[place]
        else:
            begin = max(each for each in begun if each <= target)
            found.append((place, begun[begin]))
    return found


def _turn_sums(
    record: NDArray[np.void],
    uops: NDArray[np.void],
    tile: OutputTile,
    form: Interleaved,
    begin: int,
    moved: set[tuple[int, int]],
) -> None:
    """Let a GEMM add to the pixels of a tile block by block; its micro-ops move once, for all that share them."""

    def turned(offset: NDArray[np.int64]) -> NDArray[np.int64]:
        block, pixel = np.divmod(offset, tile.pixels)
        return np.asarray(pixel * form.outputs + block)

    for name in ("dst_factor_out", "dst_factor_in"):
        record[name] = turned(record[name].astype(np.int64))
    span = int(record["uop_bgn"][0]), int(record["uop_end"][0])
    if span not in moved:
        moved.add(span)
        own = slice(*span)
        uops["dst"][own] = begin + turned(uops["dst"][own].astype(np.int64) - begin)


def _store(record: NDArray[np.void], tile: OutputTile, form: Interleaved) -> None:
    """Let the first STORE of a tile's write all of its outputs."""
    plane, columns = form.height * form.width, form.width * form.outputs
    block, first = divmod(int(record["dram_base"][0]), plane)
    row, column = divmod(first, form.width)
    wide = min(int(record["x_size"][0]), form.width)
    high = tile.pixels // wide
    made = wide * form.outputs
    whole = made == columns and made * high < _MOST_ELEMENTS
    record["dram_base"] = block * plane + row * columns + column * form.outputs
    record["x_size"], record["y_size"] = (made * high, 1) if whole else (made, high)
    record["x_stride"] = 0 if whole else columns
