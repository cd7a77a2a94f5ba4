"""Tuners by name: hilt's own, which are entries here, and those from outside (hilt.tune.plugins)."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hilt.did_you_mean import did_you_mean
from hilt.tune import plugins
from hilt.tune.feedback import Tuner
from hilt.tune.options import OptionHelp, TunerOptionError, option_help, read_options
from hilt.tune.problem import TuningProblem


class UnknownTunerError(ValueError):
    """A tuner's name that is not in the registry."""


@dataclass(frozen=True)
class _Entry:
    """A tuner that is imported."""

    summary: str
    options: type[Any]
    build: Callable[[TuningProblem, int, Any], Tuner]
    source_sha256: str = ""
    """The SHA-256 of the file of a tuner from outside; empty for hilt's own."""


@dataclass(frozen=True)
class _Place:
    """One of hilt's own tuners, which is imported when it is asked for."""

    summary: str
    """The summary in one line, for the help text."""
    module: str
    """Below hilt.tune."""
    options: str
    """The class of its options."""
    build: str
    """The function or class that makes it of a problem, a seed and options."""
    libraries: tuple[str, ...] = ()
    """Libraries that it imports at its first fit, because they take seconds."""

    def load(self) -> _Entry:
        """Import the tuner."""
        module = importlib.import_module(f"hilt.tune.{self.module}")
        return _Entry(self.summary, getattr(module, self.options), getattr(module, self.build))


_TREES = ("xgboost",)
_TUNERS = {
    "hilt": _Place(
        "hilt's own: the timing model, calibrated by measurements", "model_guided.tuner", "HiltOptions", "HiltTuner"
    ),
    "random": _Place(
        "uniform random search without replacement", "plain_tuners", "RandomOptions", "random_tuner"
    ),
    "autotvm": _Place(
        "AutoTVM as TVM v0.9 has it: boosted trees and simulated annealing",
        "autotvm.trees", "AutoTVMOptions", "autotvm", _TREES,
    ),
    "hw-aware": _Place(
        "AutoTVM with a first epoch chosen by the compiler's verdicts",
        "hardware_aware.tuner", "HardwareAwareOptions", "hardware_aware", _TREES,
    ),
    "treegru": _Place(
        "AutoTVM's loop around its neural cost model (needs PyTorch)",
        "autotvm.tree_gru", "TreeGRUOptions", "treegru", ("torch",),
    ),
    "ml2tuner": _Place(
        "models of performance, of validity, and of the compiled program",
        "ml2tuner.tuner", "ML2TunerOptions", "ml2tuner", _TREES,
    ),
    "glimpse": _Place(
        "trained on other layers and VTAs, guided by the target's figures",
        "glimpse.tuner", "GlimpseOptions", "GlimpseTuner", _TREES,
    ),
    "ga": _Place(
        "TVM's genetic algorithm: generations of 100", "genetic_tuner", "GeneticOptions", "genetic_tuner"
    ),
    "order": _Place(
        "what compiles, in an order that learns nothing: a baseline", "fixed_order", "OrderOptions", "OrderTuner"
    ),
    "grid": _Place("every configuration in the order of its index", "plain_tuners", "GridOptions", "grid_tuner"),
}  # fmt: skip


def tuner_names() -> list[str]:
    """Return every tuner's name, in the order they are listed: hilt's own, then those of installed packages."""
    return [*_TUNERS, *(name for name in plugins.installed_names() if name not in _TUNERS)]


def tuner_summaries() -> dict[str, str]:
    """Return each tuner's line by name. The line of a package's tuner that cannot be loaded gives the reason."""
    lines = {name: entry.summary for name, entry in _TUNERS.items()}
    for name in tuner_names()[len(_TUNERS) :]:
        try:
            lines[name] = _entry(name).summary
        except plugins.PluginError as error:
            lines[name] = str(error)
    return lines


def canonical_tuner(name: str) -> str:
    """Return the name as a run records it: FILE.py:CLASS by its absolute path."""
    return plugins.canonical_name(name)


def tuner_exists(name: str) -> bool:
    """Return whether a tuner of hilt's, of a package or of a file has the name."""
    return plugins.is_file_name(name) or name in tuner_names()


def tuner_module(name: str) -> str:
    """Return the module of a tuner; the module and its imports decide the tuner's answers. Raises UnknownTunerError."""
    return _entry(name).options.__module__


def tuner_options(name: str) -> list[OptionHelp]:
    """Return the help of every option of a tuner. Raises UnknownTunerError, PluginError."""
    return option_help(_entry(name).options)


def make_tuner(name: str, problem: TuningProblem, seed: int, **options: object) -> Tuner:
    """Return the tuner of that name for a problem.

    Raises:
        UnknownTunerError: No tuner has the name.
        PluginError: The tuner from outside cannot be loaded.
        TunerOptionError: It has no such option, or its source is another than the run's.
    """
    entry = _entry(name)
    return entry.build(problem, seed, read_options(entry.options, name, _own(name, entry, options)))


def load_libraries(name: str) -> None:
    """Import the libraries that a tuner needs at its first fit; one that is missing is reported by the fit."""
    for library in _TUNERS[name].libraries if name in _TUNERS else ():
        with suppress(ImportError):
            importlib.import_module(library)


def resolve_options(name: str, **options: object) -> dict[str, object]:
    """Return all options of a tuner, defaults included, as a run records them. Raises as `make_tuner` does."""
    entry = _entry(name)
    resolved = dataclasses.asdict(read_options(entry.options, name, _own(name, entry, options)))
    return resolved | ({plugins.SOURCE_OPTION: entry.source_sha256} if entry.source_sha256 else {})


def _own(name: str, entry: _Entry, options: dict[str, object]) -> dict[str, object]:
    """Return the options without the source's digest, which must be that of the tuner from outside."""
    if not entry.source_sha256 or plugins.SOURCE_OPTION not in options:
        return options
    recorded = options[plugins.SOURCE_OPTION]
    if recorded != entry.source_sha256:
        raise TunerOptionError(
            f"tuner {name} has source {entry.source_sha256[:12]}, and the run began with {str(recorded)[:12]}; "
            "restore its source, or begin a new run"
        )
    return {key: value for key, value in options.items() if key != plugins.SOURCE_OPTION}


def _entry(name: str) -> _Entry:
    if name in _TUNERS:
        return _TUNERS[name].load()
    plugin = plugins.find_plugin(name)
    if plugin is None:
        hint = did_you_mean(name, tuner_names(), f"there are: {', '.join(tuner_names())}")
        raise UnknownTunerError(f"no tuner is called {name!r}; {hint}")
    return _Entry(plugin.summary, plugin.options, plugin.build, source_sha256=plugin.source_sha256)
