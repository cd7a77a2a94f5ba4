"""The least and the largest value of each tuner's options are taken, and the next one past each is refused by name."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hilt.tune.genetic_tuner import GeneticOptions
from hilt.tune.glimpse.tuner import GlimpseOptions
from hilt.tune.hardware_aware.tuner import HardwareAwareOptions
from hilt.tune.ml2tuner.tuner import ML2TunerOptions
from hilt.tune.model_guided.tuner import HiltOptions
from hilt.tune.options import TunerOptionError

ANY = math.inf
LIMITS: dict[type[Any], dict[str, tuple[float, float]]] = {
    GeneticOptions: {"population": (1, ANY), "elite": (0, 100), "mutation": (0.0, 1.0)},
    HardwareAwareOptions: {
        "random_share": (0.0, 1.0),
        **dict.fromkeys(("samples", "parallel", "epoch", "rounds", "patience"), (1, ANY)),
        **dict.fromkeys(("annealing_iterations", "annealing_points", "annealing_patience"), (1, ANY)),
    },
    HiltOptions: {"stop_at": (1e-9, ANY), "memories": (1, 256), "draws": (16, 65536)},
    GlimpseOptions: {
        "tau": (0.0, 1.0),
        **dict.fromkeys(("plan_size", "candidates", "budget"), (1, ANY)),
        **dict.fromkeys(("read_latency_ns", "write_latency_ns", "memory_bytes_per_cycle"), (0.0, ANY)),
    },
    ML2TunerOptions: {
        **dict.fromkeys(("N", "annealing_iterations", "annealing_points", "annealing_patience"), (1, ANY)),
        **{"alpha": (0.0, 1000.0), "refit_growth": (0.0, 1.0)},
    },
}


@pytest.mark.parametrize(
    ("options", "name"), [(options, name) for options, names in LIMITS.items() for name in names], ids=str
)
def test_an_option_lies_within_its_limits(options: type[Any], name: str) -> None:
    least, most = LIMITS[options][name]
    more = {"elite": 0} if name == "population" else {}
    step: float = 1 if isinstance(least, int) else 1e-6
    for value in (least, most):
        if value != ANY:
            assert getattr(options(**more, **{name: value}), name) == value
    for value in (least - step, most + step):
        if value != ANY:
            with pytest.raises(TunerOptionError, match=f"^{name} is .*not {value}"):
                options(**more, **{name: value})


def test_an_elite_is_no_larger_than_its_population() -> None:
    assert GeneticOptions(population=3, elite=3).elite == 3
    with pytest.raises(TunerOptionError, match=r"elite is 0 to population \(3\), not 4"):
        GeneticOptions(population=3, elite=4)
