"""The knobs of row programs that are not tile sizes, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class FoldedLoop(IntEnum):
    """The tile's loop that is spelled out in micro-ops, beside the kernel and the columns."""

    ROWS = 1
    """Rows are micro-ops; both channel loops are iterations."""
    OUTPUTS = 2
    """Output channels are micro-ops; rows and input channels are iterations."""
    INPUTS = 3
    """Input channels are micro-ops; rows and output channels are iterations."""


class Keep(IntEnum):
    """The tensor that stays on chip or is read again soon, so that it is still in a cache, and the order of tiles."""

    NOTHING_BY_TILE = 1
    """All output channels of a tile first: its input is read again at once."""
    INPUT = 2
    """The same, and the tile's input stays on chip."""
    NOTHING_BY_CHANNEL = 3
    """All tiles of a block of output channels first: its weights are read again at once."""
    WEIGHTS = 4
    """The same, and the block's weights stay on chip."""


SLOTS = 2
"""Places of an operand and of sums on chip: the next step is loaded, and the last tile stored, beside the GEMM."""


def is_rows(columns: Mapping[str, Any]) -> bool:
    """Return whether knobs by name are those of a row program."""
    return "fold" in columns
