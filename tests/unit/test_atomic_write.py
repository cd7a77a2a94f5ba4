"""Files that are written whole or not at all, and the error of a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hilt.atomic_write import atomic_write
from hilt.cli.exit_codes import Exit, report_error


def test_a_full_disk_names_the_file_and_leaves_it_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "report.html"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as error, atomic_write(path) as file:
        file.write("after")
    assert report_error(error.value) is Exit.STORE
    assert capsys.readouterr().err == f"hilt: {path}: No space left on device\n"
    assert path.read_text() == "before" and [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_full_device_names_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="No space left") as error, atomic_write(Path("/dev/full")) as file:
        file.write("a line")
    assert report_error(error.value) is Exit.STORE
    assert capsys.readouterr().err == "hilt: /dev/full: No space left on device\n"
    assert Path("/dev/full").is_char_device()
