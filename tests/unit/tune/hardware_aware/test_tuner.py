from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hilt.trial import Outcome
from hilt.tune import Feedback
from hilt.tune.boosted_trees import BoostedTrees
from hilt.tune.hardware_aware.presampling import Presamples
from hilt.tune.hardware_aware.tuner import HardwareAwareOptions, HardwareAwareTuner, biased
from hilt.tune.metrics import trials_to_within

from .. import conformance
from ..grids import Grid, Ints

GRID = Grid((10, 8, 6, 4), valid_share=0.06, seed=11)
QUICK = {"samples": 400, "rounds": 60, "annealing_iterations": 150}
OFF = {"presampling": False, "selection": False, "biased_annealing": False}


def compiles(indices: Ints) -> np.ndarray:
    return np.array([GRID.measure(index).outcome is Outcome.OK for index in indices.tolist()], dtype=np.bool_)


def tuner(seed: int = 0, **options: object) -> HardwareAwareTuner:
    return HardwareAwareTuner(GRID, seed, HardwareAwareOptions(**(QUICK | options)), GRID.features, compiles)  # type: ignore[arg-type]


def test_the_bias_is_the_papers() -> None:
    scores = np.random.default_rng(0).normal(size=50).astype(np.float32)
    presamples = Presamples(np.array([40, 3, 7, 12]), np.array([True, False, True, False]))
    asked = np.array([0, 3, 7, 8, 12, 40, 41, 49, 3])
    told = biased(lambda indices: scores[indices], presamples)(asked)
    expected = {3: -1e6, 12: -1e6, 7: scores[7] + 1, 40: scores[40] + 1}
    assert told.tolist() == [np.float32(expected.get(index, scores[index])) for index in asked.tolist()]


def test_the_first_epoch_is_half_valid() -> None:
    first = tuner().ask(50)
    assert compiles(np.array(first)).tolist() == [True] * 25 + [False] * 25


def test_trials_beyond_the_first_epoch_are_known_to_be_valid() -> None:
    subject = tuner()
    subject.ask(50)
    known = subject.presamples
    assert set(subject.ask(16)) <= set(known.indices[known.valid].tolist())


def test_known_invalids_are_not_proposed() -> None:
    subject, blind = tuner(random_share=0.0), tuner(random_share=0.0, biased_annealing=False)
    for each in (subject, blind):
        each.tell([GRID.measure(index) for index in each.ask(50)])
    known = subject.presamples
    invalid = set(known.indices[~known.valid].tolist())
    assert not invalid & set(subject.ask(40))
    assert (subject.presamples.indices == blind.presamples.indices).all()
    assert invalid & set(blind.ask(40))


@pytest.mark.parametrize(("invalid", "zeros"), [("zero", 25), ("left_out", 0)])
def test_the_model_hears_of_invalids_as_it_is_told_to(
    invalid: str, zeros: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[list[float]] = []
    fit = BoostedTrees.fit
    monkeypatch.setattr(
        BoostedTrees, "fit", lambda model, rows, labels: (heard.append(labels.tolist()), fit(model, rows, labels))[1]
    )
    subject = tuner(invalid=invalid)
    subject.tell([GRID.measure(index) for index in subject.ask(50)])
    assert len(heard[0]) == 25 + zeros and heard[0].count(0.0) == zeros


def test_with_all_three_parts_off_the_first_epoch_is_as_valid_as_the_space() -> None:
    shares = [compiles(np.array(tuner(seed, **OFF).ask(50))).mean() for seed in range(40)]
    assert np.mean(shares) == pytest.approx(0.06, abs=0.02)


def test_each_part_alone_changes_the_search() -> None:
    told = {}
    for parts in ([], ["presampling"], ["selection"], ["biased_annealing"], list(OFF)):
        subject = tuner(3, **(OFF | dict.fromkeys(parts, True)))
        told[tuple(parts)] = tuple(item.index for item in conformance.run(subject, 150, 50, GRID.measure, lag=False))
    assert len(set(told.values())) == len(told)


@pytest.mark.slow
def test_it_needs_far_fewer_trials_than_without_its_parts() -> None:
    def median(**options: object) -> float:
        trials = []
        for seed in range(5):
            told = conformance.run(tuner(seed, **options), 300, 50, GRID.measure, lag=False)
            trials.append(trials_to_within([item.microseconds for item in told], GRID.optimum, 0.0) or 300)
        return float(np.median(trials))

    ours, without = median(), median(**OFF)
    assert ours < 0.8 * without, (ours, without)


def test_overheads_are_named_by_part() -> None:
    subject = tuner()
    assert subject.overheads() == {}
    conformance.run(subject, 100, 50, GRID.measure, lag=False)
    overheads = subject.overheads()
    assert set(overheads) == {"presampling", "selection", "features", "training", "search"}
    assert all(seconds > 0 for seconds in overheads.values())


def test_a_lost_board_teaches_nothing() -> None:
    quiet, disturbed = tuner(), tuner()
    asked = quiet.ask(50)
    assert disturbed.ask(50) == asked
    results = [GRID.measure(index) for index in asked]
    quiet.tell(results)
    disturbed.tell([*(Feedback(index, Outcome.BOARD_LOST) for index in asked), *results])
    assert quiet.ask(50) == disturbed.ask(50)


def test_defaults_are_the_papers() -> None:
    options = dataclasses.asdict(HardwareAwareOptions())
    expected = {"samples": 1000, "epoch": 50, "invalid": "zero", "loss": "rank"} | dict.fromkeys(OFF, True)
    assert expected.items() <= options.items()
