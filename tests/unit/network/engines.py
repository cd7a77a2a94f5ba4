"""The native engine beside numpy: the same operator by both, compared bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from hilt_runtime import operators
from hilt_runtime.native.library import engine
from hilt_runtime.native.plans import run_operator
from hilt_runtime.native.steps import NotNativeError


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
    """Compare both engines; return whether the native one computes this form at all."""
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    with np.errstate(all="ignore"):
        wanted = operators.run(op, arrays, attributes)
    try:
        given = run_operator(library(), op, arrays, attributes)
    except NotNativeError:
        return False
    assert [(each.shape, each.dtype) for each in given] == [(each.shape, each.dtype) for each in wanted]
    for one, other in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(bits(one), bits(other), err_msg=op)
    return True
