"""Nodes of the integer graph in the forms that VTA runs: a convolution with bias and residual, or a layer without.

Every form here is exact: it computes the node's integers, the rounding included, for the half of the shift is added to
the bias.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import PAD_VALUE, Graph, Node, Tensor
from hilt.network.kernels import gathered, spread
from hilt.network.layer_forms import Fold as Fold
from hilt.network.layer_forms import NotOnVtaError as NotOnVtaError
from hilt.network.layer_forms import Tabled as Tabled
from hilt.network.layer_forms import TiledLayer as TiledLayer
from hilt.network.layer_forms import VtaLayer as VtaLayer
from hilt.network.layer_forms import folded as folded
from hilt.network.layer_forms import outputs_beside as outputs_beside
from hilt.network.layer_forms import with_taps as with_taps
from hilt.network.lower_gate import added_input, added_passes
from hilt.network.lower_interpolate import Interpolation
from hilt.network.lower_tiles import has_schedule
from hilt.network.lower_upsample import Upsampling
from hilt.network.pool_tiles import Averaging, PoolingLayer
from hilt.network.product_tiles import Product
from hilt.network.skip_blocks import residual_of
from hilt.network.slopes import BOUND_INPUT, ChannelFactors, NoWeightsError, factors_of_steps, factors_of_table
from hilt.network.tile_writer import ADDED, DATA, FACTOR, SLOPES, WINDOWS
from hilt.schedule import Conv2d, WorkloadError
from hilt.schedule.border import border_of
from hilt.schedule.residual import LARGEST_SHIFT
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.layout import blocks

_LARGEST_IDENTITY = 6
_LARGEST_RIGHT_SHIFT = 15


def layer_of(graph: Graph, node: Node, accelerator: Accelerator) -> VtaLayer | TiledLayer:
    """Return a node as a convolution, a pooling, a product or a copy.

    Raises:
        NotOnVtaError: VTA cannot run it.
    """
    if node.reason:
        raise NotOnVtaError(node.reason)
    make = _FORMS.get(node.op)
    if make is None:
        raise NotOnVtaError(f"{node.op} is no operation that hilt lowers to VTA")
    try:
        return make(graph, node, accelerator)
    except WorkloadError as error:
        raise NotOnVtaError(str(error)) from error


def _convolution(graph: Graph, node: Node, accelerator: Accelerator) -> VtaLayer:
    attributes = node.attributes
    if max(attributes.get("input_dilation", [1])) > 1:
        raise NotOnVtaError("its input has zeros between the elements, which VTA would have to read")
    data, output = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    weights, dilation = gathered(spread(graph.constants[node.inputs[1]], attributes.get("dilations", (1, 1))))
    top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
    layer = _layer(
        graph,
        node,
        weights,
        accelerator.parameters.block,
        images=_feature_map(data),
        groups=int(attributes.get("groups", 1)),
        stride=tuple(attributes.get("strides", (1, 1))),
        padding=((top, left), (bottom, right)),
        dilation=dilation,
        output=output,
    )
    beside = int(attributes.get(PAD_VALUE, 0))
    if not beside:
        return layer
    return replace(layer, beside=beside, border=border_of(layer.workload, layer.weights, beside))


def _dense(graph: Graph, node: Node, accelerator: Accelerator) -> VtaLayer:
    data, output = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    weights = graph.constants[node.inputs[1]][:, :, None, None]
    block = accelerator.parameters.block
    return _layer(graph, node, weights, block, images=_feature_map(data), output=output)


def _layer(
    graph: Graph,
    node: Node,
    weights: NDArray[Any],
    block: int,
    *,
    images: tuple[int, int, int, int],
    output: Tensor,
    groups: int = 1,
    stride: tuple[int, ...] = (1, 1),
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
    dilation: tuple[int, int] = (1, 1),
) -> VtaLayer:
    """Return a conv2d or dense node as a layer."""
    shifts = _by_channel(node, "shift", len(weights), block)
    if len(shifts) > 1 and max(shifts) > _LARGEST_RIGHT_SHIFT:
        raise NotOnVtaError(f"its sums are shifted right by {max(shifts)}; VTA shifts by 0 to {_LARGEST_RIGHT_SHIFT}")
    name = node.inputs[2] if len(node.inputs) > 2 else ""
    bias = graph.constants[name] if name else np.zeros(len(weights), dtype=np.int32)
    batch, channels, height, width = images
    if groups > 1 and channels == len(weights) and block % weights.shape[1] == 0:
        groups, channels, weights, bias = _whole_blocks(weights, bias, block)
    workload = Conv2d(
        node.name,
        batch,
        channels,
        height,
        width,
        len(weights),
        (weights.shape[2], weights.shape[3]),
        (stride[0], stride[1]),
        padding[0],
        groups=groups,
        bias=True,
        shift=max(shifts),
        clip=_clip(node),
        padding_end=padding[1],
        dilation=dilation,
    )
    merged = _merged(weights, groups, workload.block_groups(block))
    halved = _halved(bias, np.repeat(shifts, block)[: len(bias)] if len(shifts) > 1 else shifts[0])
    several = shifts if len(shifts) > 1 else ()
    layer = VtaLayer(node, workload, merged, halved, node.inputs[0], output.name, shifts=several)
    return _with_residual(graph, layer, output, block)


def _with_residual(graph: Graph, layer: VtaLayer, output: Tensor, block: int) -> VtaLayer:
    """Return a layer with its node's residual, if that has one."""
    residual = residual_of(layer.node)
    if not residual:
        return layer
    shifts = _by_channel(layer.node, "residual_shift", output.shape[1], block)
    if max(shifts) > LARGEST_SHIFT:
        raise NotOnVtaError(f"its residual is shifted left by {max(shifts)}; hilt's VTA code reaches {LARGEST_SHIFT}")
    return replace(
        layer,
        residual=residual,
        residual_shift=max(shifts),
        residual_blocks=_residual_blocks(graph.tensors[residual], output, block),
        residual_shifts=shifts if len(shifts) > 1 else (),
    )


