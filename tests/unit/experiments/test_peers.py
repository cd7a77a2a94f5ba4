"""Peers search through hilt's protocol: distinct configurations, failures in their own form, the same for a seed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from hilt.measure.dataset import Dataset, DatasetKey
from hilt_experiments import peers
from hilt_experiments.contenders import Contender
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Protocol, replay
from tests.unit.measure.dataset.small import built, small_subject

TRIALS = 14
PACKAGES = {"optuna": "optuna", "smac": "smac", "kernel": "kernel_tuner"}
KERNEL_TUNER = [f"kernel-tuner-{name}" for name in ("genetic", "annealing", "mls", "bayes")]
NAMES = ["optuna-tpe", "optuna-gp", "optuna-cmaes", "smac", *KERNEL_TUNER]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[DatasetKey, Dataset]:
    """A third of it is invalid."""
    subject = small_subject()
    return subject, built(Path(tmp_path_factory.mktemp("datasets")), [subject])[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_peer_searches_and_repeats_itself_for_a_seed(name: str, dataset: tuple[DatasetKey, Dataset]) -> None:
    package = PACKAGES[name.split("-")[0]]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'hilt[peers]'")
    subject, recorded = dataset
    assert name in peers.peer_names()
    runs = []
    for seed in (1, 1):
        tuner = Contender.of(name).make(SharedTuningProblem.of_subject(subject), seed)
        runs.append(replay(tuner, recorded, Protocol(trials=TRIALS, batch=1, pipelined=False)).indices)
    assert len(set(runs[0].tolist())) == TRIALS
    assert np.array_equal(runs[0], runs[1])
    assert recorded.valid[runs[0]].any() and not recorded.valid[runs[0]].all()


def test_a_peer_that_is_not_installed_names_its_package() -> None:
    assert peers.extra_needed("smac") == "peers" and peers.extra_needed("random") == ""
