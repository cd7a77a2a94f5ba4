"""The steps of a program in time: which tile and reduction step each is, where its operands lie, what it must load, and
which dependence tokens order it.

`threads` consecutive output tiles run interleaved, one lane each: a *round* does one reduction step of each lane. An
operand's *place* is the part of its buffer where it lies. Inputs and weights change places from round to round, as many
as there are threads, so that the next round's loads go on while this one computes. What lies in a place is not loaded
again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Analysis
from hilt.schedule.tiling import IntArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Steps:
    """Arrays (steps,) in the order of execution, and (tiles,) in the order of the tiles."""

    tile: IntArray
    lane: IntArray
    ci: IntArray
    first: BoolArray
    """Its tile's first reduction step."""
    last: BoolArray
    inp_place: IntArray
    wgt_place: IntArray
    inp_load: BoolArray
    wgt_load: BoolArray
    wait_free: BoolArray
    """Its loads pop a compute->load token: what they overwrite has been used."""
    signal_free: BoolArray
    """Its GEMM pushes that token."""

    tile_b: IntArray
    tile_h: IntArray
    tile_w: IntArray
    tile_co: IntArray
    reused: BoolArray
    """(tiles,) A later tile has the same lane, so the store pushes a store->compute token."""
    reuses: BoolArray
    """(tiles,) An earlier tile had the same lane: the first GEMM pops that token."""


def steps_of(analysis: Analysis) -> Steps:
    """Of the first configuration."""
    tiling = analysis.tiling
    threads, rounds = int(tiling.threads[0]), int(tiling.ci_steps[0])
    tile_b, tile_h, tile_w, tile_co = _tiles(analysis)
    count = len(tile_b)
    groups = -(-count // threads)

    grid_tile = np.arange(groups * threads).reshape(groups, 1, threads)
    tile_grid = np.broadcast_to(grid_tile, (groups, rounds, threads)).reshape(-1, threads)
    real = tile_grid < count
    tile_grid = np.minimum(tile_grid, count - 1)
    ci_grid = np.broadcast_to(np.tile(np.arange(rounds), groups)[:, None], tile_grid.shape)
    h_tiles, w_tiles = int(tiling.h_tiles[0]), int(tiling.w_tiles[0])
    inp_key = (((tile_b * h_tiles + tile_h) * w_tiles + tile_w) * rounds)[tile_grid] + ci_grid
    wgt_key = (tile_co * rounds)[tile_grid] + ci_grid

    oc_threads, h_threads = int(tiling.oc_threads[0]), int(tiling.h_threads[0])
    lanes = np.arange(threads)
    inp_place = (_changes(inp_key) % oc_threads)[:, None] * h_threads + lanes // oc_threads
    if analysis.resident[0]:
        wgt_place = wgt_key
    else:
        wgt_place = (_changes(wgt_key) % h_threads)[:, None] * oc_threads + lanes % oc_threads

    tile, ci = tile_grid[real], ci_grid[real]
    inp_load, inp_before = _loads(inp_key[real], inp_place[real])
    wgt_load, wgt_before = _loads(wgt_key[real], wgt_place[real])
    wait_free, signal_free = _tokens(np.maximum(inp_before, wgt_before))
    return Steps(
        tile=tile,
        lane=tile % threads,
        ci=ci,
        first=ci == 0,
        last=ci == rounds - 1,
        inp_place=inp_place[real],
        wgt_place=wgt_place[real],
        inp_load=inp_load,
        wgt_load=wgt_load,
        wait_free=wait_free,
        signal_free=signal_free,
        tile_b=tile_b,
        tile_h=tile_h,
        tile_w=tile_w,
        tile_co=tile_co,
        reused=np.arange(count) + threads < count,
        reuses=np.arange(count) >= threads,
    )


def _tiles(analysis: Analysis) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Coordinates of the output tiles in order: batch, rows, channels, columns as in TVM's template, with the tiles of
    one group of threads side by side."""
    tiling = analysis.tiling
    oc_threads, h_threads = int(tiling.oc_threads[0]), int(tiling.h_threads[0])
    h_tiles, w_tiles, co_tiles = int(tiling.h_tiles[0]), int(tiling.w_tiles[0]), int(tiling.co_tiles[0])
    groups = (int(tiling.b_tiles[0]), -(-h_tiles // h_threads), -(-co_tiles // oc_threads), w_tiles)
    loops = np.indices((*groups, h_threads, oc_threads)).reshape(6, -1)
    b, h, co, w = loops[0], loops[1] * h_threads + loops[4], loops[2] * oc_threads + loops[5], loops[3]
    if h_tiles % h_threads or co_tiles % oc_threads:  # the last thread has one tile fewer
        there = (h < h_tiles) & (co < co_tiles)
        b, h, co, w = b[there], h[there], co[there], w[there]
    return b, h, w, co


def _changes(keys: IntArray) -> IntArray:
    """How often a round's keys (rounds, lanes) were not those of the round before: (rounds,), from 0."""
    changed = np.any(keys[1:] != keys[:-1], axis=1)
    return np.concatenate(([0], np.cumsum(changed)))


def _loads(key: IntArray, place: IntArray) -> tuple[BoolArray, IntArray]:
    """Whether each step (steps,) must load its operand, and the last step that used what this overwrites (-1: none)."""
    order = np.argsort(place.astype(np.uint16), kind="stable")  # 16 bits are sorted in linear time
    same_place = np.concatenate(([False], place[order][1:] == place[order][:-1]))
    same_key = np.concatenate(([False], key[order][1:] == key[order][:-1]))
    before_sorted = np.where(same_place & ~same_key, np.concatenate(([-1], order[:-1])), -1)
    load = np.empty(len(key), dtype=np.bool_)
    before = np.empty(len(key), dtype=np.int64)
    load[order] = ~(same_place & same_key)
    before[order] = before_sorted
    return load, before


def _tokens(before: IntArray) -> tuple[BoolArray, BoolArray]:
    """Which steps' loads wait for a token, and which steps push it, where a load must follow step `before` (-1: any).

    Tokens do not say where they come from: the n-th popped is the n-th pushed. So a load waits only where no earlier
    load waited for as late a step, and only such steps push.
    """
    latest = np.maximum.accumulate(before)
    wait = latest > np.concatenate(([-1], latest[:-1]))
    signal = np.zeros(len(before), dtype=np.bool_)
    signal[latest[wait]] = True
    return wait, signal
