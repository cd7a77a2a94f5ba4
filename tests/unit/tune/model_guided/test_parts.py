"""Parts of the space that no trial has seen, and steps between parts."""

from dataclasses import replace

import numpy as np
import pytest

from hilt.tune.model_guided.candidates import candidates_of
from hilt.tune.model_guided.gaussian_process import Inputs, Kernel
from hilt.tune.model_guided.parts import Parts
from hilt.tune.model_guided.posterior import FAR_ERROR, Mixture, far_error
from hilt.tune.model_guided.steps import MeasuredCandidates, StepEvidence, find_steps, rivals
from hilt_experiments.datasets import subject
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.side_worlds import side_worlds
from hilt_experiments.sides import one_run


@pytest.fixture(scope="module")
def problem():
    return SharedTuningProblem.of_subject(subject("resnet18.C8", checks="tvm"))


def test_chosen_rows_see_every_part_and_each_knob_value(problem):
    candidates = candidates_of(problem)
    parts = Parts(candidates)
    everywhere = np.ones(len(candidates), dtype=np.bool_)
    rows = parts.choose(parts.unseen({}, everywhere), np.ones(len(candidates)), 100)
    assert len(rows) <= 24
    assert not parts.unseen(dict.fromkeys(rows.tolist(), True), everywhere).any()
    for codes in candidates.knobs.codes.T:
        often = [value for value in np.unique(codes) if (codes == value).mean() >= 0.03]
        assert set(often) <= set(codes[rows].tolist())


@pytest.mark.parametrize("way", [-np.inf, np.inf])
def test_parts_are_the_same_however_logarithms_are_rounded(problem, way):
    """numpy's differ by the last bit from processor to processor."""
    candidates = candidates_of(problem)
    scaled = candidates.knobs.scaled
    nudged = np.where(np.arange(len(candidates))[:, None] % 2, np.nextafter(scaled, way), scaled)
    other = Parts(replace(candidates, knobs=replace(candidates.knobs, scaled=nudged)))
    assert np.array_equal(other.masks, Parts(candidates).masks)
    assert np.array_equal(other.sides, Parts(candidates).sides)


def test_rows_are_chosen_up_to_a_count_and_the_first_see_most(problem):
    candidates = candidates_of(problem)
    parts = Parts(candidates)
    every = np.ones(parts.masks.shape[1], dtype=np.bool_)
    worth = np.ones(len(candidates))
    all_of_them = parts.choose(every, worth, 100)
    for count in (0, 1, 2, len(all_of_them), len(all_of_them) + 1):
        assert parts.choose(every, worth, count).tolist() == all_of_them[:count].tolist()
    assert parts.masks[all_of_them[0]].sum() == parts.masks.sum(axis=1).max()
    assert parts.choose(every, np.zeros(len(candidates)), 5).size == 0
    assert parts.share(every) == 1.0 and parts.share(~every) == 0.0


def test_failed_trials_leave_a_part_unseen_until_there_are_two(problem):
    candidates = candidates_of(problem)
    parts = Parts(candidates)
    everywhere = np.ones(len(candidates), dtype=np.bool_)
    part = 0
    inside = np.flatnonzero(parts.masks[:, part])[:2].tolist()
    assert parts.unseen({inside[0]: False}, everywhere)[part]
    assert not parts.unseen(dict.fromkeys(inside, False), everywhere)[part]
    assert not parts.unseen({inside[0]: True}, everywhere)[part]


def test_a_part_out_of_reach_is_not_asked_for(problem):
    parts = Parts(candidates_of(problem))
    reachable = ~parts.masks[:, 0]
    assert not parts.unseen({}, reachable)[0]


def test_a_step_is_found_where_it_is_and_noise_is_none():
    generator = np.random.default_rng(0)
    parts = generator.random((40, 30)) < 0.5
    inputs = Inputs(generator.standard_normal((40, 4)), np.zeros((40, 1)))
    noise = 0.002 * generator.standard_normal(40)
    kernel = Kernel(amplitude=0.003, length=1.0, noise=0.002)
    assert find_steps(inputs, noise, parts, kernel) == ([], 0.0)
    chosen, cost = find_steps(inputs, noise + 0.4 * parts[:, 7] - 0.2 * parts[:, 11], parts, kernel)
    assert chosen == [7, 11]
    assert cost == pytest.approx(2 * np.log(30))


def test_every_cut_of_a_number_is_a_side(problem):
    candidates = candidates_of(problem)
    sides = Parts(candidates).sides
    for scaled in candidates.knobs.scaled.T:
        for value in np.unique(scaled)[1:]:
            below = scaled < value
            assert not below.mean() >= 0.03 or (sides == below[:, None]).all(axis=0).any()


