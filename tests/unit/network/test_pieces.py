"""Which steps are cut, in how many pieces, and for how much work; which recurrent layers the engine computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hilt_runtime.native import split as splitting
from hilt_runtime.native.plans import plan_operator
from hilt_runtime.native.split import LEAST, split, work_of
from hilt_runtime.native.steps import KERNELS, Builder, NotNativeError
from tests.unit.network.engines import assert_native_equals_numpy

Array = np.ndarray[Any, Any]


def int8(*shape: int) -> Array:
    return np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)


def floats(*shape: int) -> Array:
    return np.random.default_rng(0).normal(0, 1, shape).astype(np.float32)


def planned(op: str, inputs: list[Any], attributes: Mapping[str, Any], threads: int = 3, variable: int = 1) -> Builder:
    """Return the plan of an operator whose inputs are constants, but for the first `variable`."""
    builder = Builder(threads)
    for constant in inputs[variable:]:
        if constant is not None:
            builder.constant(constant)
    plan_operator(builder, op, inputs, attributes)
    return builder


def work(op: str, inputs: list[Any], attributes: Mapping[str, Any]) -> int:
    """Return the work of an operator's largest step."""
    builder = planned(op, inputs, attributes, 1)
    return max(
        work_of(KERNELS[record.kernel - 1], [builder.arrays[place] for place in record.places], record.numbers)
        for record in builder.records
    )


