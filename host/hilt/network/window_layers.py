"""Convolutions whose channels are apart, as window GEMMs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.layer_forms import TiledLayer, VtaLayer, undilated
from hilt.network.tile_writer import DATA, WINDOWS
from hilt.network.window_tiles import Depthwise, KernelAxis, NoWindowsError, window_blocks, windows_of
from hilt.schedule.border import BORDER
from hilt.vta.accelerator import Accelerator
from hilt.vta.layout import blocks


def windowed(layer: VtaLayer, accelerator: Accelerator) -> TiledLayer | None:
    """Return a depthwise convolution as window GEMMs; None for another layer, or if the accelerator has none."""
    layer = undilated(layer)
    workload, block = layer.workload, accelerator.parameters.block
    channels = workload.in_channels
    if not accelerator.window_rows or layer.residual or layer.fold:
        return None
    if channels != workload.out_channels or channels % block or layer.weights.shape[1] != block:
        return None
    own = np.arange(channels)
    kernel = layer.weights[own, own % block][:, None]
    if np.count_nonzero(kernel) != np.count_nonzero(layer.weights):
        return None
    axes = [
        KernelAxis(size, kernel, stride, pad, out)
        for size, kernel, stride, pad, out in zip(
            (workload.height, workload.width),
            workload.kernel,
            workload.stride,
            workload.padding,
            (workload.out_height, workload.out_width),
            strict=True,
        )
    ]
    shifts = layer.shifts or (workload.shift,) * (channels // block)
    images = blocks(workload.batch, accelerator.parameters.batch)
    work = Depthwise(images, axes[0], axes[1], shifts, workload.clip)
    try:
        work = replace(work, windows=windows_of(work, layer.bias, accelerator))
    except NoWindowsError:
        return None
    constants: dict[str, NDArray[Any]] = {WINDOWS: window_blocks(work, kernel, layer.bias, accelerator)}
    if layer.border is not None:
        constants[BORDER] = layer.border.packed(accelerator.parameters)
    reads = {DATA: layer.data}
    return TiledLayer(layer.node, work, reads, layer.output, layer.tabled, constants, layer.bands, layer.border)
