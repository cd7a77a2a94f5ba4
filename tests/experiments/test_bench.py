"""The selected part of an experiment: as much as the user asked for, and only parts that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt_experiments.bench import Bench, BenchSettings
from hilt_experiments.errors import ExperimentError
from hilt_experiments.headline import LEVELS


def bench(folder: Path, settings: BenchSettings) -> Bench:
    return Bench("trials", settings, folder, lambda line: None)


def test_all_levels_unless_one_is_named(tmp_path: Path) -> None:
    assert bench(tmp_path, BenchSettings()).levels(LEVELS) == ["tvm", "compiler"]
    assert bench(tmp_path, BenchSettings(checks="compiler")).levels(LEVELS) == ["compiler"]


def test_a_level_or_a_workload_that_it_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="trials has no level 'off'; it has tvm, compiler"):
        bench(tmp_path, BenchSettings(checks="off")).levels(LEVELS)
    with pytest.raises(ExperimentError, match="no workload 'resnet18.C1'"):
        bench(tmp_path, BenchSettings(workloads=("resnet18.C1",))).workloads(["resnet18.C2"], ["resnet18.C2"])
