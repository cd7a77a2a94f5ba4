"""Results of VTA that are read where they lie: images of one pixel are rows of their buffer, nothing is read back."""

from __future__ import annotations

import math
from typing import Any, FrozenSet, Mapping, Sequence

_READERS = frozenset(("add", "dequantize", "softmax", "table"))
"""Operators that read rows without a gap, and whose results have memory of their own."""
_READERS_OF_ROWS = frozenset(("softmax",))
"""Those that read rows with lanes of nothing between."""


def read_in_place(manifest: Mapping[str, Any]) -> FrozenSet[int]:
    """Return the places of the steps that read a tensor back which its readers can read in VTA's buffer.

    All of them come before anything else may write there. Tensors of the caller's are read back.
    """
    kept = {output["name"] for output in manifest["outputs"]}
    return frozenset(
        place
        for place, step in enumerate(manifest["steps"])
        if step["kind"] == "unpack"
        and step["tensor"] not in kept
        and _can_read(step, manifest["buffers"][step["buffer"]]["shape"], manifest["steps"][place + 1 :])
    )


def rows_of(packed: Any, shape: Sequence[int]) -> Any:
    """Return the tensor of a buffer that `read_in_place` names, as a view."""
    images, channels = shape[:2]
    return packed.reshape(packed.shape[0], -1)[:images, :channels].reshape(shape)


def _can_read(step: Mapping[str, Any], buffer: Sequence[int], following: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a tensor is rows of its buffer, and its readers take it so, before the buffer may be written."""
    shape = step["shape"]
    if math.prod(buffer[2:5]) != 1 or math.prod(shape[2:]) != 1:
        return False
    dense = shape[0] == 1 or shape[1] == buffer[1] * buffer[5]
    readable = _READERS if dense else _READERS_OF_ROWS if len(shape) == 2 else frozenset()
    written = False
    for later in following:
        written = written or later["kind"] not in ("cpu", "unpack") or "packed" in later
        if later["kind"] == "pack" and later["tensor"] == step["tensor"]:
            return False
        reads = later["kind"] == "cpu" and step["tensor"] in later["inputs"]
        last = dense or later.get("attributes", {}).get("axis") in (1, -1)
        if reads and (written or later["op"] not in readable or not last):
            return False
    return True
