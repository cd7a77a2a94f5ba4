"""The tensors that a workload's programs are verified with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.bias_first import LOWER
from hilt.schedule.bias_product import BIAS_BLOCKS, BIAS_INPUT, bias_blocks, bias_input, largest_bias
from hilt.schedule.fused import SKIP_SHIFTS
from hilt.schedule.residual import IDENTITY, RESIDUAL, identity_block
from hilt.schedule.workload import Conv2d
from hilt.vta import reference
from hilt.vta.accelerator import Accelerator
from hilt.vta.layout import pack_bias, pack_data, pack_weights


@dataclass(frozen=True, eq=False)
class Tensors:
    """Packed as they lie in memory (HARDWARE.md section 5).

    `inputs` by buffer name (`inp`, `wgt` int8; `bias` int32 if the workload has one, or `bias_blocks` and `bias_input`
    int8; `residual` and `identity` int8
    of a skip connection), and the `expected` contents (int8) of buffer `out`, every element of it, padding included.
    """

    inputs: dict[str, NDArray[Any]]
    expected: NDArray[np.int8]


def make_tensors(workload: Conv2d, accelerator: Accelerator, seed: int) -> Tensors:
    """Return a workload's tensors, deterministic in the arguments.

    Values are drawn so that the sums, shifted, spread around the middle of the clip: the output is mostly neither
    zero nor saturated, and a wrong sum shows.
    """
    parameters = accelerator.parameters
    data, weights, bias, skip = _drawn(np.random.default_rng(seed), workload)
    if bias is not None and workload.multiplies_bias:
        bias = np.clip(bias, -largest_bias(accelerator), largest_bias(accelerator))
    if skip is not None:
        skip = _whole(skip, parameters.batch, parameters.block)
    groups = workload.block_groups(parameters.block)
    weights = _together(weights, groups, workload.groups // groups)
    # The reference runs on the tensors in memory, so that padded channels and images have their expected value too.
    inputs: dict[str, NDArray[Any]] = {"inp": pack_data(data, parameters), "wgt": pack_weights(weights, parameters)}
    expected = reference.conv2d(
        _padded(_whole(data, parameters.batch, parameters.block), workload),
        _whole(weights, parameters.block, parameters.block),
        None if bias is None else np.pad(bias, (0, -len(bias) % parameters.block)),
        stride=workload.stride,
        dilation=workload.dilation,
        groups=groups,
        shift=workload.shift,
        clip=workload.clip,
        added=None if skip is None else skip.astype(np.int32) << SKIP_SHIFTS[str(workload.epilogue)],
    )
    if bias is not None and workload.multiplies_bias:
        inputs |= {BIAS_BLOCKS: bias_blocks(bias, accelerator), BIAS_INPUT: bias_input(accelerator)}
    elif bias is not None:
        if workload.epilogue == "low_bias":
            bias = np.pad(bias, (0, -len(bias) % parameters.block)) - np.int32(LOWER << workload.shift)
        inputs["bias"] = pack_bias(bias, parameters)
    if skip is not None:
        inputs[RESIDUAL] = pack_data(skip, parameters)
        inputs[IDENTITY] = identity_block(SKIP_SHIFTS[str(workload.epilogue)], accelerator)
    return Tensors(inputs, pack_data(expected, parameters))


def _drawn(
    generator: np.random.Generator, workload: Conv2d
) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int32] | None, NDArray[np.int8] | None]:
    """Return data (N, C, H, W), weights, and bias and skip connection where the workload has them."""
    taps = workload.in_channels // workload.groups * workload.kernel[0] * workload.kernel[1]
    # A sum of `taps` products of values uniform in -m..m has a deviation of about sqrt(taps) m^2 / 3; here a quarter of
    # the clip. Means of c and +-c move it by taps c^2; here to the middle of the clip.
    low, high = (limit << workload.shift for limit in workload.clip)
    spread = round(math.sqrt(3 * max((high - low) / 4, 1) / math.sqrt(taps)))
    middle = (low + high) / 2
    centre = min(round(math.sqrt(abs(middle) / taps)), 127)
    data = _uniform(generator, centre, spread, (workload.batch, workload.in_channels, workload.height, workload.width))
    data[:, :, np.arange(workload.height) % workload.input_dilation[0] != 0] = 0
    data[:, :, :, np.arange(workload.width) % workload.input_dilation[1] != 0] = 0
    sizes = (workload.out_channels, workload.in_channels // workload.groups, *workload.kernel)
    weights = _uniform(generator, -centre if middle < 0 else centre, spread, sizes)
    largest = max((high - low) // 8, 1)
    bias = skip = None
    if workload.bias:
        bias = generator.integers(-largest, largest + 1, workload.out_channels, dtype=np.int32)
    if workload.has_skip:  # as wide as a quarter of the clip, as far as int8 reaches
        widest = min(max((high - low) // 8 >> SKIP_SHIFTS[str(workload.epilogue)], 1), 127)
        skip = _uniform(generator, 0, widest, workload.output_shape)
    return data, weights, bias, skip


def _together(weights: NDArray[np.int8], groups: int, merged: int) -> NDArray[np.int8]:
    """Return the weights of `groups` groups that are `merged` groups each: with zeros from inputs of the others."""
    if merged == 1:
        return weights
    out_channels, channels = weights.shape[:2]
    whole = np.zeros((out_channels, merged * channels, *weights.shape[2:]), dtype=np.int8)
    group = np.arange(out_channels) * groups * merged // out_channels % merged
    for place in range(merged):
        whole[group == place, place * channels : (place + 1) * channels] = weights[group == place]
    return whole


def _uniform(generator: np.random.Generator, centre: int, spread: int, shape: tuple[int, ...]) -> NDArray[np.int8]:
    return generator.integers(max(centre - spread, -128), min(centre + spread, 127) + 1, shape).astype(np.int8)


def _padded(data: NDArray[np.int8], workload: Conv2d) -> NDArray[np.int8]:
    """Return the data with the workload's zeros around each image."""
    (top, left), (bottom, right) = workload.padding, workload.pad_end
    return np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))


def _whole(array: NDArray[np.int8], first: int, second: int) -> NDArray[np.int8]:
    """Return the data with zeros after its first two axes, up to whole blocks."""
    return np.pad(array, ((0, -array.shape[0] % first), (0, -array.shape[1] % second), (0, 0), (0, 0)))
