"""A dataset that hilt 0.1 recorded still opens, from the folder and with the field names of that version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hilt.measure.dataset.dataset_key import DatasetKey
from hilt.measure.dataset.dataset_store import DatasetStore
from hilt.schedule import load_workload
from hilt.virtual.board_model import board_model

RECORDED = Path(__file__).parent / "version_1" / "small.npz"
NAME = "conv2d:n=1,ci=16,h=6,w=6,co=16,k=3x3,s=1x1,p=1x1@pynq.compiler.autotvm1"
KEY = "67b4e5a55037"


def test_a_dataset_of_version_1_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    older = tmp_path / "landscapes"
    older.mkdir()
    shutil.copy(RECORDED, older / f"{NAME}.{KEY}.npz")
    dataset = DatasetStore().find(KEY)
    assert dataset.name == NAME
    assert (len(dataset.cycles), int(dataset.valid.sum())) == (64, 28)
    assert dataset.optimum == pytest.approx(9.1, abs=0.05)
    assert not older.exists()


def test_its_workload_keeps_the_key(tmp_path: Path) -> None:
    """The names of version 1 stay in the identity, so that no dataset has to be built anew."""
    shutil.copy(RECORDED, tmp_path / f"{NAME}.{KEY}.npz")
    recorded = DatasetStore(tmp_path).find(NAME).identity["workload"]
    workload = load_workload(NAME.partition("@")[0])
    assert DatasetKey.on(workload, board_model("pynq"), orders=1).identity["workload"] == recorded
