"""Files that commands read and write."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hilt.atomic_write import UnwritableFileError

if TYPE_CHECKING:
    from hilt.schedule.onnx_model import Network


def output_folder(path: Path) -> Path:
    """Make and return the folder. Raises UnwritableFileError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableFileError(f"cannot make the folder {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UnwritableFileError(f"cannot write in {path}: Permission denied")
    return path


def check_folder(path: Path) -> None:
    """Refuse a file whose folder is missing or not writable, before minutes of work. Raises UnwritableFileError."""
    if path.is_dir():
        raise UnwritableFileError(f"cannot write {path}: it is a folder")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UnwritableFileError(f"cannot write {path}: its folder is missing")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UnwritableFileError(f"cannot write {path}: its folder is not yours to write in")


def replaceable(path: Path) -> Path:
    """Return the file to replace, at the end of the links of a path.

    Raises UnwritableFileError for a folder, a pipe or a device, which is not hilt's to replace.
    """
    try:
        if path.exists() and not path.is_file():
            raise UnwritableFileError(f"cannot write {path}: it is no ordinary file")
    except OSError as error:
        raise UnwritableFileError(f"cannot write {path}: {error.strerror}") from error
    return Path(os.path.realpath(path))


def named_in_text(network: Network) -> Network:
    """A model's file may have any bytes for a name, which the network has from it; a database and a page may not."""
    return replace(network, name=in_text(network.name))


def in_text(name: str) -> str:
    """Return the name of a file, which may have any bytes, as text."""
    return os.fsencode(name).decode(errors="replace")
