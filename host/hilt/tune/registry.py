"""Tuners by name. A new tuner is a file with its class and options, and one entry here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hilt.tune.autotvm.tree_gru import TreeGRUOptions, treegru
from hilt.tune.autotvm.trees import AutoTVMOptions, autotvm
from hilt.tune.feedback import Tuner
from hilt.tune.genetic_tuner import GeneticOptions, GeneticTuner
from hilt.tune.glimpse.tuner import GlimpseOptions, GlimpseTuner
from hilt.tune.grid_tuner import GridOptions, GridTuner
from hilt.tune.hardware_aware.tuner import HardwareAwareOptions, hardware_aware
from hilt.tune.ml2tuner.tuner import ML2TunerOptions, ml2tuner
from hilt.tune.model_guided.tuner import HiltOptions, HiltTuner
from hilt.tune.options import read_options
from hilt.tune.problem import TuningProblem
from hilt.tune.random_tuner import RandomOptions, RandomTuner


class UnknownTunerError(ValueError):
    """A tuner's name that is not in the registry."""


@dataclass(frozen=True)
class _Entry:
    summary: str
    """One line, as help shows it."""
    options: type[Any]
    build: Callable[[TuningProblem, int, Any], Tuner]


def _random(problem: TuningProblem, seed: int, options: RandomOptions) -> Tuner:
    return RandomTuner(problem.space, seed, options)


def _ga(problem: TuningProblem, seed: int, options: GeneticOptions) -> Tuner:
    return GeneticTuner(problem.space, seed, options)


def _grid(problem: TuningProblem, seed: int, options: GridOptions) -> Tuner:
    return GridTuner(problem.space, options)


_TUNERS = {
    "hilt": _Entry("hilt's own: the timing model, calibrated by what is measured", HiltOptions, HiltTuner),
    "random": _Entry("uniform random search without replacement", RandomOptions, _random),
    "autotvm": _Entry("AutoTVM as TVM v0.9 has it: boosted trees and simulated annealing", AutoTVMOptions, autotvm),
    "hw-aware": _Entry(
        "AutoTVM with a first epoch chosen by the compiler's verdicts", HardwareAwareOptions, hardware_aware
    ),
    "treegru": _Entry("AutoTVM's loop around its neural cost model (needs PyTorch)", TreeGRUOptions, treegru),
    "ml2tuner": _Entry("models of performance, of validity, and of what compilation shows", ML2TunerOptions, ml2tuner),
    "glimpse": _Entry("trained on other layers and VTAs, guided by the target's figures", GlimpseOptions, GlimpseTuner),
    "ga": _Entry("TVM's genetic algorithm: generations of 100", GeneticOptions, _ga),
    "grid": _Entry("every configuration in the order of its index", GridOptions, _grid),
}


def tuner_names() -> list[str]:
    """Every tuner's name, in the order they are listed to people."""
    return list(_TUNERS)


def tuner_summaries() -> dict[str, str]:
    """What each tuner is, in one line, by name."""
    return {name: entry.summary for name, entry in _TUNERS.items()}


def tuner_module(name: str) -> str:
    """The module that a tuner is in, with all it imports what decides its answers. Raises UnknownTunerError."""
    return _entry(name).options.__module__


def make_tuner(name: str, problem: TuningProblem, seed: int, **options: object) -> Tuner:
    """The tuner of that name for a problem. Raises UnknownTunerError, TunerOptionError."""
    entry = _entry(name)
    return entry.build(problem, seed, read_options(entry.options, name, options))


def resolve_options(name: str, **options: object) -> dict[str, object]:
    """All options of a tuner, defaults included, as a run records them. Raises as `make_tuner` does."""
    return dataclasses.asdict(read_options(_entry(name).options, name, options))


def _entry(name: str) -> _Entry:
    if name not in _TUNERS:
        raise UnknownTunerError(f"no tuner is called {name!r}; there are: {', '.join(_TUNERS)}")
    return _TUNERS[name]
