"""The checks of the native engine: numbers of a step that reach outside of its tensors are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt_runtime.native.plans import execute
from hilt_runtime.native.steps import BUFFER, KERNELS, STEP, Builder, NotNativeError
from tests.unit.network.engines import library


@settings(max_examples=40, deadline=None)
@given(st.integers(1, len(KERNELS)), st.data())
def test_the_check_refuses_numbers_that_reach_outside(kernel: int, data: st.DataObject) -> None:
    """Any numbers: they are refused, or the step keeps within its tensors, as the bytes around them show."""
    buffers = data.draw(st.integers(1, 8))
    number = st.one_of(st.integers(-2, 9), st.sampled_from([-(2**63), 2**31, 2**62, 2**63 - 1]))
    memory = np.full((buffers, 4096), 85, np.uint8)
    table = np.array([(memory[i].ctypes.data + 1024, 2048) for i in range(buffers)], BUFFER)
    steps = np.zeros(1, STEP)
    steps["kernel"], steps["count"] = kernel, buffers
    steps["buffers"] = np.arange(8) % buffers
    steps["p"][0] = data.draw(st.lists(number, min_size=40, max_size=40))
    steps["f"] = 1.0
    try:
        execute(library(), steps, table)
    except NotNativeError:
        return
    assert (memory[:, :1024] == 85).all() and (memory[:, 3072:] == 85).all()


@pytest.mark.parametrize(
    ("kernel", "sizes", "refused"),
    [
        ("max_pool", [1 << 10, 1, 1, 1 << 10, 0], -1),
        ("max_pool", [1 << 10, 1, 1, (1 << 10) + 1, 0], 0),
        ("max_pool", [1 << 31, 0, 1, 0, 1], 0),
        ("pool_packed", [1 << 10, 0, 1, 1 << 10, 0], -1),
        ("pool_packed", [1 << 10, 0, 1, 1 << 21, 0], 0),
    ],
)
def test_the_check_refuses_loops_over_nothing(kernel: str, sizes: list[int], refused: int) -> None:
    """A tensor without elements has no bytes that bound its other sizes: such a step took minutes."""
    steps, memory = np.zeros(1, STEP), np.zeros(1024, np.uint8)
    steps["kernel"], steps["count"], steps["buffers"][0, 1] = KERNELS.index(kernel) + 1, 2, 1
    steps["p"][0, :17] = [*sizes, 1, 1, 1, 1, 0, 0, 1, 0, -128, 127, 1, 1]
    table = np.array([(memory.ctypes.data, 1024)] * 2, BUFFER)
    assert library().hilt_check(steps.ctypes.data, 1, table.ctypes.data, 2) == refused


@pytest.mark.parametrize(("rows", "refused"), [(1 << 20, -1), ((1 << 20) + 1, 0)])
def test_the_check_bounds_the_rows_of_a_chain_that_have_no_bytes(rows: int, refused: int) -> None:
    """Every strip of such a chain is the same one."""
    steps, memory = np.zeros(2, STEP), np.zeros(64, np.uint8)
    steps["kernel"], steps["count"], steps["buffers"][:, 1] = KERNELS.index("copy") + 1, 2, 1
    steps["p"][:, :5], steps["chain"][0], steps["rows"][0], steps["height"][0] = [1, 1, 0, 0, 8], 2, rows, 1
    table = np.array([(memory.ctypes.data, 64)] * 2, BUFFER)
    assert library().hilt_check(steps.ctypes.data, 2, table.ctypes.data, 2) == refused


@pytest.mark.parametrize("first", [-1, 1 << 31, (1 << 63) - 1])
def test_a_first_line_beyond_all_is_refused(first: int) -> None:
    """The place of its factors is counted from there: a number near the largest wrapped around."""
    builder = Builder()
    data, factors = builder.constant(np.ones((4, 3), np.float32)), builder.constant(np.ones(2, np.float32))
    builder.step("norm", [data, factors, factors, builder.new((4, 3), np.float32)], [4, 3, 1, 2, first], [1e-5])
    with pytest.raises(NotNativeError):
        execute(library(), *builder.encoded())
