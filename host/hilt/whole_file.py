"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class UnwritableFileError(Exception):
    """A path where no file can be made."""


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """A text file to write in, which takes the place of `path` when all is written and on disk. On an error `path` is
    as it was. Raises UnwritableFileError, and OSError where the disk is full."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.", text=True)
    except OSError as error:
        raise UnwritableFileError(f"cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)  # mkstemp makes 0600; a report is a file as any other
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
