"""Peers search through hilt's protocol: distinct configurations, failures in their own form, the same for a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from hilt.measure.dataset import Dataset, DatasetKey
from hilt_experiments import peers
from hilt_experiments.contenders import Contender, known
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Protocol, replay
from tests.unit.measure.dataset.small import built, small_subject

TRIALS = 14
KERNEL_TUNER = [
    f"kernel-tuner-{name}"
    for name in ("genetic", "annealing", "mls", "bayes", "ils", "pso", "diff-evo", "vndx", "greywolf")
]
NEVERGRAD = ["nevergrad-ngopt", "nevergrad-discrete", "nevergrad-de"]
NAMES = ["optuna-tpe", "optuna-gp", "optuna-cmaes", "smac", *NEVERGRAD, *KERNEL_TUNER]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[DatasetKey, Dataset]:
    """A third of it is invalid."""
    subject = small_subject()
    return subject, built(Path(tmp_path_factory.mktemp("datasets")), [subject])[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_peer_searches_and_repeats_itself_for_a_seed(name: str, dataset: tuple[DatasetKey, Dataset]) -> None:
    skip_without(name)
    found = twice(Contender.of(name), *dataset)
    assert dataset[1].valid[found].any() and not dataset[1].valid[found].all()


@pytest.mark.parametrize("name", ["random", "ga", "autotvm", *NAMES])
def test_a_restricted_tuner_tries_only_what_compiles(name: str, dataset: tuple[DatasetKey, Dataset]) -> None:
    skip_without(name)
    found = twice(Contender.of(name, restricted=True), *dataset)
    assert SharedTuningProblem.of_subject(dataset[0]).compiles[found].all()


def skip_without(name: str) -> None:
    if peers.extra_needed(name) and name not in peers.peer_names():
        pytest.skip(f"{name} is not installed: pip install 'hilt[peers]'")


def twice(contender: Contender, subject: DatasetKey, recorded: Dataset) -> npt.NDArray[np.int64]:
    """Return the distinct trials of a run, which a second one repeats."""
    runs = []
    for seed in (1, 1):
        tuner = contender.make(SharedTuningProblem.of_subject(subject), seed)
        runs.append(replay(tuner, recorded, Protocol(trials=TRIALS, batch=1, pipelined=False)).indices)
    assert len(set(runs[0].tolist())) == TRIALS
    assert np.array_equal(runs[0], runs[1])
    return runs[0]


def test_a_restricted_contender_has_other_runs_and_its_own_name() -> None:
    plain = Contender.of("ga", population=20)
    restricted = plain.restricted()
    assert restricted.label == "ga, restricted"
    assert restricted.all_options() == plain.all_options() | {"restricted": True}
    assert restricted.code() != plain.code()


def test_a_peer_is_there_with_all_packages_that_it_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers.util, "find_spec", lambda name: None if name == "torch" else name)
    assert "optuna-tpe" in peers.peer_names() and "optuna-gp" not in peers.peer_names()


def test_a_peer_that_is_not_installed_names_its_package() -> None:
    assert peers.extra_needed("smac") == "peers" and peers.extra_needed("random") == ""


def test_a_tuner_without_its_library_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.tune.autotvm.tree_gru.find_spec", lambda name: None)
    there, lines = known([Contender.of("treegru", "TreeGRU"), Contender.of("random")])
    assert [each.label for each in there] == ["random"]
    assert lines == ["TreeGRU is left out: tuner treegru needs PyTorch: pip install 'hilt[treegru]'"]
