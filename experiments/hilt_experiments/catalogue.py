"""The experiments by name. An experiment is a function that is given a Bench, and one entry here."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

from hilt_experiments.bench import Bench, BenchSettings
from hilt_experiments.errors import ExperimentError


@dataclass(frozen=True)
class QuickSize:
    """A small size; with all of them `hilt bench all --quick` takes under half an hour of two quiet cores."""

    seeds: int | None = None
    workloads: tuple[str, ...] | None = None
    checks: str | None = None


@dataclass(frozen=True)
class Experiment:
    """`minutes` of two cores at the default size and with --full; the tuners' runs are kept and count only once."""

    title: str
    source: str
    function: str
    """module:function of hilt_experiments."""
    minutes: tuple[float, float]
    quick: QuickSize | None = None
    """None if it takes hours at any size."""

    def sized(self, settings: BenchSettings) -> BenchSettings:
        """Return the settings with the quick size in place of settings that are not given, if they ask for it."""
        if not settings.quick or self.quick is None:
            return settings
        seeds, workloads, checks = settings.seeds, settings.workloads, settings.checks
        return replace(
            settings,
            seeds=seeds or self.quick.seeds,
            workloads=workloads or self.quick.workloads,
            checks=checks or self.quick.checks,
        )

    def hold(self, bench: Bench) -> None:
        """Run the experiment; the bench reports its results."""
        module, _, function = self.function.partition(":")
        held: Callable[[Bench], None] = getattr(import_module(f"hilt_experiments.{module}"), function)
        held(bench)
        bench.finish()


_C7, _C9, _C10 = "resnet18.C7", "resnet18.C9", "resnet18.C10"
_DEEPBENCH = ("deepbench.8", "deepbench.42", "deepbench.78")

