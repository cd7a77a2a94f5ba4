"""Tiles of packed tensors as the rows of one LOAD or STORE."""

from __future__ import annotations

from dataclasses import dataclass

from hilt.silicon.packed_task import TaskError


@dataclass(frozen=True)
class Block:
    """Rows of one transfer: `x_size` elements in each of `y_size` rows that begin `x_stride` elements apart."""

    y_size: int
    x_size: int
    x_stride: int
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Rows above and below, columns to the left and right."""


def fold(dimensions: list[tuple[int, int]]) -> Block:
    """Return a box of (extent, stride) dimensions, outermost first, as one block.

    Raises:
        TaskError: More than rows and columns are left once neighbours that lie end to end are merged.
    """
    merged: list[tuple[int, int]] = []
    for extent, stride in dimensions:
        if extent == 1:
            continue
        if merged and merged[-1][1] == extent * stride:
            merged[-1] = (merged[-1][0] * extent, stride)
        else:
            merged.append((extent, stride))
    if not merged or merged[-1][1] != 1:
        merged.append((1, 1))
    if len(merged) > 2:
        raise TaskError(f"a box of {dimensions} does not fold to rows and columns; TVM refuses this configuration")
    columns = merged[-1][0]
    rows, stride = merged[0] if len(merged) == 2 else (1, columns)
    return Block(rows, columns, stride)


def padded_rows(rows: tuple[int, int], columns: tuple[int, int], size: tuple[int, int]) -> tuple[Block, int]:
    """Return a box of one plane as a padded block, and the element of the plane that it begins with.

    Args:
        rows: First row, which may be negative, and how many.
        columns: First column, which may be negative, and how many.
        size: Rows and columns of the plane.
    """
    top, bottom = _outside(*rows, size[0])
    left, right = _outside(*columns, size[1])
    height, width = rows[1] - top - bottom, columns[1] - left - right
    if height <= 0 or width <= 0:
        raise TaskError("a box that lies wholly in the padding; TVM compiles no such tile")
    block = Block(height, width, size[1], (top, bottom, left, right))
    return block, (rows[0] + top) * size[1] + columns[0] + left


def _outside(first: int, count: int, size: int) -> tuple[int, int]:
    return max(-first, 0), max(first + count - size, 0)
