"""A workload as the text that load_workload reads."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hilt.schedule.catalogue import load_convolution, workload_names
from hilt.schedule.operator import Workload, operator_named
from hilt.schedule.workload import Conv2d, is_dense


def format_workload(workload: Workload) -> str:
    """Return the workload in full, as load_workload reads it."""
    return operator_named(workload.operator).format(workload)


def format_conv2d(workload: Conv2d) -> str:
    """`conv2d:n=1,ci=64,...` or `dense:n=1,ci=512,co=1000`.

    The shapes in full, the rest where it differs from the defaults. A transposed convolution is the convolution
    that computes it.
    """
    channels = f"n={workload.batch},ci={workload.in_channels},"
    if is_dense(workload):
        text = f"dense:{channels}co={workload.out_channels}"
    else:
        pairs = {"k": workload.kernel, "s": workload.stride, "p": workload.padding}
        text = f"conv2d:{channels}h={workload.height},w={workload.width},co={workload.out_channels}"
        text += "".join(f",{key}={begin}x{other}" for key, (begin, other) in pairs.items())
    if workload.padding_end is not None:
        text += ",pb={}x{}".format(*workload.padding_end)
    if workload.groups != 1:
        text += f",groups={workload.groups}"
    if workload.bias:
        text += ",bias=1"
    if workload.shift != 8:
        text += f",shift={workload.shift}"
    if workload.clip != (0, 127):
        text += f",clip={workload.clip[0]}:{workload.clip[1]}"
    if workload.input_dilation != (1, 1):
        text += f",input_dilation={workload.input_dilation[0]}x{workload.input_dilation[1]}"
    if workload.dilation != (1, 1):
        text += f",d={workload.dilation[0]}x{workload.dilation[1]}"
    if workload.epilogue is not None:
        text += f",epilogue={workload.epilogue}"
    return text


def name_of(workload: Workload) -> str:
    """Return the catalogue's name for these shapes, else the workload in full."""
    named = _names().get(replace(workload, name="")) if isinstance(workload, Conv2d) else None
    return named or format_workload(workload)


@cache
def _names() -> dict[Conv2d, str]:
    found: dict[Conv2d, str] = {}
    # A layer of a network says more than a position in a benchmark.
    for name in sorted(workload_names(), key=lambda name: name.startswith("deepbench.")):
        found.setdefault(replace(load_convolution(name), name=""), name)
    return found
