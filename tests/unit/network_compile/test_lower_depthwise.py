"""Depthwise convolutions by window GEMMs on the golden model: every schedule is right against numpy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.layer_forms import TiledLayer, VtaLayer
from hilt.network.layers import layer_of
from hilt.network.lower_depthwise import DepthwiseWriter
from hilt.network.lower_tiles import lower_tiles, tile_knobs
from hilt.network.tile_writer import DATA, OUT, WINDOWS
from hilt.network.window_layers import windowed
from hilt.network.window_tiles import Depthwise, KernelAxis, windows_of
from hilt.schedule import Rejected
from hilt.schedule.fused import alone
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import Opcode
from hilt.vta.parameters import VTAParameters, load_parameters

from .graphs import PYNQ, Builder

BLOCK32 = load_parameters("block32").name
TWO_IMAGES = "2x16_i8w8a32_15_15_18_17"


@dataclass(frozen=True)
class Case:
    """A depthwise convolution; pads are before and behind, rows and columns."""

    channels: int
    size: tuple[int, int]
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    pads: tuple[tuple[int, int], tuple[int, int]] = ((1, 1), (1, 1))
    largest_bias: int = 3000
    images: int = 1


CASES = {
    "3x3": Case(32, (7, 9)),
    "rows in tiles": Case(16, (11, 6)),
    "stride 2, zeros behind": Case(32, (8, 8), stride=(2, 2), pads=((0, 1), (0, 1))),
    "stride 2, zeros before": Case(16, (9, 7), stride=(2, 2), pads=((1, 1), (1, 0))),
    "strides 2 and 1": Case(16, (9, 7), stride=(2, 1)),
    "no zeros": Case(48, (6, 6), pads=((0, 0), (0, 0))),
    "5x5": Case(16, (9, 8), (5, 5), pads=((2, 2), (2, 2))),
    "10x4, stride 2": Case(16, (24, 10), (10, 4), (2, 2), ((4, 5), (1, 1))),
    "a column of taps": Case(16, (9, 6), (5, 1), pads=((2, 2), (0, 0))),
    "a stride past the kernel": Case(16, (9, 9), (1, 2), (3, 3), ((0, 0), (0, 0))),
    "a large bias": Case(20, (5, 5), largest_bias=200_000),
    "two images": Case(32, (4, 5), images=2),
}


def of(parameters: str) -> Accelerator:
    return Accelerator.for_parameters(VTAParameters.from_name(parameters))


def layer(case: Case, accelerator: Accelerator) -> tuple[VtaLayer, NDArray[np.int8], NDArray[np.int8]]:
    """Return a case as a layer, its weights (C, 1, KH, KW), and its input (N, C, H, W)."""
    random = np.random.default_rng(5)
    builder = Builder((case.images, case.channels, *case.size))
    weights = random.integers(-128, 128, (case.channels, 1, *case.kernel)).astype(np.int8)
    bias = random.integers(-case.largest_bias, case.largest_bias, case.channels).astype(np.int32)
    (top, bottom), (left, right) = case.pads
    out = [
        (size + sum(pads) - kernel) // stride + 1
        for size, pads, kernel, stride in zip(case.size, case.pads, case.kernel, case.stride, strict=True)
    ]
    builder.constants |= {"w": weights, "b": bias}
    attributes = {"strides": list(case.stride), "pads": [top, left, bottom, right], "groups": case.channels}
    attributes |= {"shift": [7], "clip": [-100, 127]}
    name = builder.add_node("conv", "conv2d", ["x", "w", "b"], (case.images, case.channels, *out), attributes)
    graph = builder.graph(name)
    data = random.integers(-128, 128, (case.images, case.channels, *case.size)).astype(np.int8)
    found = layer_of(graph, graph.nodes[0], accelerator)
    assert isinstance(found, VtaLayer)
    return found, weights, data


def packed(data: NDArray[np.int8], accelerator: Accelerator) -> NDArray[np.int8]:
    """Return (N, C, H, W) in VTA's layout."""
    batch, block = accelerator.parameters.batch, accelerator.parameters.block
    images, channels, high, wide = data.shape
    whole = np.zeros((-(-images // batch) * batch, -(-channels // block) * block, high, wide), np.int8)
    whole[:images, :channels] = data
    apart = whole.reshape(len(whole) // batch, batch, -1, block, high, wide)
    return np.ascontiguousarray(apart.transpose(0, 2, 4, 5, 1, 3))


def expected(case: Case, layer: VtaLayer, weights: NDArray[np.int8], data: NDArray[np.int8]) -> NDArray[np.int8]:
    padded = np.pad(data.astype(np.int64), ((0, 0), (0, 0), *case.pads))
    windows = np.lib.stride_tricks.sliding_window_view(padded, case.kernel, axis=(2, 3))
    windows = windows[:, :, :: case.stride[0], :: case.stride[1]]
    sums = np.einsum("nchwij,cij->nchw", windows, weights[:, 0].astype(np.int64))
    sums = sums + layer.bias[: case.channels, None, None]
    return np.clip(sums >> 7, *(layer.workload.clip or (-128, 127))).astype(np.int8)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [PYNQ, BLOCK32, TWO_IMAGES])
@pytest.mark.parametrize("name", CASES)
def test_every_schedule_is_right(name: str, parameters: str) -> None:
    case, accelerator = CASES[name], of(parameters)
    convolution, weights, data = layer(case, accelerator)
    made = windowed(convolution, accelerator)
    assert isinstance(made, TiledLayer) and isinstance(made.work, Depthwise)
    wanted = packed(expected(case, convolution, weights, data), accelerator)
    lanes = packed(np.ones_like(expected(case, convolution, weights, data)), accelerator) == 1
    inputs = {DATA: packed(data, accelerator), WINDOWS: made.constants[WINDOWS]}
    sizes = {name: array.nbytes for name, array in inputs.items()} | {OUT: wanted.nbytes}
    ran = 0
    for knobs in tile_knobs(made.work):
        try:
            program = alone(lower_tiles(made.work, knobs, accelerator), sizes, accelerator)
        except Rejected:
            continue
        run = run_program(build(accelerator, "golden"), program, inputs, max_cycles=1 << 30)
        assert run.execution.status is DeviceStatus.DONE, knobs
        np.testing.assert_array_equal(run.output.reshape(wanted.shape)[lanes], wanted[lanes], str(knobs))
        ran += 1
    assert ran >= len(tile_knobs(made.work)) // 2


def test_a_kernel_of_3_takes_two_windows_of_16_channels_and_one_of_32() -> None:
    for parameters, count in ((PYNQ, 2), (BLOCK32, 1)):
        accelerator = of(parameters)
        made = windowed(layer(CASES["3x3"], accelerator)[0], accelerator)
        assert made is not None and isinstance(made.work, Depthwise)
        assert len(made.work.windows) == count
        code = lower_tiles(made.work, {"rows": 7, "planes": 1}, accelerator)
        gemms = code.records[code.records["window"] == 1]
        assert (gemms["opcode"] == Opcode.GEMM).all() and len(gemms) == count * made.work.planes
        assert (gemms["iter_out"] <= 8).all() and (gemms["iter_in"] == 10).all()


def test_other_layers_have_no_windows() -> None:
    accelerator = of(PYNQ)
    convolution = layer(CASES["3x3"], accelerator)[0]
    assert windowed(convolution, replace(accelerator, window=False)) is None
    assert windowed(convolution, replace(accelerator, hazards="none")) is None
    mixed = np.ones_like(convolution.weights)
    assert windowed(replace(convolution, weights=mixed), accelerator) is None
    assert windowed(replace(convolution, residual="y"), accelerator) is None


def axis(size: int, kernel: int = 3, pad: int = 1) -> KernelAxis:
    return KernelAxis(size, kernel, 1, pad, size + 2 * pad - kernel + 1)


def writer(rows: KernelAxis, columns: KernelAxis, high: int, planes: int = 1) -> DepthwiseWriter:
    """Return the writer of tiles of `high` rows and `planes` planes."""
    accelerator = of(PYNQ)
    work = Depthwise(1, rows, columns, (7,) * 2 * planes, (-128, 127))
    windows = windows_of(work, np.zeros(32 * planes, np.int32), accelerator)
    return DepthwiseWriter(replace(work, windows=windows), high, planes, accelerator)


@pytest.mark.parametrize(
    ("rows", "columns", "high", "planes", "places"),
    [
        (axis(64), axis(30), 32, 1, 2),  # 33 rows of 31 elements, twice in 2048
        (axis(64), axis(30), 33, 1, 1),
        (axis(1, 2), axis(2, 1, 0), 2, 1, 2),
        (axis(1, 1, 0), axis(4, 1, 0), 1, 256, 2),
        (axis(1, 1, 0), axis(128, 1, 0), 1, 1, 2),
        (axis(3, 1, 0), axis(2, 1, 0), 3, 1, 2),
        (axis(1, 1, 0), KernelAxis(4, 15, 1, 0, 4), 1, 1, 2),  # 15 columns of zeros behind the input
        (KernelAxis(9, 30, 1, 15, 9), axis(4, 1, 0), 1, 1, 2),
    ],
)
def test_tiles_that_fit_take_one_or_two_places(
    rows: KernelAxis, columns: KernelAxis, high: int, planes: int, places: int
) -> None:
    assert writer(rows, columns, high, planes).places == places


@pytest.mark.parametrize(
    ("rows", "columns", "high", "planes", "reason", "text"),
    [
        (axis(64), axis(30), 34, 1, "acc_overflow", "34 rows takes 1085 input, 2071 accumulators and 4 weight blocks"),
        (axis(67), axis(30), 67, 1, "acc_overflow", "67 rows takes 2077 input, 4021 accumulators and 4 weight blocks"),
        (axis(1, 1, 0), axis(2, 1, 0), 1, 513, "acc_overflow", "takes 1026 input, 2052 accumulators and 1026 weight"),
        (axis(1, 1, 0), axis(129, 1, 0), 1, 1, "field_overflow", "1 rows has rows of 129 that no window goes over"),
        (axis(3, 1, 0), axis(1, 1, 0), 1, 1, "field_overflow", "1 rows has rows of 1 that no window goes over"),
        (axis(1, 1, 0), KernelAxis(4, 18, 1, 0, 4), 1, 1, "field_overflow", "has rows of 6"),
    ],
)
def test_tiles_that_do_not_fit_are_refused_with_their_sizes(
    rows: KernelAxis, columns: KernelAxis, high: int, planes: int, reason: str, text: str
) -> None:
    with pytest.raises(Rejected, match=text) as refused:
        writer(rows, columns, high, planes)
    assert refused.value.reason == reason
