"""The steps of programs in time: tile, reduction step, operand slots, loads and dependence tokens of each.

`threads` consecutive output tiles run interleaved, one lane each: a *round* does one reduction step of each lane. If
the reduction is outside, all rounds of a *band* of tiles do one reduction step before any does the next. A *block* is
the tiles whose reductions run together: a band, else the tiles of one turn of the threads. An operand's *slot* is its
part of the buffer. Inputs and weights change slots from round to round, as many as there are threads, so that the next
round's loads run beside this one's computation. Data in a slot is not loaded again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilt.schedule.plan import Plans
from hilt.schedule.segments import divided, ragged, starts
from hilt.schedule.tiling import BoolArray, IntArray, Tiling


@dataclass(frozen=True)
class Tiles:
    """The output tiles of all programs, arrays (tiles,), program by program and in the order of execution."""

    program: IntArray
    b: IntArray
    h: IntArray
    w: IntArray
    co: IntArray
    band: IntArray
    """The turn of the loops outside of the reduction, were it outside of the other two."""


@dataclass(frozen=True)
class Steps:
    """Arrays (steps,) of all programs, program by program and in the order of execution; and (tiles,)."""

    tiles: Tiles
    program: IntArray
    tile: IntArray
    ci: IntArray
    first: IntArray
    """(tiles,) The step that is the tile's first of the reduction."""
    last: IntArray
    """(tiles,)"""
    inp_place: IntArray
    wgt_place: IntArray
    inp_load: BoolArray
    wgt_load: BoolArray
    wait_free: BoolArray
    """A flag: its loads pop a compute->load token, because they overwrite used data."""
    signal_free: BoolArray
    """Its GEMM pushes that token."""
    acc_place: IntArray
    """(tiles,)"""
    reused: BoolArray
    """(tiles,) A later tile has the same place, so the store pushes a store->compute token."""
    reuses: BoolArray
    """(tiles,) The first GEMM pops that token: an earlier tile had the same place."""


def steps_of(plans: Plans) -> Steps:
    """Return all steps of the programs."""
    tiling = plans.tiling
    tiles = _tiles(tiling)
    count = np.bincount(tiles.program, minlength=len(plans))
    block = np.where(
        plans.banded.take(tiles.program),
        tiles.band,
        (np.arange(len(tiles.program)) - starts(count).take(tiles.program)) // tiling.threads.take(tiles.program),
    )
    new = np.concatenate(([True], (block[1:] != block[:-1]) | (tiles.program[1:] != tiles.program[:-1])))
    start = np.flatnonzero(new)
    size = np.diff(start, append=len(block))
    acc_place = np.arange(len(block)) - start.repeat(size)
    reuses, reused = _tokens(_before(_order(starts(tiling.acc_places).take(tiles.program) + acc_place)))

    grid = _Grid.of(plans, tiles.program.take(start), start, size, count)
    program, tile, ci = grid.program, grid.tile, grid.ci
    inp_key, wgt_key = _keys(tiling, tiles, count)
    inp_key, wgt_key = inp_key.take(tile) + ci, wgt_key.take(tile) + ci
    oc_threads = tiling.oc_threads.take(program)
    h_lane = grid.lane // oc_threads
    inp_place = grid.places(inp_key, tiling.oc_threads, tiling.h_threads) + h_lane
    wgt_place = grid.places(wgt_key, tiling.h_threads, tiling.oc_threads) + grid.lane - h_lane * oc_threads
    wgt_place = np.where(plans.resident.take(program), wgt_key, wgt_place)
    if not grid.real.all():
        real = np.flatnonzero(grid.real)
        program, tile, ci = program.take(real), tile.take(real), ci.take(real)
        inp_place, wgt_place = inp_place.take(real), wgt_place.take(real)
        inp_key, wgt_key = inp_key.take(real), wgt_key.take(real)

    inp_load, inp_before = _loads(inp_key, starts(tiling.threads).take(program) + inp_place)
    wgt_places = np.where(plans.resident, tiling.weight_boxes, tiling.threads)
    wgt_load, wgt_before = _loads(wgt_key, starts(wgt_places).take(program) + wgt_place)
    wait_free, signal_free = _tokens(np.maximum(inp_before, wgt_before))
    return Steps(
        tiles,
        program,
        tile,
        ci,
        first=np.flatnonzero(ci == 0),
        last=np.flatnonzero(ci == tiling.ci_steps.take(program) - 1),
        inp_place=inp_place,
        wgt_place=wgt_place,
        inp_load=inp_load,
        wgt_load=wgt_load,
        wait_free=wait_free,
        signal_free=signal_free,
        acc_place=acc_place,
        reused=reused,
        reuses=reuses,
    )


