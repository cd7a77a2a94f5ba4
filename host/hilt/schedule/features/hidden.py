"""Hidden features: values that only lowering knows (ML2Tuner, section 2 and Table 5), and hilt's own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilt.schedule.checks import Analysis, Reason, analyse
from hilt.schedule.features.features import Features
from hilt.schedule.loops import NO_HAZARD, extents
from hilt.schedule.rows.features import row_features
from hilt.schedule.tiling import IntArray, Tiling, TilingProblem
from hilt.schedule.traffic import Traffic, traffic
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator

Columns = dict[str, NDArray[np.generic]]

TABLE_5 = (
    "TW",
    "TH",
    "nVirtualThread > 0 (threadIdx)",
    "nVT",
    "nFilterInLoop",
    "sizeOutTileH",
    "sizeOutTileW",
    "nVirtualThread > 0 (threadIdx) 2",
    "sizeOutTileBoundaryW",
    "outDummyH(b0!=0)",
    "nFilterInLoop 2",
    "resizedOutTileH(b0==0)",
    "outDummyH(b0==0)",
    "Kn / nFilterInLoop / nVirtualThread / 16",
    "sizeInTileW",
    "resizedOutTileH(b0!=0)",
    "sizeInTileH",
    "resizedInTileH(b0==0)",
    "resizedInTileH(b0!=0)",
)
"""ML2Tuner's nineteen, in its order and by its names; a name that it prints twice has a 2 the second time."""


def hidden_features(workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike]) -> Features:
    """Return the hidden features of configurations, given as knob values by name, each (n,).

    TABLE_5 first, then our own.

    Sizes are in rows, columns and channel blocks, memory in elements of its buffer or bytes; counts are not scaled.
    A rejected configuration has the features of the program that it would be.
    """
    analysis = analyse(workload, accelerator, columns)
    found = _table_5(analysis.tiling) | _own(analysis, traffic(analysis))
    if analysis.rows is not None:
        found |= row_features(analysis.rows)
    return Features(tuple(found), np.stack([column.astype(np.float32) for column in found.values()], axis=1))


def _table_5(tiling: Tiling) -> Columns:
    """Return the features of Table 5. The paper gives names only; this is our reading of them.

    b0 is the first tile of the rows, the other branch the last one. `resized` is a tile without the part outside the
    tensor, `dummy` the rows that are cut away. The second of two equal names is the same decision at its second
    place in
    the compiler: the threads of the other axis, and the filters of the last tile.
    """
    problem = tiling.problem
    out_height = problem.out_height
    last_h = out_height - (tiling.h_tiles - 1) * tiling.height
    first_out = np.minimum(tiling.height, out_height)
    columns = (
        tiling.width,
        tiling.height,
        tiling.oc_threads > 1,
        tiling.threads,
        tiling.co,
        first_out,
        np.minimum(tiling.width, problem.out_width),
        tiling.h_threads > 1,
        problem.out_width - (tiling.w_tiles - 1) * tiling.width,
        tiling.height - last_h,
        problem.all_co - (tiling.co_tiles - 1) * tiling.co,
        first_out,
        tiling.height - first_out,
        -(-tiling.co_tiles // tiling.threads),
        tiling.box_width,
        last_h,
        tiling.box_height,
        _rows_inside(problem, np.zeros_like(first_out), first_out),
        _rows_inside(problem, (tiling.h_tiles - 1) * tiling.height, last_h),
    )
    return dict(zip(TABLE_5, columns, strict=True))


def _rows_inside(problem: TilingProblem, first: IntArray, rows: IntArray) -> IntArray:
    """Return the rows of the input in the box of `rows` output rows from `first` on."""
    workload, step = problem.workload, problem.row_step
    box = problem.box_height(rows)
    start = first * workload.stride[0] - workload.padding[0]
    before = np.clip(-(start // step), 0, box)
    after = np.clip(box + (start - workload.height) // step, 0, box - before)
    return np.asarray(box - before - after)


def _own(analysis: Analysis, moved: Traffic) -> Columns:
    tiling, loops = analysis.tiling, analysis.loops
    problem = tiling.problem
    rows = np.arange(len(tiling.batch))
    extent = extents(tiling)
    micro_ops = problem.batch * problem.all_co * problem.ci * problem.taps * problem.out_height * problem.out_width
    bandwidth = problem.accelerator.bytes_per_cycle
    needs = {
        name: np.asarray(need / limit)
        for name, (need, limit) in (
            ("inp", analysis.needs[Reason.INP_OVERFLOW]),
            ("wgt", analysis.needs[Reason.WGT_OVERFLOW]),
            ("acc", analysis.needs[Reason.ACC_OVERFLOW]),
            ("uop", analysis.needs[Reason.UOP_OVERFLOW]),
        )
    }
    operands = {"inp": moved.inp_bytes, "wgt": moved.wgt_bytes, "out": moved.out_bytes}
    return {
        "tiles": tiling.tiles,
        "tile.b": tiling.batch,
        "tile.ci": tiling.ci,
        "ci_steps": tiling.ci_steps,
        "tile.inp_elements": tiling.inp_elements,
        "tile.wgt_elements": tiling.wgt_elements,
        "tile.acc_elements": tiling.acc_elements,
        "weights_resident": analysis.resident,
        "acc_places": tiling.acc_places,
        "boundary.h": problem.out_height - (tiling.h_tiles - 1) * tiling.height,
        "boundary.threads_h": tiling.h_tiles % tiling.h_threads,
        "boundary.threads_co": tiling.co_tiles % tiling.oc_threads,
        **{f"bytes.{name}": column for name, column in operands.items()},
        "bytes.all": moved.bytes,
        **{f"reuse.{name}": micro_ops / np.maximum(column, 1) for name, column in operands.items()},
        "boxes.inp": moved.inp_boxes,
        "boxes.wgt": moved.wgt_boxes,
        "instructions.load_inp": moved.inp_loads,
        "instructions.load_wgt": moved.wgt_loads,
        "instructions.gemm": moved.gemms,
        "instructions.alu": moved.alus,
        "instructions.store": moved.stores,
        "instructions.all": moved.instructions,
        "tokens.load_to_compute": moved.load_tokens,
        "tokens.compute_to_store": moved.store_tokens,
        "gemm.uops": loops.uops,
        "gemm.iter_out": extent[rows, loops.out],
        "gemm.iter_in": extent[rows, loops.into],
        "hazard_distance": np.where(analysis.hazard_distance == NO_HAZARD, 0, analysis.hazard_distance),
        **{f"occupancy.{name}": share for name, share in needs.items()},
        "cycles.compute": np.full(len(rows), micro_ops),
        "cycles.memory": moved.bytes / bandwidth,
        "memory_bound": moved.bytes / bandwidth > micro_ops,
    }
