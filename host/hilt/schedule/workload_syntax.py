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
    rest = (
        ("pb", workload.padding_end, None),
        ("groups", workload.groups, 1),
        ("bias", int(workload.bias), 0),
        ("shift", workload.shift, 8),
        ("clip", workload.clip, (0, 127)),
        ("input_dilation", workload.input_dilation, (1, 1)),
        ("d", workload.dilation, (1, 1)),
        ("epilogue", workload.epilogue, None),
    )
    return text + "".join(f",{key}={_value(key, value)}" for key, value, default in rest if value != default)


def _value(key: str, value: tuple[int, int] | int | str | None) -> str:
    return (":" if key == "clip" else "x").join(map(str, value)) if isinstance(value, tuple) else str(value)


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
