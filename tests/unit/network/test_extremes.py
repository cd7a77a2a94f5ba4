"""Largest and smallest floats: signed zeros, infinities and NaN as numpy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.network.engines import assert_native_equals_numpy

ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.5, -7.25], np.float32)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("shape", [(1, 40, 1), (7, 33, 1), (3, 9, 5), (2, 5, 300)])
@pytest.mark.parametrize("values", [ODD, ODD[:4], ODD[1:2], ODD[5:], ODD[4:5]])
def test_extremes_have_numpys_bits(op: str, shape: tuple[int, ...], values: np.ndarray[Any, Any]) -> None:
    data = np.random.default_rng(5).choice(values, shape).astype(np.float32)
    assert assert_native_equals_numpy(op, [data, np.array([1])], {"keepdims": 0})
