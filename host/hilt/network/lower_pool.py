"""The schedules of a pooling, and its code."""

from __future__ import annotations

from collections.abc import Mapping

from hilt.network.lower_average_pool import AveragePoolWriter
from hilt.network.lower_max_pool import MaxPoolWriter
from hilt.network.pool_tiles import PoolingLayer, PoolWriter
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
    return _writer(pool, knobs, accelerator).code()


def has_schedule(pool: PoolingLayer, accelerator: Accelerator) -> bool:
    """Return whether the smallest tile fits the accelerator."""
    try:
        _writer(pool, {"rows": 1}, accelerator).prepare()
    except Rejected:
        return False
    return True


def _writer(pool: PoolingLayer, knobs: Mapping[str, int], accelerator: Accelerator) -> PoolWriter:
    """Return the writer of a pooling's code. Raises Rejected if a tile does not fit."""
    if pool.averaging is None:
        return MaxPoolWriter(pool, knobs["rows"], accelerator)
    return AveragePoolWriter(pool, pool.averaging, knobs["rows"], knobs.get("planes", 1), accelerator)
