"""The values of a sparse constant of TFLite: the file holds those that are not pruned, and where they lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DENSE, _COMPRESSED_ROWS = 0, 1


def densify(values: NDArray[Any], shape: tuple[int, ...], sparsity: Any) -> NDArray[Any]:
    """Return the whole array (shape) of a sparse one, with zeros where nothing is stored.

    A stored array is a tree: each level goes through one axis, or through one axis of the blocks, which come after
    the axes. A dense level has all places, a compressed one those that it lists for each branch above.

    Args:
        values: The stored values (n,), in the tree's order.
        shape: The whole array's sizes.
        sparsity: The schema's `SparsityParameters`.

    Raises:
        ValueError: The tree does not fit the shape or the values.
    """
    blocked = _integers(sparsity.BlockMapAsNumpy())
    order = _integers(sparsity.TraversalOrderAsNumpy())
    levels = [sparsity.DimMetadata(place) for place in range(sparsity.DimMetadataLength())]
    axes = len(shape) + len(blocked)
    if sorted(order) != list(range(axes)) or len(levels) != axes or any(not 0 <= axis < len(shape) for axis in blocked):
        raise ValueError("a sparse constant's levels are not its axes")
    blocks = [levels[order.index(len(shape) + block)].DenseSize() for block in range(len(blocked))]
    sizes = list(shape) + blocks
    for axis, block in zip(blocked, blocks, strict=True):
        if block < 1 or sizes[axis] % block:
            raise ValueError(f"a sparse constant's axis of {sizes[axis]} is not made of blocks of {block}")
        sizes[axis] //= block
    whole, stored = math.prod(shape), values.size
    places = {axis: np.zeros(1, np.int64) for axis in range(axes)}
    for axis, level in zip(order, levels, strict=True):
        branches, along = _level(level, len(next(iter(places.values()))), sizes[axis], whole)
        places = {known: where[branches] for known, where in places.items()}
        places[axis] = along
    if len(places[0]) != stored:
        raise ValueError(f"a sparse constant has {stored} values for {len(places[0])} places")
    for number, axis in enumerate(blocked):
        places[axis] = places[axis] * blocks[number] + places[len(shape) + number]
    result = np.zeros(shape, values.dtype)
    result[tuple(places[axis] for axis in range(len(shape)))] = values
    return result


def _level(level: Any, above: int, size: int, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the branch above and the place along the level's axis of each branch of a level."""
    if level.Format() == _DENSE:
        if level.DenseSize() != size or above * size > most:
            raise ValueError(f"a sparse constant has {level.DenseSize()} places along an axis of {size}")
        return np.repeat(np.arange(above), size), np.tile(np.arange(size), above)
    if level.Format() != _COMPRESSED_ROWS:
        raise ValueError(f"a sparse constant has a level of format {level.Format()}, which is unknown")
    segments = np.array(_vector(level.ArraySegmentsType(), level.ArraySegments()), np.int64)
    along = np.array(_vector(level.ArrayIndicesType(), level.ArrayIndices()), np.int64)
    counts = np.diff(segments)
    if len(counts) != above or np.any(counts < 0) or segments[0] != 0 or segments[-1] != len(along):
        raise ValueError("a sparse constant's segments do not fit its places")
    if len(along) > most or np.any((along < 0) | (along >= size)):
        raise ValueError("a sparse constant names a place outside its shape")
    return np.repeat(np.arange(above), counts), along


def _vector(kind: int, table: Any) -> NDArray[Any]:
    import tflite

    vectors = {
        tflite.SparseIndexVector.Int32Vector: tflite.Int32Vector,
        tflite.SparseIndexVector.Uint16Vector: tflite.Uint16Vector,
        tflite.SparseIndexVector.Uint8Vector: tflite.Uint8Vector,
    }
    if kind not in vectors or table is None:
        raise ValueError("a sparse constant has a level without its places")
    made = vectors[kind]()
    made.Init(table.Bytes, table.Pos)
    return np.asarray(made.ValuesAsNumpy() if made.ValuesLength() else [], np.int64)


def _integers(values: Any) -> list[int]:
    return [] if isinstance(values, int) else [int(value) for value in values]