def _residual_blocks(residual: Tensor, output: Tensor, block: int) -> tuple[int, int] | None:
    """Return the channel blocks of a residual and of the output; None if they have one shape."""
    if residual.shape == output.shape:
        return None
    given, made = residual.shape[1], output.shape[1]
    if given % block or given > made or residual.shape != (output.shape[0], given, *output.shape[2:]):
        raise NotOnVtaError(f"its residual has shape {residual.shape}, its output {output.shape}")
    return given // block, blocks(made, block)


def _add(graph: Graph, node: Node, accelerator: Accelerator) -> VtaLayer:
    """Return an identity convolution of one operand with the other as its residual."""
    first, second = (graph.tensors.get(name) for name in node.inputs[:2])
    output = graph.tensors[node.outputs[0]]
    if first is None or second is None or not first.shape == second.shape == output.shape:
        raise NotOnVtaError("its operands have different shapes")
    left, right = (int(shift) for shift in node.attributes["left_shifts"])
    shift = _single(node, "shift")
    common = min(left, right, shift)
    left, right, shift = left - common, right - common, shift - common
    names = (first.name, second.name)
    if left > right:
        left, right, names = right, left, (second.name, first.name)
    if left > _LARGEST_IDENTITY or right > LARGEST_SHIFT:
        raise NotOnVtaError(f"its operands are shifted left by {left} and {right}, more than VTA's int8 weights reach")
    images, block = _feature_map(first), accelerator.parameters.block
    channels = blocks(images[1], block) * block
    workload = _by_block(node, images, channels, block, (1, 1), (1, 1), ((0, 0), (0, 0)), shift)
    weights = np.full((channels, 1, 1, 1), 1 << left, dtype=np.int8)
    return VtaLayer(
        node,
        workload,
        _merged(weights, channels, workload.block_groups(block)),
        _halved(np.zeros(channels, dtype=np.int32), shift),
        names[0],
        output.name,
        names[1],
        right,
    )


def _multiply(graph: Graph, node: Node, accelerator: Accelerator) -> TiledLayer:
    """Return a product of two tensors of one shape, or of one with a value for each channel or row of it."""
    operands = [graph.tensors[name] for name in node.inputs[:2] if name in graph.tensors]
    if len(operands) < 2:
        raise NotOnVtaError("one of its operands is a constant, and VTA multiplies tensors")
    shape = graph.tensors[node.outputs[0]].shape
    data, factor = operands if operands[0].shape == shape else operands[::-1]
    images, values = _feature_map(data), _feature_map(factor)
    wide = {images[2:]: 1, (images[2], 1): images[3], (1, 1): images[2] * images[3]}
    pixels = wide.get(values[2:])
    if data.shape != shape or len(factor.shape) != len(shape) or values[:2] != images[:2] or pixels is None:
        raise NotOnVtaError(f"its operands have shapes {data.shape} and {factor.shape}; VTA repeats pixels only")
    parameters = accelerator.parameters
    if accelerator.isa is IsaRevision.A and (pixels == 1 or parameters.batch > 1):
        raise NotOnVtaError(
            "VTA's ISA revision A has no MUL, and its GEMM multiplies by gates only, without batch lanes"
        )
    planes = blocks(images[0], parameters.batch) * blocks(images[1], parameters.block)
    factors = planes * images[2] * images[3] // pixels
    front, behind = node.attributes.get("offsets", (0, 0))
    product = Product(factors, pixels, _single(node, "shift"), _clip(node), (front, behind))
    reads = {DATA: data.name, FACTOR: factor.name}
    constants = _added(front, data is operands[0], accelerator)
    return TiledLayer(node, product, reads, node.outputs[0], constants=constants)


