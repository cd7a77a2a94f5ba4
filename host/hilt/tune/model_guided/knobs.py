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

    @classmethod
    def of(cls, problem: TuningProblem, indices: Indices) -> Knobs:
        """Return the knobs of a problem's configurations that have more than one value."""
        columns = [values for values in problem.columns(indices).values() if len(np.unique(values)) > 1]
        columns = columns or [np.ones(len(indices), dtype=np.int64)]
        codes = [np.unique(values, return_inverse=True)[1] for values in columns]
        scaled = np.log2(np.maximum(np.stack(columns, axis=1), 1).astype(np.float64))
        return cls(np.stack(codes, axis=1).astype(np.int16), scaled)

    @cached_property
    def indicators(self) -> Floats:
        """Return a column for each value of each knob (n, h): the share of equal knobs of two rows is their product."""
        columns = [codes[:, None] == np.unique(codes) for codes in self.codes.T]
        return np.asarray(np.concatenate(columns, axis=1) / np.sqrt(len(columns)))

    @cached_property
    def even_weights(self) -> Floats:
        """Return the weights (parts,) of knobs, pairs of knobs and near values: a third each, 1 in all."""
        count = self.codes.shape[1]
        pairs = count * (count - 1) // 2
        thirds = [np.full(size, 1 / size) for size in (count, pairs, 1) if size]
        return np.asarray(np.concatenate(thirds) / len(thirds))

    def alike(self, left: Indices, right: Indices, weights: Floats) -> Floats:
        """Return a correlation (n, m): the sum of the weights of the parts in which two rows are equal or near."""
        found = np.zeros((len(left), len(right)))
        for weight, part in zip(weights, self._parts(left, right), strict=True):
            found += weight * part
        return found

    def parts(self, rows: Indices) -> Floats:
        """Return the correlation (parts, n, n) of rows with each other, by part."""
        return np.stack(list(self._parts(rows, rows)))

    def reweighted(self, weights: Floats, parts: Floats, slope: Floats) -> Floats:
        """Return the weights (parts,) after a group lasso step: `slope` (n,) is the log likelihood's."""
        strengths = weights * np.sqrt(np.maximum(parts @ slope @ slope, 0.0))
        if strengths.sum() <= 0:
            return self.even_weights
        return np.asarray(_ANY_RULE * self.even_weights + (1 - _ANY_RULE) * strengths / strengths.sum())

    def _parts(self, left: Indices, right: Indices) -> Iterator[Floats | Bools]:
        """Yield the correlation (n, m) of each part: each knob, each pair of knobs, near values."""
        equal = [codes[left][:, None] == codes[right] for codes in self.codes.T]
        yield from equal
        for first, second in combinations(equal, 2):
            yield first & second
        a, b = self.scaled[left], self.scaled[right]
        squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
        yield np.exp(-np.maximum(squared, 0) / (2 * _RULE_LENGTH**2))
