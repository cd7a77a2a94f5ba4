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
    size = _batch_of((*inputs, *outputs))
    given = [np.asarray(arrays[each["name"]]) for each in inputs]
    if size is None or not all(map(_is_a_batch, inputs, given)) or all(len(array) == size for array in given):
        return None
    counts = sorted({len(array) for array in given})
    if counts[0] == 0 or len(counts) > 1:
        raise InputError("the inputs have {} images".format(" and ".join(map(str, counts))))
    places = [np.minimum(np.arange(first, first + size), counts[0] - 1) for first in range(0, counts[0], size)]
    return counts[0], [_taken(inputs, given, each) for each in places]


def _taken(inputs: Tensors, arrays: List[Any], places: Any) -> Dict[str, Any]:
    return {each["name"]: array[places] for each, array in zip(inputs, arrays)}


def _batch_of(tensors: Tensors) -> Optional[int]:
    """Return the first size of all tensors; None where one has none, or another."""
    sizes = {tuple(each["shape"][:1]) for each in tensors}
    own = sizes.pop() if len(sizes) == 1 else ()
    return own[0] if own else None


def _is_a_batch(tensor: Mapping[str, Any], array: Any) -> bool:
    """Return whether an array is of a tensor's shape but for its first size."""
    shape = tensor["shape"]
    return array.ndim == len(shape) and list(array.shape[1:]) == list(shape[1:])
