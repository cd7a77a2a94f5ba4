"""The values of knobs, as likenesses of configurations are computed from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from hilt.tune.problem import Indices, TuningProblem

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_RULE_LENGTH = 1.2
"""Factors of two over which knobs are alike, root of the sum of squares."""
_ANY_RULE = 0.05
"""Share of the rules' variance that stays with all rules alike."""


@dataclass(frozen=True, eq=False)
class Knobs:
    """The knobs that vary among configurations, rows 0..n-1. Rules and errors may depend on their values."""

    codes: npt.NDArray[np.int16]
    """Number of each value among the knob's values (n, knobs)."""
    scaled: Floats
    """log2 of the values (n, knobs)."""
    aligned: Floats
    """1 where a prime divides a knob or a product of two, else -1 (n, alignments); those that differ among rows."""

    @classmethod
    def of(cls, problem: TuningProblem, indices: Indices) -> Knobs:
        """Return the knobs of a problem's configurations that have more than one value."""
        columns = [values for values in problem.columns(indices).values() if len(np.unique(values)) > 1]
        columns = columns or [np.ones(len(indices), dtype=np.int64)]
        codes = [np.unique(values, return_inverse=True)[1] for values in columns]
        scaled = np.log2(np.maximum(np.stack(columns, axis=1), 1).astype(np.float64))
        return cls(np.stack(codes, axis=1).astype(np.int16), scaled, _alignments(columns))

    @cached_property
    def indicators(self) -> Floats:
        """Return a column for each value of each knob (n, h): the share of equal knobs of two rows is their product."""
        columns = [codes[:, None] == np.unique(codes) for codes in self.codes.T]
        return np.asarray(np.concatenate(columns, axis=1) / np.sqrt(len(columns)))

    @cached_property
    def even_weights(self) -> Floats:
        """Return the weights (parts,) of knobs, pairs of knobs, near values and alignments: equal shares, 1 in all."""
        count = self.codes.shape[1]
        pairs = count * (count - 1) // 2
        shares = [np.full(size, 1 / size) for size in (count, pairs, 1, self.aligned.shape[1]) if size]
        return np.asarray(np.concatenate(shares) / len(shares))

    def alike(self, left: Indices, right: Indices, weights: Floats) -> Floats:
        """Return a correlation (n, m): the sum of the weights of the parts in which two rows are equal or near."""
        # Two rows are equal in an alignment or not: (1 + the product of their signs) / 2.
        alignments = self.aligned.shape[1]
        others, even = np.split(weights, [len(weights) - alignments])
        found = (self.aligned[left] * even) @ self.aligned[right].T
        found += even.sum()
        found /= 2
        for weight, part in zip(others, self._parts(left, right), strict=True):
            found += weight * part
        return np.asarray(found)

    def reweighted(self, weights: Floats, rows: Indices, slope: Floats) -> Floats:
        """Return the weights (parts,) after a group lasso step: `slope` (n,) is the log likelihood's at the rows."""
        explained = [float(slope @ part @ slope) for part in self._parts(rows, rows)]
        explained += ((slope.sum() ** 2 + (slope @ self.aligned[rows]) ** 2) / 2).tolist()
        strengths = weights * np.sqrt(np.maximum(explained, 0.0))
        if strengths.sum() <= 0:
            return self.even_weights
        return np.asarray(_ANY_RULE * self.even_weights + (1 - _ANY_RULE) * strengths / strengths.sum())

    def _parts(self, left: Indices, right: Indices) -> Iterator[Floats | Bools]:
        """Yield the correlation (n, m) of each part but alignments: each knob, each pair of knobs, near values."""
        equal = [codes[left][:, None] == codes[right] for codes in self.codes.T]
        yield from equal
        for first, second in combinations(equal, 2):
            yield first & second
        a, b = self.scaled[left], self.scaled[right]
        squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
        yield np.exp(-np.maximum(squared, 0) / (2 * _RULE_LENGTH**2))


def _alignments(columns: list[npt.NDArray[np.int64]]) -> Floats:
    """Return the different columns of `aligned` (n, alignments)."""
    products = [*columns, *(first * second for first, second in combinations(columns, 2))]
    primes = sorted({prime for values in columns for value in np.unique(values).tolist() for prime in _primes(value)})
    found: dict[bytes, npt.NDArray[np.bool_]] = {}
    for prime in primes:
        for product in products:
            divides = product % prime == 0
            if divides.any() and not divides.all():
                found.setdefault(np.packbits(divides ^ divides[0]).tobytes(), divides)
    signs = [np.where(divides, 1.0, -1.0) for divides in found.values()]
    return np.stack(signs, axis=1) if signs else np.zeros((len(columns[0]), 0))


def _primes(value: int) -> list[int]:
    """Return the primes that divide a value, the least first."""
    found, factor = [], 2
    while factor * factor <= value:
        if value % factor == 0:
            found.append(factor)
            while value % factor == 0:
                value //= factor
        factor += 1
    return found + ([value] if value > 1 else [])
