"""A depthwise convolution as window GEMMs: which taps each of them takes, and its weight blocks.

A window GEMM goes over pixels of one channel block, and multiplies each channel's last inputs of some rows and columns
by that channel's weights (docs/architecture.md). A kernel that is larger, or that moves by more than one pixel, is a
sum of windows: each takes rows and columns of the kernel that are a stride apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator
from hilt.vta.layout import blocks
from hilt_runtime.isa import WINDOW_COLUMNS

_SMALL, _LARGE = 1, -128
"""The constants behind the taps: one lane pair has the first, all others the second."""


class NoWindowsError(ValueError):
    """A depthwise convolution that window GEMMs do not compute; the message says why in one line."""


@dataclass(frozen=True)
class KernelAxis:
    """A convolution along rows or columns.

    Attributes:
        size: Elements of the input.
        kernel: Elements of the kernel.
        stride: By how much it moves.
        pad: Zeros before the input.
        out: Elements of the output.
    """

    size: int
    kernel: int
    stride: int
    pad: int
    out: int

    def spans(self, most: int) -> list[KernelSpan]:
        """Return the kernel in spans of at most `most` elements."""
        found = []
        for first in range(min(self.stride, self.kernel)):
            places = range(first, self.kernel, self.stride)
            found += [
                KernelSpan(part[0], part[-1]) for part in (places[n : n + most] for n in range(0, len(places), most))
            ]
        return found


@dataclass(frozen=True)
class KernelSpan:
    """Elements of a kernel, a stride apart, from the first to the last, both included."""

    first: int
    last: int

    @property
    def single(self) -> bool:
        return self.first == self.last


@dataclass(frozen=True)
class Walk:
    """The input elements that a window's span goes over for some outputs: `count` from `start` on, a stride apart.

    The first output is made of the element of number `skip`; a negative one leaves out so many outputs.
    """

    start: int
    count: int
    skip: int

    @classmethod
    def of(cls, axis: KernelAxis, span: KernelSpan, first: int, outputs: int) -> Walk:
        """Return the walk for `outputs` outputs from `first` on; it begins within the input, not in its pad.

        A span of one element makes only the outputs whose element lies within the input; a longer one may go past its
        end, where zeros must lie.
        """
        start = first * axis.stride + span.first - axis.pad
        if start < 0:
            start %= axis.stride
        skip = (first * axis.stride + span.last - axis.pad - start) // axis.stride
        count = outputs + skip
        if span.single:
            count = min(count, -(-(axis.size - start) // axis.stride))
        return cls(start, max(count, 0), skip)

    def makes_all(self, outputs: int) -> bool:
        """Return whether it makes all outputs."""
        return self.skip >= 0 and self.count == outputs + self.skip

    def end(self, axis: KernelAxis) -> int:
        """Return the input element behind the last one."""
        return self.start + (self.count - 1) * axis.stride + 1 if self.count else 0


@dataclass(frozen=True)
class Window:
    """The taps of one GEMM; without taps it adds its part of the bias only, and goes over the pixels of the first."""

    rows: KernelSpan
    columns: KernelSpan
    taps: bool = True


@dataclass(frozen=True, eq=False)
class Depthwise:
    """A depthwise convolution over packed tensors.

    Attributes:
        images: Blocks of images.
        rows: The convolution along rows.
        columns: The same along columns.
        shifts: The right shift of each channel block.
        clip: The least and the largest output.
        windows: Its window GEMMs; the first one makes all outputs.
    """

    images: int
    rows: KernelAxis
    columns: KernelAxis
    shifts: tuple[int, ...]
    clip: tuple[int, int]
    windows: tuple[Window, ...] = field(default=())

    @property
    def planes(self) -> int:
        return self.images * len(self.shifts)

    @property
    def out(self) -> tuple[int, int]:
        """Return the output's rows and columns."""
        return self.rows.out, self.columns.out

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: a lower bound of the cycles."""
        return self.planes * self.rows.out * self.columns.out * len(self.windows)

    def whole(self, window: Window) -> bool:
        """Return whether a window makes all outputs."""
        pairs = ((self.rows, window.rows), (self.columns, window.columns))
        return all(Walk.of(axis, span, 0, axis.out).makes_all(axis.out) for axis, span in pairs)


def windows_of(work: Depthwise, bias: NDArray[np.int32], accelerator: Accelerator) -> tuple[Window, ...]:
    """Return the window GEMMs of a convolution with a bias (CO,), those that make all outputs first.

    As many make all outputs as the bias takes. Raises NoWindowsError if none does.
    """
    rows = work.rows.spans(accelerator.window_rows)
    windows = [Window(high, wide) for high, wide in product(rows, work.columns.spans(WINDOW_COLUMNS))]
    windows.sort(key=lambda window: not work.whole(window))
    whole = sum(work.whole(window) for window in windows)
    if not whole:
        raise NoWindowsError("no window of its kernel lies within the input for all outputs")
    units = _units(bias)[1]
    needed = -(-int(np.abs(units).max(initial=0)) // (127 * _large_lanes(accelerator)))
    more = [Window(windows[0].rows, windows[0].columns, taps=False)] * max(needed - whole, 0)
    return (*windows[:whole], *more, *windows[whole:])


def window_blocks(
    work: Depthwise, weights: NDArray[np.int8], bias: NDArray[np.int32], accelerator: Accelerator
) -> NDArray[np.int8]:
    """Return the weight blocks (channel blocks, windows, block, block) of weights (CO, 1, KH, KW) and a bias (CO,)."""
    block = accelerator.parameters.block
    more = blocks(len(weights), block) * block - len(weights)
    kernel = np.pad(weights[:, 0], ((0, more), (0, 0), (0, 0)))
    small, units = _units(np.pad(bias, (0, more)))
    lanes = np.zeros((len(kernel), len(work.windows), block // 2), dtype=np.int64)
    taps = accelerator.window_rows * WINDOW_COLUMNS
    for number, window in enumerate(work.windows):
        for tap, row, column in _taps(work, window):
            lanes[:, number, tap] = kernel[:, row, column]
    lanes[:, 0, taps] = small
    for number, lane in product(range(len(work.windows)), range(taps + 1, block // 2)):
        if work.whole(work.windows[number]):
            lanes[:, number, lane] = np.clip(units, -128, 127)
            units = units - lanes[:, number, lane]
    assert not units.any()
    made = np.zeros((len(kernel), len(work.windows), block // 2, 2), dtype=np.int8)
    odd = np.arange(len(kernel)) % 2
    made[np.arange(len(kernel)), :, :, odd] = lanes
    made = made.reshape(len(kernel) // block, block, len(work.windows), block)
    return np.ascontiguousarray(made.transpose(0, 2, 1, 3))


def _taps(work: Depthwise, window: Window) -> Iterator[Sequence[int]]:
    """Return the taps of a window: its number, and the kernel's row and column."""
    if not window.taps:
        return
    rows = range(window.rows.last, window.rows.first - 1, -work.rows.stride)
    columns = range(window.columns.last, window.columns.first - 1, -work.columns.stride)
    for (high, row), (wide, column) in product(enumerate(rows), enumerate(columns)):
        yield high * WINDOW_COLUMNS + wide, row, column


def _large_lanes(accelerator: Accelerator) -> int:
    return accelerator.parameters.block // 2 - accelerator.window_rows * WINDOW_COLUMNS - 1


def _units(bias: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a bias as weights of the small constant and sums of weights of the large one."""
    small = (bias.astype(np.int64) + 64) % 128 - 64
    return small * _SMALL, (bias - small) // _LARGE
