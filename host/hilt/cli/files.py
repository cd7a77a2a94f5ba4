"""Files that commands read and write."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from hilt.schedule.onnx_model import Network
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


def named_in_text(network: Network) -> Network:
    """A model's file may have any bytes for a name, which the network has from it; a database and a page may not."""
    return replace(network, name=os.fsencode(network.name).decode(errors="replace"))
