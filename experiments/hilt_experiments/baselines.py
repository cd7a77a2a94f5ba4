"""hilt beside orders that learn nothing, and beside itself without a part, hard spaces apart."""

from __future__ import annotations

from hilt.run_choices import CheckLevel
from hilt.tune.fixed_order import ORDERS
from hilt.tune.model_guided.initial_design import PARTS
from hilt_experiments.bench import Bench
from hilt_experiments.contenders import Contender
from hilt_experiments.datasets import EVIDENCE, HOME_BOARD
from hilt_experiments.headline import BASELINE, hold

HARD = ["resnet18.C4", "resnet18.C7", "resnet18.C10"]
"""Layers with under 0.5 % of the valid configurations within 1 % of the best at `compiler`."""
SATURATED = ["resnet18.C2", "resnet18.C5", "resnet18.C9"]
"""Layers where chance finds a good configuration soon."""
LEARNING_NOTHING = [Contender.of("order", f"order by {name}", by=name) for name in ORDERS]
ABLATIONS = [Contender.of("hilt", f"hilt without {part}", without=part) for part in sorted(PARTS)]


def baselines(bench: Bench) -> None:
    """Compare hilt with orders that learn nothing, on hard and on saturated layers apart."""
    contenders = [Contender.of(BASELINE), Contender.of("random"), Contender.of("hilt"), *LEARNING_NOTHING]
    for kind, layers in (("hard", HARD), ("saturated", SATURATED)):
        hold(bench, [HOME_BOARD], bench.workloads(layers, EVIDENCE), [*contenders, *bench.added()], kind)


def ablations(bench: Bench) -> None:
    """Compare hilt with itself without each part."""
    contenders = [Contender.of(BASELINE), Contender.of("hilt"), *ABLATIONS]
    boards = [HOME_BOARD] if not bench.settings.full else [HOME_BOARD, "pynq_public"]
    hold(bench, boards, bench.workloads(HARD, EVIDENCE), contenders, "ablations", (CheckLevel.COMPILER,))
