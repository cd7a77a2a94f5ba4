"""BlobStore on a board's disk.

A damaged blob is sent again, and a blob that a trial needs now is not the first to leave.
"""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from types import SimpleNamespace

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


def chunk(number: int, start: int, end: int, total: int = 100_000) -> UploadBlob:
    return UploadBlob(NAMES[number], total, start, TENSORS[number][start:end])


def names_in(folder: Path, part: str) -> list[str]:
    return sorted(path.name for path in (folder / part).iterdir())


def test_a_blob_comes_in_chunks_and_has_its_name_once_it_is_whole(folder: Path) -> None:
    blobs = opened(folder)
    first = blobs.put(chunk(0, 0, 60_000), set())
    assert (first.sha256, first.received, first.complete) == (NAMES[0], 60_000, False)
    assert blobs.missing(NAMES[:1]) == NAMES[:1] and names_in(folder, "blobs") == []
    last = blobs.put(chunk(0, 60_000, 100_000), set())
    assert (last.received, last.complete) == (100_000, True)
    assert (folder / "blobs" / NAMES[0]).read_bytes() == TENSORS[0] and names_in(folder, "incoming") == []
    again = blobs.put(chunk(0, 0, 10), set())
    assert (again.received, again.complete) == (100_000, True), "bytes that are here are not sent again"
    assert names_in(folder, "incoming") == []


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (chunk(0, 50_000, 60_000), "chunk at 50000, but 60000 came so far"),
        (chunk(0, 70_000, 80_000), "chunk at 70000, but 60000 came so far"),
        (chunk(1, 60_000, 70_000), f"no upload of {NAMES[1][:12]} is under way: begin at offset 0"),
        (chunk(0, 60_000, 70_000, total=90_000), f"no upload of {NAMES[0][:12]} is under way"),
    ],
)
def test_a_chunk_out_of_turn_ends_the_upload(folder: Path, message: UploadBlob, words: str) -> None:
    blobs = opened(folder)
    blobs.put(chunk(0, 0, 60_000), set())
    with pytest.raises(BlobError, match=words) as caught:
        blobs.put(message, set())
    assert caught.value.code == "blob_order" and names_in(folder, "incoming") == []
    with pytest.raises(BlobError, match="begin at offset 0"):
        blobs.put(chunk(0, 60_000, 100_000), set())


def test_an_upload_that_begins_anew_replaces_the_one_before(folder: Path) -> None:
    blobs = opened(folder)
    blobs.put(chunk(0, 0, 60_000), set())
    blobs.put(chunk(1, 0, 60_000), set())
    assert names_in(folder, "incoming") == [NAMES[1]]
    assert blobs.put(chunk(1, 60_000, 100_000), set()).complete


def test_bytes_that_are_not_those_of_the_name_are_refused(folder: Path) -> None:
    blobs = opened(folder)
    wrong = bytes([9]) + TENSORS[0][1:]
    with pytest.raises(BlobError, match=f"the bytes that came are not {NAMES[0][:12]}: send it again") as caught:
        blobs.put(UploadBlob(NAMES[0], len(wrong), 0, wrong), set())
    assert caught.value.code == "blob_corrupt" and names_in(folder, "blobs") == names_in(folder, "incoming") == []


def test_a_daemon_that_starts_removes_what_the_last_one_left_half_sent(folder: Path) -> None:
    opened(folder).put(chunk(0, 0, 60_000), set())
    opened(folder)
    assert names_in(folder, "incoming") == []


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ENOSPC, "disk_full", "the board's disk is full: remove files from it"),
        (errno.EDQUOT, "disk_full", "the board's disk is full"),
        (errno.EIO, "internal", "blob cannot be written: "),
    ],
)
def test_a_card_that_does_not_take_a_chunk_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str, words: str
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BlobError, match=words) as caught:
        put(opened(folder), 0)
    assert caught.value.code == code and names_in(folder, "blobs") == names_in(folder, "incoming") == []


@pytest.mark.parametrize(("free", "left"), [(116_000_000, 1), (16_877_216, 1), (16_877_215, 0)])
def test_room_for_the_journal_stays_free(folder: Path, monkeypatch: pytest.MonkeyPatch, free: int, left: int) -> None:
    """16 MiB stay free beside the new blob; the oldest leave for them."""
    blobs = opened(folder)
    put(blobs, 0)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=free, f_frsize=1))
    if left:
        put(blobs, 1)
    else:
        with pytest.raises(BlobError, match=f"100000 bytes do not fit: {free} are free on the board's disk") as caught:
            put(blobs, 1)
        assert caught.value.code == "disk_full"
    assert len(names_in(folder, "blobs")) == 2 * left, "one after the other has left, in vain"


def test_the_least_recently_used_leave_until_it_fits_and_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = opened(folder)
    for number in range(3):
        put(blobs, number)
    blobs.missing(NAMES[:1])  # used now
    monkeypatch.setattr(blobs_module, "TOTAL_BYTES", 300_000)
    put(blobs, 3)
    assert names_in(folder, "blobs") == sorted([NAMES[0], NAMES[2], NAMES[3]])
