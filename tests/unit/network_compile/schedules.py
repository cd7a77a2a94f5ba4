"""Some schedules of a layer, drawn by a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hilt.network.layers import VtaLayer
from hilt.network.lower_layer import layer_code
from hilt.schedule import Rejected, space_for
from hilt.schedule.code import Code
from hilt.vta.accelerator import Accelerator


def schedules_of(layer: VtaLayer, accelerator: Accelerator, count: int) -> Iterator[tuple[dict[str, int], Code]]:
    """Yield the knobs and the code of so many schedules that fit, or of all."""
    space, found = space_for(layer.workload, accelerator), 0
    for index in np.random.default_rng(2).permutation(len(space)).tolist():
        knobs = space.knobs_at(index)
        try:
            code = layer_code(layer, knobs, accelerator)
        except Rejected:
            continue
        yield knobs, code
        found += 1
        if found == count:
            return
