"""Layers, knobs and configurations as numbers with the same meaning for every layer and target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.schedule import Conv2d, Space
from hilt.schedule.checks import Checks
from hilt.schedule.tiling import TilingProblem as Blocks
from hilt.vta.accelerator import Accelerator

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

SLOTS = ("batch", "height", "width", "ci", "co", "oc_threads", "h_threads", "order")
"""The dimensions that a knob of either kind of space sets."""

_SLOT_OF = {
    "tile_b": "batch",
    "tile_h": "height",
    "tile_w": "width",
    "tile_ci": "ci",
    "tile_co": "co",
    "oc_nthread": "oc_threads",
    "h_nthread": "h_threads",
    "loop_order": "order",
    "TH": "height",
    "TW": "width",
    "nVT": "oc_threads",
    "nFilterInLoop": "co",
}
_ORDER = SLOTS.index("order")
_ORDERS = 4
_INNER_HATS = np.arange(9)
_OUTER_HATS = np.arange(4)

LAYER_FEATURES = 23
VALUE_FEATURES = len(_INNER_HATS) + len(_OUTER_HATS) + 1 + _ORDERS
CONFIGURATION_FEATURES = 4 * (len(SLOTS) - 1) + _ORDERS + 2


def layer_features(workload: Conv2d, accelerator: Accelerator, space: Space, checks: Checks) -> Floats:
    """Return the layer in blocks of the target, the kind of its space, and the check level; (LAYER_FEATURES,)."""
    blocks = Blocks.of(workload, accelerator)
    sizes = (
        blocks.batch,
        blocks.ci,
        blocks.co,
        blocks.groups,
        blocks.out_height,
        blocks.out_width,
        workload.height,
        workload.width,
        workload.in_channels,
        workload.out_channels,
        workload.batch,
        *workload.kernel,
        *workload.stride,
        workload.macs,
        max(blocks.wgt_elements, 1),
    )
    flags = (
        any(workload.padding),
        workload.bias,
        "TH" in space.names,
        "loop_order" in space.names,
        checks == "tvm",
        checks == "strict" or accelerator.hazards == "none",
    )
    return np.array([*np.log2(sizes), *flags], dtype=np.float32)


@dataclass(frozen=True)
class KnobSpace:
    """A space in the form that the networks use.

    `slots` (knobs,) gives the place in SLOTS of each knob. A knob that hilt gained later has none and is left out of
    `known`.
    """

    space: Space
    workload: Conv2d
    known: tuple[int, ...]
    slots: tuple[int, ...]

    @classmethod
    def of(cls, space: Space, workload: Conv2d) -> KnobSpace:
        known = tuple(number for number, knob in enumerate(space.knobs) if knob.name in _SLOT_OF)
        slots = tuple(SLOTS.index(_SLOT_OF[space.knobs[number].name]) for number in known)
        return cls(space, workload, known, slots)

    def value_features(self, knob: int) -> Floats:
        """Return the features of every value of one known knob, (values, VALUE_FEATURES).

        They give its place between 1 and the extent on logarithmic scales from both ends, and whether it divides the
        extent. For loop orders they give the order.
        """
        values = np.array(self.space.knobs[self.known[knob]].values, dtype=np.float64)
        found = np.zeros((len(values), VALUE_FEATURES), dtype=np.float32)
        if self.slots[knob] == _ORDER:
            found[:, -_ORDERS:] = values[:, None] == np.arange(1, _ORDERS + 1)
            return found
        inner = np.log2(values)
        outer = np.log2(values.max()) - inner
        end = len(_INNER_HATS) + len(_OUTER_HATS)
        found[:, : len(_INNER_HATS)] = _hats(inner, _INNER_HATS)
        found[:, len(_INNER_HATS) : end] = _hats(outer, _OUTER_HATS)
        found[:, end] = values.max() % values == 0
        return found

    def configuration_features(self, indices: Indices) -> Floats:
        """Return the features of configurations, (n, CONFIGURATION_FEATURES).

        For each slot they give the value, the extent over the value (both as log2), and whether the value is 1 or the
        extent. The loop order follows, then rows and columns of the tile's input.
        """
        values = self.space.values(indices).astype(np.float64)
        numbers = np.ones((len(indices), len(SLOTS)))
        extents = np.ones(len(SLOTS))
        for knob, slot in zip(self.known, self.slots, strict=True):
            numbers[:, slot] = values[:, knob]
            extents[slot] = max(self.space.knobs[knob].values)
        numeric, extent = numbers[:, :_ORDER], extents[:_ORDER]
        rows, columns = (
            (numbers[:, slot] - 1) * self.workload.stride[axis] + self.workload.reach[axis]
            for axis, slot in enumerate((SLOTS.index("height"), SLOTS.index("width")))
        )
        return np.concatenate(
            [
                np.log2(numeric),
                np.log2(extent / numeric),
                numeric == 1,
                numeric == extent,
                numbers[:, _ORDER, None] == np.arange(1, _ORDERS + 1),
                np.log2(rows)[:, None],
                np.log2(columns)[:, None],
            ],
            axis=1,
        ).astype(np.float32)


def _hats(numbers: npt.NDArray[np.float64], centres: npt.NDArray[np.int64]) -> Floats:
    """Return a piecewise linear basis (n, centres): 1 at a centre, 0 at its neighbours; beyond the last it stays 1."""
    clipped = np.minimum(numbers, centres[-1])
    return np.asarray(np.maximum(1 - np.abs(clipped[:, None] - centres), 0), dtype=np.float32)
