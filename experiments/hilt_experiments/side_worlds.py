"""Worlds with a hidden side: a step of unknown place and size separates the twin's favourites from the best.

A side is drawn from a seed: a product or sum of knobs, the fill of a buffer, or an alignment, cut at a quantile. The
twin's cycles hold on both sides but for one factor. On a `cliff` the side that holds the twin's best is slower, so that
the best of the other side wins by some percent. On a `slice` a small part of the space, far down the twin's order, is
the fastest of all. No tuner's defaults were set on a particular seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset import DatasetKey
from hilt.schedule.reasons import Reason
from hilt_experiments.problem import SharedTuningProblem

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_FILLS = ("tile.inp_elements", "tile.wgt_elements", "tile.acc_elements", "occupancy.uop", "bytes.all", "reuse.wgt")
_LARGEST_STEP = 3.0
"""Largest factor between the sides: a larger step hides nothing that a machine would do."""
_LEAST_SIDE = 0.03
_TRIES = 200


@dataclass(frozen=True, eq=False)
class SideWorld:
    """Latencies of a space's configurations, in microseconds; infinite where a configuration is not valid."""

    kind: str
    """`cliff` or `slice`."""
    side: str
    """The side that is slower (cliff) or faster (slice), in words."""
    factor: float
    microseconds: Floats

    @property
    def optimum(self) -> float:
        """The least latency in microseconds."""
        return float(self.microseconds.min())


def side_worlds(of: DatasetKey, problem: SharedTuningProblem, count: int, seed: int) -> list[SideWorld]:
    """Return the first `count` worlds of a seed in a subject's space; fewer where the space allows no more."""
    return list(islice(_worlds(of, problem, seed), count))


def _worlds(of: DatasetKey, problem: SharedTuningProblem, seed: int) -> Iterator[SideWorld]:
    valid = np.flatnonzero(of.summarize_validity.verdicts == Reason.OK)
    twin = problem.predicted_cycles(valid, [of.memory])[:, 0] * 1e6 / of.accelerator.clock_hz
    hidden = problem.hidden_features(valid)
    fills = {name: hidden.column(name).astype(np.float64) for name in _FILLS}
    knobs = {name: values for name, values in of.space.columns(valid).items() if len(np.unique(values)) > 1}
    generator = np.random.default_rng(seed)
    for _ in range(_TRIES):
        kind = str(generator.choice(["cliff", "slice"], p=[0.7, 0.3]))
        words, side = _side(generator, knobs, fills, kind)
        if not _LEAST_SIDE <= side.mean() <= 1 - _LEAST_SIDE:
            continue
        if kind == "cliff":
            side = side if side[np.argmin(twin)] else ~side
            factor = float(twin[~side].min() / twin[side].min() * (1 + generator.uniform(0.03, 0.1)))
        else:
            factor = float(twin[~side].min() / twin[side].min() * (1 - generator.uniform(0.05, 0.15)))
        if side[np.argmin(twin)] != (kind == "cliff") or not 1 / _LARGEST_STEP <= factor <= _LARGEST_STEP:
            continue
        latencies = np.full(len(of.space), np.inf)
        latencies[valid] = np.where(side, factor, 1.0) * twin
        yield SideWorld(kind, words, factor, latencies)


def _side(
    generator: np.random.Generator, knobs: dict[str, npt.NDArray[np.int64]], fills: dict[str, Floats], kind: str
) -> tuple[str, Bools]:
    """Draw a part of the space: its words, and a mask (n,)."""
    names = list(knobs)
    chosen = [names[at] for at in generator.permutation(len(names))[: generator.integers(1, 4)]]
    form = str(generator.choice(["product", "sum", "fill", "alignment"], p=[0.4, 0.2, 0.25, 0.15]))
    if form == "alignment":
        modulus = int(generator.integers(2, 5))
        product = np.prod([knobs[name] for name in chosen], axis=0)
        return f"{' * '.join(chosen)} is a multiple of {modulus}", product % modulus == 0
    if form == "fill":
        name = str(generator.choice(list(fills)))
        value: Floats = fills[name]
    else:
        name = (" * " if form == "product" else " + ").join(chosen)
        columns = np.stack([knobs[each].astype(np.float64) for each in chosen])
        value = columns.prod(axis=0) if form == "product" else columns.sum(axis=0)
    above = bool(generator.integers(2))
    share = generator.uniform(0.15, 0.85) if kind == "cliff" else generator.uniform(0.03, 0.15)
    cut = float(np.quantile(value, 1 - share if above else share))
    return (f"{name} >= {cut:g}", value >= cut) if above else (f"{name} <= {cut:g}", value <= cut)
