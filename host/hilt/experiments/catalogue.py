"""The experiments by name. An experiment is a function that is given a Bench, and one entry here."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from hilt.experiments.bench import Bench
from hilt.experiments.errors import ExperimentError


@dataclass(frozen=True)
class Experiment:
    """`minutes` of two cores at the default size and with --full; the tuners' runs are kept and count only once."""

    title: str
    source: str
    function: str
    """module:function of hilt.experiments."""
    minutes: tuple[float, float]

    def hold(self, bench: Bench) -> None:
        """Runs it; the bench says what came out."""
        module, _, function = self.function.partition(":")
        held: Callable[[Bench], None] = getattr(import_module(f"hilt.experiments.{module}"), function)
        held(bench)
        bench.finish()


EXPERIMENTS: dict[str, Experiment] = {
    "trials": Experiment("trials to within 1 % over AutoTVM's, every tuner", "ours", "trials:headline", (20, 90)),
    "mismatch": Experiment("the same on boards that a twin does not know", "ours", "trials:mismatch", (30, 300)),
    "overhead": Experiment("a tuner's own seconds in a run of 750 trials", "ours", "trials:overhead", (2, 10)),
    "peers": Experiment("tuners that others wrote", "ours", "trials:peers", (10, 300)),
}


def experiment(name: str) -> Experiment:
    """Raises ExperimentError, with what is near the name."""
    if name not in EXPERIMENTS:
        close = difflib.get_close_matches(name, EXPERIMENTS, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(close)}?" if close else "`hilt bench --list` shows what there is"
        raise ExperimentError(f"no experiment is called {name!r}; {hint}")
    return EXPERIMENTS[name]
