"""Values that the tensors of a float model take on calibration data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import CalibrationError, Feeds, Runner
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.headroom import NO_ENDS, NO_GROWTH, Ends, find_ends, growth

_VALUES_PER_TENSOR = 1 << 15
_CLIPPED = 2.0
"""How often the power of an error beyond int8's range counts in a tensor: such errors meet in few samples, and values
to come lie further out than those that were seen."""
_ROOM = 0.5
"""Share of the way from the second largest to the largest value that values to come may go further."""
_LEAST_POWER = 1e-8
"""Power of a tensor in a sample, by the mean over samples, below which the sample tells nothing of its decibels."""
FARTHEST_CLIP = 4
"""Scales down to 2^-4 of the one that clips nothing are tried."""


@dataclass(frozen=True)
class TensorStatistics:
    """One tensor's values.

    Attributes:
        largest: Their largest magnitude.
        values: A sample of them: evenly spread ones, and those that are beyond these.
        counts: How many values each of the sample stands for.
        means: The mean of each channel (the second axis), over all samples.
        lows: The least value to expect of each channel.
        highs: The largest value to expect of each channel.
        growth: Factors by which values to come may exceed these, with the share of each.
        ends: The values that they cannot pass.
    """

    largest: float
    values: NDArray[np.float32]
    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    growth: tuple[tuple[float, float], ...] = NO_GROWTH
    ends: Ends = NO_ENDS

    def grown(self) -> Iterator[tuple[float, NDArray[np.float64]]]:
        """Yield values to come by each factor of growth, with the share of each."""
        low, high = min(self.ends[0], self.values.min(initial=0)), max(self.ends[1], self.values.max(initial=0))
        for factor, share in self.growth:
            yield share, np.clip(self.values.astype(np.float64) * factor, low, high)

    @property
    def reach(self) -> float:
        """Return the largest magnitude of values to come."""
        most = max(factor for factor, _ in self.growth)
        return min(self.largest * most, max(self.largest, *map(abs, self.ends)))

    def mean(self, each: NDArray[np.float64]) -> float:
        """Return the mean of a number of each value; 0 if there are no values."""
        return float(each @ self.counts / self._count) if each.size else 0.0

    @cached_property
    def power(self) -> float:
        """Return the mean power of the values."""
        return self.mean(self.values.astype(np.float64) ** 2)

    @cached_property
    def _shifted(self) -> dict[tuple[float, ...], float]:
        """The errors that error_of_shifted knows."""
        return {}

    @cached_property
    def _count(self) -> float:
        return float(self.counts.sum())

    def error_of_shifted(self, low: float, high: float, taken: float, step: float) -> float:
        """Return the power of the error of values in int8, in steps of a size, by that of the values.

        They are clipped between two ends, and a constant is taken off. The choice of shifts asks for each error often.
        """
        key = (low, high, taken, step)
        if key not in self._shifted:
            scaled = self.values.astype(np.float64)
            if low > -np.inf or high < np.inf:
                np.clip(scaled, low, high, out=scaled)
            scaled -= taken
            scaled /= step
            self._shifted[key] = step**2 * self.mean(int8_error(scaled)) / (self.power + 1e-30)
        return self._shifted[key]

    @property
    def peaks(self) -> NDArray[np.float64]:
        """Return the largest magnitude of each channel."""
        return np.maximum(-self.lows, self.highs)


def observe(
    graph: OnnxGraph, tensors: Sequence[str], samples: Sequence[Feeds], *, headroom: bool = False
) -> dict[str, TensorStatistics]:
    """Return the statistics of tensors over samples.

    Args:
        graph: A canonical float graph.
        tensors: The tensors.
        samples: Some.
        headroom: Reckon with larger values to come: no other samples tell of these.

    Raises:
        CalibrationError: A tensor takes NaN or infinity.
    """
    runner = Runner(graph, tensors)
    share = max(_VALUES_PER_TENSOR // max(len(samples), 1), 64)
    seen: dict[str, list[TensorStatistics]] = {name: [] for name in tensors}
    for outputs in runner.over(samples):
        for name, array in outputs.items():
            if not np.isfinite(array).all():
                raise CalibrationError(
                    f"tensor {name} of the float model takes NaN or infinity on the calibration data; "
                    "look at the weights in front of it and at the data's range"
                )
            seen[name].append(_of_sample(array, share))
    found = {name: _together(parts) for name, parts in seen.items()}
    if not headroom:
        return found
    ends = find_ends(graph, tensors, samples)
    return {
        name: replace(each, growth=growth([part.largest for part in seen[name]]), ends=ends[name])
        for name, each in found.items()
    }


def _of_sample(array: NDArray[Any], share: int) -> TensorStatistics:
    """Return the statistics of a tensor on one sample, with twice `share` values at most."""
    axes = (0, *range(2, array.ndim))
    filled = array if array.size else np.zeros((1, *array.shape[1:2], *[1] * (array.ndim - 2)))
    return TensorStatistics(
        float(np.abs(array).max(initial=0)),
        *_sample(array.reshape(-1), share),
        array.sum(axis=axes, dtype=np.float64) / max(array[:, :1].size, 1),
        filled.min(axis=axes).astype(np.float64),
        filled.max(axis=axes).astype(np.float64),
    )


def _together(parts: Sequence[TensorStatistics]) -> TensorStatistics:
    """Return the statistics of a tensor over samples."""
    return TensorStatistics(
        max(part.largest for part in parts),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.mean([part.means for part in parts], axis=0),
        -_farthest([-part.lows for part in parts]),
        _farthest([part.highs for part in parts]),
    )


def _farthest(highs: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the largest value to expect of each channel, from the largest one in each sample.

    Where few samples reach far, others go further: the largest values alone would leave a channel no room for these.
    One that is as far above the largest as that is above the second estimates the end of all (Robson and Whitlock,
    1964); half of that loses least in networks with 32 and 64 samples.
    """
    if len(highs) == 1:
        return highs[0]
    second, first = np.sort(highs, axis=0)[-2:]
    farthest: NDArray[np.float64] = first + _ROOM * (first - second)
    return farthest


