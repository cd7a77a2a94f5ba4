"""Worlds drawn from a seed: repeatable, unlike each other, and mostly outside the tuner's families."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.measure.dataset import DatasetKey
from hilt.schedule import load_workload
from hilt.virtual.board_model import board_model
from hilt_experiments.contenders import Contender
from hilt_experiments.drawn_worlds import TOGETHER, drawn_worlds
from hilt_experiments.foreign_runs import one_run, shards_of, worlds_of
from hilt_experiments.foreign_worlds import WORLDS, foreign_datasets
from hilt_experiments.problem import SharedTuningProblem

LAYER = DatasetKey.on(
    load_workload("conv2d:n=1,ci=32,h=14,w=14,co=64,k=3x3,p=1x1"), board_model("pynq"), checks="tvm", orders=4
)


@pytest.mark.slow
def test_a_seed_gives_the_same_worlds_and_another_seed_others() -> None:
    first = foreign_datasets(LAYER, drawn_worlds(5))
    foreign_datasets.cache_clear()
    drawn_worlds.cache_clear()
    again = foreign_datasets(LAYER, drawn_worlds(5, TOGETHER // 2))
    assert len(first) == TOGETHER and list(again) == list(first)[: TOGETHER // 2]
    assert all(np.array_equal(again[name].cycles, first[name].cycles) for name in again)
    others = foreign_datasets(LAYER, drawn_worlds(6))
    assert not any(np.array_equal(mine.cycles, theirs.cycles) for mine in first.values() for theirs in others.values())


def test_most_worlds_have_a_timing_outside_the_tuners_families() -> None:
    families = [world.family for seed in range(10) for world in drawn_worlds(seed)]
    assert 0.15 < families.count("sums") / len(families) < 0.35
    assert len(set(families)) == 10


def test_no_two_worlds_of_a_seed_order_the_space_alike() -> None:
    datasets = list(foreign_datasets(LAYER, drawn_worlds(7)).values())
    valid = LAYER.summarize_validity.verdicts == 0
    logs = np.stack([np.log(each.cycles[valid].astype(float)) for each in datasets])
    spread = [(logs[one] - logs[other]).std() for one in range(len(logs)) for other in range(one)]
    assert min(spread) > 0.01


def test_only_a_seed_changes_the_shards() -> None:

    named, drawn, others = (
        {shard.path for shard in shards_of([LAYER], [Contender.of("random")], 2, seed)} for seed in (None, 0, 1)
    )
    assert not named & drawn and not drawn & others
    assert worlds_of(None, 3) == tuple(WORLDS.values())


@pytest.mark.slow
def test_the_default_tuner_is_right_where_it_is_sure_of_drawn_worlds() -> None:

    problem = SharedTuningProblem.of_subject(LAYER)
    for world, dataset in foreign_datasets(LAYER, drawn_worlds(11, 6)).items():
        run = one_run(Contender.of("hilt"), problem, dataset, 0)
        assert run["confidence"] < 0.99 or run["off"] <= 0.01, world
