"""Batches of any size for a network that was compiled for one."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from hilt_runtime.errors import InputError

Tensors = Sequence[Mapping[str, Any]]
"""A manifest's inputs or outputs."""


def split(inputs: Tensors, outputs: Tensors, arrays: Mapping[str, Any]) -> Optional[Tuple[int, List[Dict[str, Any]]]]:
    """Return the images of a larger or smaller batch and the inputs of each inference; None for the network's own.

    Args:
        inputs: The network's, each with name and shape.
        outputs: The network's.
        arrays: The inputs by name; the first axis of each counts the images.

    The last inference is filled up with its last image. Raises InputError for no images, or counts that differ.
    """
    sizes = {tuple(each["shape"][:1]) for each in (*inputs, *outputs)}
    own = next(iter(sizes)) if len(sizes) == 1 else ()
    given = [np.asarray(arrays[each["name"]]) for each in inputs]
    tails = all(
        array.ndim == len(each["shape"]) and list(array.shape[1:]) == list(each["shape"][1:])
        for each, array in zip(inputs, given)
    )
    if not own or not tails or all(len(array) == own[0] for array in given):
        return None
    counts = sorted({len(array) for array in given})
    if counts[0] == 0 or len(counts) > 1:
        raise InputError("the inputs have {} images".format(" and ".join(map(str, counts))))
    count, size = counts[0], own[0]
    parts = []
    for first in range(0, count, size):
        places = np.minimum(np.arange(first, first + size), count - 1)
        parts.append({each["name"]: array[places] for each, array in zip(inputs, given)})
    return count, parts
