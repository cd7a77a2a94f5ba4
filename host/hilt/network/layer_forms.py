"""The forms in which VTA runs a node: a convolution with weights, bias and residual, or a layer without weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.bands import Bands
from hilt.network.graph import Node
from hilt.network.kernels import spread
from hilt.network.lower_tiles import Tiled
from hilt.network.tile_writer import DATA, OUT
from hilt.schedule import Conv2d
from hilt.schedule.border import Border
from hilt.schedule.by_table import TABLED
from hilt.schedule.interleaved import Interleaved
from hilt.schedule.residual import RESIDUAL, Skip, SkipBlocks
from hilt.vta.layout import blocks


class NotOnVtaError(ValueError):
    """A node that VTA cannot run; the message says why in one line."""


@dataclass(frozen=True)
class FoldedRows:
    """A kernel's rows as channels: channel r * C + c of row i, of `count`, is channel c of row i * stride + r - top."""

    kernel: int
    stride: int
    top: int
    count: int


@dataclass(frozen=True)
class Fold:
    """A kernel's columns as channels: channel k * C + c of column j is channel c of column j * stride + k - left.

    An input of few channels leaves most of a block empty; with its kernel's columns in it less is. The processor
    writes this form where it would pack the tensor. `rows`: the rows become channels first, so that all taps are.
    """

    kernel: int
    stride: int
    left: int
    rows: FoldedRows | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return its entries in a bundle's step."""
        columns: dict[str, Any] = {"kernel": self.kernel, "stride": self.stride, "left": self.left}
        return columns if self.rows is None else columns | {"rows": asdict(self.rows)}


@dataclass(frozen=True, eq=False)
class Tabled:
    """A table that a layer's STOREs go by.

    Attributes:
        entries: int8 (256,), that of -128 first.
        output: The tensor that is made of the layer's output.
        alone: Whether the layer's output itself is not stored.
    """

    entries: NDArray[np.int8]
    output: str
    alone: bool


@dataclass(frozen=True, eq=False)
class TiledLayer:
    """A pooling, a product, a copy or a depthwise convolution by window GEMMs.

    Attributes:
        node: The node that it computes.
        work: Its computation, in packed tensors.
        reads: The tensor behind each buffer of its code that it reads.
        output: The tensor that is made.
        tabled: The table that the output goes by; None if it has none.
        constants: The contents of the buffers of its code that never change, but those that layers share.
        bands: The rows of each batch lane, where these hold bands of one image; None where they hold images.
        border: Of a convolution whose data has a constant around it; None if it has zeros.
    """

    node: Node
    work: Tiled
    reads: Mapping[str, str]
    output: str
    tabled: Tabled | None = None
    constants: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    bands: Bands | None = None
    border: Border | None = None

    @property
    def writes(self) -> Mapping[str, str]:
        """Return the tensor behind each buffer of its code that it writes."""
        return _writes(self.output, self.tabled)


@dataclass(frozen=True, eq=False)
class VtaLayer:
    """A node as a convolution.

    Attributes:
        node: The node that it computes.
        workload: With a bias; channels as they lie in memory, which may be more than the tensor's.
        weights: int8 (CO, CI / groups, KH, KW), groups as `workload.block_groups` counts.
        bias: int32 (CO,), the half of the shift included.
        data: The tensor that is convolved.
        output: The tensor that is made.
        residual: The tensor that is added; "" for none.
        residual_shift: By how much the residual is shifted left; the most if its blocks differ.
        residual_blocks: The channel blocks of the residual and of the output, if the output has more.
        residual_shifts: The left shift of each channel block of the output, if they differ; else empty.
        shifts: The right shift of each channel block, if they differ; else empty.
        fold: How the processor writes the data; None if it lies as any packed tensor.
        tabled: The table that the output goes by; None if it has none.
        bands: The rows of each batch lane, where these hold bands of one image; None where they hold images.
        interleaved: Neighbouring outputs that are channel blocks of one pixel of `workload`; None if none are.
        beside: The constant around the data.
        border: The parts of sums that outputs lack where that constant is not 0; None where it is.
    """

    node: Node
    workload: Conv2d
    weights: NDArray[np.int8]
    bias: NDArray[np.int32]
    data: str
    output: str
    residual: str = ""
    residual_shift: int = 0
    residual_blocks: tuple[int, int] | None = None
    residual_shifts: tuple[int, ...] = ()
    shifts: tuple[int, ...] = ()
    fold: Fold | None = None
    tabled: Tabled | None = None
    bands: Bands | None = None
    interleaved: Interleaved | None = None
    beside: int = 0
    border: Border | None = None

    @property
    def data_shape(self) -> tuple[int, int, int, int]:
        """Return (N, C, H, W) of the data, its channels as they lie in memory."""
        workload, bands = self.workload, self.bands
        images, rows = (1, bands.rows) if bands else (workload.batch, workload.height)
        return images, workload.in_channels, rows, workload.width

    @property
    def skip(self) -> Skip | None:
        """Return how its code adds the residual; None if it has none."""
        if not self.residual:
            return None
        columns = self.interleaved.columns if self.interleaved else self.workload.out_width
        plane, count = self.workload.out_height * columns, len(self.residual_shifts)
        blocks = self.residual_blocks or ((count, count) if count else None)
        return Skip(self.residual_shift, blocks and SkipBlocks(*blocks, plane), self.residual_shifts)

    @property
    def reads(self) -> Mapping[str, str]:
        """Return the packed tensor behind each buffer of its code that it reads; folded data is none."""
        data = {} if self.fold else {DATA: self.data}
        return data | ({RESIDUAL: self.residual} if self.residual else {})

    @property
    def writes(self) -> Mapping[str, str]:
        """Return the tensor behind each buffer of its code that it writes."""
        return _writes(self.output, self.tabled)


