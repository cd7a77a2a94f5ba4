"""The journal: results on disk before they are on the wire.

A text file, append only. Each line is the CRC-32 (8 hex digits) of the rest of the line, a blank, and a JSON
object: a result (`Measured`), or {"acknowledged": n, "next": m}, with "run" if only one run's are acknowledged.
Every line is on the disk (fsync) before `append` returns. A line that was torn by a crash or a full disk is cut off
when the journal is opened. Acknowledged results leave the file when it is compacted.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional

from .protocol import Measured, MessageError

MAX_UNACKNOWLEDGED = 20000
COMPACT_BYTES = 1 << 20
"""The file is rewritten when it has grown by this much and something in it was acknowledged."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class JournalError(Exception):
    """A result could not be kept. The base of the errors below."""


class JournalFullError(JournalError):
    """Too many results that nobody acknowledged."""


class DiskFullError(JournalError):
    """The board's disk is full; nothing of the result was kept."""


class Journal:
    """The results that no client has acknowledged yet, by sequence number and by key. One process at a time."""

    def __init__(self, path: Path) -> None:
        """Open or make the journal. Raises OSError."""
        self._path = path
        self._results: Dict[int, Measured] = {}
        self._by_key: Dict[str, int] = {}
        self.next = 1
        """Sequence number of the next result."""
        self.damaged = 0
        """Lines that were not readable when it was opened, the torn last one among them."""
        self._file = os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._bytes = self._load()
        self._compacted_bytes = 0
        self._torn = False
        if self.damaged:
            self._compact()

    def close(self) -> None:
        os.close(self._file)

    def __len__(self) -> int:
        return len(self._results)

    def find(self, key: str) -> Optional[Measured]:
        """Return the result of a trial that was run already, unless it is acknowledged."""
        sequence = self._by_key.get(key)
        return None if sequence is None else self._results[sequence]

    def since(self, sequence: int, most: int) -> List[Measured]:
        """Return the oldest `most` results above `sequence`."""
        return [self._results[number] for number in sorted(self._results) if number > sequence][:most]

    def check_room(self, key: str = "") -> None:
        """Make room for the result of `key`; call it before a trial.

        If too many results are not acknowledged, those of the oldest other run leave. Raises JournalFullError if
        there is no room, or DiskFullError.
        """
        if len(self._results) >= MAX_UNACKNOWLEDGED:
            self._forget_abandoned(run_of(key))
        if len(self._results) >= MAX_UNACKNOWLEDGED:
            raise JournalFullError(
                "journal holds {} results that were not acknowledged: fetch and acknowledge them".format(len(self))
            )
        disk = os.fstatvfs(self._file)
        if disk.f_bavail * disk.f_frsize < 1 << 20:
            raise DiskFullError("less than 1 MiB is free on the board's disk: remove files from it")

    def append(self, result: Measured) -> Measured:
        """Keep a result and return it with its sequence number, once it is on the disk.

        Raises JournalFullError, DiskFullError, ValueError for a key that is known, OSError.
        """
        if result.key in self._by_key:
            raise ValueError("journal has a result of {} already".format(result.key))
        self.check_room(result.key)
        numbered = replace(result, sequence=self.next)
        self._write(numbered.to_fields())
        self._keep(numbered)
        return numbered

    def acknowledge(self, through: int, run: str = "") -> int:
        """Forget results up to and including `through`, of one run if it is named; return the number reached.

        Raises DiskFullError, OSError.
        """
        through = min(through, self.next - 1)
        if not self._chosen(through, run):
            return through
        self._write({"acknowledged": through, "next": self.next, **({"run": run} if run else {})})
        self._forget(through, run)
        if self._bytes - self._compacted_bytes > COMPACT_BYTES:
            self._compact()
        return through

    def _forget_abandoned(self, run: str) -> None:
        others = [self._results[number] for number in sorted(self._results) if run_of(self._results[number].key) != run]
        if others:
            self.acknowledge(self.next - 1, run_of(others[0].key))

    def _chosen(self, through: int, run: str) -> List[int]:
        return [n for n, result in self._results.items() if n <= through and (not run or run_of(result.key) == run)]

    def _keep(self, result: Measured) -> None:
        self._results[result.sequence] = result
        self._by_key[result.key] = result.sequence
        self.next = max(self.next, result.sequence + 1)

    def _forget(self, through: int, run: str) -> None:
        self.next = max(self.next, through + 1)
        for sequence in self._chosen(through, run):
            del self._by_key[self._results.pop(sequence).key]

    def _load(self) -> int:
        """Read all lines; return the bytes of the file up to the end of its last whole line, and cut it there."""
        end = 0
        with open(self._file, "rb", closefd=False) as file:
            for line in file:
                if not line.endswith(b"\n"):
                    self.damaged += 1
                    break
                end += len(line)
                self._load_line(line)
        os.ftruncate(self._file, end)
        return end

    def _load_line(self, line: bytes) -> None:
        entry = _decode(line)
        if entry is None:
            self.damaged += 1
        elif "acknowledged" in entry:
            self._forget(int(entry["acknowledged"]), str(entry.get("run", "")))
            self.next = max(self.next, int(entry["next"]))
        else:
            try:
                result = Measured.from_fields(_of_version_2(entry), "journal")
            except MessageError:
                self.damaged += 1
                return
            if result.key not in self._by_key:
                self._keep(result)

    def _write(self, entry: Dict[str, Any]) -> None:
        line = _encode(entry)
        if self._torn:
            line = b"\n" + line
        try:
            written = os.write(self._file, line)
            if written != len(line):
                raise OSError(errno.ENOSPC, "short write")
            os.fsync(self._file)
        except OSError as error:
            self._cut()
            if error.errno in _FULL:
                raise DiskFullError("the board's disk is full: remove files from it") from None
            raise
        self._torn = False
        self._bytes += len(line)

    def _cut(self) -> None:
        """Remove the bytes of a failed line. If even that fails, the next line starts on a line of its own."""
        try:
            os.ftruncate(self._file, self._bytes)
        except OSError:
            self._torn = True
            self._bytes = os.fstat(self._file).st_size

    def _compact(self) -> None:
        """Rewrite the file with the results that are not acknowledged. On any failure the old file stays."""
        lines = [_encode({"acknowledged": 0, "next": self.next})]
        lines += [_encode(self._results[sequence].to_fields()) for sequence in sorted(self._results)]
        fresh = self._path.with_name(self._path.name + ".new")
        content = b"".join(lines)
        try:
            with fresh.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.chmod(0o600)
            fresh.replace(self._path)
        except OSError:
            fresh.unlink(missing_ok=True)
            return
        _sync_directory(self._path.parent)
        reopened = os.open(str(self._path), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        os.close(self._file)
        self._file = reopened
        self._bytes = self._compacted_bytes = len(content)


def _of_version_2(entry: Dict[str, Any]) -> Dict[str, Any]:
    """Return a result's fields under the names of protocol version 2. A journal may be older than the agent."""
    return {"verification" if name == "comparison" else name: value for name, value in entry.items()}


def run_of(key: str) -> str:
    """Return the run of a key "run/ordinal/attempt"."""
    return key.split("/", 1)[0]


def _encode(entry: Dict[str, Any]) -> bytes:
    text = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _decode(line: bytes) -> Optional[Dict[str, Any]]:
    text = line[9:-1]
    if line[:9] != b"%08x " % zlib.crc32(text):
        return None
    entry = json.loads(text.decode("ascii"))
    return entry if isinstance(entry, dict) else None


def _sync_directory(path: Path) -> None:
    directory = os.open(str(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
