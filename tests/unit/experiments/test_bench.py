"""What of an experiment is run: as much as was asked for, and nothing that it does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.experiments.bench import Bench, Settings
from hilt.experiments.errors import ExperimentError
from hilt.experiments.trials import LEVELS


def bench(folder: Path, settings: Settings) -> Bench:
    return Bench("trials", settings, folder, lambda line: None)


def test_all_levels_unless_one_is_named(tmp_path: Path) -> None:
    assert bench(tmp_path, Settings()).levels(LEVELS) == ["tvm", "compiler"]
    assert bench(tmp_path, Settings(checks="compiler")).levels(LEVELS) == ["compiler"]


def test_a_level_or_a_workload_that_it_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="trials has no level 'off'; it has tvm, compiler"):
        bench(tmp_path, Settings(checks="off")).levels(LEVELS)
    with pytest.raises(ExperimentError, match="no workload 'resnet18.C1'"):
        bench(tmp_path, Settings(workloads=("resnet18.C1",))).workloads(["resnet18.C2"], ["resnet18.C2"])
