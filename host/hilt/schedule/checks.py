"""The compiler's verdict on configurations, many at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from hilt.run_choices import CheckLevel
from hilt.schedule.analysis import Analysis as Analysis
from hilt.schedule.analysis import Checks as Checks
from hilt.schedule.loops import HAZARD_DISTANCE, LoopChoice, choose, extents
from hilt.schedule.loops import NO_HAZARD as NO_HAZARD
from hilt.schedule.reasons import Needs
from hilt.schedule.reasons import Reason as Reason
from hilt.schedule.reasons import Rejected as Rejected
from hilt.schedule.rows.checks import analyse_rows
from hilt.schedule.rows.choices import is_rows
from hilt.schedule.skip_needs import SkipNeeds
from hilt.schedule.tiling import IntArray, Tiling, TilingProblem
from hilt.schedule.tvm_rules import as_tvm
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import MAX_IMAGE_BYTES

TOKEN_QUEUE_DEPTH = 1024
"""Distance on public boards and hilt's RTL (TVM_FACTS.md section 3)."""


def verdicts(
    workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike], checks: Checks = CheckLevel.COMPILER
) -> IntArray:
    """Return the reason numbers (n,) of configurations given as knob values by name (Space.columns); 0 is accepted."""
    return analyse(workload, accelerator, as_tvm(columns) if checks == "tvm" else columns).verdict(checks)


def hazard_distance(workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike]) -> IntArray:
    """Micro-ops (n,) between two updates of one accumulator element, at least.

    NO_HAZARD if none is updated twice in one instruction. Below HAZARD_DISTANCE, hardware without interlock loses
    sums.
    """
    return analyse(workload, accelerator, columns).hazard_distance


def analyse(workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike]) -> Analysis:
    """Everything that decides whether these configurations can be lowered."""
    problem = TilingProblem.of(workload, accelerator)
    tiling = Tiling.of(problem, columns)
    if is_rows(columns):
        return _rows_in_form(analyse_rows(tiling, columns))
    threads = tiling.threads

    # A micro-op names its input, weight and accumulator elements, so each combination of the places where they lie has
    # its own set: inputs and weights take turns in `threads` places each, shared by threads where they are the same.
    places = tiling.acc_places
    edges = tiling.edges()
    shapes = 1 + sum(exists.astype(np.int64) for _, exists in edges)
    epilogue = places + (_bias_sets(tiling) * tiling.batch if workload.bias else 0)
    budget = (accelerator.uop_depth - epilogue) // (places * threads * shapes)
    loops = choose(tiling, budget)
    chosen = [(edge, exists, choose(edge, budget)) for edge, exists in edges]
    set_uops = loops.uops.copy()
    distance = loops.hazard_distance.copy()
    for _, exists, edge_loops in chosen:
        set_uops += np.where(exists, edge_loops.uops, 0)
        distance = np.where(exists, np.minimum(distance, edge_loops.hazard_distance), distance)
    resident_uops = set_uops * tiling.oc_threads * threads * tiling.weight_boxes + epilogue
    resident = (
        (tiling.tiles > tiling.co_tiles)
        & ~tiling.banded
        & (problem.wgt_elements <= accelerator.parameters.wgt_depth)
        & (resident_uops <= accelerator.uop_depth)
    )
    uops = np.where(resident, resident_uops, set_uops * places * threads + epilogue)
    wgt = np.where(resident, problem.wgt_elements, tiling.wgt_elements * threads)
    needs = _needs(tiling, loops, wgt, uops, distance)
    if workload.has_skip:
        inputs = tiling.inp_elements * threads + workload.multiplies_bias
        needs = _with_skip(needs, SkipNeeds.of(tiling, inputs, tiling.acc_places))
    if workload.multiplies_bias:
        needs = _with_products(needs, problem)
    return Analysis(tiling, loops, chosen, resident, distance, needs)


