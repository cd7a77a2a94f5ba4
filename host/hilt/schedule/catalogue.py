"""Workloads by name (workloads.toml) or spelled out."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from hilt.schedule.operator import Workload, convolution, operator_named, operator_names
from hilt.schedule.workload import Conv2d, WorkloadError

_PAIRS = ("kernel", "stride", "padding", "padding_end", "input_dilation", "dilation", "output_padding")
_FIELDS = {
    "n": "batch",
    "ci": "in_channels",
    "h": "height",
    "w": "width",
    "co": "out_channels",
    "k": "kernel",
    "s": "stride",
    "p": "padding",
    "pb": "padding_end",
    "groups": "groups",
    "bias": "bias",
    "shift": "shift",
    "clip": "clip",
    "input_dilation": "input_dilation",
    "d": "dilation",
    "stretch": "input_dilation",  # the name of hilt 0.1
    "epilogue": "epilogue",
}
_DENSE = ("n", "ci", "co", "groups", "bias", "shift", "clip", "epilogue")
_EXAMPLE = "conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1,bias=0,shift=8,clip=0:127"


@cache
def _tables() -> dict[str, dict[str, dict[str, object]]]:
    return tomllib.loads(resources.files("hilt.schedule").joinpath("workloads.toml").read_text(encoding="utf-8"))


def workload_names() -> list[str]:
    """Return every name that load_workload knows, such as `resnet18.C5`, in the catalogue's order."""
    return [f"{network}.{layer}" for network, layers in _tables().items() for layer in layers]


def load_workload(text: str) -> Workload:
    """Return the workload of this name, or of its full form.

    The full form is `conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1`. It has bias=1, shift=8 and clip=0:127 if they
    differ from the defaults (no bias, 8, 0:127). It has pb=0x1 if the padding below and to the right is another than
    above and to the left, and epilogue=skip if it runs in this form of a compiled network (hilt.schedule.workload).

    Also `dense:n=1,ci=512,co=1000`, with the same options, and `conv2d_transpose:`, with s, p and op as frameworks have
    them (stride, padding and output padding of the transposed convolution): both as the Conv2d that computes them.

    Raises WorkloadError: unknown (with close names) or badly spelled.
    """
    operator, colon, arguments = text.partition(":")
    if colon and operator in _AS_CONVOLUTIONS:
        return Conv2d.from_dict(_AS_CONVOLUTIONS[operator](text, arguments))
    if colon and operator in operator_names():
        return operator_named(operator).parse(text, arguments)
    network, _, layer = text.partition(".")
    values = _tables().get(network, {}).get(layer)
    if values is None:
        close = difflib.get_close_matches(text, workload_names(), n=4, cutoff=0.5)
        hint = f"did you mean {', '.join(close)}?" if close else f"spell one out: {_EXAMPLE}"
        raise WorkloadError(f"no workload named {text!r}; {hint}")
    known = {key: value for key, value in values.items() if key in Conv2d.__dataclass_fields__}
    return Conv2d.from_dict({"name": text, **known})


def load_convolution(text: str) -> Conv2d:
    """Return the workload of this text, which must be a convolution. Raises WorkloadError."""
    return convolution(load_workload(text))


def conv2d_fields(text: str, arguments: str) -> dict[str, object]:
    return _parse_fields(text, arguments, _FIELDS, ("n", "ci", "h", "w", "co", "k"))


def _dense(text: str, arguments: str) -> dict[str, object]:
    values = _parse_fields(text, arguments, {key: _FIELDS[key] for key in _DENSE}, ("n", "ci", "co"))
    return {**values, "height": 1, "width": 1, "kernel": (1, 1)}


def _conv2d_transpose(text: str, arguments: str) -> dict[str, object]:
    """Return the convolution that slides over the input with stride - 1 zeros between neighbours.

    Its weights are the transposed convolution's with inputs and outputs exchanged and both axes of the kernel
    turned round.
    """
    fields = {key: field for key, field in _FIELDS.items() if not field.endswith("dilation")} | {"op": "output_padding"}
    values = _parse_fields(text, arguments, fields, ("n", "ci", "h", "w", "co", "k"))
    size = (values["height"], values["width"])
    kernel, stride = values["kernel"], values.pop("stride", (1, 1))
    padding, output_padding = values.pop("padding", (0, 0)), values.pop("output_padding", (0, 0))
    pad_end = values.pop("padding_end", padding)
    for axis in (0, 1):
        if not 0 <= padding[axis] < kernel[axis] or not 0 <= pad_end[axis] < kernel[axis]:
            raise WorkloadError(f"workload {text}: padding {padding[axis]} must be at least 0 and below the kernel")
        if not 0 <= output_padding[axis] < stride[axis]:
            raise WorkloadError(f"workload {text}: output padding {output_padding[axis]} must be below the stride")
    # Output padding is rows and columns of zeros behind the input.
    stretched = [(size[axis] - 1) * stride[axis] + 1 + output_padding[axis] for axis in (0, 1)]
    return {
        **values,
        "height": stretched[0],
        "width": stretched[1],
        "padding": (kernel[0] - 1 - padding[0], kernel[1] - 1 - padding[1]),
        "padding_end": (kernel[0] - 1 - pad_end[0], kernel[1] - 1 - pad_end[1]),
        "input_dilation": stride,
    }


_AS_CONVOLUTIONS = {"dense": _dense, "conv2d_transpose": _conv2d_transpose}
"""Operators that a Conv2d computes: the fields of it."""


def _parse_fields(text: str, arguments: str, fields: Mapping[str, str], required: tuple[str, ...]) -> dict[str, Any]:
    """Return the values by field of the workload `text`, whose keys are those of `fields`."""
    values: dict[str, Any] = {"name": text}
    for part in arguments.split(","):
        key, _, value = part.partition("=")
        field = fields.get(key.strip())
        if field is None:
            raise WorkloadError(f"workload {text}: {part!r} is none of {', '.join(fields)}; for example {_EXAMPLE}")
        if field in values:
            raise WorkloadError(f"workload {text}: {key.strip()} is given twice")
        try:
            values[field] = _value(field, value)
        except ValueError as error:
            raise WorkloadError(f"workload {text}: cannot read {part!r}; for example {_EXAMPLE}") from error
    missing = [key for key in required if fields[key] not in values]
    if missing:
        raise WorkloadError(f"workload {text}: {', '.join(missing)} missing; for example {_EXAMPLE}")
    return values


def _value(field: str, text: str) -> object:
    if field in _PAIRS:
        first, cross, second = text.partition("x")
        return (int(first), int(second) if cross else int(first))
    if field == "clip":
        low, _, high = text.partition(":")
        return (int(low), int(high))
    if field == "epilogue":
        return text.strip()
    if field == "bias":
        return {"0": False, "1": True}.get(text.strip()) if text.strip() in ("0", "1") else int("")
    return int(text)
