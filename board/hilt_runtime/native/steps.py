"""The flat records of engine.h: kernels by name, steps, buffers, and the builder that operators write them with."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from hilt_runtime.native.split import split

KERNELS = (
    *("copy", "fill", "take", "pack", "unpack", "fold", "where", "widen", "clip_wide"),
    *("add", "multiply"),
    *("conv2d", "dense"),
    *("unary", "binary", "reduce", "matmul", "conv", "pool", "blend", "argmax", "counted_sum"),
    *("lstm", "gru", "rnn", "product_int8", "fixed_matmul"),
    *("table_float", "quantize", "dequantize"),
    *("softmax", "softmax_int8"),
    *("table", "pixel_table", "prelu"),
    *("norm", "channel_sums", "group_means", "pixel_means", "normalize"),
    "interpolate",
    *("max_pool", "average_pool", "global_average_pool", "pool_packed"),
)
"""The kernels in the order of the tables in C; a step's number is its kernel's place plus 1, and 0 is Python's."""
BUFFERS, NUMBERS, FLOATS, AXES = 8, 40, 4, 6
STEP = np.dtype(
    [
        *(("kernel", "i4"), ("count", "i4"), ("buffers", "i4", BUFFERS)),
        *(("together", "i8"), ("chain", "i8"), ("rows", "i8"), ("height", "i8"), ("quiet", "i8")),
        ("pitch", "i8", BUFFERS),
        *(("p", "i8", NUMBERS), ("f", "f8", FLOATS)),
    ]
)
BUFFER = np.dtype([("data", "u8"), ("bytes", "i8")])


class StepRecord(NamedTuple):
    """One step as engine.h has it: `together` pieces of one from here on, or `chain` steps that run strip by strip."""

    kernel: int
    places: Sequence[int] = ()
    together: int = 1
    numbers: Sequence[int] = ()
    floats: Sequence[float] = ()
    chain: int = 1
    rows: int = 0
    height: int = 0
    pitch: Sequence[int] = ()
    quiet: int = 0


class NotNativeError(Exception):
    """A step that the native engine does not compute; the message says why, and numpy computes it."""


class Builder:
    """Collects steps and the arrays that they read and write."""

    def __init__(self, threads: int = 1) -> None:
        """`threads` run the pieces of a large step."""
        self.records: List[StepRecord] = []
        self.threads = threads
        self._room: Callable[[Sequence[int], Any], Any] = np.zeros
        self._at_once = False
        self.arrays: List[np.ndarray] = []
        self._buffers = np.zeros(64, BUFFER)
        self._places: Dict[Tuple[int, int], int] = {}
        self._constants: Dict[int, np.ndarray] = {}
        self._target: Any = None

    def step(self, kernel: str, arrays: Sequence[Any], numbers: Sequence[Any] = (), floats: Sequence[Any] = ()) -> None:
        """Add a step of a kernel. Raises NotNativeError if it has more buffers or numbers than a record."""
        if len(arrays) > BUFFERS or len(numbers) > NUMBERS:
            raise NotNativeError("too many buffers or numbers")
        for array in arrays:
            if not array.flags.c_contiguous or array.dtype.hasobject:
                raise NotNativeError("a tensor is not contiguous")
        number, reals = KERNELS.index(kernel) + 1, [float(f) for f in floats]
        pieces = [(arrays, numbers)] if self._at_once else split(kernel, arrays, numbers, self.threads)
        for place, (parts, own) in enumerate(pieces):
            together = len(pieces) if place == 0 else 1
            places = [self.place(part) for part in parts]
            self.records.append(StepRecord(number, places, together, [int(n) for n in own], reals))

    def python(self) -> None:
        """Add a step of Python's."""
        self.records.append(StepRecord(0))

    def new(self, shape: Sequence[int], dtype: Any) -> Any:
        """Return an array for a result: that of `writing_to` if it fits, else a new one."""
        sizes, target = tuple(int(size) for size in shape), self._target
        if target is not None and target.shape == sizes and target.dtype == dtype:
            self._target = None
            return target
        return self._room(sizes, dtype)

    @contextmanager
    def writing_to(self, target: Any) -> Iterator[None]:
        """Let the next result of the target's shape and type be the target itself."""
        self._target = target
        try:
            yield
        finally:
            self._target = None

    @contextmanager
    def whole(self, room: Callable[[Sequence[int], Any], Any]) -> Iterator[None]:
        """Let the steps that are added stay in one piece; `room` makes the arrays of their results."""
        before = self.threads, self._room
        self.threads, self._room = 1, room
        try:
            yield
        finally:
            self.threads, self._room = before

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let the steps that are added run at once: none reads or writes another's results."""
        first, self._at_once = len(self.records), self.threads > 1
        try:
            yield
        finally:
            self._at_once = False
        if self.threads > 1 and len(self.records) > first + 1:
            self.records[first] = self.records[first]._replace(together=len(self.records) - first)

    def constant(self, array: Any) -> Any:
        """Keep an array whose values never change, and return it."""
        self._constants[id(array)] = array
        return array

    def is_constant(self, array: Any) -> bool:
        return id(array) in self._constants

    def values(self, array: Any, name: str) -> List[int]:
        """Return a small constant tensor as integers. Raises NotNativeError if it is not constant."""
        if not self.is_constant(array):
            raise NotNativeError("{} is computed".format(name))
        return [int(value) for value in np.asarray(array).ravel()]

    def encoded(self, first: int = 0) -> Tuple[np.ndarray, np.ndarray]:
        """Return the steps from the `first` on, and the table of buffers."""
        records = self.records[first:]
        steps = np.zeros(len(records), STEP)
        for row, record in zip(steps, records):
            row["kernel"], row["count"], row["together"] = record.kernel, len(record.places), record.together
            row["chain"], row["rows"], row["height"] = record.chain, record.rows, record.height
            row["quiet"] = record.quiet
            row["buffers"][: len(record.places)] = record.places
            row["pitch"][: len(record.pitch)] = record.pitch
            row["p"][: len(record.numbers)] = record.numbers
            row["f"][: len(record.floats)] = record.floats
        return steps, self._buffers[: len(self.arrays)].copy()

    def move(self, old: Any, new: Any) -> None:
        """Let all steps take an array, and its views, from another of its bytes."""
        there = range(old.ctypes.data, old.ctypes.data + old.nbytes)
        moved = {
            place: self.place(moved_view(array, old, new))
            for place, array in enumerate(list(self.arrays))
            if array.nbytes and array.ctypes.data in there
        }
        for number, record in enumerate(self.records):
            if not moved.keys().isdisjoint(record.places):
                self.records[number] = record._replace(places=[moved.get(place, place) for place in record.places])

    def place(self, array: Any) -> int:
        """Return the place of an array's bytes in the table of buffers."""
        key = (array.ctypes.data, array.nbytes)
        if key not in self._places:
            place = self._places[key] = len(self.arrays)
            self.arrays.append(array)
            if place == len(self._buffers):
                self._buffers = np.concatenate([self._buffers, np.zeros(place, BUFFER)])
            self._buffers[place] = key
        return self._places[key]


