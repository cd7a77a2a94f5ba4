"""Folders that killed builders of models left."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from hilt.simulator.leftovers import remove_leftovers
from hilt.virtual import bitstream
from hilt.virtual.board_model import board_model
from hilt.virtual.errors import VirtualBoardError


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    folder = tmp_path / "models"
    for name in (".building-abc/model", ".building-xyz/verilated", "0123/libvta.so.d"):
        (folder / name).mkdir(parents=True)
    for name in ("0123.lock", "4567.lock"):
        (folder / name).touch()
    return folder


def folders(models: Path) -> list[str]:
    return sorted(path.name for path in models.iterdir() if path.is_dir())


def test_they_go_once_nobody_builds(models: Path) -> None:
    with (models / "4567.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_leftovers(models)
        assert folders(models) == [".building-abc", ".building-xyz", "0123"]
    remove_leftovers(models)
    assert folders(models) == ["0123"]
    remove_leftovers(models / "gone")


def test_the_next_bitstream_of_a_virtual_board_removes_them(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object) -> Path:
        raise VirtualBoardError("built now")

    monkeypatch.setattr(bitstream, "build", build)
    with pytest.raises(VirtualBoardError, match="built now"):
        bitstream.make_bitstream(board_model("pynq"))
    assert folders(models) == ["0123"]
