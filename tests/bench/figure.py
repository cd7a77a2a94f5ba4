"""The output of the benchmarks: a topic is a table, a figure one of its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line: measurement, workload, seed (or -), repeats and value.

    `value` is text with its unit. `goal` is the target, empty if there is none.
    """

    measured: str
    workload: str
    seed: str
    repeats: str
    value: str
    goal: str = ""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measurements that take longer with more items."""

    random_programs: int = 1000
    convolutions: int = 500
    trials: int = 200
    stored_trials: int = 100_000


@dataclass(frozen=True)
class Topic:
    """A table that can be printed alone. `figures` yields its lines as they are measured."""

    name: str
    title: str
    figures: Callable[[Sizes], Iterator[Figure]]
