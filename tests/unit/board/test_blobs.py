"""BlobStore on a board's disk.

A damaged blob is sent again, and a blob that a trial needs now is not the first to leave.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from hilt_board import blobs as blobs_module
from hilt_board.blobs import BlobError, BlobStore
from hilt_board.protocol import UploadBlob

TENSORS = [bytes([number]) * 100_000 for number in range(5)]
NAMES = [hashlib.sha256(each).hexdigest() for each in TENSORS]
LATER = 2_147_000_000.0
"""Later than now, and within the 32 bits that a board has for seconds (to January 2038)."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "incoming").mkdir()
    return tmp_path


def opened(folder: Path) -> BlobStore:
    """Return the store as a daemon that has just started opens it."""
    return BlobStore(folder / "blobs", folder / "incoming")


def put(blobs: BlobStore, number: int) -> None:
    assert blobs.put(UploadBlob(NAMES[number], len(TENSORS[number]), 0, TENSORS[number]), set()).complete


@pytest.mark.parametrize("damage", ["bit", "end", "all"])
def test_a_damaged_blob_is_missing_to_the_next_daemon_and_can_be_sent_again(folder: Path, damage: str) -> None:
    """A tensor that lost a bit would make every right answer a wrong one."""
    blobs = opened(folder)
    put(blobs, 0)
    put(blobs, 1)
    path = folder / "blobs" / NAMES[0]
    whole = path.read_bytes()
    path.write_bytes({"bit": bytes([whole[0] ^ 1]) + whole[1:], "end": whole[:-1], "all": b""}[damage])
    again = opened(folder)
    assert again.missing(NAMES[:2]) == NAMES[:1]
    assert not path.exists()
    put(again, 0)
    assert again.missing(NAMES[:2]) == [] and path.read_bytes() == whole


def test_a_result_that_a_worker_could_not_use_is_read_again(folder: Path) -> None:
    blobs = opened(folder)
    put(blobs, 0)
    (folder / "blobs" / NAMES[0]).write_bytes(b"short")
    assert blobs.missing(NAMES[:1]) == []
    blobs.doubt(NAMES[:1])
    assert blobs.missing(NAMES[:1]) == NAMES[:1]


def test_the_last_used_stay_after_the_clock_jumps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board without a battery starts in the past: files of the boot before are of the future."""
    before = opened(folder)
    for number in range(3):
        put(before, number)
        os.utime(folder / "blobs" / NAMES[number], (LATER + number, LATER + number))
    monkeypatch.setattr(blobs_module, "TOTAL_BYTES", 300_000)
    blobs = opened(folder)
    assert blobs.missing([NAMES[2]]) == []
    put(blobs, 3)
    put(blobs, 4)
    assert sorted(path.name for path in (folder / "blobs").iterdir()) == sorted(NAMES[2:])


def test_a_blob_in_use_is_not_evicted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = opened(folder)
    put(blobs, 0)
    put(blobs, 1)
    monkeypatch.setattr(blobs_module, "TOTAL_BYTES", 200_000)
    upload = UploadBlob(NAMES[2], len(TENSORS[2]), 0, TENSORS[2])
    assert blobs.put(upload, {NAMES[0]}).complete
    assert sorted(path.name for path in (folder / "blobs").iterdir()) == sorted([NAMES[0], NAMES[2]])
    with pytest.raises(BlobError, match="do not fit"):
        blobs.put(UploadBlob(NAMES[3], len(TENSORS[3]), 0, TENSORS[3]), {NAMES[0], NAMES[2]})
