"""Where commands write."""

from __future__ import annotations

import os
from pathlib import Path

from hilt.whole_file import UnwritableFileError


def output_folder(path: Path) -> Path:
    """The folder, made where it is missing. Raises UnwritableFileError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableFileError(f"cannot make the folder {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UnwritableFileError(f"cannot write in {path}: Permission denied")
    return path
