"""The steps of a program in time: which tile and reduction step each is, where its operands lie, what it must load, and
which dependence tokens order it.

`threads` consecutive output tiles run interleaved, one lane each: a *round* does one reduction step of each lane. Where
the reduction is outside, all rounds of a *band* of tiles do one reduction step before any does the next. An operand's
*place* is the part of its buffer where it lies. Inputs and weights change places from round to round, as many as there
are threads, so that the next round's loads go on while this one computes. What lies in a place is not loaded again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.plan import Plan, Sizes
from hilt.schedule.tiling import IntArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Steps:
    """Arrays (steps,) in the order of execution, and (tiles,) in the order of the tiles."""

    tile: IntArray
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
    acc_place: IntArray
    reused: BoolArray
    """(tiles,) A later tile has the same place, so the store pushes a store->compute token."""
    reuses: BoolArray
    """(tiles,) The first GEMM pops that token: an earlier tile had the same place."""


def steps_of(plan: Plan) -> Steps:
    """All steps of a program."""
    sizes, problem = plan.sizes, plan.problem
    threads, rounds = sizes.threads, sizes.ci_steps
    tile_b, tile_h, tile_w, tile_co, band = _tiles(sizes)
    count = len(tile_b)

    lanes = np.arange(threads)
    if plan.banded:
        starts = np.flatnonzero(np.concatenate(([True], band[1:] != band[:-1])))
        acc_place = np.arange(count) - starts[band]
        within = np.arange(-(-sizes.acc_places // threads) * threads).reshape(1, 1, -1, threads)
        ends = np.append(starts[1:], count)[:, None, None, None]
        grid = starts[:, None, None, None] + within
        here = grid < ends
        reuses, reused = _tokens(_before(acc_place))
    else:
        acc_place = np.arange(count) % threads
        grid = np.arange(-(-count // threads) * threads).reshape(-1, 1, 1, threads)
        here = grid < count
        reuses, reused = np.arange(count) >= threads, np.arange(count) + threads < count
    bands, _, across, _ = grid.shape
    tile_grid = np.broadcast_to(np.minimum(grid, count - 1), (bands, rounds, across, threads)).reshape(-1, threads)
    ci_grid = np.broadcast_to(np.arange(rounds)[:, None, None], (bands, rounds, across, threads)).reshape(-1, threads)
    inp_key = (((tile_b * sizes.h_tiles + tile_h) * sizes.w_tiles + tile_w) * rounds).take(tile_grid) + ci_grid
    if problem.groups > 1:  # other output channels may have other inputs
        group = tile_co if problem.block_by_block else tile_co * sizes.co // problem.co
        inp_key += (group * (count * rounds)).take(tile_grid)
    wgt_key = (tile_co * rounds).take(tile_grid) + ci_grid

    oc_threads, h_threads = sizes.oc_threads, sizes.h_threads
    inp_place = (_changes(inp_key) % oc_threads)[:, None] * h_threads + lanes // oc_threads
    if plan.resident:
        wgt_place = wgt_key
    else:
        wgt_place = (_changes(wgt_key) % h_threads)[:, None] * oc_threads + lanes % oc_threads

    if here.all():
        tile, ci, inp_place, wgt_place = tile_grid.ravel(), ci_grid.ravel(), inp_place.ravel(), wgt_place.ravel()
        inp_key, wgt_key = inp_key.ravel(), wgt_key.ravel()
    else:
        real = np.broadcast_to(here, (bands, rounds, across, threads)).reshape(-1, threads)
        tile, ci, inp_place, wgt_place = tile_grid[real], ci_grid[real], inp_place[real], wgt_place[real]
        inp_key, wgt_key = inp_key[real], wgt_key[real]
    inp_load, inp_before = _loads(inp_key, inp_place)
    wgt_load, wgt_before = _loads(wgt_key, wgt_place)
    wait_free, signal_free = _tokens(np.maximum(inp_before, wgt_before))
    return Steps(
        tile=tile,
        ci=ci,
        first=ci == 0,
        last=ci == rounds - 1,
        inp_place=inp_place,
        wgt_place=wgt_place,
        inp_load=inp_load,
        wgt_load=wgt_load,
        wait_free=wait_free,
        signal_free=signal_free,
        tile_b=tile_b,
        tile_h=tile_h,
        tile_w=tile_w,
        tile_co=tile_co,
        acc_place=acc_place,
        reused=reused,
        reuses=reuses,
    )


def _tiles(sizes: Sizes) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Coordinates b, h, w, co of the output tiles in order (LOOP_ORDERS, with the tiles of one group of threads side by
    side), and the turn of the loops outside of the reduction, were it outside of the other two."""
    oc_threads, h_threads, h_tiles, co_tiles = sizes.oc_threads, sizes.h_threads, sizes.h_tiles, sizes.co_tiles
    h_groups, co_groups = -(-h_tiles // h_threads), -(-co_tiles // oc_threads)
    rows_first = sizes.order in (1, 3)
    middle = (h_groups, co_groups) if rows_first else (co_groups, h_groups)
    loops = np.indices((sizes.b_tiles, *middle, sizes.w_tiles, h_threads, oc_threads)).reshape(6, -1)
    h_group, co_group = (loops[1], loops[2]) if rows_first else (loops[2], loops[1])
    b, w = loops[0], loops[3]
    h, co = h_group * h_threads + loops[4], co_group * oc_threads + loops[5]
    band = b * middle[0] + loops[1]
    if h_tiles % h_threads or co_tiles % oc_threads:  # the last thread has one tile fewer
        there = (h < h_tiles) & (co < co_tiles)
        b, h, w, co, band = b[there], h[there], w[there], co[there], band[there]
    return b, h, w, co, band


def _changes(keys: IntArray) -> IntArray:
    """How often a round's keys (rounds, lanes) were not those of the round before: (rounds,), from 0."""
    changed = keys[1:, 0] != keys[:-1, 0]
    for lane in range(1, keys.shape[1]):  # few columns: a loop over them is faster than a reduction of rows
        changed |= keys[1:, lane] != keys[:-1, lane]
    return np.concatenate(([0], np.cumsum(changed)))


def _before(place: IntArray) -> IntArray:
    """The last tile before each (tiles,) that had its place, or -1."""
    order = np.argsort(place, kind="stable")
    same = np.concatenate(([False], place[order][1:] == place[order][:-1]))
    before = np.empty(len(place), dtype=np.int64)
    before[order] = np.where(same, np.concatenate(([-1], order[:-1])), -1)
    return before


def _loads(key: IntArray, place: IntArray) -> tuple[BoolArray, IntArray]:
    """Whether each step (steps,) must load its operand, and the last step that used what this overwrites (-1: none)."""
    if not place.any():  # one place: no sorting
        changed = np.concatenate(([True], key[1:] != key[:-1]))
        return changed, np.where(changed, np.arange(-1, len(key) - 1), -1)
    order = np.argsort(place.astype(np.uint16), kind="stable")  # 16 bits are sorted in linear time
    places, keys = place.take(order), key.take(order)
    same_place = places[1:] == places[:-1]
    kept = same_place & (keys[1:] == keys[:-1])
    load = np.ones(len(key), dtype=np.bool_)
    before = np.full(len(key), -1)
    load[order[1:]] = ~kept
    before[order[1:]] = np.where(same_place & ~kept, order[:-1], -1)
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
