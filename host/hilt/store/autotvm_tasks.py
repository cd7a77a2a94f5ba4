"""VTA's operators as AutoTVM's tasks: names, arguments and knobs of TVM v0.9's templates <-> workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from hilt.schedule import Conv2d, WorkloadError
from hilt.schedule.workload import is_dense
from hilt.schedule.workload_syntax import name_of
from hilt.store.autotvm_log import LogFormatError, LogRecord
from hilt.vta.layout import blocks
from hilt.vta.parameters import VTAParameters

CONV2D = "conv2d_packed.vta"
DENSE = "dense_packed.vta"

_SPLITS = ("tile_b", "tile_h", "tile_w", "tile_ci", "tile_co")
KNOBS = {
    CONV2D: (*_SPLITS, "oc_nthread", "h_nthread"),
    DENSE: ("tile_b", "tile_ci", "tile_co", "oc_nthread"),
}
"""The knobs of each template, in the order of the index, the first fastest."""

_DENSE_CONSTANTS = {"tile_h": 1, "tile_w": 1, "h_nthread": 1}
"""The further knobs of a dense layer, which is a convolution of one pixel here."""
_LARGEST = 65535
"""The largest dimension of a tensor: a field of VTA's instructions holds no more."""
_MOST_BYTES = 2**31 - 1
"""The largest tensor in bytes: more than any board has."""
_TVM_ORDER = {"loop_order": 1}
"""The choice of TVM's templates where hilt has several."""


def task_of(workload: Conv2d) -> str:
    return DENSE if is_dense(workload) else CONV2D


def args_of(workload: Conv2d, parameters: VTAParameters) -> tuple[Any, ...]:
    """Return the task's arguments in VTA's layouts; channels and batch are padded to whole blocks.

    Raises WorkloadError for grouped, transposed and dilated convolutions, which are none of its template, and for
    unequal padding, which the template ignores.
    """
    require_template(workload)
    batch, block = parameters.batch, parameters.block
    ci, co = blocks(workload.in_channels, block), blocks(workload.out_channels, block)
    images = blocks(workload.batch, batch)
    if task_of(workload) == DENSE:
        return (_tensor(images, ci, batch, block), _tensor(co, ci, block, block), None, "int32")
    (top, left), kernel = workload.padding, workload.kernel
    return (
        _tensor(images, ci, workload.height, workload.width, batch, block),
        _tensor(co, ci, *kernel, block, block),
        list(workload.stride),
        [top, left, top, left],
        [1, 1],
        f"NCHW{batch}n{block}c",
        "int32",
    )


def require_template(workload: Conv2d) -> None:
    """Raise WorkloadError for a workload that TVM has no template for."""
    kinds = {
        "grouped": workload.groups != 1,
        "transposed": workload.input_dilation != (1, 1),
        "dilated": workload.dilation != (1, 1),
        "unevenly padded": workload.padding_end is not None,
    }
    kind = next((name for name, holds in kinds.items() if holds), None)
    if kind:
        raise WorkloadError(f"workload {workload.name}: a {kind} convolution is no {CONV2D} of TVM's")


def _tensor(*shape: int) -> list[Any]:
    return ["TENSOR", list(shape), "int8"]


def workload_of(record: LogRecord) -> Conv2d:
    """Return the record's workload, with TVM's shift 8 and clip 0 to 127. Raises LogFormatError."""
    try:
        if record.task == CONV2D:
            return _conv2d(*record.args)
        if record.task == DENSE:
            return _dense(*record.args)
    except (TypeError, ValueError) as error:
        raise LogFormatError(f"arguments of {record.task}: {error}") from error
    raise LogFormatError(f"task {record.task!r}; hilt has {CONV2D} and {DENSE}")


