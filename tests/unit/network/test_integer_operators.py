"""The runtime's integer operators against the reference, which is other code, and both against sums by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hilt.network import reference
from hilt.network.graph import OPERATORS, Node
from hilt_runtime import operators
from tests.unit.network.engines import assert_native_equals_numpy


def int8(random: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return random.integers(-128, 128, shape, dtype=np.int8)


def both(op: str, inputs: list[Any], attributes: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the result that reference, numpy and the native engine agree on."""
    (wanted,) = reference.evaluate_node(Node("n", op, ("x",), ("y",), attributes), inputs)
    (given,) = operators.run(op, inputs, attributes)
    assert given.dtype == wanted.dtype
    np.testing.assert_array_equal(given, wanted)
    assert assert_native_equals_numpy(op, inputs, attributes)
    return wanted


CLIPS = ([-128, 127], [0, 127], [0, 96])


@pytest.mark.parametrize("seed", range(24))
def test_convolutions_agree(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = int(random.choice([1, 1, 2, 4]))
    depth, outputs = int(random.integers(1, 5)), int(random.integers(1, 4)) * groups
    if seed % 6 == 5:
        depth, outputs = 1, groups  # depthwise
    kernel = random.integers(1, 4, 2).tolist()
    attributes: dict[str, Any] = {
        "strides": random.integers(1, 4, 2).tolist(),
        "pads": random.integers(0, 3, 4).tolist(),
        "groups": groups,
        "dilations": random.integers(1, 3, 2).tolist(),
        "input_dilation": random.integers(1, 3, 2).tolist() if seed % 3 == 0 else [1, 1],
        "clip": CLIPS[seed % 3],
        "shift": random.integers(0, 12, outputs).tolist() if seed % 4 == 1 else [int(random.integers(0, 12))],
    }
    data = int8(random, int(random.integers(1, 3)), depth * groups, *random.integers(6, 10, 2).tolist())
    weights = int8(random, outputs, depth, *kernel)
    bias = random.integers(-(2**20), 2**20, outputs, dtype=np.int32) if seed % 2 else None
    result = both("conv2d", [data, weights, bias], attributes)
    attributes["residual_shift"] = [int(random.integers(0, 9))]
    both("conv2d", [data, weights, bias, int8(random, *result.shape)], attributes)


def test_a_deep_convolution_is_exact() -> None:
    data = np.full((1, 3000, 1, 1), -128, np.int8)
    weights = np.full((2, 3000, 1, 1), -128, np.int8)
    weights[1, 0] = -127
    attributes = {"strides": [1, 1], "pads": [0] * 4, "groups": 1, "shift": [19], "clip": [-128, 127]}
    bias = np.array([-(3000 * 2**14) + 2**18 - 1, -(3000 * 2**14) + 2**18 + 127], np.int32)
    result = both("conv2d", [data, weights, bias], attributes)
    assert result.ravel().tolist() == [0, 0]
    assert both("conv2d", [data, weights, bias + 1], attributes).ravel().tolist() == [1, 1]


def test_rounding_goes_half_up_and_sums_wrap() -> None:
    attributes = {"shift": [1], "clip": [-128, 127]}
    data = np.array([[-3], [-1], [1], [3]], np.int8)
    assert both("dense", [data, np.ones((1, 1), np.int8)], attributes).ravel().tolist() == [-1, 0, 1, 2]
    most = np.array([2**31 - 1], np.int32)
    assert both("dense", [data[2:3], np.ones((1, 1), np.int8), most], {**attributes, "shift": [24]}).item() == -128


@pytest.mark.parametrize("seed", range(6))
def test_dense_layers_agree(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, depth, outputs = (int(size) for size in random.integers(1, 40, 3))
    shift = random.integers(0, 9, outputs).tolist() if seed % 2 else [7]
    attributes = {"shift": shift, "clip": CLIPS[seed % 3], "residual_shift": [3]}
    bias = random.integers(-999, 999, outputs, dtype=np.int32)
    both("dense", [int8(random, rows, depth), int8(random, outputs, depth), bias], attributes)
    both(
        "dense",
        [int8(random, rows, depth), int8(random, outputs, depth), None, int8(random, rows, outputs)],
        attributes,
    )


@pytest.mark.parametrize("seed", range(8))
def test_pairs_and_pools_agree(seed: int) -> None:
    random = np.random.default_rng(seed)
    data, other = int8(random, 2, 3, 8, 7), int8(random, 2, 3, 8, 7)
    clip = CLIPS[seed % 3]
    shift = int(random.integers(0, 9))
    both("add", [data, other], {"left_shifts": random.integers(0, 7, 2).tolist(), "shift": shift, "clip": clip})
    both("multiply", [data, int8(random, 2, 3, 1, 1)], {"shift": shift, "clip": clip})
    offsets = random.integers(-254, 255, 2).tolist()
    both("multiply", [data, int8(random, 2, 3, 1, 1)], {"shift": shift, "clip": clip, "offsets": offsets})
    window = {"kernel": [3, 2], "strides": random.integers(1, 4, 2).tolist(), "pads": random.integers(0, 2, 4).tolist()}
    both("max_pool", [data], window)
    both("average_pool", [data], {**window, "divisor": 3, "shift": 1, "clip": clip})
    both("average_pool", [data], {**window, "divisor": 0, "shift": int(random.integers(-4, 5)), "clip": clip})
    both("global_average_pool", [data], {"divisor": 7, "shift": int(random.integers(-4, 5)), "clip": clip})
    both("global_average_pool", [data], {"divisor": 1, "shift": int(random.integers(-4, 5)), "clip": clip})
    for op, divisor, twos in (
        ("average_pool", 3, 1), ("average_pool", 1, 3), ("global_average_pool", 7, 3), ("global_average_pool", 1, 6)
    ):  # fmt: skip
        mean, offset = {**window, "divisor": divisor, "shift": twos}, int(random.integers(-200, 200))
        plain = both(op, [data], {**mean, "clip": [-128, 127]}).astype(np.int64)
        moved = both(op, [data], {**mean, "clip": clip, "offset": offset})
        np.testing.assert_array_equal(moved, np.clip(plain + offset, *clip))


def test_a_product_adds_to_its_data_in_front_and_to_its_result_behind_the_shift() -> None:
    data, gate = np.array([[-128, 3, 127]], np.int8), np.array([[5, 5, 5]], np.int8)
    attributes = {"shift": 2, "clip": [-128, 127], "offsets": [120, -100]}
    # (-128 + 120) * 5 / 4 - 100 = -110, (3 + 120) * 5 / 4 - 100 = 53.75, (127 + 120) * 5 / 4 - 100 = 208.75
    both("multiply", [data, gate], attributes)
    assert operators.run("multiply", [data, gate], attributes)[0].tolist() == [[-110, 54, 127]]


def test_a_mean_without_its_padding_divides_by_the_elements_of_the_data() -> None:
    data = np.array([[10, 20, 30], [40, 50, 61], [-70, -80, -91]], np.int8).reshape(1, 1, 3, 3)
    window = {"kernel": [2, 3], "strides": [2, 1], "pads": [0, 1, 1, 1], "divisor": 0, "clip": [-128, 127]}
    exact = [[120 / 4, 211 / 6, 161 / 4], [-150 / 2, -241 / 3, -171 / 2]]
    for shift in (0, 1, -1):
        wanted = [[math.floor(mean / 2.0**shift + 0.5) for mean in row] for row in exact]
        result = both("average_pool", [data], {**window, "shift": shift})
        assert result[0, 0].tolist() == np.clip(wanted, -128, 127).tolist()


@pytest.mark.parametrize("kernel", [(1, 1), (2, 2), (3, 3), (2, 5), (7, 7), (9, 10)])
def test_every_sum_of_a_window_has_its_exact_mean(kernel: tuple[int, int]) -> None:
    """The native engine divides by a product, of few elements; of more in float64."""
    taps = math.prod(kernel)
    sums = np.arange(-128 * taps, 127 * taps + 1)
    low, above = sums // taps, sums % taps
    windows = low[:, None] + (np.arange(taps) < above[:, None])
    data = windows.reshape(-1, *kernel).transpose(1, 0, 2).reshape(1, 1, kernel[0], -1).astype(np.int8)
    window = {"kernel": kernel, "strides": kernel, "pads": [0] * 4, "clip": [-128, 127]}
    for divisor, shift, offset in ((0, 0, 0), (0, -3, 100), (0, 2, -5), (taps | 1, 0, 0), (taps | 1, -1, 3), (1, 4, 0)):
        attributes = {**window, "divisor": divisor, "shift": shift, "offset": offset}
        numerators, denominator = sums << max(-shift, 0), (divisor or taps) << max(shift, 0)
        wanted = np.clip((2 * numerators + denominator) // (2 * denominator) + offset, -128, 127)
        assert both("average_pool", [data], attributes).reshape(-1).tolist() == wanted.tolist()
        packed = np.repeat(data[..., None, None], 16, axis=-1)
        assert assert_native_equals_numpy("average_pool", [packed], attributes)


@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "pads"),
    [
        ((1, 2, 4, 300, 1, 16), [3, 3], [1, 1], [1, 1, 1, 1]),
        ((1, 1, 5, 290, 2, 16), [2, 3], [2, 2], [1, 0, 1, 1]),
        ((1, 1, 20, 20, 1, 16), [17, 17], [1, 1], [8, 8, 8, 8]),
        ((1, 1, 2, 300, 1, 16), [1, 300], [1, 1], [0, 4, 0, 4]),
        ((1, 1, 3, 5, 1, 256), [3, 3], [1, 1], [1, 1, 1, 1]),
        ((1, 3, 5, 6, 1, 8), [3, 3], [1, 1], [1, 1, 1, 1]),
        ((1, 1, 1, 9, 1, 16), [3, 3], [1, 4], [2, 2, 2, 2]),
    ],
)
@pytest.mark.parametrize("divisor", [0, 1, 9])
def test_averages_of_wide_rows_and_large_windows_in_vtas_layout_agree(
    shape: tuple[int, ...], kernel: list[int], strides: list[int], pads: list[int], divisor: int
) -> None:
    window = {"kernel": kernel, "strides": strides, "pads": pads}
    for extreme in (int8(np.random.default_rng(1), *shape), np.full(shape, -128, np.int8)):
        attributes = {**window, "divisor": divisor, "shift": 0 if divisor != 1 else 3, "clip": [-128, 127]}
        assert assert_native_equals_numpy("average_pool", [extreme], attributes)


def test_a_mean_is_the_exact_mean_rounded_half_up() -> None:
    random = np.random.default_rng(3)
    for count, divisor, twos in ((9, 9, 0), (25, 25, 0), (48, 3, 4), (49, 49, 0), (288, 9, 5), (1536, 3, 9)):
        for finer in (0, 2, -1):
            data = int8(random, 1, 2000, 1, count) // 3 + random.integers(-60, 60, (1, 2000, 1, 1), np.int8)
            attributes = {"divisor": divisor, "shift": twos - finer, "clip": CLIPS[0]}
            result = both("global_average_pool", [data], attributes)
            half = Fraction(1, 2)
            exact = [Fraction(int(each)) * Fraction(2) ** finer / count for each in data.sum(axis=(2, 3))[0]]
            wanted = [max(-128, min(127, math.floor(each + half))) for each in exact]
            assert result.reshape(-1).tolist() == wanted
            if count % 2 == 0 and finer <= 0:
                assert sum((each - math.floor(each)) == half for each in exact) > 0  # ties are among them


def test_moving_operators_agree() -> None:
    random = np.random.default_rng(1)
    data = int8(random, 2, 8, 3, 5)
    table = int8(random, 256)
    assert both("table", [np.array([-128, 0, 127], np.int8), table], {}).tolist() == table[[0, 128, 255]].tolist()
    both("table", [data, random.normal(size=256).astype(np.float32)], {})
    tables, pixels = int8(random, 8, 256), random.integers(0, 256, (2, 8, 3, 5)).astype(np.uint8)
    looked_up = both("pixel_table", [pixels, tables], {"axis": 1})
    assert looked_up[1, 6, 2, 4] == tables[6, pixels[1, 6, 2, 4]]
    both("pixel_table", [pixels.transpose(0, 2, 3, 1).copy(), tables], {"axis": 3})
    both("pixel_table", [pixels, tables[:1]], {"axis": 0})
    assert np.array_equal(both("pixel_table", [pixels.view(np.int8), tables], {"axis": 1}), looked_up)
    every = np.tile(np.arange(-128, 128).astype(np.int8), (2, 8, 1))
    factors = np.concatenate([random.integers(-32767, 32768, (2, 6)), [[32767, -32767], [-32767, 0]]], axis=1)
    for left in range(9):
        made = both("prelu", [every, factors.astype(np.int16)], {"left": left})
        exact = every * np.where(every < 0, factors[1, :, None], factors[0, :, None]) * 2.0 ** (left - 15)
        assert np.array_equal(made, np.clip(np.floor(exact + 0.5), -128, 127))
        moved = both("prelu", [every, factors.astype(np.int16)], {"left": left, "offset": 31 * left - 124})
        assert np.array_equal(moved, np.clip(np.floor(exact + 0.5) + 31 * left - 124, -128, 127))
    both("concat", [data, int8(random, 2, 1, 3, 5), data], {"axis": 1})
    both("reshape", [data], {"shape": [2, -1]})
    both("transpose", [data], {"perm": [0, 3, 1, 2]})
    both("pad", [data], {"pads": [0, 1, 2, 0, 0, 0, 1, 3], "value": 0})
    both("pad", [data], {"pads": [0, 1, 2, 0, 0, 0, 1, 3], "mode": "edge"})
    both("pad", [data], {"pads": [1, 7, 2, 0, 0, 3, 1, 4], "mode": "reflect"})
    for starts, ends, steps in (([1, -2], [7, 2**31 - 1], [2, 1]), ([-1, 4], [-(2**31), 0], [-3, -1])):
        both("slice", [data], {"starts": starts, "ends": ends, "axes": [1, 3], "steps": steps})
    for mode in ("DCR", "CRD"):
        both("depth_to_space", [data], {"block": [2, 2], "mode": mode})
        both("depth_to_space", [data], {"block": [1, 4], "mode": mode})
        for width in (15, 16, 17, 31, 48):  # below, at and between whole vectors
            both("depth_to_space", [int8(random, 2, 12, 3, width)], {"block": [3, 2], "mode": mode})


def test_quantising_multiplies_by_a_factor_in_float32_first() -> None:
    random = np.random.default_rng(5)
    values = random.normal(0, 40, 1000).astype(np.float32)
    values[:6] = np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45
    for factor, scale in ((1.3, 0.25), (-0.7, 2.0**-9), (1e6, 2.0**40), (0.1, 1.0)):
        given = both("quantize", [values], {"scale": scale, "factor": factor})
        with np.errstate(over="ignore"):
            steps = np.rint(values * np.float32(factor) / np.float32(scale))
        np.testing.assert_array_equal(given, np.clip(np.nan_to_num(steps, nan=0), -128, 127))
    assert both("quantize", [np.array([2.5, -2.5, 7], np.float32)], {"scale": 0.5, "factor": 0.6}).tolist() == [
        3,
        -3,
        8,
    ]


def test_quantising_rounds_half_to_even() -> None:
    values = np.array([0.5, 1.5, -0.5, 300, -300], np.float32) / 8
    assert both("quantize", [values], {"scale": 0.125}).tolist() == [0, 2, 0, 127, -128]
    assert both("dequantize", [np.array([-128, 5], np.int8)], {"scale": 2.0**-20}).tolist() == [
        -(2.0**-13),
        5 * 2.0**-20,
    ]


def test_both_sides_know_every_operator_of_the_graph() -> None:
    assert {op for op in operators.OPERATORS if op[0].islower()} == set(OPERATORS)
    assert set(reference._OPERATORS) == set(OPERATORS)