def test_rivals_are_the_cuts_between_measured_values_that_make_another_row_the_best():
    # Rows 0 to 4 are faster than predicted and 9 to 19 are not, so the cut lies anywhere between.
    place = np.arange(20)
    mean = np.where(place < 10, 0.2, 0.0)
    mean[6], mean[7] = 0.15, 0.1
    sides = place[:, None] < np.arange(1, 20)
    rows = np.array([0, 2, 4, *range(9, 20)])
    observed = mean[rows] - 0.3 * (rows < 5)
    inputs = Inputs(place[:, None] / 10.0, np.full((20, 1), 0.5))
    kernel = Kernel(amplitude=0.003, length=1.0, noise=0.001)
    chosen, _ = find_steps(inputs[rows], observed - mean[rows], sides[rows], kernel)
    assert chosen == [4]  # below 5
    found = rivals(MeasuredCandidates(mean, inputs, sides, rows, rows, observed, inputs[rows]), kernel, (4,), 0)
    assert [steps for steps, _ in found] == [(7,), (6,)]  # below 8 or 9 row 7 is the best, below 7 row 6
    assert [share for _, share in found] == pytest.approx([2 / 5, 1 / 5], rel=1e-3)


def test_a_rival_counts_that_only_an_inexact_prediction_hides():
    place = np.arange(20)
    mean = np.where(place < 10, 0.2, 0.0)
    mean[7] = 0.25  # a step there leaves it 0.05 behind the best measured row; the prediction is 0.1 uncertain
    sides = place[:, None] < np.arange(1, 20)
    rows = np.array([0, 2, 4, *range(9, 20)])
    observed = mean[rows] - 0.3 * (rows < 5)
    kernel = Kernel(amplitude=0.003, length=1.0, noise=0.001)
    for own, expected in ((0.0, []), (0.1, [(7,)])):
        inputs = Inputs(place[:, None] / 10.0, np.full((20, 1), 0.5), np.where(place == 7, own, 0.0))
        space = MeasuredCandidates(mean, inputs, sides, np.array([*rows, 5, 6]), rows, observed, inputs[rows])
        assert [steps for steps, _ in rivals(space, kernel, (4,), 0)] == expected


def test_the_first_step_is_exchanged_once_a_second_stands_beside_it():
    place = np.arange(40)
    one, other = place < 20, (place >= 10) & (place < 30)
    sides = np.stack((one, other, one & other), axis=1)
    inputs = Inputs(place[:, None] / 10.0, np.full((40, 1), 0.5))
    kernel = Kernel(amplitude=0.003, length=1.0, noise=0.002)
    observed = 0.3 * one + 0.3 * other
    assert np.argmax(StepEvidence.of(inputs, observed, sides, kernel).gain) == 2  # where both lie, if one step is all
    assert sorted(find_steps(inputs, observed, sides, kernel)[0]) == [0, 1]


def test_a_row_of_two_likely_places_is_hopeful_by_the_fast_one():
    both = Mixture(np.array([0.9, 0.1]), np.array([[1.0], [0.0]]), np.full((2, 1), 0.01))
    assert both.below(0.5)[0] == pytest.approx(0.1)
    assert both.hope[0] == pytest.approx(-0.0075, abs=0.001)
    assert both.mean[0] == pytest.approx(0.9)
    one = Mixture(np.ones(1), np.array([[1.0]]), np.array([[0.1]]))
    assert one.hope[0] == pytest.approx(0.8, abs=0.001)
    assert one.widened(2).deviation[0] == pytest.approx(0.2)


@pytest.mark.slow
def test_worlds_of_a_seed_are_the_same_and_hide_the_best(problem):
    of = subject("resnet18.C8", checks="tvm")
    first, again = (side_worlds(of, problem, 4, seed=5) for _ in range(2))
    assert [world.side for world in first] == [world.side for world in again]
    for world in first:
        assert np.isfinite(world.microseconds).sum() == 206
        assert (world.factor > 1) == (world.kind == "cliff")


@pytest.mark.slow
def test_a_cliff_that_favourites_lie_beyond_does_not_make_hilt_sure(problem):
    # With one clock factor for all, the first six were 99 % sure after 32 trials, 4 to 8 % off. With steps around
    # ranges of a number only, the last two were sure after 48.
    of = subject("resnet18.C8", checks="tvm")
    for world in side_worlds(of, problem, 6, seed=1) + side_worlds(of, problem, 2, seed=7000):
        run = one_run(of, world, 0)
        assert run["off"] <= 0.01, world.side
        assert run["trials"] <= 120, world.side


@pytest.mark.slow
@pytest.mark.parametrize("side", ["tile_co * oc_nthread >= 2", "tile_co * tile_w <= 2"])
def test_two_trials_far_from_the_best_tell_of_a_small_step(side):
    """Coordinates that were fitted to both sides explained neither, and the best was missed by 3 and 4 % at 99 %."""
    of = subject("resnet18.C5", checks="tvm")
    (world,) = (
        each for each in side_worlds(of, SharedTuningProblem.of_subject(of), 10, seed=90211) if each.side == side
    )
    assert one_run(of, world, 90211)["off"] <= 0.01


def test_the_error_far_from_the_best_is_what_most_rows_there_show():
    far, noise = np.linspace(0, 1, 41), np.random.default_rng(2).normal(0, 1, 41)
    step = 0.05 * (np.arange(41) % 8 == 0)
    assert far_error(far, 0.3 + 0.00001 * noise + step) == 0.002
    assert far_error(far, 0.3 + 0.003 * noise * far) == pytest.approx(0.006, rel=0.5)
    assert far_error(far, 0.3 + 0.1 * noise) == FAR_ERROR
    assert far_error(far[:5], np.zeros(5)) == FAR_ERROR