def _conv2d(data: Any, weight: Any, stride: Any, padding: Any, dilation: Any, *rest: Any) -> Conv2d:
    """Seven arguments, or an older release's eight: `rest` is (groups,) layout, (output layout,) output type."""
    layout, out_dtype = _layout_of(rest)
    images, ci, height, width, batch, block = _shape(data, 6)
    co, weight_ci, kernel_height, kernel_width, block_out, block_in = _shape(weight, 6)
    if (weight_ci, block_in, layout) != (ci, block, f"NCHW{batch}n{block}c") or out_dtype != "int32":
        raise LogFormatError(f"data {data}, weights {weight}, layout {layout}, {out_dtype} make no VTA convolution")
    if list(dilation) != [1, 1]:
        raise LogFormatError(f"dilation {dilation}; VTA has none")
    if not all(isinstance(value, int) for value in (*stride, *padding)):
        raise LogFormatError(f"stride {stride}, padding {padding}; both are whole numbers")
    top, left, bottom, right = padding if len(padding) == 4 else (*padding, *padding)
    if (top, left) != (bottom, right):
        raise LogFormatError(f"padding {padding} is not the same on both sides")
    return _named(
        batch=images * batch,
        in_channels=ci * block,
        height=height,
        width=width,
        out_channels=co * block_out,
        kernel=(kernel_height, kernel_width),
        stride=tuple(stride),
        padding=(top, left),
    )


def _layout_of(rest: tuple[Any, ...]) -> tuple[str, str]:
    """Return the layout and the output type of a convolution's last two or three arguments."""
    named = rest[1:] if len(rest) == 3 and type(rest[0]) is int and rest[0] == 1 else rest
    if len(named) == 3 and named[1] in (named[0], "", None):
        named = (named[0], named[2])
    if len(named) != 2 or not all(isinstance(value, str) for value in named):
        raise LogFormatError(f"arguments {list(rest)} after the dilation; a layout and an output type belong there")
    return named[0], named[1]


def _dense(data: Any, weight: Any, bias: Any, out_dtype: str) -> Conv2d:
    images, ci, batch, block = _shape(data, 4)
    co, weight_ci, block_out, block_in = _shape(weight, 4)
    if (weight_ci, block_in, out_dtype) != (ci, block, "int32") or bias is not None:
        raise LogFormatError(f"data {data}, weights {weight}, bias {bias}, {out_dtype} make no VTA dense layer")
    return _named(
        batch=images * batch, in_channels=ci * block, height=1, width=1, out_channels=co * block_out, kernel=(1, 1)
    )


def _shape(tensor: Any, dimensions: int) -> list[int]:
    kind, shape, dtype = tensor
    if kind != "TENSOR" or dtype != "int8" or len(shape) != dimensions:
        raise LogFormatError(f"{tensor} is no int8 tensor of {dimensions} dimensions")
    if not all(isinstance(size, int) and 1 <= size <= _LARGEST for size in shape):
        raise LogFormatError(f"shape {shape}; each dimension is from 1 to {_LARGEST}")
    if prod(shape) > _MOST_BYTES:
        raise LogFormatError(f"shape {shape}; a tensor is at most {_MOST_BYTES} bytes")
    return list(shape)


def _named(**values: Any) -> Conv2d:
    workload = Conv2d(name="", **values)
    return Conv2d(**{**values, "name": name_of(workload)})


def entity_of(task: str, knobs: Mapping[str, int]) -> tuple[tuple[str, str, int], ...] | None:
    """Return the knobs in the form of TVM's template; None for a configuration outside TVM's space."""
    rest = {name: value for name, value in knobs.items() if name not in KNOBS[task]}
    constants = _TVM_ORDER | (_DENSE_CONSTANTS if task == DENSE else {})
    if any(name not in knobs for name in KNOBS[task]) or any(constants.get(name) != rest[name] for name in rest):
        return None
    return tuple((name, "sp" if name in _SPLITS else "ot", knobs[name]) for name in KNOBS[task])


def index_of(entity: Sequence[tuple[str, str, int]], knob_values: Mapping[str, Sequence[int]]) -> int:
    """TVM's index: the first knob fastest, a split's inner factors ascending."""
    index, stride = 0, 1
    for name, _, value in entity:
        index += stride * list(knob_values[name]).index(value)
        stride *= len(knob_values[name])
    return index


def knobs_of(record: LogRecord) -> dict[str, int]:
    """Return the knob values by name, as hilt's space has them. Raises LogFormatError."""
    named = {name: value for name, _, value in record.entity}
    if tuple(named) != KNOBS[record.task]:
        raise LogFormatError(f"knobs {', '.join(named)}; {record.task} has {', '.join(KNOBS[record.task])}")
    knobs = {**named, **(_DENSE_CONSTANTS if record.task == DENSE else {})}
    return {name: knobs[name] for name in KNOBS[CONV2D]}