CONV: dict[str, Any] = {"strides": [1, 1], "pads": [1] * 4, "groups": 1, "shift": [9], "clip": [-128, 127]}
NORMAL: dict[str, Any] = {"axis": 1, "epsilon": 0.02, "rounded": 1, "clip": [-128.0, 127.0]}
WINDOW: dict[str, Any] = {"kernel": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
CASES: dict[str, tuple[str, list[Any], dict[str, Any], int]] = {
    "table": ("table", [int8(1000), int8(256)], {}, 3),
    "table of few lines": ("table", [int8(128), int8(256)], {}, 2),
    "pixel_table": ("pixel_table", [int8(1, 9, 9, 3).view(np.uint8), int8(3, 256)], {"axis": 3}, 3),
    "pixel_table of planes": ("pixel_table", [int8(2, 3, 9, 9).view(np.uint8), int8(3, 256)], {"axis": 1}, 2),
    "prelu": ("prelu", [int8(1, 9, 9, 3), np.full((2, 9), 9000, np.int16)], {"left": 1}, 3),
    "prelu of images": ("prelu", [int8(4, 9, 9, 3), np.full((2, 9), 9000, np.int16)], {"left": 1}, 3),
    "prelu packed": ("prelu", [int8(1, 3, 9, 3, 1, 16), np.full((2, 40), 9000, np.int16)], {"left": 1}, 3),
    "prelu of a block": ("prelu", [int8(1, 1, 9, 3, 1, 16), np.full((2, 9), 9000, np.int16)], {"left": 1}, 3),
    "norm": ("LayerNormalization", [floats(9, 7), floats(7), floats(7)], {}, 3),
    "norm of channels": ("InstanceNormalization", [floats(2, 5, 4, 7), floats(5), floats(5)], {}, 3),
    "normalization": ("normalization", [int8(1, 9, 20, 20), floats(2, 9)], {**NORMAL, "groups": 9}, 3),
    "normalization of images": ("normalization", [int8(4, 9, 4, 5), floats(2, 9)], {**NORMAL, "groups": 1}, 3),
    "normalization of rows": ("normalization", [int8(300, 9), floats(2, 9)], {**NORMAL, "groups": 0}, 3),
    "quantize": ("quantize", [floats(1000)], {"scale": 0.5}, 3),
    "unary": ("Tanh", [floats(1000)], {}, 3),
    "add": ("add", [int8(1, 8, 9, 9), int8(1, 8, 9, 9)], {"left_shifts": [0, 1], "shift": 1, "clip": [-128, 127]}, 3),
    "binary": ("Mul", [floats(7, 40), floats(7, 1)], {}, 3),
    "binary of two rows": ("Mul", [floats(2, 40), floats(2, 1)], {}, 2),
    "max_pool": ("max_pool", [int8(1, 8, 9, 9)], WINDOW, 3),
    "reduce": ("ReduceSum", [floats(9, 50), np.array([1])], {}, 3),
    "softmax of many lines": ("Softmax", [floats(9, 50)], {"axis": -1}, 3),
    "matmul of batches": ("MatMul", [floats(4, 9, 8), floats(4, 8, 7)], {}, 3),
    "matmul of rows": ("MatMul", [floats(9, 8), floats(8, 7)], {}, 3),
    "conv2d": ("conv2d", [int8(1, 8, 9, 9), int8(8, 8, 3, 3)], CONV, 3),
    "conv2d of two images": ("conv2d", [int8(2, 8, 9, 9), int8(8, 8, 3, 3)], CONV, 1),
    "conv2d of groups": ("conv2d", [int8(1, 8, 9, 9), int8(8, 4, 3, 3)], {**CONV, "groups": 2}, 1),
    "transpose": ("transpose", [int8(8, 9, 10)], {"perm": [2, 0, 1]}, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_a_step_is_cut_in_as_many_pieces_as_there_are_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "LEAST", 2)
    op, inputs, attributes, pieces = CASES[name]
    assert max(record.together for record in planned(op, inputs, attributes).records) == pieces
    assert max(record.together for record in planned(op, inputs, attributes, 1).records) == 1
    assert assert_native_equals_numpy(op, inputs, attributes)


@pytest.mark.parametrize("elements", [65, 1000, 4096, 100_001])
@pytest.mark.parametrize("threads", [2, 3, 5])
def test_each_line_of_the_cache_is_written_by_one_thread(
    elements: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "LEAST", 2)
    target = np.zeros(elements, np.int8)
    found = split("table", [target.copy(), int8(256), target], [elements], threads)
    begins = [arrays[-1].ctypes.data - target.ctypes.data for arrays, _ in found]
    assert begins == sorted(begins) and all(begin % 64 == 0 for begin in begins)
    lengths = [int(numbers[0]) for _, numbers in found]
    assert len(found) == min(threads, -(-elements // 64)) and sum(lengths) == elements
    assert max(lengths) - min(lengths) < 2 * 64, "none waits long for another"


def test_a_step_is_cut_from_two_least_pieces_on() -> None:
    for elements, pieces in ((2 * LEAST // 4 - 64, 1), (2 * LEAST // 4, 2)):  # four instructions each
        data = np.zeros(elements, np.int8)
        assert len(split("table", [data, int8(256), data.copy()], [elements], 8)) == pieces
    assert len(split("fill", [np.zeros(1 << 22, np.int8)], [1, 1 << 22, 0], 8)) == 1, "there is no way to cut it"


def test_work_grows_with_the_products_of_a_step() -> None:
    square = work("MatMul", [floats(60, 50), floats(50, 40)], {})
    assert work("MatMul", [floats(60, 100), floats(100, 40)], {}) == 2 * square
    assert work("MatMul", [floats(60, 50), floats(50, 80)], {}) == 2 * square
    small = work("conv2d", [int8(1, 8, 16, 16), int8(8, 8, 3, 3)], CONV)
    assert work("conv2d", [int8(1, 16, 16, 16), int8(8, 16, 3, 3)], CONV) == 2 * small
    assert work("conv2d", [int8(1, 8, 16, 16), int8(24, 8, 3, 3)], CONV) == 3 * small
    assert work("conv2d", [int8(1, 8, 16, 16), int8(8, 8, 1, 3)], {**CONV, "pads": [0, 1, 0, 1]}) * 3 == small


def test_a_series_and_a_scattered_copy_are_more_work_than_a_plain_one() -> None:
    data = floats(1000)
    plain = work("Abs", [data], {})
    for op in ("Exp", "Log", "Tanh", "Sigmoid", "Erf", "Gelu", "Mish", "Softplus", "Elu", "Selu"):
        assert work(op, [data], {}) == 7 * plain, op
    for op in ("Relu", "Neg", "Floor", "Sqrt", "Sign", "HardSwish"):
        assert work(op, [data], {}) == plain, op
    block = int8(30, 40, 50)
    rows, turned = (work("transpose", [block], {"perm": perm}) for perm in ([1, 0, 2], [0, 2, 1]))
    assert turned == 8 * rows == 8 * block.size


# --- recurrent layers ---

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
HIDDEN = 6


def layer(op: str, directions: int = 1, batch: int = 2) -> list[Any]:
    rows = GATES[op] * HIDDEN
    shapes = [(5, batch, 3), (directions, rows, 3), (directions, rows, HIDDEN), (directions, 2 * rows)]
    return [floats(*shape) / 2 for shape in shapes]


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["", "forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("given", ["all", "no bias", "no state"])
def test_a_recurrent_layer_with_what_onnx_lets_it_leave_out(op: str, direction: str, given: str) -> None:
    directions = 2 if direction == "bidirectional" else 1
    inputs = layer(op, directions)
    state = np.tanh(floats(directions, 2, HIDDEN))
    if given == "all":
        inputs += [None, state, *([state[::-1] / 3] if op == "LSTM" else [])]
    elif given == "no bias":
        inputs = [*inputs[:3], None, None, state]
    attributes = {"hidden_size": HIDDEN, **({"direction": direction} if direction else {})}
    assert assert_native_equals_numpy(op, inputs, attributes)
    if op == "LSTM":
        inputs += [None] * (7 - len(inputs))
        assert assert_native_equals_numpy(op, [*inputs, floats(directions, 3 * HIDDEN)], attributes)
    if op == "GRU":
        assert assert_native_equals_numpy(op, inputs, {**attributes, "linear_before_reset": 1})
    if op == "RNN":
        for activation in ("Tanh", "Sigmoid", "Relu"):
            assert assert_native_equals_numpy(op, inputs, {**attributes, "activations": [activation] * directions})


@pytest.mark.parametrize("place", [1, 2, 3, 7])
def test_weights_that_are_computed_are_numpys(place: int) -> None:
    inputs, builder = [*layer("LSTM"), None, None, None, floats(1, 3 * HIDDEN)], Builder()
    for number, constant in enumerate(inputs):
        if number not in (0, place) and constant is not None:
            builder.constant(constant)
    with pytest.raises(NotNativeError, match="weights that are computed"):
        plan_operator(builder, "LSTM", inputs, {"hidden_size": HIDDEN})


@pytest.mark.parametrize("place", [0, 1, 2, 3, 5])
def test_a_layer_of_doubles_is_numpys(place: int) -> None:
    inputs = [*layer("GRU"), None, floats(1, 2, HIDDEN)]
    inputs[place] = inputs[place].astype(np.float64)
    with pytest.raises(NotNativeError, match="a tensor that is not float32"):
        planned("GRU", inputs, {"hidden_size": HIDDEN})


def step_of_int8(hidden: int, batch: int = 1, steps: int = 1) -> list[Any]:
    weights, recurrence = int8(1, 4 * hidden, 64), int8(1, 4 * hidden, hidden)
    scales = np.full((1, 4 * hidden), 1e-3, np.float32)
    return [floats(steps, batch, 64), weights, recurrence, *[None] * 5, scales, scales.copy()]


@pytest.mark.parametrize(("hidden", "pieces"), [(128, 2), (64, 1), (256, 3)])
def test_the_only_step_of_an_lstm_is_cut_by_the_size_of_its_weights(hidden: int, pieces: int) -> None:
    assert 4 * 128 * (64 + 128) // LEAST == 3 and 4 * 64 * (64 + 64) // LEAST == 1
    threads = 2 if hidden == 128 else 3
    records = planned("LSTM", step_of_int8(hidden), {"hidden_size": hidden}, threads).records
    (first, *_) = [record for record in records if record.together > 1 or record.chain > 1] or [records[0]]
    assert (first.together if first.chain > 1 else 1) == pieces
    assert sum(record.chain > 1 for record in records) == (pieces if pieces > 1 else 0)


@pytest.mark.parametrize(("batch", "steps"), [(2, 1), (1, 2)])
def test_several_steps_or_rows_of_an_lstm_are_not_cut_by_units(batch: int, steps: int) -> None:
    records = planned("LSTM", step_of_int8(128, batch, steps), {"hidden_size": 128}).records
    assert all(record.chain == 1 for record in records)
