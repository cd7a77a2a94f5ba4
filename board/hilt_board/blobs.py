"""Tensors and bitstreams on the board's disk, by SHA-256.

A file that has its name had its content when it was stored, and is read again before a daemon first counts on it:
memory cards fail.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import logging
import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Set

from .protocol import BlobStored, UploadBlob

_LOG = logging.getLogger("hilt.blobs")
TOTAL_BYTES = 2 << 30
"""BlobStore kept; beyond it the least recently used leave."""
_RESERVE_BYTES = 16 << 20
"""Left free on the disk: the journal must always find room."""


class BlobError(Exception):
    """A blob that was not stored. `code` is a protocol failure code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class BlobStore:
    """The store, and the one upload that may be under way."""

    def __init__(self, directory: Path, incoming: Path) -> None:
        self._directory = directory
        self._incoming = incoming
        self._upload: Optional[_Upload] = None
        self._sound: Set[str] = set()
        """The blobs whose SHA-256 is known to equal their names."""
        self._uses: Dict[str, int] = {}
        """The last use of each blob by this daemon, as a count: the clock of a board may be behind that of its own
        files."""
        self._counter = itertools.count(1)
        for left_over in incoming.iterdir():
            left_over.unlink()

    def missing(self, names: Iterable[str]) -> List[str]:
        """Return the names that are absent or damaged. Damaged files are removed; the others count as used now."""
        return [name for name in names if not self._use(name)]

    def doubt(self, names: Iterable[str]) -> None:
        """Forget that these are sound: they are read again before they count as being here."""
        self._sound.difference_update(names)

    def put(self, message: UploadBlob, keep: Set[str]) -> BlobStored:
        """Take the next chunk; never evict a blob in `keep`. Raises BlobError, and drops the chunks received so far."""
        if not self.missing([message.sha256]):
            return BlobStored(sha256=message.sha256, received=message.total, complete=True)
        try:
            return self._take(message, keep)
        except BlobError:
            self._drop_upload()
            raise
        except OSError as error:
            self._drop_upload()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise BlobError("disk_full", "the board's disk is full: remove files from it") from None
            raise BlobError("internal", "blob cannot be written: {}".format(error)) from None

    def _use(self, name: str) -> bool:
        path = self._directory / name
        try:
            os.utime(str(path))
        except FileNotFoundError:
            return False
        if name not in self._sound and not _is_sound(path):
            _LOG.error("blob %s is damaged on disk; it is removed", name)
            path.unlink()
            return False
        self._count_use(name)
        return True

    def _count_use(self, name: str) -> None:
        self._sound.add(name)
        self._uses[name] = next(self._counter)

    def _take(self, message: UploadBlob, keep: Set[str]) -> BlobStored:
        if message.offset == 0:
            self._drop_upload()
            self._make_room(message.total, keep)
            self._upload = _Upload(self._incoming / message.sha256, message.sha256, message.total)
        upload = self._upload
        if upload is None or upload.sha256 != message.sha256 or upload.total != message.total:
            raise BlobError("blob_order", "no upload of {} is under way: begin at offset 0".format(message.sha256[:12]))
        if upload.received != message.offset:
            raise BlobError("blob_order", "chunk at {}, but {} came so far".format(message.offset, upload.received))
        upload.write(message.chunk)
        if upload.received < upload.total:
            return BlobStored(sha256=upload.sha256, received=upload.received, complete=False)
        upload.finish(self._directory / upload.sha256)
        self._upload = None
        self._count_use(upload.sha256)
        return BlobStored(sha256=upload.sha256, received=upload.received, complete=True)

    def _drop_upload(self) -> None:
        if self._upload is not None:
            self._upload.drop()
            self._upload = None

    def _make_room(self, count: int, keep: Set[str]) -> None:
        """Evict blobs until `count` more bytes fit both the limit and the disk. Raises BlobError if they cannot."""
        kept = sorted(self._directory.iterdir(), key=lambda path: (self._uses.get(path.name, 0), path.stat().st_mtime))
        total = sum(path.stat().st_size for path in kept)
        evictable = [path for path in kept if path.name not in keep]
        while total + count > TOTAL_BYTES or self._free() < count + _RESERVE_BYTES:
            if not evictable:
                raise BlobError(
                    "disk_full",
                    "{} bytes do not fit: {} are free on the board's disk".format(count, self._free()),
                )
            oldest = evictable.pop(0)
            total -= oldest.stat().st_size
            oldest.unlink()

    def _free(self) -> int:
        disk = os.statvfs(str(self._directory))
        return disk.f_bavail * disk.f_frsize


def _is_sound(path: Path) -> bool:
    """Return whether the SHA-256 of a file equals its name."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for shard in iter(lambda: file.read(1 << 20), b""):
                digest.update(shard)
    except OSError:
        return False
    return digest.hexdigest() == path.name


class _Upload:
    """A file that grows in the incoming folder."""

    def __init__(self, path: Path, sha256: str, total: int) -> None:
        self.sha256 = sha256
        self.total = total
        self.received = 0
        self._path = path
        self._digest = hashlib.sha256()
        self._file: Any = path.open("wb")

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._digest.update(chunk)
        self.received += len(chunk)

    def finish(self, target: Path) -> None:
        """Move the file to its own name if its SHA-256 matches, after fsync. Raises BlobError, OSError."""
        if self._digest.hexdigest() != self.sha256:
            raise BlobError("blob_corrupt", "the bytes that came are not {}: send it again".format(self.sha256[:12]))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(target)

    def drop(self) -> None:
        with contextlib.suppress(OSError):  # data that could not be written is dropped with the rest
            self._file.close()
        if self._path.exists():
            self._path.unlink()
