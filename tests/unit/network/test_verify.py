"""Errors on the board's side that a comparison with the reference refuses, and rounding that it accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node, Tensor
from hilt.network.verify import Verified, WrongTensorError, compare

INTEGERS = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
FLOATS = np.linspace(0.5, 2, 12, dtype=np.float32).reshape(3, 4)


def compared(board: NDArray[Any], reference: NDArray[Any], operator: str = "Add") -> Verified:
    """Compare y, which the operator makes of x."""
    tensors = {name: Tensor(name, reference.shape, str(reference.dtype)) for name in ("x", "y")}
    graph = Graph("one", ("x",), ("y",), (Node("n", operator, ("x",), ("y",)),), tensors, {})
    return compare({"x": reference, "y": board}, {"x": reference, "y": reference}, graph)


def changed(array: NDArray[Any], value: float) -> NDArray[Any]:
    """Return a copy whose element (1, 2) is the value."""
    result = array.copy()
    result[1, 2] = value
    return result


@pytest.mark.parametrize(
    ("board", "reference", "message"),
    [
        pytest.param(INTEGERS.reshape(4, 3), INTEGERS, r"is \(4, 3\), the reference's \(3, 4\)", id="shape"),
        pytest.param(INTEGERS.astype(np.int32), INTEGERS, "is int32, the reference's int8", id="integer dtype"),
        pytest.param(FLOATS.astype(np.float64), FLOATS, "is float64, the reference's float32", id="float dtype"),
        pytest.param(changed(INTEGERS, 1), INTEGERS, r"in 1 of 12 elements, the first at \(1, 2\)", id="int8 value"),
        pytest.param(changed(FLOATS, 1.3637), FLOATS, r"in 1 of 12 elements, the first at \(1, 2\)", id="float value"),
        pytest.param(changed(FLOATS, np.nan), FLOATS, "the board has nan", id="NaN for a number"),
        pytest.param(FLOATS, changed(FLOATS, np.nan), "the reference nan", id="number for a NaN"),
        pytest.param(changed(FLOATS, np.inf), FLOATS, "the board has inf", id="infinity for a number"),
    ],
)
def test_an_error_of_the_board_is_refused(board: NDArray[Any], reference: NDArray[Any], message: str) -> None:
    for operator in ("Add", "MatMul"):
        with pytest.raises(WrongTensorError, match=message):
            compared(board, reference, operator)


def test_a_small_value_that_is_far_off_is_refused_unless_large_terms_were_added() -> None:
    """1e-3 in place of 2e-3 beside a largest value of 10,000."""
    reference = changed(FLOATS, 2e-3)
    reference[0, 0] = 1e4
    board = changed(reference, 1e-3)
    for operator in ("Sigmoid", "Mul", "Relu"):
        with pytest.raises(WrongTensorError, match=r"the first at \(1, 2\)"):
            compared(board, reference, operator)
    assert compared(board, reference, "MatMul").rounded == 1


def test_what_no_operator_of_floats_made_has_no_rounding() -> None:
    board = changed(FLOATS, np.nextafter(FLOATS[1, 2], np.float32(9)))
    assert compared(board, FLOATS, "Exp").rounded == 1
    for operator in ("dequantize", "table"):
        with pytest.raises(WrongTensorError):
            compared(board, FLOATS, operator)
    graph = Graph("none", ("y",), ("y",), (), {"y": Tensor("y", FLOATS.shape, "float32")}, {})
    with pytest.raises(WrongTensorError):
        compare({"y": board}, {"y": FLOATS}, graph)


def test_a_tensor_that_one_side_has_not_got_is_refused() -> None:
    graph = Graph("none", ("y",), ("y", "z"), (), {}, {})
    with pytest.raises(WrongTensorError, match="the board returned no tensor z"):
        compare({"y": INTEGERS}, {"y": INTEGERS, "z": INTEGERS}, graph)
    with pytest.raises(WrongTensorError, match="the reference has no output z"):
        compare({"y": INTEGERS, "z": INTEGERS}, {"y": INTEGERS}, graph)


def test_a_transposed_tensor_that_packing_does_without_is_not_missed() -> None:
    """The board packs x with its channels last, so the tensor with channels first is never made."""
    tensors = {name: Tensor(name, INTEGERS.shape, "int8") for name in ("x", "first", "y")}
    nodes = (Node("turn", "transpose", ("x",), ("first",)), Node("n", "conv2d", ("first",), ("y",)))
    reference = dict.fromkeys(("x", "first", "y"), INTEGERS)
    graph = Graph("one", ("x",), ("y",), nodes, tensors, {})
    assert compare({"x": INTEGERS, "y": INTEGERS}, reference, graph) == Verified(2, 24)
    with pytest.raises(WrongTensorError, match="the board returned no tensor first"):
        compare({"x": INTEGERS, "y": INTEGERS}, reference, Graph("two", ("x",), ("first", "y"), nodes, tensors, {}))
    with pytest.raises(WrongTensorError, match="tensor first differs"):
        compare({**reference, "first": changed(INTEGERS, 1)}, reference, graph)


def test_equal_tensors_are_counted() -> None:
    found = compared(FLOATS, FLOATS)
    assert found == Verified(2, 24) and found.text == "2 tensors, 24 elements equal to the integer reference"
    holes = changed(FLOATS, np.nan)
    assert compared(holes, holes) == Verified(2, 24)
    other = compared(changed(FLOATS, np.nextafter(FLOATS[1, 2], np.float32(9))), FLOATS)
    assert other.text.endswith("reference, 1 of them floats that differ in rounding alone")
