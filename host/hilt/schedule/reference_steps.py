"""The order of one program's work, with plain loops: tiles, reduction steps, slots on chip, and tokens.

`hilt.schedule.reference_lowering` turns the steps into code. `hilt.schedule.steps` gives the same steps for many
configurations at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from hilt.schedule.checks import Analysis
from hilt.schedule.tiling import TilingProblem


class ScalarTiling:
    """The sizes of one configuration as plain numbers (hilt.schedule.tiling has their meaning)."""

    def __init__(self, analysis: Analysis) -> None:
        tiling = analysis.tiling
        self.problem: TilingProblem = tiling.problem
        self.batch, self.height, self.width = int(tiling.batch[0]), int(tiling.height[0]), int(tiling.width[0])
        self.ci, self.co, self.order = int(tiling.ci[0]), int(tiling.co[0]), int(tiling.order[0])
        self.oc_threads, self.h_threads = int(tiling.oc_threads[0]), int(tiling.h_threads[0])
        self.threads = self.oc_threads * self.h_threads
        self.inp_channels = int(tiling.inp_channels[0])
        self.b_tiles, self.h_tiles = int(tiling.b_tiles[0]), int(tiling.h_tiles[0])
        self.w_tiles, self.co_tiles = int(tiling.w_tiles[0]), int(tiling.co_tiles[0])
        self.ci_steps, self.acc_slots = int(tiling.ci_steps[0]), int(tiling.acc_places[0])
        self.banded, self.resident = bool(tiling.banded[0]), bool(analysis.resident[0])
        self.inp_elements, self.wgt_elements = int(tiling.inp_elements[0]), int(tiling.wgt_elements[0])
        self.acc_elements = int(tiling.acc_elements[0])


@dataclass
class WorkTile:
    """A tile of the output by its number along each axis, and its own size: smaller at the edges."""

    b: int
    h: int
    w: int
    co: int
    height: int
    width: int
    slot: int = 0
    """The accumulator's part that holds its sums."""
    pops: bool = False
    """Its reset waits for the store of the tile that had this slot before."""
    pushes: bool = False
    """Its store tells that the slot is free for a later tile."""


@dataclass
class ReductionStep:
    """One reduction step of a tile: the slots of its operands, and whether their data must be loaded."""

    tile: WorkTile
    ci: int
    inp_slot: int
    wgt_slot: int
    loads_inp: bool = False
    loads_wgt: bool = False
    waits: bool = False
    """Its loads overwrite data that an earlier step used, and wait for that step's token."""
    signals: bool = False
    """Its GEMM pushes such a token."""


def order_of_work(sizes: ScalarTiling) -> tuple[list[WorkTile], list[ReductionStep]]:
    """Return the tiles and the reduction steps in order, with their slots, loads and tokens."""
    blocks = list(_blocks(sizes))
    tiles = [tile for block in blocks for tile in block]
    _share_accumulators(tiles)
    tiles[-1].pushes = True  # the last store of all tells FINISH
    return tiles, _steps(sizes, blocks)


