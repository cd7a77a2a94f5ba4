"""Nodes in the forms that VTA runs, field by field, and why other nodes are no such form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network import layers
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.layer_forms import undilated
from hilt.network.layers import NotOnVtaError, TiledLayer, VtaLayer, layer_of
from hilt.network.lower_upsample import Upsampling
from hilt.network.pool_tiles import PoolingLayer
from hilt.network.product_tiles import Product
from hilt.vta.accelerator import IsaRevision

from .graphs import BATCHED, target

BOARD = target().accelerator
"""Blocks of 16 channels."""
NEWER = replace(BOARD, isa=IsaRevision.B)
RANDOM = np.random.default_rng(5)
WINDOW: dict[str, Any] = {"strides": [2, 1], "pads": [1, 0, 2, 1], "groups": 1, "shift": [5], "clip": [-100, 90]}
X = (2, 20, 8, 6)


def weights(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.integers(-128, 128, shape).astype(np.int8)


def made(op: str, attributes: dict[str, Any], shapes: dict[str, tuple[int, ...]], **constants: Any) -> Any:
    """Return the layer of a node that reads all tensors but `y`, and constants by their names, in the order given."""
    tensors = {name: Tensor(name, shape, "int8", 1.0) for name, shape in shapes.items()}
    names = {"": "", **dict.fromkeys([*shapes, *constants])}
    order = [name for name in ("x", "w", "b", "r") if name in names]
    if "r" in order and "b" not in order:
        order.insert(2, "")
    node = Node("n", op, tuple(order), ("y",), attributes)
    return layer_of(Graph("g", ("x",), ("y",), (node,), tensors, constants), node, NEWER)


def test_a_convolution_has_its_sizes_and_a_bias_with_half_a_step() -> None:
    values, bias = weights(32, 20, 3, 2), RANDOM.integers(-99, 99, 32).astype(np.int32)
    layer = made("conv2d", WINDOW, {"x": X, "y": (2, 32, 5, 6)}, w=values, b=bias)
    work = layer.workload
    assert (work.batch, work.in_channels, work.height, work.width, work.out_channels) == (2, 20, 8, 6, 32)
    assert (work.kernel, work.stride, work.padding, work.padding_end) == ((3, 2), (2, 1), (1, 0), (2, 1))
    assert (work.groups, work.bias, work.shift, work.clip) == (1, True, 5, (-100, 90))
    np.testing.assert_array_equal(layer.weights, values)
    np.testing.assert_array_equal(layer.bias, bias + 16)
    assert (layer.data, layer.output, layer.residual, layer.residual_shift, layer.shifts) == ("x", "y", "", 0, ())


def test_without_attributes_a_convolution_is_plain() -> None:
    layer = made("conv2d", {}, {"x": X, "y": (2, 32, 6, 4)}, w=weights(32, 20, 3, 3))
    work = layer.workload
    assert (work.stride, work.padding, work.padding_end, work.groups) == ((1, 1), (0, 0), None, 1)
    assert (work.shift, work.clip) == (0, (-128, 127)) and layer.bias.tolist() == [0] * 32


def test_blocks_of_channels_have_their_own_shifts() -> None:
    shift = [3] * 16 + [6] * 4
    layer = made("conv2d", {**WINDOW, "shift": shift}, {"x": X, "y": (2, 20, 5, 6)}, w=weights(20, 20, 3, 2))
    assert layer.shifts == (3, 6) and layer.workload.shift == 6
    assert layer.bias.tolist() == [4] * 16 + [32] * 4
    alike = made("conv2d", {**WINDOW, "shift": [3] * 20}, {"x": X, "y": (2, 20, 5, 6)}, w=weights(20, 20, 3, 2))
    assert alike.shifts == () and alike.workload.shift == 3


def test_a_dilated_kernel_has_its_taps_alone() -> None:
    values = weights(16, 20, 2, 3)
    layer = made("conv2d", {**WINDOW, "dilations": [3, 2]}, {"x": X, "y": (2, 16, 4, 3)}, w=values)
    assert (layer.workload.kernel, layer.workload.dilation) == ((2, 3), (3, 2))
    np.testing.assert_array_equal(layer.weights, values)
    whole = undilated(layer)
    assert (whole.workload.kernel, whole.workload.dilation) == ((4, 5), (1, 1))
    np.testing.assert_array_equal(whole.weights[:, :, ::3, ::2], values)
    assert np.count_nonzero(whole.weights) == np.count_nonzero(values)


def test_groups_that_share_a_block_are_one_with_zeros_between_them() -> None:
    """Four groups of 8 channels to 16: two share a block of inputs."""
    values = weights(64, 8, 1, 1)
    layer = made("conv2d", {"groups": 4}, {"x": (1, 32, 4, 4), "y": (1, 64, 4, 4)}, w=values)
    apart = layer.workload.block_groups(16)
    together = 4 // apart
    assert layer.weights.shape == (64, 8 * together, 1, 1) and together > 1
    for output in range(64):
        place = output // 16 % together
        np.testing.assert_array_equal(layer.weights[output, place * 8 : place * 8 + 8], values[output])
        assert np.count_nonzero(layer.weights[output]) == np.count_nonzero(values[output])


@pytest.mark.parametrize("width", [1, 4])
def test_groups_within_a_block_are_computed_over_whole_blocks(width: int) -> None:
    """A depthwise convolution, and groups of 4 channels; 20 channels are no whole blocks."""
    values, bias = weights(20, width, 3, 3), np.arange(20, dtype=np.int32)
    attributes = {"groups": 20 // width, "shift": [2]}
    layer = made("conv2d", attributes, {"x": X, "y": (2, 20, 6, 4)}, w=values, b=bias)
    work = layer.workload
    assert (work.groups, work.in_channels, layer.weights.shape) == (2, 32, (32, 16, 3, 3))
    assert layer.bias.tolist() == [*range(2, 22), *[2] * 12]
    for channel in range(32):
        own = values[channel] if channel < 20 else np.zeros((width, 3, 3), np.int8)
        first = channel % 16 // width * width
        np.testing.assert_array_equal(layer.weights[channel, first : first + width], own)
        assert np.count_nonzero(layer.weights[channel]) == np.count_nonzero(own)


def test_a_dense_layer_is_a_convolution_of_one_pixel_with_its_residual() -> None:
    values = weights(32, 20)
    attributes = {"shift": [4], "clip": [-128, 127], "residual_shift": [3]}
    layer = made("dense", attributes, {"x": (3, 20), "r": (3, 32), "y": (3, 32)}, w=values)
    work = layer.workload
    assert (work.batch, work.in_channels, work.height, work.width, work.out_channels) == (3, 20, 1, 1, 32)
    assert (work.kernel, work.padding, work.padding_end, work.stride) == ((1, 1), (0, 0), None, (1, 1))
    np.testing.assert_array_equal(layer.weights[:, :, 0, 0], values)
    assert (layer.residual, layer.residual_shift) == ("r", 3) and layer.bias.tolist() == [8] * 32


@pytest.mark.parametrize(
    ("left_shifts", "shift", "wanted"),
    [
        ([1, 3], 4, ("x", "w", 1, 2, 3)),  # one step less of each
        ([5, 2], 2, ("w", "x", 1, 3, 0)),  # the smaller shift is the weight
        ([0, 6], 9, ("x", "w", 1, 6, 9)),
        ([4, 4], 1, ("x", "w", 8, 3, 0)),
    ],
)
def test_a_sum_is_an_identity_with_a_residual(
    left_shifts: list[int], shift: int, wanted: tuple[str, str, int, int, int]
) -> None:
    attributes = {"left_shifts": left_shifts, "shift": [shift], "clip": [-9, 9]}
    layer = made("add", attributes, {"x": X, "w": X, "y": X})
    data, residual, one, raised, right = wanted
    assert (layer.data, layer.residual, layer.residual_shift, layer.workload.shift) == (data, residual, raised, right)
    work = layer.workload
    assert (work.in_channels, work.out_channels, work.groups, work.clip) == (32, 32, 2, (-9, 9))
    assert (work.batch, work.height, work.width, work.kernel, work.bias) == (2, 8, 6, (1, 1), True)
    for channel in range(32):
        assert layer.weights[channel].nonzero()[0].tolist() == [channel % 16]
        assert layer.weights[channel, channel % 16] == one
    assert layer.bias.tolist() == [1 << right >> 1] * 32


@pytest.mark.parametrize(
    ("shapes", "names", "work"),
    [
        ({"x": X, "w": X}, ("x", "w"), (4 * 48, 1)),
        ({"x": X, "w": (2, 20, 1, 1)}, ("x", "w"), (4, 48)),
        ({"x": (2, 20, 1, 1), "w": X}, ("w", "x"), (4, 48)),
        ({"x": X, "w": (2, 20, 8, 1)}, ("x", "w"), (4 * 8, 6)),
    ],
)
def test_a_product_repeats_a_factor_for_its_pixels(
    shapes: dict[str, tuple[int, ...]], names: tuple[str, str], work: tuple[int, int]
) -> None:
    layer = made("multiply", {"shift": [7], "clip": [-9, 8]}, {**shapes, "y": X})
    assert layer.work == Product(*work, 7, (-9, 8))
    assert tuple(layer.reads.values()) == names and layer.output == "y"


def test_a_pool_has_its_windows() -> None:
    pool = {"kernel": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    layer = made("max_pool", pool, {"x": X, "y": (2, 20, 4, 6)})
    assert layer.work == PoolingLayer(4, (8, 6), (3, 2), (2, 1), (1, 0), (4, 6), None)
    mean = made("average_pool", {**pool, "divisor": 1, "shift": [3], "clip": [-9, 8]}, {"x": X, "y": (2, 20, 4, 6)})
    assert replace(mean.work, averaging=None) == layer.work
    assert (mean.work.averaging.shift, mean.work.averaging.clip) == (3, (-9, 8))
    whole = made("global_average_pool", {"divisor": 1, "shift": [4]}, {"x": X, "y": (2, 20)})
    assert replace(whole.work, averaging=None) == PoolingLayer(4, (8, 6), (8, 6), (1, 1), (0, 0), (1, 1), None)


def test_a_mean_whose_rows_do_not_fit_on_chip_is_a_convolution_of_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "has_schedule", lambda pool, accelerator: False)
    attributes = {
        "kernel": [3, 2], "strides": [2, 1], "pads": [1, 0, 2, 1], "divisor": 1, "shift": [3], "clip": [-9, 8],
    }  # fmt: skip
    layer = made("average_pool", attributes, {"x": X, "y": (2, 20, 5, 6)})
    work = layer.workload
    assert (work.kernel, work.stride, work.padding, work.padding_end) == ((3, 2), (2, 1), (1, 0), (2, 1))
    assert (work.in_channels, work.out_channels, work.groups, work.shift, work.clip) == (32, 32, 2, 3, (-9, 8))
    assert layer.bias.tolist() == [4] * 32 and (layer.data, layer.output) == ("x", "y")
    for channel in range(32):
        assert (layer.weights[channel, channel % 16] == 1).all() and layer.weights[channel].sum() == 6


def test_moves_have_their_planes_and_factors() -> None:
    layer = made("upsample", {"factors": [2, 3]}, {"x": X, "y": (2, 20, 16, 18)})
    assert layer.work == Upsampling(4, (8, 6), (2, 3)) and list(layer.reads.values()) == ["x"]
    entries = weights(256)
    copied = made("table", {}, {"x": X, "y": X}, w=entries)
    assert copied.work == Upsampling(1, (4 * 48, 1), (1, 1))
    assert copied.tabled.alone and copied.tabled.output == "y"
    np.testing.assert_array_equal(copied.tabled.entries, entries)


Y, POOLED, ROW = (2, 32, 5, 6), (2, 20, 5, 5), (2, 20, 1, 6)
KERNEL = {"w": weights(32, 20, 3, 2)}
MEAN = {"kernel": [3, 2], "strides": [2, 1], "pads": [0] * 4, "divisor": 1, "shift": [3]}
REFUSED: dict[str, tuple[str, dict[str, Any], dict[str, tuple[int, ...]], dict[str, Any]]] = {
    "Relu is no operation that hilt lowers": ("Relu", {}, {"x": X, "y": X}, {}),
    "its input has zeros between": ("conv2d", {**WINDOW, "input_dilation": [1, 2]}, {"x": X, "y": Y}, KERNEL),
    "its residual has shape": ("conv2d", WINDOW, {"x": X, "y": Y, "r": X}, KERNEL),
    "its residual is shifted left by 99": (
        "conv2d", {**WINDOW, "residual_shift": [99]}, {"x": X, "y": Y, "r": Y}, KERNEL,
    ),
    "its residual_shift differs within 16 channels": (
        "conv2d", {**WINDOW, "residual_shift": [1] * 15 + [2] * 17}, {"x": X, "y": Y, "r": Y}, KERNEL,
    ),
    "its shift differs within 16 channels": (
        "conv2d", {**WINDOW, "shift": [3] * 15 + [4] * 17}, {"x": X, "y": Y}, KERNEL,
    ),
    "its sums are shifted right by 16": ("conv2d", {**WINDOW, "shift": [16]}, {"x": X, "y": Y}, KERNEL),
    "its sums are shifted right by 17; VTA": (
        "conv2d", {**WINDOW, "shift": [3] * 16 + [17] * 16}, {"x": X, "y": Y}, KERNEL,
    ),
    r"its tensor x is int8 \(2, 20, 8\)": ("upsample", {"factors": [1, 1]}, {"x": (2, 20, 8), "y": (2, 20, 8)}, {}),
    "its operands have different shapes": ("add", {"left_shifts": [0, 0]}, {"x": X, "w": (2, 20, 1, 1), "y": X}, {}),
    "its operands are shifted left by 7 and 7": ("add", {"left_shifts": [7, 7]}, {"x": X, "w": X, "y": X}, {}),
    "its operands are shifted left by 0 and 99": ("add", {"left_shifts": [0, 99]}, {"x": X, "w": X, "y": X}, {}),
    "one of its operands is a constant": ("multiply", {}, {"x": X, "y": X}, {"w": weights(*X)}),
    "its operands have shapes.*repeats pixels only": ("multiply", {}, {"x": X, "w": (2, 1, 1, 1), "y": X}, {}),
    "its operands have shapes .2, 20, 8, 6. and .2, 20, 1, 6.": ("multiply", {}, {"x": X, "w": ROW, "y": X}, {}),
    "its operands have shapes .2, 20, 8, 6. and .2, 20.;": ("multiply", {}, {"x": X, "w": (2, 20), "y": X}, {}),
    "its window is no power of two": ("average_pool", {**MEAN, "divisor": 3}, {"x": X, "y": Y}, {}),
    "its padding does not count": ("average_pool", {**MEAN, "divisor": 0}, {"x": X, "y": Y}, {}),
    "its result has finer steps": ("average_pool", {**MEAN, "shift": [-1]}, {"x": X, "y": Y}, {}),
    "has its own element in the padding": ("max_pool", {**MEAN, "pads": [3, 0, 0, 0]}, {"x": X, "y": POOLED}, {}),
    "a window of it has its own element": ("max_pool", {**MEAN, "pads": [0, 0, 2, 0]}, {"x": X, "y": POOLED}, {}),
    "it leaves the integers": ("table", {}, {"x": X, "y": X}, {"w": np.zeros(256, np.float32)}),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_a_node_that_is_no_form_says_why(said: str) -> None:
    op, attributes, shapes, constants = REFUSED[said]
    with pytest.raises(NotOnVtaError, match=said):
        made(op, attributes, shapes, **constants)


def test_a_window_may_begin_with_the_last_row() -> None:
    for pads, rows in (([2, 0, 0, 0], 4), ([0, 0, 1, 0], 4)):
        assert isinstance(made("max_pool", {**MEAN, "pads": pads}, {"x": X, "y": (2, 20, rows, 5)}), TiledLayer)


def test_a_node_with_a_reason_is_not_looked_at() -> None:
    node = Node("n", "conv2d", ("x",), ("y",), {}, reason="it stays in float")
    with pytest.raises(NotOnVtaError, match="^it stays in float$"):
        layer_of(Graph("g", ("x",), ("y",), (node,), {}, {}), node, BOARD)


def test_a_missing_unit_of_an_accelerator_is_a_reason() -> None:
    tensors = {name: Tensor(name, X, "int8", 1.0) for name in ("x", "w", "y")}
    gates = tensors | {"w": Tensor("w", (2, 20, 1, 1), "int8", 1.0)}
    product, table = (Node("n", op, ("x", "w"), ("y",), {}) for op in ("multiply", "table"))
    plain = replace(BOARD, table=False)
    with pytest.raises(NotOnVtaError, match="looks nothing up in tables"):
        layer_of(Graph("g", ("x",), ("y",), (table,), tensors, {"w": weights(256)}), table, plain)
    older = replace(plain, isa=IsaRevision.A)
    with pytest.raises(NotOnVtaError, match="revision A has no MUL"):
        layer_of(Graph("g", ("x",), ("y",), (product,), tensors, {}), product, older)
    assert isinstance(layer_of(Graph("g", ("x",), ("y",), (product,), gates, {}), product, older), TiledLayer)
    batched = replace(target(BATCHED).accelerator, table=False, isa=IsaRevision.A)
    with pytest.raises(NotOnVtaError, match="without batch lanes"):
        layer_of(Graph("g", ("x",), ("y",), (product,), gates, {}), product, batched)


def test_every_layer_is_of_its_node() -> None:
    assert isinstance(made("dense", {}, {"x": (3, 20), "y": (3, 32)}, w=weights(32, 20)), VtaLayer)