def _sample(flat: NDArray[Any], share: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return some of a tensor's values, twice a share at most, and how many values each stands for.

    Few values are far beyond the others, and a range that clips them loses most by these.
    """
    spread = flat[:: max(flat.size // share, 1)]
    beyond = flat[(flat < spread.min(initial=np.inf)) | (flat > spread.max(initial=-np.inf))]
    some = beyond[:: max(beyond.size // share, 1)]
    counts = [(flat.size - beyond.size) / max(spread.size, 1), beyond.size / max(some.size, 1)]
    return np.concatenate((spread, some)).astype(np.float32), np.repeat(counts, (spread.size, some.size))


def exponent_without_clipping(largest: float) -> int:
    """Return the largest k for which `largest` * 2^k is at most 127."""
    if not largest > 0:
        return 7
    return int(np.floor(np.log2(127 / largest)))


def best_exponent(values: Sequence[TensorStatistics], clipped: float = _CLIPPED) -> int:
    """Return the k that loses least of all tensors together, each measured by its own power; see int8_error."""
    first = exponent_without_clipping(max(part.reach for part in values))
    candidates = range(first, first + FARTHEST_CLIP + 1)
    losses = [sum(each) for each in zip(*(_losses(part, candidates, clipped) for part in values), strict=True)]
    return candidates[losses.index(min(losses))]


def loss_of(found: TensorStatistics, exponent: int) -> float:
    """Return the power of a tensor's error in int8 with scale 2^-exponent, by that of its values."""
    return _losses(found, [exponent], _CLIPPED)[0]


def least_loss(values: NDArray[np.float32]) -> float:
    """Return the power of the error of int8 with the scale that loses least, by that of the values."""
    found = _of(values)
    return _losses(found, [_weight_exponent(found)], 1.0)[0]


def best_weight_exponents(weights: NDArray[np.float32], block: int) -> list[int]:
    """Return the k that loses least of weights (CO, ...): one, or one a channel that is constant in each block.

    Args:
        weights: Output channels first.
        block: Output channels that share an exponent; 0 for all of them.
    """
    if not block:
        return [_weight_exponent(_of(weights))]
    exponents: list[int] = []
    for start in range(0, len(weights), block):
        part = weights[start : start + block]
        exponents += [_weight_exponent(_of(part))] * len(part)
    return exponents


def _weight_exponent(weights: TensorStatistics) -> int:
    """Return the k with the least loss; all weights are known, so a clipped one counts once."""
    return best_exponent([weights], 1.0)


def _of(values: NDArray[np.float32]) -> TensorStatistics:
    none = np.zeros(0)
    return TensorStatistics(
        float(np.abs(values).max(initial=0)), values.reshape(-1), np.ones(values.size), none, none, none
    )


def _losses(found: TensorStatistics, exponents: Sequence[int], clipped: float) -> list[float]:
    """Return for each k the power of the error of int8 with scale 2^-k by that of the values: the mean over growth."""
    losses = [0.0] * len(exponents)
    for share, values in found.grown():
        power = found.mean(values * values)
        for place, exponent in enumerate(exponents):
            error = found.mean(int8_error(values * 2.0**exponent, clipped))
            losses[place] += share * error / (power * 4.0**exponent + 1e-30)
    return losses


def int8_error(scaled: NDArray[np.float64], clipped: float = _CLIPPED) -> NDArray[np.float64]:
    """Return the power of the error of each value in steps of int8; that of a clipped one counts `clipped` times."""
    power: NDArray[np.float64] = np.rint(scaled)
    np.clip(power, -128, 127, out=power)
    power -= scaled
    power *= power
    np.multiply(power, clipped, out=power, where=power > 0.25)
    return power


class Reference:
    """Tensors beside which others are measured, in groups: the means of a group's errors make its decibels."""

    def __init__(self, wanted: Mapping[str, NDArray[np.float32]], groups: Sequence[Sequence[str]]) -> None:
        self._names = [name for names in groups for name in names if wanted[name].size]
        flat = [wanted[name].reshape(-1) for name in self._names]
        self._values: NDArray[np.float32] = np.concatenate(flat) if flat else np.zeros(0, np.float32)
        sizes = np.array([each.size for each in flat], np.int64)
        self._starts = np.cumsum(sizes) - sizes
        self._powers = self._squares(self._values.astype(np.float64)) + 1e-30 * sizes
        counts = [sum(wanted[name].size > 0 for name in names) for names in groups]
        ends = np.cumsum(counts)
        self._groups = [
            (slice(end - count, end), max(len(names), 1))
            for end, count, names in zip(ends, counts, groups, strict=True)
        ]

    def decibels(self, given: Mapping[str, NDArray[np.float32]]) -> list[float]:
        """Return the decibels of each group: the wanted tensors' power over that of the errors of `given`."""
        if not self._names:
            return [300.0] * len(self._groups)
        made = np.concatenate([given[name].reshape(-1) for name in self._names])
        with np.errstate(invalid="ignore", over="ignore"):  # infinities on both sides
            errors = self._squares(np.subtract(self._values, made, dtype=np.float64)) / self._powers
        errors[~np.isfinite(errors)] = 1e30
        means = [float(errors[part].sum()) / count for part, count in self._groups]
        return [-10 * math.log10(max(mean, 1e-30)) for mean in means]

    def _squares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of each tensor's squares."""
        made: NDArray[np.float64] = np.add.reduceat(values * values, self._starts) if values.size else np.zeros(0)
        return made


def signal_to_noise(wanted: Mapping[str, NDArray[np.float32]], given: Mapping[str, NDArray[np.float32]]) -> float:
    """Return the decibels of the wanted tensors' power over that of their errors, all together by their means."""
    return Reference(wanted, [list(wanted)]).decibels(given)[0]


class MeanDecibels:
    """The decibels of tensors, each the mean over samples.

    A sample in which a tensor is next to nothing beside the others does not count, a photograph without text for a text
    detector's output, say: its decibels are those of nothing, 0 or 300 by chance.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._powers: dict[str, list[float]] = {name: [] for name in names}
        self._decibels: dict[str, list[float]] = {name: [] for name in names}

    def add(self, wanted: Mapping[str, NDArray[Any]], given: Mapping[str, NDArray[Any]]) -> None:
        """Measure a sample's tensors beside the wanted ones."""
        for name, powers in self._powers.items():
            values = wanted[name].astype(np.float64)
            powers.append(float(np.mean(values * values)) if values.size else 0.0)
            self._decibels[name].append(signal_to_noise({name: wanted[name]}, {name: given[name]}))

    def means(self) -> dict[str, float]:
        """Return the decibels by tensor."""
        return {name: self._mean(name) for name in self._powers}

    def _mean(self, name: str) -> float:
        powers = np.array(self._powers[name])
        counts = ~(powers < _LEAST_POWER * np.mean(powers))
        return float(np.mean(np.array(self._decibels[name])[counts]))
