"""The schedules of a layer that is no convolution of blocks, and its code."""

from __future__ import annotations

from collections.abc import Mapping

from hilt.network.lower_average_pool import AveragePoolWriter
from hilt.network.lower_depthwise import DepthwiseWriter
from hilt.network.lower_gate import GateWriter
from hilt.network.lower_interpolate import Interpolation, InterpolationWriter, interpolation_knobs
from hilt.network.lower_max_pool import MaxPoolWriter
from hilt.network.lower_max_pool_in_place import InPlaceMaxPoolWriter
from hilt.network.lower_product import MulWriter
from hilt.network.lower_slopes import Slopes, SlopesWriter
from hilt.network.lower_upsample import UpsampleWriter, Upsampling, upsample_knobs
from hilt.network.pool_tiles import PoolingLayer, own_position
from hilt.network.product_tiles import Product, product_knobs
from hilt.network.tile_writer import TileWriter
from hilt.network.window_tiles import Depthwise
from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.vta.accelerator import Accelerator, IsaRevision

Tiled = PoolingLayer | Product | Slopes | Upsampling | Interpolation | Depthwise
"""The work of such a layer."""
_MOST_ROWS = 32


def tile_knobs(work: Tiled) -> list[dict[str, int]]:
    """Return the schedules: sizes of a tile.

    They are output rows of a plane, of a maximum in place too where it can, or for an average and a depthwise
    convolution the planes that a tile has whole; others have knobs of their own.
    """
    if isinstance(work, Upsampling):
        return upsample_knobs(work)
    if isinstance(work, Interpolation):
        return interpolation_knobs(work)
    if isinstance(work, Product | Slopes):
        return product_knobs(work)
    rows = [{"rows": rows} for rows in range(1, min(work.out[0], _MOST_ROWS) + 1)]
    if isinstance(work, PoolingLayer) and work.averaging is None:
        return rows if own_position(work) is None else [*rows, *({**knobs, "in_place": 1} for knobs in rows)]
    counts = sorted({-(-work.planes // parts) for parts in range(1, work.planes)} - {1})
    return [*rows, *({"rows": work.out[0], "planes": count} for count in counts)]


def lower_tiles(work: Tiled, knobs: Mapping[str, int], accelerator: Accelerator) -> Code:
    """Return the code of a layer without weights. `knobs` are of `tile_knobs`.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """
    return _writer(work, knobs, accelerator).code()


def has_schedule(pool: PoolingLayer, accelerator: Accelerator) -> bool:
    """Return whether the smallest tile fits the accelerator."""
    try:
        _writer(pool, {"rows": 1}, accelerator).prepare()
    except Rejected:
        return False
    return True


def _writer(work: Tiled, knobs: Mapping[str, int], accelerator: Accelerator) -> TileWriter:
    """Return the writer of the code. Raises Rejected if a tile does not fit."""
    if isinstance(work, Upsampling):
        return UpsampleWriter(work, knobs["rows"], accelerator)
    if isinstance(work, Interpolation):
        return InterpolationWriter(work, knobs["rows"], accelerator)
    if isinstance(work, Product):
        writer = GateWriter if accelerator.isa is IsaRevision.A else MulWriter
        return writer(work, knobs["factors"], knobs["pixels"], accelerator)
    if isinstance(work, Slopes):
        return SlopesWriter(work, knobs["factors"], knobs["pixels"], accelerator)
    if isinstance(work, Depthwise):
        return DepthwiseWriter(work, knobs["rows"], knobs.get("planes", 1), accelerator)
    if work.averaging is None:
        of_maxima = InPlaceMaxPoolWriter if knobs.get("in_place") else MaxPoolWriter
        return of_maxima(work, knobs["rows"], accelerator)
    return AveragePoolWriter(work, work.averaging, knobs["rows"], knobs.get("planes", 1), accelerator)
