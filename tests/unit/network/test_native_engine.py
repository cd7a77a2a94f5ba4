"""The native engine against numpy on any shape, its refusals, and whole inferences by both."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt_runtime import functions, operators
from hilt_runtime.layout import fold, pack, unpack
from hilt_runtime.native import library as libraries
from hilt_runtime.native.inference import InferencePlan
from hilt_runtime.native.library import Engine, engine
from hilt_runtime.native.plans import run_operator
from hilt_runtime.native.steps import KERNELS, NotNativeError
from tests.unit.network.engines import assert_native_equals_numpy, bits, keep_record, library, record

sizes = st.integers(1, 40)
seeds = st.integers(0, 2**32 - 1)
examples = settings(max_examples=40, deadline=None)


def int8(seed: int, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def floats(seed: int, *shape: int) -> np.ndarray[Any, Any]:
    """Return numbers of every size, halves, zeros of both signs, infinities and NaN among them."""
    random = np.random.default_rng(seed)
    values = random.normal(0, 1, shape) * 10.0 ** random.integers(-20, 20, shape)
    odd = np.array([0.5, 1.5, -2.5, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 127.5, -128.5, 88.8, -104.0])
    with np.errstate(over="ignore"):
        return np.where(random.random(shape) < 0.3, random.choice(odd, shape), values).astype(np.float32)


def planned(kind: str, step: dict[str, Any], data: Any, packed: np.ndarray[Any, Any]) -> InferencePlan:
    plan = InferencePlan(library(), {}, {"b": packed})
    plan.begin({"t": data})
    getattr(plan, kind)({"tensor": "t", "buffer": "b", **step})
    return plan


@examples
@given(st.integers(1, 3), sizes, st.integers(1, 9), sizes, st.sampled_from([(1, 16), (2, 8), (1, 32), (3, 5)]), seeds)
def test_packing_and_unpacking(
    images: int, channels: int, height: int, width: int, blocks: tuple[int, int], seed: int
) -> None:
    batch, block = blocks
    data = int8(seed, images, channels, height, width)
    shape = (-(-images // batch), -(-channels // block), height, width, batch, block)
    wanted, given_ = np.full(shape, 7, np.int8), np.full(shape, 9, np.int8)
    pack(data, wanted)
    planned("add_pack", {}, data, given_)
    np.testing.assert_array_equal(given_, wanted)
    given_[:] = 9
    planned("add_pack", {"channels_last": True}, data.transpose(0, 2, 3, 1), given_)
    np.testing.assert_array_equal(given_, wanted)
    back = planned("add_unpack", {"shape": list(data.shape)}, data, given_).values["t"]
    np.testing.assert_array_equal(back, unpack(wanted, data.shape))


@examples
@given(st.integers(1, 2), st.integers(1, 5), st.integers(1, 5), sizes, st.integers(1, 7), st.integers(1, 4), seeds)
def test_folding(images: int, channels: int, height: int, width: int, kernel: int, stride: int, seed: int) -> None:
    left, right = seed % 5, seed % 3
    columns = (width + left + right - kernel) // stride + 1
    if columns < 1:
        return
    data, block = int8(seed, images, channels, height, width), (8, 16, 32)[seed % 3]
    shape = (images, -(-kernel * channels // block), height, columns, 1, block)
    wanted, given_ = np.full(shape, 7, np.int8), np.full(shape, 9, np.int8)
    fold(data, wanted, kernel, stride, left)
    facts = {"fold": {"kernel": kernel, "stride": stride, "left": left}}
    planned("add_pack", facts, data, given_)
    np.testing.assert_array_equal(given_, wanted)
    given_[:] = 9
    planned("add_pack", {**facts, "channels_last": True}, data.transpose(0, 2, 3, 1), given_)
    np.testing.assert_array_equal(given_, wanted)


@examples
@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 9), sizes, st.integers(1, 4), st.integers(1, 3), seeds)
def test_folding_of_all_taps(
    images: int, channels: int, height: int, width: int, kernel: int, stride: int, seed: int
) -> None:
    """The packed lanes are the taps of a convolution's windows, of whole images and of the bands of one."""
    high, top, left, lanes = 1 + seed % 4, seed % 3, seed % 2, 1 + seed % 2
    count, columns = (height + top) // stride + 1, (width + left) // stride + 1
    data = int8(seed, images, channels, height, width)
    block = 16 if high * kernel * channels <= 16 else 64
    rows = {"kernel": high, "stride": stride, "top": top, "count": count}
    facts = {"fold": {"kernel": kernel, "stride": stride, "left": left, "rows": rows}}
    shape = (images, 1, count, columns, 1, block) if images > 1 else (1, 1, -(-count // lanes), columns, lanes, block)
    wanted, given_ = np.full(shape, 7, np.int8), np.full(shape, 9, np.int8)
    fold(data, wanted, kernel, stride, left, rows)
    around = np.pad(data, ((0, 0), (0, 0), (top, stride * count + high), (left, stride * columns + kernel)))
    for image, row, column in np.ndindex(images, count, columns):
        window = around[image, :, row * stride :, column * stride :][:, :high, :kernel]
        place = (image, 0, row, column, 0) if images > 1 else (0, 0, row % shape[2], column, row // shape[2])
        lane = wanted[place]
        np.testing.assert_array_equal(lane[: window.size], window.transpose(2, 1, 0).reshape(-1))
        assert not lane[window.size :].any()
    planned("add_pack", facts, data, given_)
    np.testing.assert_array_equal(given_, wanted)
    given_[:] = 9
    planned("add_pack", {**facts, "channels_last": True}, data.transpose(0, 2, 3, 1), given_)
    np.testing.assert_array_equal(given_, wanted)


@examples
@given(st.integers(1, 5), st.integers(1, 5), sizes, st.integers(1, 7), st.integers(1, 4), st.booleans(), seeds)
def test_a_fold_quantises_its_image(
    channels: int, height: int, width: int, kernel: int, stride: int, last: bool, seed: int
) -> None:
    """One record in the place of a quantisation's and a fold's, with their bits."""
    left, right, scale = seed % 5, seed % 3, 2.0 ** (seed % 21 - 10)
    factor = {"factor": 1 + seed % 7 / 11} if seed % 2 else {}
    columns = (width + left + right - kernel) // stride + 1
    if columns < 1:
        return
    given_ = [floats(seed + turn, 1, channels, height, width) * np.float32(scale * 100) for turn in range(2)]
    packed = np.full((1, -(-kernel * channels // 16), height, columns, 1, 16), 9, np.int8)
    steps: list[dict[str, Any]] = [
        {"kind": "cpu", "name": "q", "op": "quantize", "inputs": ["x"], "outputs": ["t"],
         "attributes": {"scale": scale, **factor}},
        {"kind": "pack", "name": "p", "tensor": "t", "buffer": "b",
         "fold": {"kernel": kernel, "stride": stride, "left": left}, **({"channels_last": True} if last else {})},
    ]  # fmt: skip
    images = [{"x": np.ascontiguousarray(image.transpose(0, 2, 3, 1) if last else image)} for image in given_]
    plan = InferencePlan(library(), {}, {"b": packed}, 1 + seed % 2)
    plan.begin(images[0])
    plan.add_operator(steps[0], lambda inputs: operators.run("quantize", inputs, steps[0]["attributes"]))
    plan.add_pack(steps[1])
    plan.finish(steps, set())
    assert {KERNELS[record.kernel - 1] for record in plan.builder.records} == {"fold"}
    plan.run(images[1])
    wanted = np.full_like(packed, 7)
    fold(operators.run("quantize", [given_[1]], {"scale": scale, **factor})[0], wanted, kernel, stride, left)
    np.testing.assert_array_equal(packed, wanted)
    assert [begin == end for begin, end, _ in plan.step_times(*plan.times())] == [True, False]
    packed[...] = 9
    keep_record(record(plan.builder, [packed], [wanted]), plan.builder.encoded()[1])


@examples
@given(sizes, st.integers(2, 12), st.integers(1, 9), st.sampled_from([2, 4]), seeds)
def test_bands_of_one_image(channels: int, height: int, width: int, lanes: int, seed: int) -> None:
    data = int8(seed, 1, channels, height, width)
    kernel, left = 1 + seed % 3, seed % 2
    for facts, planes, columns in (
        ({}, channels, width),
        ({"fold": {"kernel": kernel, "stride": 1, "left": left}}, channels * kernel, width),
    ):
        wanted = np.full((1, -(-planes // 16), -(-height // lanes), columns, lanes, 16), 7, np.int8)
        if facts:
            fold(data, wanted, kernel, 1, left)
        else:
            pack(data, wanted)
        for step, tensor in (({}, data), ({"channels_last": True}, data.transpose(0, 2, 3, 1))):
            given_ = np.full_like(wanted, 9)
            planned("add_pack", {**facts, **step}, tensor, given_)
            np.testing.assert_array_equal(given_, wanted)
        if not facts:
            back = planned("add_unpack", {"shape": list(data.shape)}, data, wanted).values["t"]
            np.testing.assert_array_equal(back, data)
            np.testing.assert_array_equal(unpack(wanted, data.shape), data)


@examples
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), seeds)
def test_transposes_slices_and_joins(shape: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    dtype = random.choice(["int8", "int16", "float32", "int64"])
    data = random.integers(-100, 100, shape).astype(dtype)
    assert assert_native_equals_numpy("Transpose", [data], {"perm": random.permutation(len(shape)).tolist()})
    axis = int(random.integers(len(shape)))
    assert assert_native_equals_numpy("Concat", [data, data[::-1].copy(), data], {"axis": axis})
    steps = random.choice([-3, -1, 1, 2], len(shape)).tolist()
    starts, ends = random.integers(-8, 8, (2, len(shape))).tolist()
    attributes = {"starts": starts, "ends": ends, "axes": list(range(len(shape))), "steps": steps}
    assert assert_native_equals_numpy("slice", [data], attributes)
    indices = random.integers(-shape[axis], shape[axis], (2, 3), dtype=np.int64)
    assert assert_native_equals_numpy("Gather", [data, indices], {"axis": axis})
    pads = random.integers(0, 3, 2 * len(shape)).tolist()
    assert assert_native_equals_numpy("pad", [data], {"pads": pads, "value": -5})
    for mode in ("reflect", "edge", "wrap"):
        assert assert_native_equals_numpy("Pad", [data, np.array(pads, np.int64)], {"mode": mode})


@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_pads_of_few_and_of_many_runs(size: int) -> None:
    data = int8(1, 2, size, 3)
    for mode in ("reflect", "edge", "wrap"):
        assert assert_native_equals_numpy("Pad", [data, np.array([0, 19, 2, 1, 18, 0])], {"mode": mode})


@examples
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), seeds)
def test_pairs_with_broadcasting(shape: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    other = [size if random.random() < 0.6 else 1 for size in shape][int(random.integers(len(shape))) :]
    shifts, shift = random.integers(0, 9, 2).tolist(), int(random.integers(0, 20))
    low = int(random.integers(-128, 1))
    attributes = {"left_shifts": shifts, "shift": shift, "clip": [low, 127]}
    for one, two in ((shape, other), (other, shape)):
        assert assert_native_equals_numpy("add", [int8(seed, *one), int8(seed + 1, *two)], attributes)
        for offsets in ([0, 0], random.integers(-254, 255, 2).tolist()):
            changed = {**attributes, "offsets": offsets}
            assert assert_native_equals_numpy("multiply", [int8(seed, *one), int8(seed + 1, *two)], changed)
        for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Greater", "LessOrEqual", "Equal"):
            assert assert_native_equals_numpy(op, [floats(seed, *one), floats(seed + 1, *two)], {})


@examples
@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.sampled_from([(1, 16), (2, 8), (1, 32)]), seeds)
def test_joins_and_blocks_of_lanes(fours: list[int], lanes: tuple[int, int], seed: int) -> None:
    """Channels that are no whole blocks move in VTA's layout as they do in the plain one."""
    (batch, block), channels = lanes, [4 * each for each in fours]

    def packed(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        made = np.zeros((2, -(-data.shape[1] // block), 3, 5, batch, block), np.int8)
        pack(data, made)
        return made

    parts = [int8(seed + place, 2 * batch, count, 3, 5) for place, count in enumerate(channels)]
    given_, joined = [packed(part) for part in parts], np.concatenate(parts, axis=1)
    attributes: dict[str, Any] = {"axis": 1, "channels": channels}
    made = operators.run("concat", given_, attributes)[0]
    np.testing.assert_array_equal(unpack(made, list(joined.shape)), joined)
    assert assert_native_equals_numpy("concat", given_, attributes)
    padded: dict[str, Any] = {"pads": [0] * 5 + [4 * len(channels), 0, 0], "value": 0}
    wanted = operators.run("pad", [parts[0]], padded)[0]
    padded["channels"] = channels[:1]
    made = operators.run("pad", given_[:1], padded)[0]
    np.testing.assert_array_equal(unpack(made, list(wanted.shape)), wanted)
    assert assert_native_equals_numpy("pad", given_[:1], padded)
    wide, attributes = int8(seed, 2 * batch, 6 * channels[0], 3, 5), {"block": [2, 3], "mode": "DCR"}
    spread = operators.run("depth_to_space", [wide], attributes)[0]
    attributes["channels"] = [6 * channels[0]]
    made = operators.run("depth_to_space", [packed(wide)], attributes)[0]
    np.testing.assert_array_equal(unpack(made, list(spread.shape)), spread)
    assert assert_native_equals_numpy("depth_to_space", [packed(wide)], attributes)


def test_lanes_that_its_inputs_do_not_have_are_refused() -> None:
    data = int8(0, 1, 2, 3, 5, 1, 16)
    for channels in ([16], [33], [-1], [10**15], [24, 24], []):
        with pytest.raises(ValueError, match="channels"):
            operators.run("concat", [data], {"axis": 1, "channels": channels})
        with pytest.raises(NotNativeError, match="channels"):
            run_operator(library(), "concat", [data], {"axis": 1, "channels": channels})


@examples
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), seeds)
def test_choices_with_broadcasting(shape: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    parts = [
        [size if random.random() < 0.6 else 1 for size in shape][int(random.integers(len(shape))) :] for _ in "123"
    ]
    condition = random.random(parts[0]) < 0.5
    for make in (floats, int8, lambda seed, *shape: np.arange(int(np.prod(shape))).reshape(shape) + seed):
        assert assert_native_equals_numpy("Where", [condition, make(seed, *parts[1]), make(seed + 1, *parts[2])], {})
    assert not assert_native_equals_numpy("Where", [condition, floats(seed, *parts[1]), int8(seed, *parts[2])], {})


def test_places_are_widened_and_clipped() -> None:
    places = np.array([-5, 0, 7, 2**31 - 1, -(2**31)], np.int32)
    assert assert_native_equals_numpy("Cast", [places], {"to": 7})
    wide = places.astype(np.int64) * 2**20
    for bounds in ((0, 257), (None, 3), (5, 2), ()):
        given = [None if bound is None else np.array(bound, np.int64) for bound in bounds]
        assert assert_native_equals_numpy("Clip", [wide, *given], {})


UNARY = (
    *("Abs", "Neg", "Relu", "Ceil", "Floor", "Round", "Sign", "Sqrt", "Reciprocal", "Exp", "Log", "Sigmoid", "Tanh"),
    *("HardSigmoid", "HardSwish", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Mish", "Erf", "Gelu"),
    *("ThresholdedRelu", "Shrink"),
)


@pytest.mark.parametrize("op", UNARY)
def test_functions_of_odd_numbers(op: str) -> None:
    for seed in range(4):
        assert assert_native_equals_numpy(op, [floats(seed, 4000)], {})
        assert assert_native_equals_numpy(op, [np.linspace(-12, 12, 4001).astype(np.float32)], {})


@pytest.mark.parametrize("scale", [2.0**-7, 1.0, 2.0**-99, 2.0**-120, 0.1, 3e-39])
def test_borders_to_float(scale: float) -> None:
    data = np.concatenate(
        [floats(3, 3001) * np.float32(scale), floats(4, 500), np.float32(scale) * np.arange(-300, 300) / 2]
    )
    assert assert_native_equals_numpy("quantize", [data.astype(np.float32)], {"scale": scale})
    assert assert_native_equals_numpy("dequantize", [int8(1, 1003)], {"scale": scale})
    for entries in (int8(2, 256), floats(2, 256)):
        assert assert_native_equals_numpy("table", [int8(1, 3, 67), entries], {})


@pytest.mark.parametrize("channels", [1, 5, 16, 40])
@pytest.mark.parametrize("pixels", [1, 15, 50])
def test_two_factors_of_each_channel(channels: int, pixels: int) -> None:
    """In planes, and in lanes of VTA's blocks: 16 of an image, 8 of two images, 32."""
    data = int8(pixels, 2, channels, 1, pixels)
    factors = np.random.default_rng(channels).integers(-32767, 32768, (2, channels)).astype(np.int16)
    for left, offset in ((0, 0), (3, -256), (3, 100), (8, 256)):
        attributes = {"left": left, "offset": offset}
        assert assert_native_equals_numpy("prelu", [data, factors], attributes)
        made = operators.run("prelu", [data, factors], attributes)[0]
        for batch, block in ((1, 16), (2, 8), (1, 32)):
            packed = np.zeros((2 // batch, -(-channels // block), 1, pixels, batch, block), np.int8)
            pack(data, packed)
            assert assert_native_equals_numpy("prelu", [packed, factors], attributes)
            found = operators.run("prelu", [packed, factors], attributes)[0]
            np.testing.assert_array_equal(unpack(found, list(made.shape)), made)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("pixels", [1, 15, 16, 100])
def test_bytes_of_each_channel(channels: int, pixels: int) -> None:
    entries = int8(channels, channels, 256)
    lines = int8(pixels, 2, pixels, channels).view(np.uint8)
    assert assert_native_equals_numpy("pixel_table", [lines, entries], {"axis": 2})
    assert assert_native_equals_numpy("pixel_table", [lines.transpose(0, 2, 1).copy(), entries], {"axis": 1})
    assert assert_native_equals_numpy("pixel_table", [lines, entries[:1]], {"axis": 0})
    assert assert_native_equals_numpy("pixel_table", [lines.view(np.int8), entries], {"axis": 2})


@examples
@given(sizes, sizes, sizes, seeds)
def test_products_reductions_and_softmax(rows: int, depth: int, columns: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    left = random.normal(0, 3, (2, rows, depth)).astype(np.float32)
    right = random.normal(0, 3, (depth, columns)).astype(np.float32)
    assert assert_native_equals_numpy("MatMul", [left, right], {})
    assert (
        assert_native_equals_numpy("Gemm", [left[0], right.T.copy(), right[:1]], {"transB": 1, "beta": 0.5})
        or columns != right.shape[1]
    )
    for op in ("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceMax", "ReduceMin"):
        assert assert_native_equals_numpy(op, [left, np.array([1])], {"keepdims": seed % 2})
        assert assert_native_equals_numpy(op, [left, np.array([-1, 1])], {"keepdims": seed % 2})
    for axis in range(3):
        assert assert_native_equals_numpy("Softmax", [left], {"axis": axis})
        assert assert_native_equals_numpy("ArgMax", [np.round(left)], {"axis": axis})
    attributes = {"strides": [1 + seed % 2, 1], "pads": [seed % 3, 1, 0, 2], "kernel_shape": [3, 2]}
    image = random.normal(0, 1, (1, 4, rows + 3, columns + 3)).astype(np.float32)
    weights = random.normal(0, 1, (6, 2, 3, 2)).astype(np.float32)
    assert assert_native_equals_numpy("Conv", [image, weights, weights[:, 0, 0, 0].copy()], {"group": 2, **attributes})
    for op in ("MaxPool", "AveragePool"):
        assert assert_native_equals_numpy(op, [image], {"ceil_mode": seed % 2, **attributes})


@examples
@given(st.sampled_from([("LSTM", 4), ("GRU", 3), ("RNN", 1)]), st.integers(1, 3), sizes, sizes, st.booleans(), seeds)
def test_recurrent_layers_of_floats_and_of_int8(
    kind: tuple[str, int], steps: int, inputs: int, hidden: int, odd: bool, seed: int
) -> None:
    (op, gates), random = kind, np.random.default_rng(seed)
    data, scales = random.normal(0, 3, (steps, 2, inputs)), random.normal(0, 0.001, (2, 2, gates * hidden))
    weights, recurrence = (int8(seed, 2, gates * hidden, depth) for depth in (inputs, hidden))
    state, bias = np.tanh(random.normal(0, 1, (2, 2, hidden))), random.normal(0, 1, (2, 2 * gates * hidden))
    read = floats(seed, *data.shape) if odd else data.astype(np.float32)
    attributes = {"hidden_size": hidden, "direction": "bidirectional", "linear_before_reset": seed % 2}
    attributes |= {"activations": ["Tanh", "Sigmoid"]} if op == "RNN" else {}
    peepholes = random.normal(0, 1, (2, 3 * hidden)).astype(np.float32) if op == "LSTM" and seed % 2 else None
    others = [bias.astype(np.float32), None, state.astype(np.float32), None, peepholes]
    of_int8: list[Any] = [read, weights, recurrence, *others, *scales.astype(np.float32)]
    assert assert_native_equals_numpy(op, of_int8, attributes)
    real = [
        (rows * scale[..., None]).astype(np.float32) for rows, scale in zip((weights, recurrence), scales, strict=True)
    ]
    of_floats: list[Any] = [read, *real, *others]
    assert assert_native_equals_numpy(op, of_floats, attributes)
    if not odd:
        given_, wanted = operators.run(op, of_int8, attributes)[0], operators.run(op, of_floats, attributes)[0]
        np.testing.assert_allclose(given_, wanted, atol=2e-3)  # of the steps of data and state


@examples
@given(sizes, st.integers(1, 70), st.booleans(), st.booleans(), seeds)
def test_the_only_step_of_an_lstm_in_pieces(inputs: int, hidden: int, with_bias: bool, odd: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    weights, recurrence = (int8(seed + depth, 1, 4 * hidden, depth) for depth in (inputs, hidden))
    state, cell = np.tanh(random.normal(0, 1, (2, 1, 1, hidden))).astype(np.float32)
    bias = random.normal(0, 1, (1, 8 * hidden)).astype(np.float32) if with_bias else None
    scales = random.normal(0, 0.01, (2, 1, 4 * hidden))
    if odd:  # sums of the smallest are taken for 0
        scales *= 10.0 ** random.integers(-42, 1, scales.shape)
    scales = scales.astype(np.float32)
    read = floats(seed, 1, 1, inputs) if odd else random.normal(0, 3, (1, 1, inputs)).astype(np.float32)
    peepholes = random.normal(0, 1, (1, 3 * hidden)).astype(np.float32) if seed % 2 else None
    given_ = [read, weights, recurrence, bias, None, state, cell, peepholes, *scales]
    assert assert_native_equals_numpy("LSTM", given_, {"hidden_size": hidden, "direction": "forward"})


def test_sums_of_int8_weights_are_exact_however_long() -> None:
    """Rows of the most negative weight, and a state at the end of its range: their sums leave 32 bits."""
    hidden = 2100
    recurrence, scales = np.full((1, hidden, hidden), -128, np.int8), np.full((1, hidden), 2.0**-20, np.float32)
    state, data = np.full((1, 1, hidden), -1, np.float32), np.zeros((1, 1, 1), np.float32)
    inputs: list[Any] = [data, recurrence[..., :1].copy(), recurrence, None, None, state, None, None, scales, scales]
    assert assert_native_equals_numpy("RNN", inputs, {"hidden_size": hidden})
    made = operators.run("RNN", inputs, {"hidden_size": hidden})[0]
    np.testing.assert_array_equal(made, functions.tanh_by_table(np.full_like(made, hidden * 128 * 2.0**-20)))


def test_looked_up_functions_are_close_everywhere() -> None:
    x = np.concatenate([np.linspace(-20, 20, 40001), [np.inf, -np.inf, 1e-40, -0.0]]).astype(np.float32)
    with np.errstate(over="ignore"):
        wanted = 1 / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(functions.sigmoid_by_table(x), wanted, rtol=0, atol=6.2e-6)  # behind the table's end
    inside = np.abs(x) < 12
    np.testing.assert_allclose(functions.sigmoid_by_table(x)[inside], wanted[inside], rtol=0, atol=3.1e-6)
    np.testing.assert_allclose(functions.tanh_by_table(x), np.tanh(x.astype(np.float64)), rtol=0, atol=1.3e-5)
    assert np.isnan(
        [functions.tanh_by_table(np.float32([np.nan])), functions.sigmoid_by_table(np.float32([np.nan]))]
    ).all()


def test_int8_weights_without_their_scales_are_refused() -> None:
    weights = int8(1, 1, 8, 2)
    for scales in ([], [None, None, None, None, None, np.ones((1, 8), np.float32), np.ones((1, 7), np.float32)]):
        with pytest.raises(ValueError, match="int8 weights need a float32 scale for each of their rows"):
            operators.run("LSTM", [floats(1, 3, 1, 2), weights, weights, *scales], {"hidden_size": 2})


def test_every_kernel_of_the_library_has_a_name() -> None:
    assert library().hilt_kernel_count() == len(KERNELS)


def test_numpy_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_ENGINE", "numpy")
    assert engine() == Engine(None, "numpy: HILT_ENGINE=numpy is set")
    monkeypatch.setenv("HILT_ENGINE", "fortran")
    assert engine().reason == "numpy: HILT_ENGINE is 'fortran'; give numpy or native"


def test_without_a_compiler_it_is_numpy_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(libraries, "SENT", "no such library, {}")
    monkeypatch.setattr(libraries, "_CHOSEN", {})
    found = engine()
    assert found.library is None and "\n" not in found.reason
    assert "no gcc, cc or clang on this computer" in found.reason and "ten to fifty times" in found.reason


@pytest.mark.parametrize("line", ["int hilt_abi(void) { return 9; }", "int other;"])
def test_a_library_of_another_version_is_not_used(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = next((found for found in map(shutil.which, ("gcc", "cc", "clang")) if found), None)
    if compiler is None:
        pytest.skip("no compiler")
    source, older = tmp_path / "older.c", tmp_path / "older.so"
    source.write_text(line)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", older, source], check=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(libraries, "_sent", lambda: (older, "sent"))
    monkeypatch.setattr(libraries, "_CHOSEN", {})
    assert engine().reason.startswith(f"numpy: {older} is of another version; no gcc")


def test_no_library_is_loaded_from_a_folder_that_others_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    folder = tmp_path / "native"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    monkeypatch.setattr(libraries, "_CHOSEN", {})
    assert engine().library is None and "can be written by others" in engine().reason


def test_bits_tell_zeros_apart() -> None:
    assert (bits(np.array([0.0], np.float32)) != bits(np.array([-0.0], np.float32))).any()


packed_cases = [
    ("table", [int8(7, 256)], {}),
    ("add", ["packed"], {"left_shifts": [1, 0], "shift": 2, "clip": [-128, 127]}),
    ("multiply", ["packed"], {"shift": 6, "clip": [-128, 127]}),
    ("multiply", ["gate"], {"shift": 6, "clip": [-128, 127]}),
    ("multiply", ["gate"], {"shift": 0, "clip": [-100, 90]}),
    ("multiply", ["gate"], {"shift": 6, "clip": [-128, 127], "offsets": [124, -60]}),
    ("multiply", ["gate"], {"shift": 5, "clip": [-128, 127], "offsets": [0, 3]}),
    ("multiply", ["pixels"], {"shift": 6, "clip": [-128, 127], "by_pixel": 1}),
    ("multiply", ["pixels"], {"shift": 5, "clip": [-100, 127], "offsets": [60, -20], "by_pixel": 1}),
    ("concat", ["packed"], {"axis": 1}),
    ("concat", ["packed"], {"axis": 2}),
    ("slice", [], {"starts": [0, 1], "ends": [1, 3], "axes": [1, 3], "steps": [1, 2]}),
    ("upsample", [], {"factors": [2, 3]}),
    ("pad", [], {"pads": [0, 0, 1, 2, 0, 0, 0, 0, 0, 3, 0, 0], "value": 0}),
    ("max_pool", [], {"kernel": [2, 3], "strides": [2, 1], "pads": [0, 1, 1, 1]}),
    ("average_pool", [], {"kernel": [2, 3], "strides": [1, 2], "pads": [1, 1, 0, 1], "divisor": 3, "shift": 1,
                          "clip": [-128, 127]}),
    ("global_average_pool", [], {"divisor": 5, "shift": -1, "clip": [-128, 127]}),
    ("global_average_pool", [], {"divisor": 5, "shift": -3, "clip": [-100, 127], "offset": -1000}),
    ("average_pool", [], {"kernel": [2, 2], "strides": [2, 2], "pads": [0] * 4, "divisor": 1, "shift": 1,
                          "clip": [-128, 127], "offset": 93}),
    ("average_pool", [], {"kernel": [3, 3], "strides": [1, 1], "pads": [1] * 4, "divisor": 0, "shift": -1,
                          "clip": [-100, 127]}),
    ("average_pool", [], {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 1, 1, 1], "divisor": 0, "shift": 0,
                          "clip": [-128, 127], "offset": -7}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "others", "attributes"), packed_cases)
@pytest.mark.parametrize("blocks", [(1, 16), (2, 8)])
def test_an_operator_on_vtas_buffers_is_the_one_on_plain_tensors(
    op: str, others: list[Any], attributes: dict[str, Any], blocks: tuple[int, int]
) -> None:
    """The native engine and numpy write the buffer that packs the plain operator's result, empty lanes apart."""
    batch, block = blocks
    images, channels, height, width = batch, 2 * block, 4, 5
    data = int8(1, images, channels, height, width)
    shapes = {"packed": data.shape, "gate": (images, channels, 1, 1), "pixels": (images, 1, height, width)}
    plain = [data] + [int8(3, *shapes[each]) if isinstance(each, str) else each for each in others]
    wanted_attributes = {key: value for key, value in attributes.items() if key != "by_pixel"}
    if op == "slice":
        wanted_attributes |= {"starts": [0, 1], "ends": [block, 3]}
    if op == "pad":
        wanted_attributes["pads"] = [0, 0, 1, 2, 0, 0, 0, 3]
    (wanted,) = operators.run(op, plain, wanted_attributes)
    packed, target = [_packed(each, blocks) if each.ndim == 4 else each for each in plain], _packed(wanted, blocks)
    assert np.array_equal(operators.run(op, packed, attributes)[0], target)

    buffers = {f"b{place}": each for place, each in enumerate(packed) if each.ndim == 6}
    constants = {f"t{place}": each for place, each in enumerate(packed) if each.ndim != 6}
    step = {
        "name": "n", "op": op, "inputs": [f"t{place}" for place in range(len(packed))], "outputs": ["y"],
        "attributes": attributes, "packed": {**{f"t{name[1:]}": name for name in buffers}, "y": "out"},
    }  # fmt: skip
    made = np.full(target.shape, 99, np.int8)
    plan = InferencePlan(library(), constants, {**buffers, "out": made})
    plan.begin({})
    plan.add_packed(step)
    plan.finish([], set())
    np.testing.assert_array_equal(made, target)
    made[...] = 55
    plan.run({})
    np.testing.assert_array_equal(made, target)


def _packed(data: Any, blocks: tuple[int, int]) -> Any:
    batch, block = blocks
    images, channels, height, width = data.shape
    whole = np.zeros((images // batch, -(-channels // block), height, width, batch, block), np.int8)
    pack(data, whole)
    if channels == 1:
        whole[..., 1:] = 77  # which nobody reads
    return whole


@examples
@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(-3, 8), st.booleans(), st.data())
def test_a_softmax_of_int8_is_that_of_the_floats(
    shape: list[int], exponent: int, log: bool, data: st.DataObject
) -> None:
    axis, scale = data.draw(st.integers(0, len(shape) - 1)), 2.0**-exponent
    values = int8(data.draw(st.integers(0, 99)), *shape)
    attributes = {"axis": axis, "scale": scale, "logarithm": int(log), "shape": shape}
    (made,) = run_operator(library(), "softmax", [values], attributes)
    (numpy,) = operators.run("softmax", [values], attributes)
    np.testing.assert_array_equal(made.view(np.int32), numpy.view(np.int32))
    name = "LogSoftmax" if log else "Softmax"
    (real,) = operators.run(name, [values.astype(np.float32) * np.float32(scale)], {"axis": axis})
    np.testing.assert_allclose(made, real, rtol=2e-6, atol=1e-7)
