"""Pieces of one step that may run at once: each is the same kernel on a part of the buffers, none writes another's.

A kernel's splitter cuts the outermost loop of the kernel. A loop that it cannot cut runs whole.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

LEAST = 32768
"""Instructions of a piece: below, waking a helper costs more than it saves."""
AWAKE_MICROSECONDS = 200
"""A helper watches for the next step's pieces so long before it sleeps: steps follow one another at once."""
_INSTRUCTIONS = {
    **dict.fromkeys(("copy", "pack", "unpack", "fold", "global_average_pool", "prelu", "channel_sums"), 1),
    **dict.fromkeys(("dequantize", "multiply", "table_float", "binary", "take"), 2),
    **dict.fromkeys(("table", "pixel_table", "quantize", "add", "conv", "matmul", "pool_packed", "reduce"), 4),
    **dict.fromkeys(("argmax", "blend"), 6),
    "counted_sum": 3,
    "fixed_matmul": 1,
    **dict.fromkeys(("conv2d", "average_pool", "max_pool", "pool", "softmax", "softmax_int8"), 12),
    "unary": 7,
    "widen": 6,
    "clip_wide": 18,
    "norm": 18,
    "pixel_means": 1,
    "normalize": 3,
    "interpolate": 18,
}
"""Of a kernel for an element or product on 32-bit ARM, about."""
_SERIES = frozenset((9, 10, 11, 12, 16, 17, 18, 20, 21, 22, 23))
"""Unary functions by their number that are computed as series: Exp to Tanh, Elu, Selu, Softplus, Mish to Gelu."""
_SERIES_TIMES = 7
_SCATTERED_TIMES = 8
_LINE = 64
"""Elements that pieces of a flat tensor are multiples of: lines of the cache are written by one thread."""

Piece = Tuple[Sequence[Any], Sequence[Any]]
"""A record's arrays and numbers."""
Splitter = Callable[[Sequence[Any], Sequence[Any], int], Sequence[Piece]]


