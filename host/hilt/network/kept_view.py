"""The latest inference of each bundle, in HILT_HOME: `hilt run` keeps it, `hilt show` and the terminal UI draw it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.network.latency import Latency

_FOLDER = "inferences"


def keep_view(data: bytes, view: Mapping[str, Any]) -> None:
    """Keep a bundle's inference (hilt.network.network_view). Raises UnwritableFileError, OSError.

    Args:
        data: The bundle's file.
        view: The inference.
    """
    path = _path(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        json.dump(dict(view), file)
        file.write("\n")


def kept_view(data: bytes) -> dict[str, Any] | None:
    """Return the inference that was kept of a bundle; None if there is none that can be read."""
    return read_view(_path(data))


def kept_views(home: Path) -> list[Path]:
    """Return the files of all inferences that are kept in a home, the newest first."""
    files = [(path.stat().st_mtime, path) for path in (home / _FOLDER).glob("*.json")]
    return [path for _, path in sorted(files, reverse=True)]


def read_view(path: Path) -> dict[str, Any] | None:
    """Return the inference in a file of `kept_views`; None if it cannot be read."""
    try:
        view = dict(json.loads(path.read_text(encoding="utf-8")))
        Latency.from_dict(view["latency"])
        return view if {"name", "board", "nodes", "edges", "slices", "parts", "runs"} <= set(view) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(data: bytes) -> Path:
    return paths.home() / _FOLDER / f"{hashlib.sha256(data).hexdigest()[:32]}.json"
