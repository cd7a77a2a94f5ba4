"""What the benches print: a topic is a table, a figure one of its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line: what was measured, on which workload, with which seed (or -), how often, and what came out.

    `value` is text with its unit; `goal` what was aimed at, empty where nothing was.
    """

    measured: str
    workload: str
    seed: str
    repeats: str
    value: str
    goal: str = ""


@dataclass(frozen=True)
class Sizes:
    """How much is measured where more takes longer."""

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
