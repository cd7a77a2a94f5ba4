"""Compares every tensor of a board's inference with the host's integer reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


class WrongTensorError(ValueError):
    """A tensor of a board that is not the reference's; the message names the first one."""


@dataclass(frozen=True)
class Verified:
    """The number of tensors and elements that were compared, all of them equal."""

    tensors: int
    elements: int


def compare(board: Mapping[str, Any], reference: Mapping[str, Any]) -> Verified:
    """Return the number of tensors and elements that were compared.

    Args:
        board: The board's tensors by name.
        reference: The reference's tensors by name, in an order in which they can be made.

    Raises:
        WrongTensorError: A tensor differs, or the board has not got it.
    """
    elements = 0
    for name, expected in reference.items():
        if name not in board:
            raise WrongTensorError(f"the board returned no tensor {name}")
        actual = np.asarray(board[name])
        elements += actual.size
        if actual.shape != expected.shape:
            raise WrongTensorError(f"tensor {name} of the board is {actual.shape}, the reference's {expected.shape}")
        differs = actual != expected
        if np.issubdtype(actual.dtype, np.floating):
            largest = float(np.abs(expected).max(initial=0, where=np.isfinite(expected)))
            differs &= ~np.isclose(actual, expected, rtol=1e-5, atol=1e-6 + 1e-6 * largest, equal_nan=True)
        if differs.any():
            first = np.unravel_index(int(np.argmax(differs)), actual.shape)
            raise WrongTensorError(
                f"tensor {name} differs from the reference in {int(differs.sum())} of {actual.size} elements, "
                f"the first at {tuple(int(place) for place in first)}: "
                f"the board has {actual[first]}, the reference {expected[first]}"
            )
    return Verified(len(reference), elements)