def _tiles(sizes: ScalarTiling) -> Iterator[tuple[int, WorkTile]]:
    """Yield the tiles in order, each with its band: the turn of the loops outside of a banded reduction."""
    problem = sizes.problem
    h_groups, co_groups = -(-sizes.h_tiles // sizes.h_threads), -(-sizes.co_tiles // sizes.oc_threads)
    rows_first = sizes.order in (1, 3)
    outer, inner = (h_groups, co_groups) if rows_first else (co_groups, h_groups)
    bands = itertools.product(range(sizes.b_tiles), range(outer))
    for band, (b, outer_group) in enumerate(bands):
        for inner_group, w in itertools.product(range(inner), range(sizes.w_tiles)):
            h_group, co_group = (outer_group, inner_group) if rows_first else (inner_group, outer_group)
            for h_thread, co_thread in itertools.product(range(sizes.h_threads), range(sizes.oc_threads)):
                h, co = h_group * sizes.h_threads + h_thread, co_group * sizes.oc_threads + co_thread
                if h < sizes.h_tiles and co < sizes.co_tiles:  # the last thread may have one tile fewer
                    height = min(sizes.height, problem.out_height - h * sizes.height)
                    width = min(sizes.width, problem.out_width - w * sizes.width)
                    yield band, WorkTile(b, h, w, co, height, width)


def _blocks(sizes: ScalarTiling) -> Iterator[list[WorkTile]]:
    """Yield the tiles whose reductions run together, with their slots: a band, else one turn of the threads."""
    numbered = enumerate(_tiles(sizes))
    for _, members in itertools.groupby(
        numbered, lambda item: item[1][0] if sizes.banded else item[0] // sizes.threads
    ):
        block = [tile for _, (_, tile) in members]
        for slot, tile in enumerate(block):
            tile.slot = slot
        yield block


def _steps(sizes: ScalarTiling, blocks: list[list[WorkTile]]) -> list[ReductionStep]:
    """Return the steps in order, with their operands' slots, loads and tokens.

    A *round* does one reduction step in each thread. Whenever a round needs other data than the round before,
    its operands go to the next slots, so that they are loaded while the round before computes.
    """
    tiles = [tile for block in blocks for tile in block]
    turns = -(-sizes.acc_slots // sizes.threads) if sizes.banded else 1
    steps: list[ReductionStep] = []
    inp_turn = wgt_turn = first = 0
    inp_before: list[object] = []
    wgt_before: list[object] = []
    for block in blocks:
        for ci, turn in itertools.product(range(sizes.ci_steps), range(turns)):
            lanes = range(turn * sizes.threads, (turn + 1) * sizes.threads)
            # A thread without a tile counts as one with the next tile there is.
            present = [tiles[min(first + lane, len(tiles) - 1)] for lane in lanes]
            inp, wgt = ([key(sizes, tile, ci) for tile in present] for key in (_inp_key, _wgt_key))
            inp_turn += bool(steps) and inp != inp_before
            wgt_turn += bool(steps) and wgt != wgt_before
            inp_before, wgt_before = inp, wgt
            for lane, tile in enumerate(block[lanes.start : lanes.stop]):
                h_lane, co_lane = divmod(lane, sizes.oc_threads)
                inp_slot = inp_turn % sizes.oc_threads * sizes.h_threads + h_lane
                wgt_slot = wgt_turn % sizes.h_threads * sizes.oc_threads + co_lane
                resident_slot = tile.co * sizes.ci_steps + ci
                steps.append(ReductionStep(tile, ci, inp_slot, resident_slot if sizes.resident else wgt_slot))
        first += len(block)
    _share_operands(sizes, steps)
    return steps


def _inp_key(sizes: ScalarTiling, tile: WorkTile, ci: int) -> object:
    """Return a value that differs from that of other input boxes."""
    group = 0
    if sizes.problem.groups > 1:
        group = tile.co if sizes.problem.block_by_block else tile.co * sizes.co // sizes.problem.co
    return tile.b, tile.h, tile.w, group, ci


def _wgt_key(sizes: ScalarTiling, tile: WorkTile, ci: int) -> object:
    return tile.co, ci


def _share_operands(sizes: ScalarTiling, steps: list[ReductionStep]) -> None:
    """Decide which steps load, and which loads wait for an earlier step's token.

    Tokens do not name their source: the n-th popped is the n-th pushed. So a load waits only if no earlier load
    waited for as late a step.
    """
    held: dict[object, tuple[object, int]] = {}
    latest = -1
    for number, step in enumerate(steps):
        overwritten = -1
        inp, wgt = _inp_key(sizes, step.tile, step.ci), _wgt_key(sizes, step.tile, step.ci)
        for slot, key in ((("inp", step.inp_slot), inp), (("wgt", step.wgt_slot), wgt)):
            old = held.get(slot)
            if old is None or old[0] != key:
                if slot[0] == "inp":
                    step.loads_inp = True
                else:
                    step.loads_wgt = True
                overwritten = max(overwritten, -1 if old is None else old[1])
            held[slot] = key, number
        if overwritten > latest:
            step.waits = steps[overwritten].signals = True
            latest = overwritten


def _share_accumulators(tiles: list[WorkTile]) -> None:
    """Set the tokens between the store of a tile and the next tile in its slot (as _share_operands)."""
    held: dict[int, int] = {}
    latest = -1
    for number, tile in enumerate(tiles):
        before = held.get(tile.slot, -1)
        if before > latest:
            tile.pops = tiles[before].pushes = True
            latest = before
        held[tile.slot] = number
