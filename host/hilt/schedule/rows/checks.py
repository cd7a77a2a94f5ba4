"""The findings of the checks on row programs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from hilt.schedule.analysis import Analysis
from hilt.schedule.loops import HAZARD_DISTANCE, LOOPS, LoopChoice
from hilt.schedule.reasons import Needs, Reason
from hilt.schedule.rows.choices import FoldedLoop, Keep
from hilt.schedule.rows.plans import RowPlans
from hilt.schedule.tiling import IntArray, Tiling
from hilt.vta.program import MAX_IMAGE_BYTES

_COUNTED = {FoldedLoop.ROWS: ("ci", "co"), FoldedLoop.OUTPUTS: ("h", "ci"), FoldedLoop.INPUTS: ("h", "co")}
"""The loops that are iterations, the outer one first."""


def analyse_rows(tiling: Tiling, columns: Mapping[str, ArrayLike]) -> Analysis:
    """Return everything that decides whether these row programs can be lowered."""
    knobs = {name: np.atleast_1d(np.asarray(columns[name], dtype=np.int64)) for name in ("fold", "keep", "merge")}
    plans = RowPlans.of(tiling, knobs)
    out, into = (
        np.array([0, *(LOOPS.index(_COUNTED[choice][place]) for choice in FoldedLoop)]).take(plans.fold)
        for place in (0, 1)
    )
    loops = LoopChoice(out, into, plans.kernel_uops, plans.hazard_distance)
    resident = (plans.keep == Keep.WEIGHTS) & (tiling.co_tiles == 1)
    return Analysis(tiling, loops, [], resident, plans.hazard_distance, _needs(plans), plans)


def instructions(plans: RowPlans) -> IntArray:
    """Return the instructions of each program (n,)."""
    workload = plans.tiling.problem.workload
    around = plans.tiling.tiles * (1 + alus_of_tile(plans)) + 2 + workload.bias
    return plans.inp_loads + plans.wgt_loads + plans.gemms + plans.stores + around


def alus_of_tile(plans: RowPlans) -> int:
    """Return the ALU instructions of a tile: bias, shift, and the clip from two sides."""
    workload = plans.tiling.problem.workload
    return int(workload.bias) + int(workload.shift > 0) + 2


def _needs(plans: RowPlans) -> Needs:
    tiling, problem = plans.tiling, plans.tiling.problem
    workload, accelerator = problem.workload, problem.accelerator
    memory, gemm = accelerator.formats.memory, accelerator.formats.gemm
    pixels = tiling.height * tiling.width
    largest_buffer = max(
        problem.batch * problem.all_ci * workload.height * workload.width,
        problem.batch * problem.all_co * problem.out_height * problem.out_width,
        problem.wgt_elements,
    )
    counted = np.maximum(np.maximum(tiling.height, tiling.ci), tiling.co)
    return {
        Reason.INP_OVERFLOW: (plans.inp_slots * plans.inp_box, accelerator.parameters.inp_depth),
        Reason.WGT_OVERFLOW: (plans.wgt_slots * tiling.wgt_elements, accelerator.parameters.wgt_depth),
        Reason.ACC_OVERFLOW: (
            plans.acc_slots * tiling.acc_elements + problem.bias_elements,
            accelerator.parameters.acc_depth,
        ),
        Reason.UOP_OVERFLOW: (plans.uops, accelerator.uop_depth),
        Reason.FIELD_OVERFLOW_ITER_OUT: (counted, gemm.by_name["iter_out"].high),
        Reason.FIELD_OVERFLOW_ITER_IN: (
            np.maximum(np.maximum(counted, pixels), tiling.acc_elements // plans.reset_uops),
            gemm.by_name["iter_in"].high,
        ),
        Reason.FIELD_OVERFLOW_DRAM_BASE: (
            np.full(len(pixels), largest_buffer),
            1 << memory.by_name["dram_base"].width,
        ),
        Reason.INSN_LIMIT: (instructions(plans), MAX_IMAGE_BYTES // accelerator.instruction_bytes),
        Reason.ACC_HAZARD: ((plans.hazard_distance < HAZARD_DISTANCE).astype(np.int64), 0),
    }
