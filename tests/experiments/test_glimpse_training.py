"""The whole of training in small: it needs PyTorch (extra glimpse-training)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from hilt.schedule import load_workload, space_for, verdicts
from hilt.tune.glimpse.network import NumpyPerceptron
from hilt.tune.glimpse.weights import load_weights, save_weights
from hilt_experiments.glimpse_training.dataset import LayerTask
from hilt_experiments.glimpse_training.fit_acquisition import AcquisitionSchedule
from hilt_experiments.glimpse_training.modules import Perceptron
from hilt_experiments.glimpse_training.population import draw_generations
from hilt_experiments.glimpse_training.searches import pick
from hilt_experiments.glimpse_training.train import TrainingPlan, fit

PLAN = TrainingPlan(
    targets=200,
    prior_steps=4,
    threshold_steps=4,
    acquisition=AcquisitionSchedule(oracle_searches=2, oracle_steps=5, rounds=1, groups=1),
)


@pytest.fixture(scope="module")
def tasks() -> list[LayerTask]:
    """Return tasks with made-up cycles: the subject is the learning, and the twin has its own tests."""
    found = []
    for number, generation in enumerate(draw_generations(3, 2, np.random.default_rng(3))):
        workload = load_workload(f"conv2d:n=1,ci=128,h=14,w=14,co={64 + 64 * number},k=3x3,s=1x1,p=1x1")
        space = space_for(workload, generation.accelerator, orders=4)
        every = np.arange(len(space))
        compiles = np.flatnonzero(verdicts(workload, generation.accelerator, space.columns(every)) == 0)
        indices = np.random.default_rng(number).choice(compiles, 60, replace=False)
        cycles = 1000.0 + space.values(indices)[:, :3].sum(axis=1)[:, None] * np.array([3.0, 9.0])
        found.append(LayerTask(workload, generation, "autotvm", 4, indices, cycles))
    return found


def test_the_same_seed_gives_the_same_weights_and_they_load(tasks: list[LayerTask], tmp_path: Path) -> None:
    one, two = (fit(tasks, PLAN, lambda line: None) for _ in range(2))
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[name], two[name]) for name in one)
    save_weights(tmp_path / "small.npz", one, {"statement": "a test"})
    assert load_weights(tmp_path / "small.npz").blueprint.size > 3


def test_numpy_computes_the_same_as_pytorch() -> None:
    generator = np.random.default_rng(0)
    module = Perceptron(generator.normal(size=(50, 7)).astype(np.float32), (16, 5))
    inputs = (10 * generator.normal(size=(20, 7))).astype(np.float32)
    network = NumpyPerceptron.from_arrays(module.arrays("it"), "it")
    assert network(inputs) == pytest.approx(module(torch.from_numpy(inputs)).detach().numpy(), abs=1e-5)


def test_picks_are_drawn_without_replacement_by_their_worth() -> None:
    generator = np.random.default_rng(1)
    logits = np.log(np.array([0.7, 0.2, 0.1], dtype=np.float32))
    firsts = np.array([pick(logits, 2, generator) for _ in range(4000)])
    assert np.all(firsts[:, 0] != firsts[:, 1])
    assert np.bincount(firsts[:, 0]) / 4000 == pytest.approx([0.7, 0.2, 0.1], abs=0.03)
