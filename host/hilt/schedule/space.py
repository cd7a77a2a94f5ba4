"""A space: the Cartesian product of knobs, indexable and never materialised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilt.run_choices import SpaceName
from hilt.schedule.rows.choices import FoldedLoop, Keep
from hilt.schedule.workload import Conv2d, WorkloadError, is_dense
from hilt.vta.accelerator import Accelerator
from hilt.vta.layout import blocks
from hilt.vta.parameters import VTAParameters


class ConfigurationError(ValueError):
    """A configuration that is not in its space."""


@dataclass(frozen=True)
class Knob:
    """One decision: a name and the values it may take, in order. `split` knobs cut a loop; others count something."""

    name: str
    values: tuple[int, ...]
    split: bool


class Space:
    """Configurations are numbered 0 to len - 1, the first knob fastest.

    Arrays of indices are int64 (n,); positions (of values in their knobs) and values are int64 (n, knobs).
    """

    def __init__(self, knobs: Sequence[Knob]) -> None:
        self.knobs = tuple(knobs)
        self.sizes = np.array([len(knob.values) for knob in knobs], dtype=np.int64)
        self._strides = np.concatenate(([1], np.cumprod(self.sizes)[:-1])).astype(np.int64)
        self._values = np.zeros((len(self.knobs), int(self.sizes.max())), dtype=np.int64)
        for row, knob in enumerate(self.knobs):
            self._values[row, : len(knob.values)] = knob.values

    def __len__(self) -> int:
        return int(np.prod(self.sizes))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(knob.name for knob in self.knobs)

    def positions(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Return the position of each knob. Raises ConfigurationError for an index outside the space."""
        array = np.asarray(indices, dtype=np.int64)
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < len(self):
            raise ConfigurationError(f"an index is outside the space of {len(self)} configurations")
        return array[..., None] // self._strides % self.sizes

    def indices(self, positions: ArrayLike) -> NDArray[np.int64]:
        """Return the inverse of positions. Raises ConfigurationError for a position that its knob does not have."""
        array = np.asarray(positions, dtype=np.int64)
        if np.any((array < 0) | (array >= self.sizes)):
            raise ConfigurationError("a position is outside its knob")
        return np.asarray(array @ self._strides)

    def values(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Return the values of each knob."""
        return self._values[np.arange(len(self.knobs)), self.positions(indices)]

    def columns(self, indices: ArrayLike) -> dict[str, NDArray[np.int64]]:
        """Return the same by knob name, each (n,)."""
        return dict(zip(self.names, np.moveaxis(self.values(indices), -1, 0), strict=True))

    def knobs_at(self, index: int) -> dict[str, int]:
        """Return the knobs (name to value), as lower() takes them."""
        return {name: int(value) for name, value in zip(self.names, self.values(index), strict=True)}

    def index(self, knobs: Mapping[str, int]) -> int:
        """Return the index of a configuration.

        Raises ConfigurationError for a configuration that is not of this space.
        """
        if set(knobs) != set(self.names):
            raise ConfigurationError(f"a configuration of {sorted(knobs)}; this space has {sorted(self.names)}")
        positions = []
        for knob in self.knobs:
            if knobs[knob.name] not in knob.values:
                raise ConfigurationError(f"{knob.name} is {knobs[knob.name]}; it may be {knob.values}")
            positions.append(knob.values.index(knobs[knob.name]))
        return int(self.indices(positions))

    def neighbours(self, index: int) -> NDArray[np.int64]:
        """Return the configurations at Manhattan distance 1 in positions, ascending."""
        here = self.positions(index)
        steps = np.concatenate((np.eye(len(self.knobs), dtype=np.int64), -np.eye(len(self.knobs), dtype=np.int64)))
        around = here + steps
        inside = np.all((around >= 0) & (around < self.sizes), axis=1)
        return np.sort(self.indices(around[inside]))

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """`count` different configurations, or all of them in a random order where there are fewer."""
        return generator.choice(len(self), size=min(count, len(self)), replace=False).astype(np.int64)


LOOP_ORDERS = {
    1: ("b", "h", "co", "w", "ci"),
    2: ("b", "co", "h", "w", "ci"),
    3: ("b", "h", "ci", "co", "w"),
    4: ("b", "co", "ci", "h", "w"),
}
"""The outer loops, outermost first, by the value of knob `loop_order`. 1 is TVM's. In 3 and 4 the reduction is outside
of tiles whose partial sums stay on chip: inputs of a row of tiles, or weights, are loaded once for all of them."""

BY_TILE, BY_CHANNEL = 5, 6
ALL_ORDERS = {**LOOP_ORDERS, BY_TILE: ("b", "h", "w", "co", "ci"), BY_CHANNEL: ("co", "b", "h", "w", "ci")}
"""The same with the orders of row programs, which their knob `keep` implies."""

SpaceKind = SpaceName
"""A space kind, or its value as code writes it."""
Orders = Literal[1, 4]
ORDERS_OF: dict[str, tuple[Orders, ...]] = {
    SpaceName.AUTOTVM: (1, 4),
    SpaceName.ML2: (1,),
    SpaceName.ROWS: (1,),
}
"""The numbers of loop orders that a space of each kind may have."""


def orders_of(kind: SpaceKind, count: int) -> Orders:
    """Return the number of loop orders where the kind allows it. Raises ValueError."""
    for orders in ORDERS_OF[kind]:
        if orders == count:
            return orders
    allowed = " or ".join(map(str, ORDERS_OF[kind]))
    raise ValueError(f"orders is {count}; a space of kind {kind} has {allowed}")


def conv2d_space(
    workload: Conv2d, accelerator: Accelerator, *, orders: Orders = 1, kind: SpaceKind = SpaceName.AUTOTVM
) -> Space:
    """Return the space of a convolution, with channels and batch counted in blocks.

    `autotvm`: TVM's seven knobs for conv2d on VTA; with one order a dense layer has those of TVM's dense. The inner
    factor of each split stays on chip. With four `orders` the `loop_order` of the tiles (LOOP_ORDERS) is the last knob,
    so the first quarter is the space of one order.
    `ml2`: ML2Tuner's knobs (its Table 5): tile height TH and width TW, which need not divide the output, virtual
    threads
    nVT over filters, filters in the loop, and the split of the input channels.
    `rows`: row programs (hilt.schedule.rows): the tile, the loop that is micro-ops, the tensor that is kept, and
    whether rows of a tile of full width are merged to a burst where the kernel meets only some of them.
    """
    if kind == SpaceName.ROWS:
        if workload.dilation != (1, 1):
            raise WorkloadError(f"workload {workload.name}: a space of rows has no dilation; autotvm and ml2 have")
        return Space(_row_knobs(workload, accelerator.parameters))
    if kind == SpaceName.ML2:
        return Space(_ml2_knobs(workload, accelerator.parameters))
    return Space(_autotvm_knobs(workload, accelerator.parameters, orders))


def _row_knobs(workload: Conv2d, parameters: VTAParameters) -> list[Knob]:
    apart = workload.kernel[0] == 1 and workload.stride[0] > 1
    of_group = blocks(workload.out_channels // workload.block_groups(parameters.block), parameters.block)
    return [
        Knob("tile_h", factors(workload.out_height), split=True),
        Knob("tile_w", factors(workload.out_width), split=True),
        Knob("tile_ci", _input_factors(workload, parameters), split=True),
        Knob("tile_co", factors(of_group), split=True),
        Knob("fold", tuple(map(int, FoldedLoop)), split=False),
        Knob("keep", tuple(map(int, Keep)), split=False),
        Knob("merge", (0, 1) if apart else (1,), split=False),
    ]


def _ml2_knobs(workload: Conv2d, parameters: VTAParameters) -> list[Knob]:
    return [
        Knob("TH", tuple(range(1, workload.out_height + 1)), split=True),
        Knob("TW", tuple(range(1, workload.out_width + 1)), split=True),
        Knob("nVT", (1, 2, 4), split=False),
        Knob("nFilterInLoop", _output_factors(workload, parameters), split=True),
        Knob("tile_ci", _input_factors(workload, parameters), split=True),
    ]


def _autotvm_knobs(workload: Conv2d, parameters: VTAParameters, orders: Orders) -> list[Knob]:
    knobs = [
        Knob("tile_b", factors(blocks(workload.batch, parameters.batch)), split=True),
        Knob("tile_h", factors(workload.out_height), split=True),
        Knob("tile_w", factors(workload.out_width), split=True),
        Knob("tile_ci", _input_factors(workload, parameters), split=True),
        Knob("tile_co", _output_factors(workload, parameters), split=True),
        Knob("oc_nthread", (1, 2), split=False),
        # TVM's template of a dense layer has no threads over rows.
        Knob("h_nthread", (1,) if orders == 1 and is_dense(workload) else (1, 2), split=False),
    ]
    if orders == 4:
        knobs.append(Knob("loop_order", tuple(LOOP_ORDERS), split=False))
    return knobs


def _input_factors(workload: Conv2d, parameters: VTAParameters) -> tuple[int, ...]:
    """Return the factors of the blocks of a group's input channels."""
    groups = workload.block_groups(parameters.block)
    return factors(blocks(workload.in_channels // groups, parameters.block))


def _output_factors(workload: Conv2d, parameters: VTAParameters) -> tuple[int, ...]:
    """Return the factors of the blocks of all groups' output channels."""
    groups = workload.block_groups(parameters.block)
    return factors(groups * blocks(workload.out_channels // groups, parameters.block))


def factors(number: int) -> tuple[int, ...]:
    """Return the divisors of a number, ascending."""
    low = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return tuple(sorted({*low, *(number // divisor for divisor in low)}))