def split(kernel: str, arrays: Sequence[Any], numbers: Sequence[Any], threads: int) -> Sequence[Piece]:
    """Return the pieces of a step for so many threads, at least one."""
    splitter = _SPLITTERS.get(kernel)
    if splitter is None:
        return [(arrays, numbers)]
    pieces = min(threads, work_of(kernel, arrays, numbers) // LEAST)
    return splitter(arrays, numbers, pieces) if pieces > 1 else [(arrays, numbers)]


def work_of(kernel: str, arrays: Sequence[Any], numbers: Sequence[Any]) -> int:
    """Return the instructions of a step, about: of the elements of its largest tensor, or of all products."""
    return _INSTRUCTIONS.get(kernel, 4) * _elements_of(kernel, arrays, numbers)


def _elements_of(kernel: str, arrays: Sequence[Any], numbers: Sequence[Any]) -> int:
    elements = max(int(array.size) for array in arrays)
    if kernel == "unary" and numbers[1] in _SERIES:
        return _SERIES_TIMES * elements
    if kernel == "copy" and (numbers[9 + numbers[1]], numbers[15 + numbers[1]]) != (1, 1):
        return _SCATTERED_TIMES * elements
    if kernel == "counted_sum":
        return int(numbers[1]) * int(arrays[1].size)
    if kernel in ("matmul", "fixed_matmul"):
        return max(elements, int(arrays[-1].size) * int(numbers[3]))
    if kernel in ("conv", "conv2d"):
        return max(elements, int(arrays[-1].size) * int(numbers[5]) * int(numbers[6]) * int(numbers[7]))
    return elements


def ranges(units: int, pieces: int, step: int = 1) -> Iterator[Tuple[int, int]]:
    """Yield the begin and end of each piece of `units`; all but the last are multiples of `step`."""
    steps = -(-units // step)
    pieces = min(pieces, steps)
    for piece in range(pieces):
        first, last = steps * piece // pieces * step, steps * (piece + 1) // pieces * step
        yield first, min(last, units)


def _flat(array: Any, first: int, last: Any = None) -> Any:
    return array.reshape(-1)[first:last]


def _elements(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut a step from element to element: its first and last arrays are alike, those between are whole."""
    made: List[Piece] = []
    for first, last in ranges(int(numbers[0]), pieces, _LINE):
        data, *between, target = arrays
        parts = [_flat(data, first, last), *between, _flat(target, first, last)]
        made.append((parts, [last - first, *numbers[1:]]))
    return made


def _outermost(place: int, *beside: int) -> Splitter:
    """Return a splitter of dense tensors along their outermost axis.

    Args:
        place: The number that has the axis' length.
        beside: Arrays that lie along it, besides the first and the last.
    """

    def cut(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
        made: List[Piece] = []
        units = int(numbers[place])
        cuts = {0, len(arrays) - 1, *beside}
        for first, last in ranges(units, pieces):
            parts = [
                _flat(array, first * (array.size // units), last * (array.size // units)) if number in cuts else array
                for number, array in enumerate(arrays)
            ]
            made.append((parts, [*numbers[:place], last - first, *numbers[place + 1 :]]))
        return made

    return cut


def _broadcast(axes: int) -> Splitter:
    """Return a splitter of two strided tensors and a dense target; `axes` is the place of the number of axes.

    Behind it come six sizes and six strides of each tensor.
    """
    sizes, left, right = axes + 1, axes + 7, axes + 13

    def cut(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
        units, made = int(numbers[sizes]), []
        inner = arrays[2].size // units
        for first, last in ranges(units, pieces, _LINE if numbers[axes] == 1 else 1):
            parts = [
                _flat(arrays[0], first * int(numbers[left])),
                _flat(arrays[1], first * int(numbers[right])),
                _flat(arrays[2], first * inner, last * inner),
            ]
            made.append((parts, [*numbers[:sizes], last - first, *numbers[sizes + 1 :]]))
        return made

    return cut


def _copy(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut a copy along its outermost axis: offsets say where each piece begins."""
    item, axes, read, write, units = (int(number) for number in numbers[:5])
    made: List[Piece] = []
    for first, last in ranges(units, pieces, _LINE if axes == 1 else 1):
        offsets = [read + first * int(numbers[10]), write + first * int(numbers[16])]
        made.append((arrays, [item, axes, *offsets, last - first, *numbers[5:]]))
    return made


def _matmul(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut a product along the first axis of more than one element: two of batches, then the rows."""
    axis = next((place for place in range(3) if numbers[place] > 1), 2)
    left, right, target = arrays
    units, made = int(numbers[axis]), []
    inner = target.size // units
    for first, last in ranges(units, pieces):
        rows = _flat(left, first * int(numbers[5 + axis]))
        columns = right if axis == 2 else _flat(right, first * int(numbers[9 + axis]))
        parts = [rows, columns, _flat(target, first * inner, last * inner)]
        made.append((parts, [*numbers[:axis], last - first, *numbers[axis + 1 :]]))
    return made


def _convolution(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut the convolution of one image along its output channels, where each reads all input channels."""
    groups = numbers[16]
    if numbers[0] != 1 or groups != 1:
        return [(arrays, numbers)]
    along = [number for number in range(1, len(arrays) - 1) if arrays[number].size >= numbers[4]]
    return _outermost_but_first(along)(arrays, numbers, pieces)


def _outermost_but_first(along: Sequence[int]) -> Splitter:
    def cut(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
        whole = _outermost(4, *along)([arrays[1], *arrays[1:]], numbers, pieces)
        return [([arrays[0], *parts[1:]], changed) for parts, changed in whole]

    return cut


def _packing(plain: int) -> Splitter:
    """Return a splitter of pack and unpack of one image: by whole blocks of channels. `plain` is the tensor's place."""

    def cut(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
        images, channels, pixels, outer, inner, batch, block, *last = (int(number) for number in numbers)
        if (images, outer, batch) != (1, 1, 1) or -(-channels // block) != inner or any(last):
            return [(arrays, numbers)]
        made: List[Piece] = []
        for first, end in ranges(inner, pieces):
            parts = list(arrays)
            here = min(end * block, channels)
            parts[plain] = _flat(arrays[plain], first * block * pixels, here * pixels)
            parts[1 - plain] = _flat(arrays[1 - plain], first * block * pixels, end * block * pixels)
            made.append((parts, [1, here - first * block, pixels, 1, end - first, 1, block]))
        return made

    return cut


def _lanes(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut a PRelu by images, groups of channels, or pixels: the first of its numbers that is above 1."""
    data, factors, target = arrays
    axis = next((place for place in range(3) if numbers[place] > 1), 0)
    inner = math.prod(int(number) for number in numbers[axis + 1 : 4])
    made: List[Piece] = []
    for first, last in ranges(int(numbers[axis]), pieces):
        own = _flat(factors, 2 * first * int(numbers[3]), 2 * last * int(numbers[3])) if axis == 1 else factors
        parts = [_flat(data, first * inner, last * inner), own, _flat(target, first * inner, last * inner)]
        made.append((parts, [*numbers[:axis], last - first, *numbers[axis + 1 :]]))
    return made


def _norm(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut a normalization by lines: its first number, the last is the number of the first line."""
    data, *parts, target = arrays
    lines, size, *form, begin = (int(number) for number in numbers)
    made: List[Piece] = []
    for first, last in ranges(lines, pieces):
        own = [_flat(data, first * size, last * size), *parts, _flat(target, first * size, last * size)]
        made.append((own, [last - first, size, *form, begin + first]))
    return made


def _channels(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut sums of channels by images, or those of one image by blocks of channels, its second number."""
    return _outermost(0 if numbers[0] != 1 else 1)(arrays, numbers, pieces)


def _softmax(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut a softmax by lines: along the axes before its own, else along those behind, its fifth and sixth number."""
    if numbers[1] >= pieces:
        return _outermost(1)(arrays, numbers, pieces)
    shape, (begin, end), pitch = numbers[:4], numbers[4:6], numbers[6:]
    cuts = ranges(end - begin, pieces, _LINE)
    return [(arrays, [*shape, begin + first, begin + last, *pitch]) for first, last in cuts]


def _fold(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut a fold by rows: its thirteenth and fourteenth number."""
    shape, (begin, end), form = numbers[:12], numbers[12:14], numbers[14:]
    return [(arrays, [*shape, begin + first, begin + last, *form]) for first, last in ranges(end - begin, pieces)]


def _span(step: int) -> Splitter:
    """Return a splitter of a span, a step's last two numbers, into multiples of `step`."""

    def cut(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
        *shape, begin, end = numbers
        cuts = ranges(end - begin, pieces, step)
        return [(arrays, [*shape, begin + first, begin + last]) for first, last in cuts]

    return cut


def _fixed_rows(arrays: Sequence[Any], numbers: Sequence[Any], pieces: int) -> Sequence[Piece]:
    """Cut a product in fixed point by rows, its last two numbers; each piece has a part of the rooms."""
    data, lines, *rooms, target = arrays
    *shape, begin, end = numbers
    made: List[Piece] = []
    for place, (first, last) in enumerate(ranges(end - begin, min(pieces, len(rooms[0])))):
        own = [room[place : place + 1] for room in rooms]
        made.append(([data, lines, *own, target], [*shape, begin + first, begin + last]))
    return made


_SPLITTERS: Dict[str, Splitter] = {
    "copy": _copy,
    "pack": _packing(0),
    "unpack": _packing(1),
    "fold": _fold,
    **dict.fromkeys(("table", "table_float", "quantize", "dequantize", "unary", "widen", "clip_wide"), _elements),
    **dict.fromkeys(("add", "multiply"), _broadcast(0)),
    "binary": _broadcast(1),
    **dict.fromkeys(("max_pool", "average_pool", "global_average_pool", "pool_packed", "pool", "blend"), _outermost(0)),
    "pixel_table": _outermost(0),
    "prelu": _lanes,
    "norm": _norm,
    "channel_sums": _channels,
    **dict.fromkeys(("pixel_means", "normalize"), _span(_LINE)),
    **dict.fromkeys(("reduce", "argmax"), _outermost(1)),
    **dict.fromkeys(("softmax", "softmax_int8"), _softmax),
    "counted_sum": _span(1),
    "interpolate": _outermost(0),
    "matmul": _matmul,
    "fixed_matmul": _fixed_rows,
    **dict.fromkeys(("conv", "conv2d"), _convolution),
}
