"""A convolution whose neighbouring outputs are computed as channels of one pixel, stored as pixels.

A row of few channels, with several outputs' kernels side by side in one block, is loaded once for all of them: output
x * n + k of block b is channel block b * n + k of pixel x. A tile has all n blocks of some pixels. Its sums lie pixel
by pixel, then block by block, which is how the output lies in memory. Where n does not divide a row, the last pixel has
sums that no STORE takes.
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
    """Outputs that are channels of one pixel, the pixels of a plane, height and width, and a row's outputs."""

    outputs: int
    height: int
    width: int
    columns: int


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
    behind: list[int] = []
    others: list[NDArray[np.void]] = []
    for tile in tiles:
        if tile.rows != form.outputs:
            raise Rejected(
                Reason.GROUP_SPLIT.text, f"a tile has {tile.rows} channel blocks; {form.outputs} are one output's"
            )
        _add_one_bias(records[tile.bias : tile.bias + 1], tile)
        place = tile.stores.start
        keep[tile.stores] = False
        keep[place] = True
        stores = _stores(records[place : place + 1], tile, form)
        records[place] = stores[0]
        behind += [place + 1] * (len(stores) - 1)
        others.append(stores[1:])
    rows = np.concatenate(others)
    kept = np.insert(keep, behind, True)
    owners = np.insert(code.buffers, behind, code.names.index("out"))
    return Code(np.insert(records, behind, rows)[kept], owners[kept], code.names, uops)


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


def _stores(record: NDArray[np.void], tile: OutputTile, form: Interleaved) -> NDArray[np.void]:
    """Return the STOREs (k,) of a tile's outputs for the first of its own (1,): one, or one a row if rows are cut."""
    plane, made = form.height * form.width, form.outputs
    block, first = divmod(int(record["dram_base"][0]), plane)
    row, column = divmod(first, form.width)
    wide = min(int(record["x_size"][0]), form.width)
    high = tile.pixels // wide
    cut = min(wide * made, form.columns - column * made)
    stores = np.repeat(record, 1 if cut == wide * made else high)
    rows = np.arange(len(stores))
    stores["sram_base"] += rows.astype(np.uint32) * np.uint32(wide * made)
    stores["dram_base"] = (block // made * form.height + row + rows) * form.columns + column * made
    whole = cut == form.columns and cut * high < _MOST_ELEMENTS and len(stores) == 1
    stores["x_size"], stores["y_size"] = (cut * high, 1) if whole else (cut, high // len(stores))
    stores["x_stride"] = 0 if whole else form.columns
    return stores
