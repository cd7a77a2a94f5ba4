from __future__ import annotations

import numpy as np
import pytest

from hilt.schedule import load_workload, verdicts
from hilt.trial import Outcome
from hilt.tune import Feedback, TunerOptionError, TuningProblem
from hilt.tune.glimpse.tuner import GlimpseOptions, GlimpseTuner
from hilt.virtual.board_model import board_model

from ..conformance import run

PYNQ = board_model("pynq").accelerator
PROBLEM = TuningProblem.of(load_workload("resnet18.C9"), PYNQ, orders=4)
SMALL = TuningProblem.of(load_workload("conv2d:n=1,ci=32,h=3,w=3,co=16,k=1x1"), PYNQ)


def measurement(problem: TuningProblem):
    """Return a measure function with latencies from a closed form over the knobs, so that no twin is needed."""
    every = np.arange(len(problem.space))
    valid = verdicts(problem.workload, problem.accelerator, problem.space.columns(every), problem.checks) == 0
    latencies = 100 + np.abs(problem.knob_features(every)).sum(axis=1)

    def measure(index: int) -> Feedback:
        if not valid[index]:
            return Feedback(index, Outcome.REJECTED)
        return Feedback(index, Outcome.OK, float(latencies[index]))

    return measure


def asked(problem: TuningProblem, seed: int, trials: int, **options: object) -> list[int]:
    tuner = GlimpseTuner(problem, seed, GlimpseOptions(**options))  # type: ignore[arg-type]
    return [item.index for item in run(tuner, trials, 8, measurement(problem))]


ABLATIONS = [{}, {"prior": False}, {"acquisition": False}, {"sampling": False}]


@pytest.mark.parametrize("options", ABLATIONS, ids=str)
def test_indices_are_distinct_and_repeat_with_the_seed(options: dict[str, object]) -> None:
    first, again, other = (asked(PROBLEM, seed, 56, **options) for seed in (1, 1, 2))
    assert len(set(first)) == 56
    assert first == again != other


def test_each_part_changes_the_search() -> None:
    searches = [tuple(asked(PROBLEM, 1, 56, **options)) for options in ABLATIONS]
    assert len(set(searches)) == len(ABLATIONS)


@pytest.mark.parametrize("kind", ["autotvm", "ml2"])
def test_a_small_space_is_used_up_exactly_refused_configurations_at_the_end(kind: str) -> None:
    problem = TuningProblem.of(SMALL.workload, PYNQ, kind=kind)  # type: ignore[arg-type]
    assert sorted(asked(problem, 3, 10_000)) == list(range(len(problem.space)))


@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.BOARD_LOST, Outcome.TIMEOUT])
def test_failures_only_are_survived(outcome: Outcome) -> None:
    tuner = GlimpseTuner(PROBLEM, 1, GlimpseOptions())
    told = run(tuner, 120, 8, lambda index: Feedback(index, outcome))
    assert len({item.index for item in told}) == 120


def test_sampling_spares_invalid_measurements() -> None:
    """Sampling spares invalid measurements.

    The check level is the one with the most invalid configurations; training never saw this layer and accelerator.
    """
    problem = TuningProblem.of(load_workload("resnet18.C5"), PYNQ, checks="tvm", orders=4)
    measure = measurement(problem)
    invalid = [
        sum(measure(index).outcome is not Outcome.OK for index in asked(problem, 1, 64, sampling=sampling))
        for sampling in (True, False)
    ]
    assert invalid[0] < invalid[1]


def test_the_memory_that_is_given_is_part_of_the_blueprint() -> None:
    assert asked(PROBLEM, 1, 40) != asked(PROBLEM, 1, 40, memory_bytes_per_cycle=1.0)


@pytest.mark.parametrize("options", [{"tau": 1.5}, {"plan_size": 0}, {"budget": 0}, {"read_latency_ns": -1.0}])
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(TunerOptionError, match=next(iter(options))):
        GlimpseOptions(**options)  # type: ignore[arg-type]