def _added(front: int, to_data: bool, accelerator: Accelerator) -> dict[str, NDArray[Any]]:
    """Return the constants by which a product adds a number to its data. Raise NotOnVtaError if it cannot."""
    if not front:
        return {}
    if not to_data:
        raise NotOnVtaError("it adds to its factor, and VTA adds to the data")
    if accelerator.isa is not IsaRevision.A:
        return {}
    if added_passes(front) is None:
        raise NotOnVtaError(f"{front} is added to the data, and ISA revision A has no inputs that make it up")
    return {ADDED: added_input(front, accelerator)}


def _average_pool(graph: Graph, node: Node, accelerator: Accelerator) -> VtaLayer | TiledLayer:
    """Return a pooling; a convolution of ones where a row of its windows does not fit on chip."""
    attributes = node.attributes
    if not attributes["divisor"]:
        raise NotOnVtaError("its padding does not count, and VTA divides all its sums alike")
    if int(attributes["divisor"]) != 1:
        raise NotOnVtaError("its window is no power of two, and VTA divides by powers of two only")
    if _single(node, "shift") < 0:
        raise NotOnVtaError("its result has finer steps than its sums, which VTA only shifts right")
    data = graph.tensors[node.inputs[0]]
    averaging = Averaging(_single(node, "shift"), _clip(node), int(attributes.get("offset", 0)))
    pool = _pooling(graph, node, accelerator, averaging)
    if has_schedule(pool, accelerator):
        return TiledLayer(node, pool, {DATA: data.name}, node.outputs[0])
    return _convolution_of_ones(node, _feature_map(data), pool, accelerator.parameters.block)


def _convolution_of_ones(node: Node, images: tuple[int, int, int, int], pool: PoolingLayer, block: int) -> VtaLayer:
    """Return an average pooling as a convolution, whose tiles need not be as wide as the output."""
    _, _, bottom, right = node.attributes.get("pads", (0, 0, 0, 0))
    channels = blocks(images[1], block) * block
    shift = _single(node, "shift")
    padding = (pool.pads, (bottom, right))
    workload = _by_block(node, images, channels, block, pool.kernel, pool.stride, padding, shift)
    weights = np.ones((channels, 1, *workload.kernel), dtype=np.int8)
    added = int(node.attributes.get("offset", 0)) << shift
    bias = _halved(np.full(channels, added, dtype=np.int32), shift)
    merged = _merged(weights, channels, workload.block_groups(block))
    return VtaLayer(node, workload, merged, bias, node.inputs[0], node.outputs[0])


def _max_pool(graph: Graph, node: Node, accelerator: Accelerator) -> TiledLayer:
    pool = _pooling(graph, node, accelerator, None)
    for out, stride, size, pad, kernel in zip(pool.out, pool.stride, pool.size, pool.pads, pool.kernel, strict=True):
        if (out - 1) * stride >= size or pad >= kernel:
            raise NotOnVtaError("a window of it has its own element in the padding")
    return TiledLayer(node, pool, {DATA: node.inputs[0]}, node.outputs[0])


def _pooling(graph: Graph, node: Node, accelerator: Accelerator, averaging: Averaging | None) -> PoolingLayer:
    """Return a pooling over packed tensors; a global one has one window."""
    images, attributes = _feature_map(graph.tensors[node.inputs[0]]), node.attributes
    out = (*graph.tensors[node.outputs[0]].shape, 1, 1)[2:4]
    kernel, stride = attributes.get("kernel", images[2:]), attributes.get("strides", (1, 1))
    top, left, _, _ = attributes.get("pads", (0, 0, 0, 0))
    parameters = accelerator.parameters
    return PoolingLayer(
        blocks(images[0], parameters.batch) * blocks(images[1], parameters.block),
        images[2:],
        (kernel[0], kernel[1]),
        (stride[0], stride[1]),
        (top, left),
        (out[0], out[1]),
        averaging,
    )