def _needs(tiling: Tiling, loops: LoopChoice, wgt: IntArray, uops: IntArray, distance: IntArray) -> Needs:
    """Return the configurations' needs of each resource, and how much there is.

    `wgt` and `uops` count elements of weights and micro-ops on chip, `distance` cycles between updates of an element.
    """
    problem, places, threads = tiling.problem, tiling.acc_places, tiling.threads
    accelerator, parameters = problem.accelerator, problem.accelerator.parameters
    split = problem.groups > 1 and not problem.block_by_block
    unshared = (tiling.co_tiles < tiling.oc_threads) | (tiling.h_tiles < tiling.h_threads)
    return {
        Reason.THREAD_SPLIT: (unshared.astype(np.int64), 0),
        Reason.GROUP_SPLIT: ((split & (problem.co % tiling.co != 0)).astype(np.int64), 0),
        Reason.INP_OVERFLOW: (tiling.inp_elements * threads, parameters.inp_depth),
        Reason.WGT_OVERFLOW: (wgt, parameters.wgt_depth),
        Reason.ACC_OVERFLOW: (tiling.acc_elements * threads + problem.bias_elements, parameters.acc_depth),
        Reason.PARTIAL_SUM_SPILL: (tiling.acc_elements * places + problem.bias_elements, parameters.acc_depth),
        Reason.UOP_OVERFLOW: (uops, accelerator.uop_depth),
        **_field_needs(tiling, loops),
        # Stores of one band tell the computation of the next, and FINISH.
        Reason.TOKEN_LIMIT: (np.where(tiling.banded, places + 1, 0), TOKEN_QUEUE_DEPTH),
        Reason.INSN_LIMIT: (_instruction_bound(tiling), MAX_IMAGE_BYTES // accelerator.instruction_bytes),
        Reason.ACC_HAZARD: ((distance < HAZARD_DISTANCE).astype(np.int64), 0),
    }


def _rows_in_form(found: Analysis) -> Analysis:
    plans, problem, needs = found.rows, found.tiling.problem, found.needs
    if plans is not None and problem.workload.has_skip:
        inputs = plans.inp_slots * plans.inp_box + problem.workload.multiplies_bias
        needs = _with_skip(needs, SkipNeeds.of(found.tiling, inputs, plans.acc_slots))
    if problem.workload.multiplies_bias:
        needs = _with_products(needs, problem)
    return replace(found, needs=needs)


def _with_products(needs: Needs, problem: TilingProblem) -> dict[Reason, tuple[IntArray, int]]:
    """Return the needs with those of a bias made of products: an input, a weight block for each of channels."""
    more = {Reason.INP_OVERFLOW: 1, Reason.WGT_OVERFLOW: problem.bias_elements, Reason.INSN_LIMIT: 1}
    return {reason: (need + more.get(reason, 0), limit) for reason, (need, limit) in needs.items()}


def _with_skip(needs: Needs, skip: SkipNeeds) -> dict[Reason, tuple[IntArray, int]]:
    """Return the needs with those of a skip connection: an identity block, a row, its micro-ops and instructions."""
    more: dict[Reason, IntArray | int] = {
        Reason.INP_OVERFLOW: skip.row,
        Reason.WGT_OVERFLOW: 1,
        Reason.UOP_OVERFLOW: skip.micro_ops,
        Reason.INSN_LIMIT: 3 * skip.pieces + 1,  # a LOAD and a GEMM each, and a shift for each tile
    }
    added = {reason: (need + more.get(reason, 0), limit) for reason, (need, limit) in needs.items()}
    need, limit = added[Reason.FIELD_OVERFLOW_ITER_IN]
    return {**added, Reason.FIELD_OVERFLOW_ITER_IN: (np.maximum(need, skip.piece), limit)}


def _bias_sets(tiling: Tiling) -> IntArray:
    """Return the combinations of an accumulator's place and the channels whose bias is added there, at most."""
    sets: IntArray = np.minimum(tiling.acc_places * tiling.co_tiles, tiling.tiles)
    return sets


def _field_needs(tiling: Tiling, loops: LoopChoice) -> dict[Reason, tuple[IntArray, int]]:
    problem = tiling.problem
    workload = problem.workload
    memory, gemm = problem.accelerator.formats.memory, problem.accelerator.formats.gemm
    count = len(tiling.batch)
    pads = []
    for axis, (out, size, box, step) in enumerate(
        (
            (problem.out_height, workload.height, tiling.box_height, problem.row_step),
            (problem.out_width, workload.width, tiling.box_width, 1),
        )
    ):
        before = workload.padding[axis]
        after = (out - 1) * workload.stride[axis] + workload.reach[axis] - before - size
        # A box that is all padding is written as zeros, without pads.
        pads += [np.minimum(-(-outside // step), box - 1) for outside in (before, max(after, 0))]
    pad = memory.by_name["y_pad_0"].high
    extent = extents(tiling)
    rows = np.arange(count)
    largest_buffer = max(
        problem.batch * problem.all_ci * workload.height * workload.width,
        problem.batch * problem.all_co * problem.out_height * problem.out_width,
        problem.wgt_elements,
    )
    return {
        Reason.FIELD_OVERFLOW_Y_PAD_0: (pads[0], pad),
        Reason.FIELD_OVERFLOW_Y_PAD_1: (pads[1], pad),
        Reason.FIELD_OVERFLOW_X_PAD_0: (pads[2], pad),
        Reason.FIELD_OVERFLOW_X_PAD_1: (pads[3], pad),
        Reason.FIELD_OVERFLOW_ITER_OUT: (
            np.maximum(extent[rows, loops.out], tiling.batch * tiling.co),
            gemm.by_name["iter_out"].high,
        ),
        Reason.FIELD_OVERFLOW_ITER_IN: (
            np.maximum(extent[rows, loops.into], tiling.height * tiling.width),
            gemm.by_name["iter_in"].high,
        ),
        Reason.FIELD_OVERFLOW_X_STRIDE: (
            np.full(count, max(workload.width * problem.row_step, problem.out_width)),
            memory.by_name["x_stride"].high,
        ),
        Reason.FIELD_OVERFLOW_DRAM_BASE: (np.full(count, largest_buffer), 1 << memory.by_name["dram_base"].width),
    }


def _instruction_bound(tiling: Tiling) -> IntArray:
    """Return an upper bound of the number of instructions.

    The bound assumes one transfer for each image and channel block of a box, and no operand loaded once for two uses.
    """
    problem = tiling.problem
    fits = problem.ci * problem.taps <= problem.accelerator.formats.memory.by_name["x_stride"].high
    inp, wgt, store = tiling.batch * tiling.inp_channels, 1 if fits else tiling.co, tiling.batch * tiling.co
    steps = tiling.tiles * tiling.ci_steps
    # A tile resets, adds the bias, shifts, and clips from two sides; a program loads micro-ops and bias, and finishes.
    return steps * (inp + wgt + 1) + tiling.tiles * (5 + store) + 3