EXPERIMENTS: dict[str, Experiment] = {
    "foreign": Experiment(
        "every tuner on machines of another structure, and hilt's certainty",
        "ours",
        "foreign:foreign",
        (60, 600),
        QuickSize(1, (_C9,), "compiler"),
    ),
    "factors": Experiment(
        "every tuner where each configuration has a factor of its own",
        "ours",
        "foreign:factors",
        (10, 60),
        QuickSize(1, (_C9,)),
    ),
    "certainty": Experiment(
        "hilt's certainty on machines of another structure, a thousand runs",
        "ours",
        "foreign:certainty",
        (30, 45),
        QuickSize(1, (_C9,), "tvm"),
    ),
    "sides": Experiment(
        "hilt's certainty where a step hides the best from the twin",
        "ours",
        "sides:sides",
        (15, 100),
        QuickSize(1, (_C9,)),
    ),
    "trials": Experiment(
        "trials to within 1 % over AutoTVM's, every tuner",
        "ours",
        "headline:headline",
        (16, 120),
        QuickSize(2, (_C10, "deepbench.8")),
    ),
    "baselines": Experiment(
        "hilt beside orders that learn nothing, hard layers apart",
        "ours",
        "baselines:baselines",
        (6, 40),
        QuickSize(2, (_C10,)),
    ),
    "ablations": Experiment(
        "hilt without each of its parts", "ours", "baselines:ablations", (4, 30), QuickSize(2, (_C10,))
    ),
    "mismatch": Experiment(
        "the same on boards that a twin does not know",
        "ours",
        "headline:mismatch",
        (26, 600),
        QuickSize(2, (_C10,), "compiler"),
    ),
    "informed": Experiment(
        "hilt with and without the published rules of TVM", "ours", "headline:informed", (1, 20), QuickSize(2, (_C10,))
    ),
    "overhead": Experiment(
        "a tuner's own seconds in a run of 750 trials", "ours", "headline:overhead", (3, 10), QuickSize(1, (_C10,))
    ),
    "hw-aware-table2": Experiment(
        "valid ratios and clusters of the spaces",
        "HW-aware Table II, Figure 1",
        "hardware_aware:spaces",
        (0.2, 0.2),
        QuickSize(),
    ),
    "hw-aware-fig2": Experiment(
        "cost model by share of valid samples",
        "HW-aware Figure 2",
        "cost_models:figure2",
        (0.5, 3),
        QuickSize(2, _DEEPBENCH),
    ),
    "hw-aware-fig3": Experiment(
        "AutoTVM's robustness", "HW-aware Figure 3", "hardware_aware:robustness", (1, 2), QuickSize(5, _DEEPBENCH)
    ),
    "hw-aware-fig5": Experiment(
        "HW-aware initialisation beside AutoTVM",
        "HW-aware Figure 5",
        "hardware_aware:baseline",
        (1, 8),
        QuickSize(5, _DEEPBENCH),
    ),
    "hw-aware-fig6": Experiment(
        "transfer learning beside them",
        "HW-aware Figure 6",
        "hardware_aware:transfer",
        (2, 20),
        QuickSize(2, _DEEPBENCH),
    ),
    "hw-aware-table3": Experiment(
        "overheads by part", "HW-aware Table III", "hardware_aware:overheads", (1, 1), QuickSize(1, ("deepbench.8",))
    ),
    "ml2tuner-fig2": Experiment(
        "search and invalid attempts", "ML2Tuner Figure 2", "ml2tuner:search", (4, 50), QuickSize(1, (_C10,))
    ),
    "ml2tuner-alone": Experiment(
        "the same against model P alone, in mostly invalid spaces",
        "ML2Tuner Figure 2",
        "ml2tuner_alone:alone",
        (4, 60),
        QuickSize(1, (_C10,)),
    ),
    "ml2tuner-fig3": Experiment(
        "the worth of hidden features", "ML2Tuner Figure 3", "ml2tuner:hidden_features", (4, 50), QuickSize(1, (_C10,))
    ),
    "ml2tuner-table3": Experiment(
        "grid of hyperparameters", "ML2Tuner Table 3", "ml2tuner:grid", (0.3, 8), QuickSize(1, (_C10,))
    ),
    "ml2tuner-table4": Experiment(
        "objectives", "ML2Tuner Table 4", "ml2tuner:objectives", (0.5, 20), QuickSize(1, (_C10,))
    ),
    "ml2tuner-table5": Experiment(
        "feature importances", "ML2Tuner Table 5", "ml2tuner:importance", (0.5, 20), QuickSize(1, (_C10,))
    ),
    "glimpse-fig4": Experiment(
        "the first 100 configurations", "Glimpse Figure 4", "glimpse:initial", (0.5, 2), QuickSize(2, (_C7, _C10))
    ),
    "glimpse-fig5": Experiment(
        "a short budget, beside transfer", "Glimpse Figure 5", "glimpse:short_budget", (2, 25), QuickSize(2, (_C10,))
    ),
    "glimpse-fig6": Experiment("search steps", "Glimpse Figure 6", "glimpse:steps", (3, 25), QuickSize(2, (_C7, _C10))),
    "glimpse-steps": Experiment(
        "search steps as the paper counts them: moves of the annealing",
        "Glimpse Figure 6",
        "glimpse_steps:steps",
        (3, 25),
        QuickSize(2, (_C7, _C10), "compiler"),
    ),
    "glimpse-fig7": Experiment(
        "invalid measurements", "Glimpse Figure 7", "glimpse:invalid", (3, 25), QuickSize(2, (_C7, _C10))
    ),
    "glimpse-table2": Experiment(
        "hyper-volume", "Glimpse Table 2", "glimpse:hypervolume", (3, 25), QuickSize(2, (_C7, _C10))
    ),
    "autotvm-fig4": Experiment(
        "cost models against blind search", "AutoTVM Figure 4", "autotvm:models", (1, 40), QuickSize(2, (_C7, _C10))
    ),
    "autotvm-fig5": Experiment("rank against regression", "AutoTVM Figure 5", "autotvm:objectives", (10, 300)),
    "autotvm-fig6": Experiment(
        "diversity-aware selection", "AutoTVM Figure 6", "autotvm:diversity", (1, 15), QuickSize(3, (_C7, _C10))
    ),
    "autotvm-fig7": Experiment(
        "uncertainty-aware acquisition", "AutoTVM Figure 7", "autotvm:uncertainty", (3, 60), QuickSize(2, (_C10,))
    ),
    "autotvm-fig8": Experiment(
        "transfer learning", "AutoTVM Figure 8", "autotvm:transfer", (1, 8), QuickSize(2, (_C7,))
    ),
    "autotvm-fig9": Experiment(
        "representations", "AutoTVM Figure 9", "autotvm:representations", (0.5, 4), QuickSize(1, (_C7,))
    ),
    "score": Experiment(
        "the FGCS 2024 score of every tuner and peer, and trials on hard layers of drawn machines",
        "ours",
        "score:score",
        (90, 900),
    ),
    "peers": Experiment("tuners that others wrote", "ours", "headline:peers", (60, 900)),
}


def experiment(name: str) -> Experiment:
    """Return the experiment of that name.

    Raises:
        ExperimentError: No experiment has the name; the message lists names that are near.
    """
    if name not in EXPERIMENTS:
        close = difflib.get_close_matches(name, EXPERIMENTS, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(close)}?" if close else "`hilt bench --list` shows them"
        raise ExperimentError(f"no experiment is called {name!r}; {hint}")
    return EXPERIMENTS[name]
