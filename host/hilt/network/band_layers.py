"""Layers of one image as layers of its bands, which the batch lanes compute side by side (hilt.network.bands)."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from hilt.network.bands import Bands, band_rows
from hilt.network.graph import Graph, Node
from hilt.network.layers import NotOnVtaError, TiledLayer, VtaLayer, layer_of
from hilt.network.lower_interpolate import Interpolation
from hilt.network.lower_slopes import Slopes
from hilt.network.lower_upsample import Upsampling
from hilt.network.pool_tiles import PoolingLayer
from hilt.network.product_tiles import Product
from hilt.schedule.border import border_of
from hilt.vta.accelerator import Accelerator


def placed_layer(graph: Graph, node: Node, accelerator: Accelerator, *, bands: bool) -> VtaLayer | TiledLayer:
    """Return a node as VTA runs it: `layer_of`, with `bands` as a layer of bands. Raises NotOnVtaError."""
    layer = layer_of(graph, node, accelerator)
    if not bands:
        return layer
    height, width = (*graph.tensors[layer.output].shape, 1, 1)[2:4]
    return in_bands(layer, (height, width), accelerator.parameters.batch)


def in_bands(layer: VtaLayer | TiledLayer, made: tuple[int, int], lanes: int) -> VtaLayer | TiledLayer:
    """Return a layer of one image as one of bands.

    Args:
        layer: The layer, a depthwise convolution not by window GEMMs yet.
        made: Rows and columns of the tensor that it makes.
        lanes: Batch lanes of the accelerator.

    Raises:
        NotOnVtaError: A lane would need rows that no LOAD brings there.
    """
    if isinstance(layer, VtaLayer):
        return _convolution(layer, lanes)
    if isinstance(layer.work, Product):
        return replace(layer, work=_product(layer.work, *made, lanes))
    if isinstance(layer.work, Slopes):
        return replace(layer, work=replace(layer.work, pixels=layer.work.pixels // made[0] * band_rows(made[0], lanes)))
    if isinstance(layer.work, Upsampling):
        return replace(layer, work=_upsampling(layer.work, made[0], lanes))
    if isinstance(layer.work, Interpolation):
        return _interpolation(layer, layer.work, made[0], lanes)
    assert isinstance(layer.work, PoolingLayer)
    return _pooling(layer, layer.work, lanes)


def _convolution(layer: VtaLayer, lanes: int) -> VtaLayer:
    workload = layer.workload
    bands = Bands(
        lanes,
        workload.height,
        workload.width,
        workload.out_height,
        workload.reach[0],
        workload.stride[0],
        workload.padding[0],
    )
    workload = replace(
        workload,
        batch=lanes,
        height=bands.height,
        padding=(0, workload.padding[1]),
        padding_end=(0, workload.pad_end[1]),
    )
    border = layer.border and border_of(layer.workload, layer.weights, layer.beside, lanes)
    return replace(layer, workload=workload, bands=_reached(bands), border=border)


def _pooling(layer: TiledLayer, pool: PoolingLayer, lanes: int) -> TiledLayer:
    """Return a pooling in bands; a maximum counts all rows, so rows outside of the image repeat rows of it.

    A window that has a row outside has the nearest one inside, too.
    """
    bands = Bands(
        lanes,
        pool.size[0],
        pool.size[1],
        pool.out[0],
        pool.kernel[0],
        pool.stride[0],
        pool.pads[0],
        repeats=pool.averaging is None,
    )
    whole = pool.averaging is not None and pool.kernel == pool.size and pool.out == (1, 1)
    pool = replace(
        pool,
        size=(bands.height, pool.size[1]),
        pads=(0, pool.pads[1]),
        out=(bands.band_made, pool.out[1]),
        runs=tuple(len(list(run)) for _, run in groupby(range(bands.height), key=bands.needs)) if whole else (),
    )
    return replace(layer, work=pool, bands=_reached(bands))


def _product(product: Product, rows: int, columns: int, lanes: int) -> Product:
    if rows > 1 and product.pixels not in (1, columns):
        raise NotOnVtaError("its factor is of all rows, which lie in several lanes")
    return replace(product, factors=product.factors // rows * band_rows(rows, lanes))


def _upsampling(work: Upsampling, made: int, lanes: int) -> Upsampling:
    """Return an upsampling of bands, whose output's bands are made of its input's alone.

    A copy may count all elements as rows.
    """
    rows = made // work.factors[0]
    return replace(work, size=(work.size[0] // rows * _grown_band(made, work.factors[0], lanes), work.size[1]))


def _interpolation(layer: TiledLayer, work: Interpolation, made: int, lanes: int) -> TiledLayer:
    """Return an interpolation of bands, each with the rows next to it."""
    _grown_band(made, work.factors[0], lanes)
    bands = Bands(lanes, *work.size, work.size[0], kernel=3, stride=1, pad=1, repeats=True)
    return replace(layer, work=replace(work, size=(bands.height, work.size[1]), halo=1), bands=_reached(bands))


def _grown_band(made: int, factor: int, lanes: int) -> int:
    """Return the rows of a band that become `factor` rows each. Raises NotOnVtaError if others lie in its lane."""
    band = band_rows(made // factor, lanes)
    if band_rows(made, lanes) != band * factor:
        raise NotOnVtaError(f"its {made} rows in {lanes} lanes are not of the same lanes' rows")
    return band


def _reached(bands: Bands) -> Bands:
    """Return bands whose lanes are near enough to each other for a LOAD. Raises NotOnVtaError."""
    distances = {need[0] for row in range(bands.height) for need in bands.needs(row) if isinstance(need, tuple)}
    if distances - {-1, 0, 1, 2}:
        raise NotOnVtaError(f"its windows reach over lanes further than a LOAD does: {sorted(distances)}")
    return bands
