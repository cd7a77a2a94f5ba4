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
    if math.prod((*buffer[2:5], *shape[2:])) != 1:
        return False
    dense = shape[0] == 1 or shape[1] == buffer[1] * buffer[5]
    reads, written = [], False
    for later in following:
        written = written or later["kind"] not in ("cpu", "unpack") or "packed" in later
        if step["tensor"] in _read_by(later):
            reads.append(not written and _takes_rows(later, dense))
    return all(reads) and (dense or len(shape) == 2)


def _read_by(step: Mapping[str, Any]) -> Sequence[str]:
    return step["inputs"] if step["kind"] == "cpu" else [step["tensor"]] if step["kind"] == "pack" else []


def _takes_rows(step: Mapping[str, Any], dense: bool) -> bool:
    """Tell whether an operator reads rows where they lie, dense ones or with lanes of nothing between."""
    if dense:
        return step["op"] in _READERS
    return step["op"] in _READERS_OF_ROWS and step["attributes"].get("axis") in (1, -1)