def _prelu(graph: Graph, node: Node, accelerator: Accelerator) -> TiledLayer:
    try:
        left, offset = int(node.attributes["left"]), int(node.attributes.get("offset", 0))
        factors = factors_of_steps(graph.constants[node.inputs[1]], left, offset)
    except NoWeightsError as error:
        raise NotOnVtaError(str(error)) from error
    return _multiplied(graph, node, factors, accelerator)


def _multiplied(graph: Graph, node: Node, factors: ChannelFactors, accelerator: Accelerator) -> TiledLayer:
    """Return a node that multiplies each element by one of two factors of its channel, and may add a constant."""
    images, _, height, width = _feature_map(graph.tensors[node.inputs[0]])
    parameters = accelerator.parameters
    work = factors.work(blocks(images, parameters.batch), height * width, parameters.block)
    constants = {SLOPES: factors.weight_blocks(parameters.block)}
    if work.mixed:
        constants[ADDED] = added_input(BOUND_INPUT, accelerator)
    return TiledLayer(node, work, {DATA: node.inputs[0]}, node.outputs[0], constants=constants)


def _table(graph: Graph, node: Node, accelerator: Accelerator) -> TiledLayer:
    """Return a copy of the tensor by way of the table; without a table the products that its entries are, if any."""
    entries = graph.constants[node.inputs[1]]
    if not accelerator.table and entries.dtype == np.int8:
        channels = _feature_map(graph.tensors[node.inputs[0]])[1]
        with suppress(NoWeightsError):
            return _multiplied(graph, node, factors_of_table(entries, channels), accelerator)
    return _copy_by_table(graph, node, accelerator)


def _copy_by_table(graph: Graph, node: Node, accelerator: Accelerator) -> TiledLayer:
    """Return a copy of the tensor by way of the table."""
    entries = table_of(graph, node, accelerator)
    images, channels, height, width = _feature_map(graph.tensors[node.inputs[0]])
    parameters = accelerator.parameters
    elements = blocks(images, parameters.batch) * blocks(channels, parameters.block) * height * width
    tabled = Tabled(entries, node.outputs[0], alone=True)
    return TiledLayer(node, Upsampling(1, (elements, 1), (1, 1)), {DATA: node.inputs[0]}, node.outputs[0], tabled)


def _upsample(graph: Graph, node: Node, accelerator: Accelerator) -> TiledLayer:
    images, channels, height, width = _feature_map(graph.tensors[node.inputs[0]])
    parameters = accelerator.parameters
    planes = blocks(images, parameters.batch) * blocks(channels, parameters.block)
    high, wide = (int(factor) for factor in node.attributes["factors"])
    work = Upsampling(planes, (height, width), (high, wide))
    return TiledLayer(node, work, {DATA: node.inputs[0]}, node.outputs[0])


def _interpolate(graph: Graph, node: Node, accelerator: Accelerator) -> TiledLayer:
    images, channels, height, width = _feature_map(graph.tensors[node.inputs[0]])
    parameters = accelerator.parameters
    planes = blocks(images, parameters.batch) * blocks(channels, parameters.block)
    high, wide = (int(factor) for factor in node.attributes["factors"])
    work = Interpolation(planes, (height, width), (high, wide), bool(node.attributes["centred"]))
    constants = {WINDOWS: work.blocks(accelerator)}
    return TiledLayer(node, work, {DATA: node.inputs[0]}, node.outputs[0], constants=constants)