def moved_view(array: Any, old: Any, new: Any) -> Any:
    """Return the view at the same place of another dense array of as many bytes."""
    offset = array.ctypes.data - old.ctypes.data
    return np.ndarray(array.shape, array.dtype, new.reshape(-1).view(np.uint8), offset, array.strides)


def strides_of(shape: Sequence[int]) -> List[int]:
    """Return the strides of a dense tensor, in elements."""
    strides, size = [], 1
    for length in reversed(shape):
        strides.append(size)
        size *= int(length)
    return strides[::-1]


def merged(sizes: Sequence[int], *strides: Sequence[int]) -> Tuple[List[int], List[List[int]]]:
    """Return sizes and strides with axes of one element left out, and those joined that lie behind one another.

    Raises NotNativeError if more than AXES remain.
    """
    kept: List[Tuple[int, List[int]]] = []
    for axis, size in enumerate(sizes):
        steps = [int(each[axis]) for each in strides]
        if size == 1:
            continue
        if kept and all(outer == inner * size for outer, inner in zip(kept[-1][1], steps)):
            kept[-1] = (kept[-1][0] * size, steps)
        else:
            kept.append((int(size), steps))
    if not kept:
        kept = [(1, [1] * len(strides))]
    if len(kept) > AXES:
        raise NotNativeError("more than {} axes".format(AXES))
    return [size for size, _ in kept], [[steps[place] for _, steps in kept] for place in range(len(strides))]


def padded(values: Sequence[int]) -> List[int]:
    """Return values with zeros up to AXES."""
    return [*values, *([0] * (AXES - len(values)))]


def broadcast(arrays: Sequence[Any]) -> Tuple[List[int], List[List[int]]]:
    """Return the shape that arrays have together, and the strides of each in it, in elements."""
    shape = list(np.broadcast(*arrays).shape)
    strides = []
    for array in arrays:
        own = strides_of(array.shape)
        steps = [0 if size == 1 else step for size, step in zip(array.shape, own)]
        strides.append([0] * (len(shape) - array.ndim) + steps)
    return shape, strides


class Batches(NamedTuple):
    """The stacks of two matrices: their shape together, and sizes and strides of both along two axes, in elements."""

    shape: List[int]
    sizes: List[int]
    strides: List[List[int]]


def batches_of(left: Any, right: Any) -> Batches:
    """Return the axes of two stacks of matrices, those of one element in front; a stride is 0 where one is repeated.

    Raises NotNativeError if more than two remain.
    """
    shape = list(np.broadcast(np.empty(left.shape[:-2]), np.empty(right.shape[:-2])).shape)
    strides = []
    for array in (left, right):
        steps = zip(array.shape[:-2], array.strides)
        own = [0 if size == 1 else step // array.itemsize for size, step in steps]
        strides.append([0] * (len(shape) - len(own)) + own)
    sizes, merged_strides = merged(shape, *strides) if shape else ([1], [[0], [0]])
    if len(sizes) > 2:
        raise NotNativeError("more than two axes of batches")
    missing = 2 - len(sizes)
    return Batches(shape, [1] * missing + sizes, [[0] * missing + each for each in merged_strides])


def copy(builder: Builder, source: Any, target: Any, sizes: Sequence[int], reads: Any, writes: Any) -> None:
    """Add a copy of `sizes` elements; `reads` and `writes` are an offset and the strides of each axis, in elements."""
    if 0 in sizes:
        return
    lengths, (first, second) = merged(sizes, reads[1], writes[1])
    numbers = [source.dtype.itemsize, len(lengths), reads[0], writes[0]]
    builder.step("copy", [source, target], [*numbers, *padded(lengths), *padded(first), *padded(second)])
