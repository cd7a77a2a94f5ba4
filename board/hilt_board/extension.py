"""The seam for virtual boards: their archive also has the package hilt_virtual_board, a real board's has not."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Optional


def virtual_board() -> Optional[Any]:
    """Return the module hilt_virtual_board.extension on a virtual board, else None."""
    if importlib.util.find_spec("hilt_virtual_board") is None:
        return None
    extension = importlib.import_module("hilt_virtual_board.extension")
    return extension if extension.is_virtual_board() else None
