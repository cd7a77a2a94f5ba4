"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path


class UnwritableFileError(Exception):
    """A path where no file can be made."""


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give the name of a new file that replaces `path`, or the target of its link, at the end.

    On an error `path` is as it was. A pipe or a device is given itself, for it is not hilt's to replace. Raises
    UnwritableFileError.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = Path(os.path.realpath(path))
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", text=True)
    except OSError as error:
        raise UnwritableFileError(f"cannot write {path}: {error.strerror}") from error
    os.close(descriptor)
    try:
        yield Path(name)
        mask = os.umask(0)  # mkstemp makes 0600; a report is a file as any other
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIOWrapper]:
    """Open a text file that replaces `path`, or the target of its link, when all is written and on disk.

    On an error `path` is as it was. A pipe or a device is written directly, for it is not hilt's to replace. Raises
    UnwritableFileError, and OSError, which names the file, if the disk is full.
    """
    with atomic_path(path) as made:
        try:
            opened = made.open("w", encoding="utf-8", newline="")  # of a folder this says that it is one
        except OSError as error:
            raise UnwritableFileError(f"cannot write {path}: {error.strerror}") from error
        with _named(path), opened as file:
            yield file
            file.flush()
            if made != path:
                os.fsync(file.fileno())


def atomic_write_bytes(path: Path, data: bytes) -> None:
    """Write a file of bytes that replaces `path` when all is on disk. Raises as atomic_write."""
    with atomic_write(path) as file:
        file.flush()
        file.buffer.write(data)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the file name to the error of a full disk: the system does not report which file it has no room for."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise
