"""The values of a sparse constant of TFLite: the file holds those that are not pruned, and where they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DENSE, _COMPRESSED_ROWS = 0, 1
_MOST_NUMBERS = 1 << 28


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
    tree = _Tree.of(shape, sparsity)
    whole = math.prod(shape)
    if whole > _MOST_NUMBERS:
        raise ValueError(f"a sparse constant has {whole} numbers")
    places = [np.zeros(1, np.int64)] * len(tree.sizes)
    for axis, level in zip(tree.order, tree.levels, strict=True):
        branches, along = _branches(level, len(places[0]), tree.sizes[axis], whole)
        places = [where[branches] for where in places]
        places[axis] = along
    if len(places[0]) != values.size:
        raise ValueError(f"a sparse constant has {values.size} values for {len(places[0])} places")
    for number, (axis, block) in enumerate(tree.blocks):
        places[axis] = places[axis] * block + places[len(shape) + number]
    result = np.zeros(shape, values.dtype)
    result[tuple(places[: len(shape)])] = values
    return result


@dataclass(frozen=True)
class _Tree:
    """The levels of a sparse array.

    Attributes:
        levels: The schema's tables, the outermost first.
        order: The axis of each; those of the blocks come behind the array's own.
        sizes: Places along each axis.
        blocks: The axes that are made of blocks, and the sizes of these.
    """

    levels: list[Any]
    order: list[int]
    sizes: list[int]
    blocks: list[tuple[int, int]]

    @classmethod
    def of(cls, shape: tuple[int, ...], sparsity: Any) -> _Tree:
        """Return the levels of an array. Raises ValueError if they do not fit its shape."""
        blocked, order = _integers(sparsity.BlockMapAsNumpy()), _integers(sparsity.TraversalOrderAsNumpy())
        levels = [sparsity.DimMetadata(place) for place in range(sparsity.DimMetadataLength())]
        axes = len(shape) + len(blocked)
        if sorted(order) != list(range(axes)) or len(levels) != axes or not set(blocked) <= set(range(len(shape))):
            raise ValueError("a sparse constant's levels are not its axes")
        inner = [levels[order.index(len(shape) + number)].DenseSize() for number in range(len(blocked))]
        sizes = [*shape, *inner]
        for axis, block in zip(blocked, inner, strict=True):
            if block < 1 or sizes[axis] % block:
                raise ValueError(f"a sparse constant's axis of {sizes[axis]} is not made of blocks of {block}")
            sizes[axis] //= block
        return cls(levels, order, sizes, list(zip(blocked, inner, strict=True)))


def _branches(level: Any, above: int, size: int, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the branch above and the place along the level's axis of each branch of a level."""
    if level.Format() == _DENSE:
        if level.DenseSize() != size or above * size > most:
            raise ValueError(f"a sparse constant has {level.DenseSize()} places along an axis of {size}")
        return np.repeat(np.arange(above), size), np.tile(np.arange(size), above)
    if level.Format() != _COMPRESSED_ROWS:
        raise ValueError(f"a sparse constant has a level of format {level.Format()}, which is unknown")
    segments = _vector(level.ArraySegmentsType(), level.ArraySegments())
    along = _vector(level.ArrayIndicesType(), level.ArrayIndices())
    counts = np.diff(segments)
    if len(counts) != above or np.any(counts < 0) or segments[0] != 0 or segments[-1] != len(along):
        raise ValueError("a sparse constant's segments do not fit its places")
    if len(along) > most or not np.all((along >= 0) & (along < size)):
        raise ValueError("a sparse constant names a place outside its shape")
    return np.repeat(np.arange(above), counts), along


def _vector(kind: int, table: Any) -> NDArray[np.int64]:
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
