"""A tensor's channels as channels of other tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Tensor


@dataclass(frozen=True)
class Widths:
    """The channels of tensors, and of a block in VTA's memory: a part that begins at a multiple may be an address."""

    tensors: Mapping[str, Tensor]
    block: int

    def of(self, name: str) -> int:
        """Return the channels of a tensor."""
        return self.tensors[name].shape[1]


@dataclass(frozen=True, eq=False)
class ChannelMap:
    """Each channel's source and its channel there.

    Attributes:
        sources: The tensors that channels come from, each once.
        channels: (C, 2): the place among the sources, and the channel.
    """

    sources: tuple[str, ...]
    channels: NDArray[np.int64]

    @classmethod
    def whole(cls, name: str, count: int) -> ChannelMap:
        """Return the map of the first `count` channels of a tensor."""
        return cls((name,), np.stack([np.zeros(count, np.int64), np.arange(count)], axis=1))

    @classmethod
    def joined(cls, parts: Sequence[ChannelMap], widths: Widths) -> ChannelMap:
        """Return the map of a Concat. Sources of whole blocks come first."""
        names = dict.fromkeys(name for part in parts for name in part.sources)
        sources = tuple(sorted(names, key=lambda name: widths.of(name) % widths.block != 0))
        channels = [part.channels.copy() for part in parts]
        for part, each in zip(parts, channels, strict=True):
            each[:, 0] = np.array([sources.index(name) for name in part.sources])[each[:, 0]]
        return cls(sources, np.concatenate(channels))

    def __len__(self) -> int:
        return len(self.channels)

    def taken(self, places: NDArray[np.int64]) -> ChannelMap:
        """Return the map of some of the channels, without sources that have none of them."""
        channels = self.channels[places]
        kept = np.unique(channels[:, 0])
        sources = tuple(self.sources[place] for place in kept)
        return ChannelMap(sources, np.stack([np.searchsorted(kept, channels[:, 0]), channels[:, 1]], axis=1))

    def width(self, widths: Widths) -> int:
        """Return the channels of all sources."""
        return sum(widths.of(name) for name in self.sources)

    def places(self, widths: Widths) -> NDArray[np.int64]:
        """Return the place of each channel in the joined sources."""
        starts = np.cumsum([0, *(widths.of(name) for name in self.sources)])
        return starts[self.channels[:, 0]] + self.channels[:, 1]

    def columns(self, weights: NDArray[np.int8], widths: Widths) -> NDArray[np.int8] | None:
        """Return weights (CO, C, ...) with a column for each channel of the joined sources; None beyond int8."""
        spread = np.zeros((len(weights), self.width(widths), *weights.shape[2:]), np.int32)
        np.add.at(spread.swapaxes(0, 1), self.places(widths), weights.swapaxes(0, 1))
        fits = spread.min(initial=0) >= -128 and spread.max(initial=0) <= 127
        return spread.astype(np.int8) if fits else None

    def is_free(self, widths: Widths) -> bool:
        """Return whether the tensor lies in memory where its sources do: a part in whole blocks, or all of them."""
        ends = np.flatnonzero(np.any(np.diff(self.channels, axis=0) != [0, 1], axis=1)) + 1
        runs = [(int(run[0, 0]), int(run[0, 1]), len(run)) for run in np.split(self.channels, ends)]
        if len(runs) == 1:
            ((source, first, length),) = runs
            return first % widths.block == 0 and (
                length % widths.block == 0 or first + length == widths.of(self.sources[source])
            )
        whole = all(first == 0 and length == widths.of(self.sources[source]) for source, first, length in runs)
        return whole and len(runs) == len(self.sources) and self.is_joinable(widths)

    def rows_of_joinable(self, widths: Widths) -> list[NDArray[np.int64]]:
        """Return the places of the channels whose sources can lie in one memory, for as few as can be."""
        if self.is_joinable(widths):
            return [np.arange(len(self))]
        rests = [place for place, name in enumerate(self.sources) if widths.of(name) % widths.block]
        whole = np.flatnonzero(~np.isin(self.channels[:, 0], rests))
        rows = [np.flatnonzero(self.channels[:, 0] == place) for place in rests]
        return [each for each in (whole, *rows) if len(each)]

    def is_joinable(self, widths: Widths) -> bool:
        """Return whether all sources, but one perhaps, have whole blocks."""
        return sum(widths.of(name) % widths.block != 0 for name in self.sources) <= 1


def shuffled(order: NDArray[np.int32], image: tuple[int, ...]) -> NDArray[np.int64] | None:
    """Return the former channel of each channel; None if more than channels moved.

    `order`: the place of each element, (N, C, H, W) or (N, C), among those of an image of that shape, but for C.
    """
    pixels = image[2:]
    if order.shape[2:] != pixels and (order.ndim != 2 or math.prod(pixels) != 1):
        return None
    if order.ndim not in (2, len(image)) or order.shape[0] != image[0]:
        return None
    channels = order.reshape(*order.shape[:2], -1)[0, :, 0] // math.prod(pixels)
    places = np.arange(math.prod(image), dtype=order.dtype).reshape(image)[:, channels]
    return channels.astype(np.int64) if np.array_equal(places.reshape(order.shape), order) else None
