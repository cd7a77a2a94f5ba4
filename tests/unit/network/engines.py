"""The native engine beside numpy: the same operator by both, compared bit by bit.

With HILT_NATIVE_RECORDS, a file's path, every comparison is also written there, for tests/native/replay.c.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt_runtime import operators
from hilt_runtime.native import split
from hilt_runtime.native.library import engine
from hilt_runtime.native.plans import execute, plan_operator
from hilt_runtime.native.split import AWAKE_MICROSECONDS
from hilt_runtime.native.steps import Builder, NotNativeError

RECORDS = "HILT_NATIVE_RECORDS"
THREADS = 3
_LARGEST_RECORD = 1 << 20


def library() -> Any:
    """Return the engine's library, or skip the test where no compiler made one."""
    found = engine()
    if found.library is None:
        pytest.skip(found.reason)
    return found.library


def bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array's bytes; every NaN has the same."""
    if np.issubdtype(array.dtype, np.floating):
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def assert_native_equals_numpy(op: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> bool:
    """Compare both engines, the native one by one thread and in pieces; return whether it computes this form at all."""
    arrays = [None if value is None else np.array(value, order="C") for value in inputs]
    with np.errstate(all="ignore"):
        wanted = operators.run(op, arrays, attributes)
    builder = Builder()
    for constant in arrays[1:]:
        if constant is not None:
            builder.constant(constant)
    try:
        given = plan_operator(builder, op, arrays, attributes)
        steps, buffers = builder.encoded()
        recorded = record(builder, given, wanted)
        assert execute(library(), steps, buffers) == 0
    except NotNativeError:
        return False
    assert [(each.shape, each.dtype) for each in given] == [(each.shape, each.dtype) for each in wanted]
    for one, other in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(bits(one), bits(other), err_msg=op)
    for one, other in zip(in_pieces(op, inputs, attributes), wanted, strict=True):
        np.testing.assert_array_equal(bits(one), bits(other), err_msg=f"{op} in pieces")
    keep_record(recorded, buffers)
    return True


def keep_record(recorded: bytes, buffers: np.ndarray[Any, Any]) -> None:
    """Write a record to the file of HILT_NATIVE_RECORDS, if it is set."""
    if RECORDS in os.environ and len(recorded) < _LARGEST_RECORD and not _overlap(buffers):
        with Path(os.environ[RECORDS]).open("ab") as file:
            file.write(recorded)


def in_pieces(op: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
    """Return an operator's outputs by three threads, however small its pieces are."""
    builder, arrays = Builder(THREADS), [None if value is None else np.array(value, order="C") for value in inputs]
    for constant in arrays[1:]:
        if constant is not None:
            builder.constant(constant)
    library().hilt_threads(THREADS, AWAKE_MICROSECONDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "LEAST", 2)
        given = plan_operator(builder, op, arrays, attributes)
    assert execute(library(), *builder.encoded()) == 0
    return given


def record(builder: Builder, outputs: Sequence[Any], wanted: Sequence[Any]) -> bytes:
    """Return a record of tests/native/replay.c: the steps, the buffers as they are, and the right outputs."""
    steps, buffers = builder.encoded()
    parts: list[bytes] = []
    for buffer in builder.arrays:
        parts += [_number(buffer.nbytes), buffer.tobytes()]
    count = 0
    for one, other in zip(outputs, wanted, strict=True):
        found = _place(buffers, one)
        if found is not None:
            count += 1
            data = np.ascontiguousarray(other).astype(one.dtype).tobytes()
            parts += [*map(_number, (*found, len(data), int(one.dtype == np.float32))), data]
    return b"".join([*map(_number, (len(steps), len(buffers), count)), steps.tobytes(), *parts])


def _overlap(buffers: np.ndarray[Any, Any]) -> bool:
    """Return whether buffers share memory, which a record has not."""
    places = sorted(buffers.tolist())
    return any(data + size > following for (data, size), (following, _) in itertools.pairwise(places))


def _place(buffers: np.ndarray[Any, Any], array: Any) -> tuple[int, int] | None:
    """Return the buffer that an array lies in, and its offset there; None of a constant that no step touches."""
    address = array.ctypes.data
    for place, (data, size) in enumerate(buffers.tolist()):
        if data <= address and address + array.nbytes <= data + size:
            return place, address - data
    return None


def _number(value: int) -> bytes:
    return int(value).to_bytes(8, "little", signed=True)