def _tiles(tiling: Tiling) -> Tiles:
    """Return the tiles in order (LOOP_ORDERS), with the tiles of one group of threads side by side."""
    oc_threads, h_threads = tiling.oc_threads, tiling.h_threads
    h_groups, co_groups = -(-tiling.h_tiles // h_threads), -(-tiling.co_tiles // oc_threads)
    rows_first = (tiling.order == 1) | (tiling.order == 3)
    inner = np.where(rows_first, co_groups, h_groups)
    program, rest = ragged(tiling.b_tiles * h_groups * co_groups * tiling.w_tiles * tiling.threads)
    rest, co_thread = divided(rest, oc_threads.take(program))
    rest, h_thread = divided(rest, h_threads.take(program))
    rest, w = divided(rest, tiling.w_tiles.take(program))
    band, inner_group = divided(rest, inner.take(program))
    b, outer_group = divided(band, np.where(rows_first, h_groups, co_groups).take(program))
    by_rows = rows_first.take(program)
    h = np.where(by_rows, outer_group, inner_group) * h_threads.take(program) + h_thread
    co = np.where(by_rows, inner_group, outer_group) * oc_threads.take(program) + co_thread
    there = (h < tiling.h_tiles.take(program)) & (co < tiling.co_tiles.take(program))
    if not there.all():  # the last thread of some has one tile fewer
        program, b, h, w, co, band = (column[there] for column in (program, b, h, w, co, band))
    return Tiles(program, b, h, w, co, band)


def _keys(tiling: Tiling, tiles: Tiles, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return the inputs and weights of each tile's first reduction step (tiles,); the next steps' follow."""
    problem, program = tiling.problem, tiles.program
    rounds = tiling.ci_steps.take(program)
    box = (tiles.b * tiling.h_tiles.take(program) + tiles.h) * tiling.w_tiles.take(program) + tiles.w
    if problem.groups > 1:  # other output channels may have other inputs
        group = tiles.co if problem.block_by_block else tiles.co * tiling.co.take(program) // problem.co
        box += group * count.take(program)
    return box * rounds, tiles.co * rounds


@dataclass(frozen=True)
class _Grid:
    """Steps as if every block had all its lanes in all its rounds: arrays (steps,).

    Those that there are not take part in the changes of places.
    """

    program: IntArray
    tile: IntArray
    """One that there is, also of the steps that there are not."""
    real: BoolArray
    """Marks the steps that exist."""
    ci: IntArray
    lane: IntArray
    before: IntArray
    """The step of the same lane one round before; of the program's first round, any."""
    round: IntArray
    rounds: IntArray
    """(programs,)"""

    @classmethod
    def of(cls, plans: Plans, program: IntArray, start: IntArray, size: IntArray, tiles: IntArray) -> _Grid:
        """Return the blocks, arrays (blocks,): program, first tile and number of tiles.

        `tiles` has shape (programs,).
        """
        threads, ci_steps = plans.tiling.threads, plans.tiling.ci_steps
        across = np.where(plans.banded, -(-plans.tiling.acc_places // threads), 1)
        steps = (ci_steps * across * threads).take(program)
        block, number = ragged(steps)
        ci, within = divided(number, (across * threads).take(program).repeat(steps))
        lanes = threads.take(program).repeat(steps)
        turn, lane = divided(number, lanes)
        tile = start.repeat(steps) + within
        real = within < size.repeat(steps)
        if not real.all():
            tile = np.minimum(tile, (tiles.cumsum() - 1).take(program).repeat(steps))
        turns = (ci_steps * across).take(program)
        return cls(
            program.repeat(steps),
            tile,
            real,
            ci,
            lane,
            before=np.maximum(np.arange(len(block)) - lanes, 0),
            round=turn + starts(turns).repeat(steps),
            rounds=np.bincount(program, weights=turns, minlength=len(plans)).astype(np.int64),
        )

    def places(self, key: IntArray, turns: IntArray, lanes: IntArray) -> IntArray:
        """Return the first place of a round, (steps,).

        Whenever the keys (steps,) of a round are not those of the one before, the next of `turns` (programs,) times
        `lanes` places.
        """
        changed = np.zeros(int(self.rounds.sum()), dtype=np.int64)
        changed[self.round.take(np.flatnonzero(key != key.take(self.before)))] = 1
        first = starts(self.rounds)
        changed[first] = 0
        changes = changed.cumsum()
        changes -= changes.take(first).repeat(self.rounds)
        place: IntArray = changes % turns.repeat(self.rounds) * lanes.repeat(self.rounds)
        return place.take(self.round)


def _order(place: IntArray) -> tuple[IntArray, BoolArray]:
    """Stable ascending, and whether each (m - 1,) but the first has the same place as the one before."""
    narrow = place.astype(np.uint16) if place.max() < 1 << 16 else place  # 16 bits are sorted in linear time
    order = np.argsort(narrow, kind="stable")
    places = narrow.take(order)
    return order, places[1:] == places[:-1]


def _before(ordered: tuple[IntArray, BoolArray]) -> IntArray:
    """Return the last tile before each (tiles,) that had its place, or -1."""
    order, same_place = ordered
    before = np.full(len(order), -1)
    before[order[1:]] = np.where(same_place, order[:-1], -1)
    return before


def _loads(key: IntArray, place: IntArray) -> tuple[BoolArray, IntArray]:
    """Return whether each step (steps,) loads its operand, and the last user of the overwritten data (-1: none)."""
    order, same_place = _order(place)
    keys = key.take(order)
    loaded = ~same_place | (keys[1:] != keys[:-1])
    load = np.ones(len(key), dtype=np.bool_)
    load[order[1:]] = loaded
    over = np.flatnonzero(same_place & loaded)
    before = np.full(len(key), -1)
    before[order.take(over + 1)] = order.take(over)
    return load, before


def _tokens(before: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return the steps whose loads wait for a token and the steps that push one.

    A load follows step `before` (-1: any).

    Tokens do not name their source: the n-th popped is the n-th pushed. So a load waits only if no earlier load
    waited for
    as late a step, and only such steps push. The waits of earlier programs are earlier than those of later ones.
    """
    latest = np.maximum.accumulate(before)
    wait = latest > np.concatenate(([-1], latest[:-1]))
    signal = np.zeros(len(before), dtype=np.bool_)
    signal[latest.take(np.flatnonzero(wait))] = True
    return wait, signal
