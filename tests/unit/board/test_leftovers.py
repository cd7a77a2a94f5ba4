"""Files that pynq leaves beside the agent's home: hilt's are removed, all others stay."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hilt_board import leftovers

OURS, OTHER = "a" * 64, "b" * 64


def test_firmware_of_other_bitstreams_is_removed_and_that_of_others_stays(tmp_path: Path) -> None:
    for name in (f"{OURS}.bin", f"{OTHER}.bin", "base.bin", f"{OURS}.bit", "A" * 64 + ".bin"):
        (tmp_path / name).touch()
    leftovers.remove_firmware(keep=OURS, directory=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [f"{OURS}.bin", "base.bin", f"{OURS}.bit", "A" * 64 + ".bin"]
    )
    leftovers.remove_firmware(directory=tmp_path)
    assert f"{OURS}.bin" not in {path.name for path in tmp_path.iterdir()}


def test_sockets_of_one_worker_are_removed(tmp_path: Path) -> None:
    names = ["pynq.embedded_xrt0.41.socket", "pynq.embedded_xrt0.4.socket", "pynq.embedded_xrt0.socket"]
    for name in names:
        (tmp_path / name).touch()
    leftovers.remove_sockets(4, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {names[0], names[2]}


class Notes:
    """pynq.pl_server.global_state of pynq 3."""

    def __init__(self, bitfile: str) -> None:
        self.bitfile: str | None = bitfile

    def global_state_file_exists(self) -> bool:
        return self.bitfile is not None

    def load_global_state(self) -> SimpleNamespace:
        return SimpleNamespace(bitfile_name=self.bitfile)

    def clear_global_state(self) -> None:
        self.bitfile = None


@pytest.mark.parametrize(("where", "stays"), [("agent/bitstreams", False), ("notebooks", True)])
def test_pynqs_note_points_to_no_file_of_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, stays: bool
) -> None:
    notes = Notes(str(tmp_path / where / "x.bit"))
    monkeypatch.setitem(sys.modules, "pynq.pl_server.global_state", notes)  # type: ignore[arg-type]
    leftovers.forget_bitstream(tmp_path / "agent" / "bitstreams")
    assert (notes.bitfile is not None) is stays
    leftovers.forget_bitstream(tmp_path / "agent" / "bitstreams")


def test_a_note_that_cannot_be_read_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes("x")

    def unreadable() -> SimpleNamespace:
        raise ValueError("no JSON")

    monkeypatch.setattr(notes, "load_global_state", unreadable)
    monkeypatch.setitem(sys.modules, "pynq.pl_server.global_state", notes)  # type: ignore[arg-type]
    leftovers.forget_bitstream(tmp_path)
    assert notes.bitfile == "x"


@pytest.mark.parametrize(("version", "frees"), [("2.7.0", False), ("2.8.0.dev0", False), ("3.0.1", True), ("?", True)])
def test_pynq_before_3_frees_no_buffer(version: str, frees: bool) -> None:
    assert leftovers.frees_buffers(version) is frees
