"""Features of the loops: a context vector for each loop, all vectors in a row, and AutoTVM's context relations.

Source: Learning to Optimize Tensor Programs, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilt.schedule.checks import analyse
from hilt.schedule.features.features import Features
from hilt.schedule.loop_nest import KINDS, OPERANDS, LoopKind, loop_nest
from hilt.schedule.loops import LOOPS
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator

THRESHOLDS = 2.0 ** np.arange(24)
"""beta: every power of two, from one to more than any loop of a layer touches or turns."""

RELATIONS = tuple(
    pair
    for operand in OPERANDS
    for pair in (
        (f"{operand}.touched", f"{operand}.reuse"),
        (f"{operand}.reuse", f"{operand}.touched"),
        (f"{operand}.touched", "top_down"),
        ("top_down", f"{operand}.touched"),
        (f"{operand}.touched", "bottom_up"),
    )
)
"""(i, j) of R^(ij): loop count against touched memory and its reuse, operand by operand."""


@dataclass(frozen=True, eq=False)
class LoopContext:
    """`values` float32 (n, loops, features): loops outermost first, a column for each of `names`, unscaled."""

    names: tuple[str, ...]
    values: NDArray[np.float32]


def loop_context(workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike]) -> LoopContext:
    """Return the context of each loop.

    The context holds the extent; the turns of the loop with all around it (`top_down`) and with all inside it
    (`bottom_up`); for each operand the touched elements, turns for each touched element (`reuse`) and the stride in
    the
    tensor; and axis and kind, one-hot.
    """
    nest = loop_nest(analyse(workload, accelerator, columns))
    extent = nest.extent.astype(np.float64)
    bottom_up = np.cumprod(extent[:, ::-1], axis=1)[:, ::-1]
    found = {"extent": extent, "top_down": np.cumprod(extent, axis=1), "bottom_up": bottom_up}
    for operand in OPERANDS:
        found[f"{operand}.touched"] = nest.touched[operand].astype(np.float64)
        found[f"{operand}.reuse"] = bottom_up / nest.touched[operand]
        found[f"{operand}.stride"] = nest.stride[operand].astype(np.float64)
    for number, name in enumerate(LOOPS):
        found[f"axis.{name}"] = (nest.axis == number).astype(np.float64)
    for kind in LoopKind:
        is_kind = np.array([other is kind for other in KINDS], dtype=np.float64)
        found[f"kind.{kind.name.lower()}"] = np.broadcast_to(is_kind, extent.shape)
    return LoopContext(tuple(found), np.stack(list(found.values()), axis=-1).astype(np.float32))


def ast_features(workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike]) -> Features:
    """Return the loop AST flattened: the context vectors in a row, log2(1 + x), named as `loop3.inp.touched`."""
    context = loop_context(workload, accelerator, columns)
    loops = context.values.shape[1]
    names = tuple(f"loop{loop}.{name}" for loop in range(loops) for name in context.names)
    return Features(names, np.log2(1 + context.values).reshape(len(context.values), -1))


def context_relation_features(workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike]) -> Features:
    """R_t^(ij) = max of Z_ki over the loops k with Z_kj < beta_t, as log2(1 + R), and how far below beta_t they are.

    The distance is that of the largest such Z_kj, in powers of two. Without such a loop both are 0. For RELATIONS
    (i, j) and THRESHOLDS beta, named as `inp.touched|top_down<16`, and with `:distance` besides.
    """
    context = loop_context(workload, accelerator, columns)
    by_name = {name: context.values[:, :, place] for place, name in enumerate(context.names)}
    found = np.empty((len(context.values), len(RELATIONS), len(THRESHOLDS), 2), dtype=np.float32)
    for place, (i, j) in enumerate(RELATIONS):
        scaled = np.log2(1 + by_name[i])
        for step, threshold in enumerate(THRESHOLDS):
            below = by_name[j] < threshold
            found[:, place, step, 0] = np.where(below, scaled, 0).max(axis=1)
            nearest = np.where(below, by_name[j], 0).max(axis=1)
            distance = np.log2((1 + threshold) / (1 + nearest))
            found[:, place, step, 1] = np.where(below.any(axis=1), distance, 0)
    names = tuple(
        f"{i}|{j}<{threshold:.0f}{part}" for i, j in RELATIONS for threshold in THRESHOLDS for part in ("", ":distance")
    )
    return Features(names, found.reshape(len(found), -1))
