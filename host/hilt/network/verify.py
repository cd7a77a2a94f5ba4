"""Compares every tensor of a board's inference with the host's integer reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph

_SUMS = frozenset(
    (
        *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "CumSum", "Einsum", "GRU", "Gemm"),
        *("GlobalAveragePool", "GlobalLpPool", "GridSample", "InstanceNormalization", "LRN", "LSTM"),
        *("LayerNormalization", "LogSoftmax", "LpNormalization", "LpPool", "MatMul", "Mean", "RNN", "ReduceL1"),
        *(
            "ReduceL2",
            "ReduceMean",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
            "Resize",
            "Softmax",
            "Sum",
            "counted_sum",
            "softmax",
        ),
    )
)
"""Operators that add many products: two processors add them in another order, so a small sum of large terms may differ
by a part of the largest."""
_CANCELLING = frozenset(("Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "Mish", "Selu", "Softplus"))
"""Functions that subtract nearly equal numbers, such as 1 + erf(x) far below zero."""
_ULPS = 16
"""Units in the last place by which two libraries' functions of one element may differ."""


class WrongTensorError(ValueError):
    """A tensor of a board that is not the reference's; the message names the first one."""


@dataclass(frozen=True)
class Verified:
    """The number of tensors and elements that were compared; `rounded` of them equal but for a float's rounding."""

    tensors: int
    elements: int
    rounded: int = 0

    @property
    def text(self) -> str:
        """One line for users."""
        text = f"{self.tensors} tensors, {self.elements:,} elements equal to the integer reference"
        return f"{text}, {self.rounded:,} of them floats that differ in rounding alone" if self.rounded else text


def inside_of(manifest: Mapping[str, Any]) -> frozenset[str]:
    """Return the tensors of a bundle that never leave VTA: only a table on the way to the store reads them."""
    named = manifest.get("inside", [])
    return frozenset(name for name in named if isinstance(name, str)) if isinstance(named, list) else frozenset()


def compare(
    board: Mapping[str, Any],
    reference: Mapping[str, Any],
    graph: Graph,
    inside: Collection[str] = (),
    on_tensor: Callable[[int, int], None] = lambda done, total: None,
) -> Verified:
    """Return the number of tensors and elements that were compared.

    Integers and bools must be equal. A float may differ as two processors' rounding does: by 16 units in the last
    place after an operator of one element, and by 1e-6 of the tensor's largest value after a sum.

    Args:
        board: The board's tensors by name.
        reference: The reference's tensors by name, in an order in which they can be made.
        graph: The network, with the maker of each tensor, and its outputs.
        inside: Tensors that no board returns (`inside_of`); an output of the network is none.
        on_tensor: Is called with the tensors that were compared, and all of them.

    Raises:
        WrongTensorError: A tensor differs, or one side has not got it.
    """
    for name in graph.outputs:
        if name not in reference:
            raise WrongTensorError(f"the reference has no output {name}: nothing to compare it with")
    makers = {name: node.op for node in graph.nodes for name in node.outputs}
    elements = rounded = 0
    missing = {*inside, *_packed_without(board, graph)}
    compared = {name: value for name, value in reference.items() if name not in missing or name in graph.outputs}
    for done, (name, expected) in enumerate(compared.items()):
        on_tensor(done, len(compared))
        if name not in board:
            raise WrongTensorError(f"the board returned no tensor {name}")
        actual = np.asarray(board[name])
        elements += actual.size
        if actual.shape != expected.shape:
            raise WrongTensorError(f"tensor {name} of the board is {actual.shape}, the reference's {expected.shape}")
        if actual.dtype != expected.dtype:
            raise WrongTensorError(f"tensor {name} of the board is {actual.dtype}, the reference's {expected.dtype}")
        unequal = _unequal(actual, expected)
        differs = unequal & ~_is_rounding(actual, expected, makers.get(name, ""))
        if differs.any():
            first = np.unravel_index(int(np.argmax(differs)), actual.shape)
            raise WrongTensorError(
                f"tensor {name} differs from the reference in {int(differs.sum())} of {actual.size} elements, "
                f"the first at {tuple(int(place) for place in first)}: "
                f"the board has {actual[first]}, the reference {expected[first]}"
            )
        rounded += int(unequal.sum())
    return Verified(len(compared), elements, rounded)


def _packed_without(board: Mapping[str, Any], graph: Graph) -> list[str]:
    """Return the transposed tensors that the board never made: packing reads their sources, which it has."""
    turned = [name for node in graph.nodes if node.op == "transpose" for name in node.outputs]
    return [name for name in turned if name not in board]


def _unequal(actual: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    unequal: NDArray[np.bool_] = np.asarray(actual != expected)
    if np.issubdtype(actual.dtype, np.inexact):
        unequal &= ~(np.isnan(actual) & np.isnan(expected))
    return unequal


def _is_rounding(actual: NDArray[Any], expected: NDArray[Any], operator: str) -> NDArray[np.bool_]:
    """Return which elements differ by no more than the rounding of the operator that made them."""
    if not np.issubdtype(actual.dtype, np.floating) or not (operator[:1].isupper() or operator in _SUMS):
        return np.zeros(actual.shape, np.bool_)
    limits = np.finfo(actual.dtype)
    finite = np.isfinite(actual) & np.isfinite(expected)
    left, right = (np.where(finite, array, 0).astype(np.float64) for array in (actual, expected))
    largest = float(np.abs(right).max(initial=0))
    allowed = _ULPS * float(limits.eps) * np.abs(right) + float(limits.tiny)
    if operator in _SUMS:
        allowed = 1e-5 * np.abs(right) + max(1e-6, 8 * float(limits.eps)) * largest + float(limits.tiny)
    elif operator in _CANCELLING:
        allowed += float(limits.eps) * largest
    return np.asarray(finite & (np.abs(left - right) <= allowed))