def _depth_to_space(graph: Graph, node: Node, accelerator: Accelerator) -> TiledLayer:
    images, channels, height, width = _feature_map(graph.tensors[node.outputs[0]])
    parameters, (high, wide) = accelerator.parameters, node.attributes["block"]
    if node.attributes["mode"] != "DCR" or channels % parameters.block or blocks(images, parameters.batch) > 1:
        raise NotOnVtaError("its channels part no blocks of one image")
    work = Upsampling(channels // parameters.block, (height // high, width // wide), (high, wide), high * wide)
    return TiledLayer(node, work, {DATA: node.inputs[0]}, node.outputs[0])


def table_of(graph: Graph, node: Node, accelerator: Accelerator) -> NDArray[np.int8]:
    """Return a table's entries, int8 (256,). Raises NotOnVtaError if VTA cannot store by way of it."""
    entries = graph.constants[node.inputs[1]]
    if not accelerator.table:
        raise NotOnVtaError("this VTA looks nothing up in tables")
    if entries.dtype != np.int8:
        raise NotOnVtaError("it leaves the integers")
    return entries


_FORMS: dict[str, Callable[[Graph, Node, Accelerator], VtaLayer | TiledLayer]] = {
    "conv2d": _convolution,
    "dense": _dense,
    "add": _add,
    "multiply": _multiply,
    "prelu": _prelu,
    "table": _table,
    "upsample": _upsample,
    "interpolate": _interpolate,
    "depth_to_space": _depth_to_space,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _average_pool,
}


def _by_block(
    node: Node,
    images: tuple[int, int, int, int],
    channels: int,
    block: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[tuple[int, int], tuple[int, int]],
    shift: int,
) -> Conv2d:
    """Return the workload that computes each channel block from itself alone."""
    return Conv2d(
        node.name,
        images[0],
        channels,
        images[2],
        images[3],
        channels,
        kernel,
        stride,
        padding[0],
        groups=channels // block,
        bias=True,
        shift=shift,
        clip=_clip(node),
        padding_end=padding[1],
    )


def _feature_map(tensor: Tensor) -> tuple[int, int, int, int]:
    """Return (N, C, H, W) of a tensor; (M, K) is M images of one pixel."""
    if tensor.dtype != "int8" or len(tensor.shape) not in (2, 4):
        raise NotOnVtaError(f"its tensor {tensor.name} is {tensor.dtype} {tensor.shape}; VTA reads int8 (N, C, H, W)")
    batch, channels, height, width = (*tensor.shape, 1, 1)[:4]
    return batch, channels, height, width


def _single(node: Node, key: str) -> int:
    """Return a shift that is the same for all channels."""
    value = node.attributes.get(key, 0)
    values = {int(entry) for entry in value} if isinstance(value, (list, tuple)) else {int(value)}
    if len(values) > 1:
        raise NotOnVtaError(f"its {key} differs between channels; a tile of VTA is shifted as one")
    (single,) = values or {0}
    if key == "shift" and single > _LARGEST_RIGHT_SHIFT:
        raise NotOnVtaError(f"its sums are shifted right by {single}; VTA shifts by 0 to {_LARGEST_RIGHT_SHIFT}")
    return single


def _by_channel(node: Node, key: str, channels: int, block: int) -> tuple[int, ...]:
    """Return the shift of each channel block, or one for all."""
    values = [int(value) for value in node.attributes.get(key, [0])]
    if len(set(values)) == 1:
        return (_single(node, key),)
    shifts = tuple(values[first] for first in range(0, channels, block))
    if values != [shifts[channel // block] for channel in range(channels)]:
        raise NotOnVtaError(f"its {key} differs within {block} channels, which VTA shifts as one")
    return shifts


def _clip(node: Node) -> tuple[int, int]:
    low, high = node.attributes.get("clip", (-128, 127))
    return int(low), int(high)


def _halved(bias: NDArray[Any], shift: int | NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the bias with the half that makes the shift round half up; int32 that wraps."""
    return (bias.astype(np.int64) + (np.left_shift(1, shift) >> 1)).astype(np.int32)


def _whole_blocks(weights: NDArray[Any], bias: NDArray[Any], block: int) -> tuple[int, int, NDArray[Any], NDArray[Any]]:
    """Return a convolution of small groups with whole blocks as its groups: groups, channels, weights and bias.

    A block holds several of the small groups, with zeros for the weights between them.
    """
    channels = blocks(len(weights), block) * block
    more = channels - len(weights)
    weights = np.pad(weights, ((0, more), (0, 0), (0, 0), (0, 0)))
    merged = _merged(weights, channels // weights.shape[1], channels // block)
    return channels // block, channels, merged, np.pad(bias, (0, more))


def _merged(weights: NDArray[Any], groups: int, apart: int) -> NDArray[np.int8]:
    """Return the weights of `groups` groups as those of `apart` groups.

    Shapes are (CO, CI / groups, KH, KW). Zeros stand between channels of different groups.
    """
    outputs, inputs = weights.shape[:2]
    together = groups // apart
    if together <= 1:
        return np.ascontiguousarray(weights, dtype=np.int8)
    merged = np.zeros((outputs, inputs * together, *weights.shape[2:]), dtype=np.int8)
    place = np.arange(outputs) * groups // outputs % together
    for number in range(together):
        merged[place == number, number * inputs : (number + 1) * inputs] = weights[place == number]
    return merged
