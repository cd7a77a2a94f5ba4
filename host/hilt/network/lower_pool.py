"""The schedules of a pooling, and its code."""

from __future__ import annotations

from collections.abc import Mapping

from hilt.network.lower_average_pool import AveragePoolWriter
from hilt.network.lower_max_pool import MaxPoolWriter
from hilt.network.pool_tiles import PoolingLayer
from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.vta.accelerator import Accelerator

_MOST_ROWS = 32


def pool_knobs(pool: PoolingLayer) -> list[dict[str, int]]:
    """Return the schedules of a pooling: output rows of a tile, or for an average the planes that a tile has whole."""
    rows = [{"rows": rows} for rows in range(1, min(pool.out[0], _MOST_ROWS) + 1)]
    if pool.averaging is None:
        return rows
    counts = sorted({-(-pool.planes // parts) for parts in range(1, pool.planes)} - {1})
    return [*rows, *({"rows": pool.out[0], "planes": count} for count in counts)]


def lower_pool(pool: PoolingLayer, knobs: Mapping[str, int], accelerator: Accelerator) -> Code:
    """Return the code of a pooling. `knobs` are of `pool_knobs`.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """
    if pool.averaging is None:
        code = MaxPoolWriter(pool, knobs["rows"], accelerator).code()
    else:
        code = AveragePoolWriter(pool, pool.averaging, knobs["rows"], knobs.get("planes", 1), accelerator).code()
    if len(code.uops) > accelerator.uop_depth:
        raise Rejected("uop_overflow", f"{len(code.uops)} micro-ops of {accelerator.uop_depth}")
    return code


def has_schedule(pool: PoolingLayer, accelerator: Accelerator) -> bool:
    """Return whether the smallest tile fits the accelerator."""
    try:
        lower_pool(pool, {"rows": 1}, accelerator)
    except Rejected:
        return False
    return True