def _writes(output: str, tabled: Tabled | None) -> Mapping[str, str]:
    if tabled is None:
        return {OUT: output}
    return ({} if tabled.alone else {OUT: output}) | {TABLED: tabled.output}


def undilated(layer: VtaLayer) -> VtaLayer:
    """Return a convolution with the zeros of its dilation in its weights."""
    workload = layer.workload
    whole = replace(workload, kernel=workload.reach, dilation=(1, 1))
    return replace(layer, workload=whole, weights=spread(layer.weights, workload.dilation))


def folded(layer: VtaLayer, block: int = 1, outputs: int = 1) -> VtaLayer | None:
    """Return a convolution with its kernel's columns as channels; None if it has groups or one column only.

    With several `outputs`, the columns of so many neighbouring ones are channels of one pixel, and these outputs are
    blocks of channels, of `block` each. The last pixel of a row may have fewer.
    """
    layer = undilated(layer)
    workload, weights = layer.workload, layer.weights
    if workload.groups > 1 or workload.kernel[1] == 1:
        return None
    high, wide = workload.kernel
    stride = workload.stride[1]
    narrow = replace(
        workload,
        in_channels=workload.in_channels * (wide + (outputs - 1) * stride),
        width=-(-workload.out_width // outputs),
        out_channels=workload.out_channels if outputs == 1 else outputs * blocks(len(weights), block) * block,
        kernel=(high, 1),
        stride=(workload.stride[0], 1),
        padding=(workload.padding[0], 0),
        padding_end=(workload.pad_end[0], 0),
    )
    columns, bias = weights, layer.bias
    if outputs > 1:
        columns, bias = _beside(weights, outputs, stride, block), _repeated(bias, outputs, block)
    columns = columns.transpose(0, 3, 1, 2).reshape(narrow.out_channels, -1, high, 1)
    return replace(
        layer,
        bands=layer.bands and replace(layer.bands, width=narrow.width),
        workload=narrow,
        weights=np.ascontiguousarray(columns),
        bias=bias,
        fold=Fold(wide + (outputs - 1) * stride, stride * outputs, workload.padding[1]),
        interleaved=(
            Interleaved(outputs, narrow.out_height, narrow.out_width, workload.out_width) if outputs > 1 else None
        ),
    )


def with_taps(layer: VtaLayer, block: int) -> VtaLayer | None:
    """Return a convolution with all taps of its kernel as channels, one of 1 x 1.

    None if they fill more than a block, and for a layer that has groups, or one column or row only.
    """
    layer = undilated(layer)
    workload, weights, bands = layer.workload, layer.weights, layer.bands
    high, wide = workload.kernel
    if workload.groups > 1 or min(high, wide) == 1 or workload.in_channels * high * wide > block:
        return None
    made = bands.made if bands else workload.out_height
    rows = FoldedRows(high, workload.stride[0], bands.pad if bands else workload.padding[0], made)
    small = replace(
        workload,
        in_channels=workload.in_channels * high * wide,
        height=workload.out_height,
        width=workload.out_width,
        kernel=(1, 1),
        stride=(1, 1),
        padding=(0, 0),
        padding_end=(0, 0),
    )
    return replace(
        layer,
        bands=bands and replace(bands, rows=made, width=small.width, kernel=1, stride=1, pad=0),
        workload=small,
        weights=np.ascontiguousarray(weights.transpose(0, 3, 2, 1).reshape(len(weights), -1, 1, 1)),
        fold=Fold(wide, workload.stride[1], workload.padding[1], rows),
    )


def outputs_beside(layer: VtaLayer, block: int) -> list[int]:
    """Return how many neighbouring outputs' columns are tried in the channel blocks of one's: one, and all that fit."""
    workload = layer.workload
    if layer.shifts or layer.residual or layer.bands or workload.batch > 1:
        return [1]
    channels, wide, stride = workload.in_channels, workload.reach[1], workload.stride[1]
    lanes = blocks(channels * wide, block) * block
    most = min(max((lanes // channels - wide) // stride + 1, 1), workload.out_width)
    return sorted({1, most})


def _beside(weights: NDArray[np.int8], outputs: int, stride: int, block: int) -> NDArray[np.int8]:
    """Return weights (outputs * CO in whole blocks, CI, KH, wider KW): those of each output begin at its own column."""
    channels, inner, high, wide = weights.shape
    groups = blocks(channels, block)
    made = np.zeros((groups, outputs, block, inner, high, wide + (outputs - 1) * stride), np.int8)
    whole = np.zeros((groups * block, inner, high, wide), np.int8)
    whole[:channels] = weights
    for place in range(outputs):
        made[:, place, ..., place * stride : place * stride + wide] = whole.reshape(groups, block, inner, high, wide)
    return made.reshape(-1, *made.shape[3:])


def _repeated(bias: NDArray[np.int32], outputs: int, block: int) -> NDArray[np.int32]:
    """Return the bias of each block of channels once for each output."""
    whole = np.pad(bias, (0, -len(bias) % block)).reshape(-1, 1, block)
    return np.ascontiguousarray(np.repeat(whole, outputs, axis=1)).reshape(-1)
