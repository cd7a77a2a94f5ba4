"""A layer's code in the form that the network runs: with its shifts by channel block and its residual."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hilt.network.layers import PoolLayer, VtaLayer
from hilt.network.lower import Code, lower_convolution
from hilt.network.lower_bias import lowered_bias, with_bias_first
from hilt.network.lower_pool import lower_max_pool
from hilt.network.lower_residual import with_residual
from hilt.network.lower_shift import OutputStage, with_shifts
from hilt.vta.accelerator import Accelerator


def layer_code(layer: VtaLayer | PoolLayer, knobs: Mapping[str, int], accelerator: Accelerator) -> Code:
    """Return a layer's code. Raises Rejected if the accelerator cannot run these knobs."""
    if isinstance(layer, PoolLayer):
        return lower_max_pool(layer.pool, knobs["rows"], accelerator)
    code = lower_convolution(layer.workload, knobs, accelerator)
    if layer.shifts:
        plane = layer.workload.out_height * layer.workload.out_width
        output = OutputStage(len(layer.shifts), plane, knobs.get("tile_b", 1))
        code = with_shifts(code, layer.shifts, output, accelerator)
    if layer.residual:
        return with_residual(code, layer.residual_shift, accelerator)
    return code if lowered_bias(layer, accelerator) is None else with_bias_first(code, accelerator)


def layer_bias(layer: VtaLayer, accelerator: Accelerator) -> NDArray[np.int32]:
    """Return the bias that a layer's code adds."""
    lowered = lowered_bias(layer, accelerator)
    return layer.bias if lowered is None else lowered
