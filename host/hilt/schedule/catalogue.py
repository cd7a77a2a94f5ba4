"""Workloads by name (workloads.toml) or spelled out."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from importlib import resources

from hilt.schedule.workload import Conv2d, WorkloadError

_PAIRS = ("kernel", "stride", "padding")
_SPELLED = {
    "n": "batch",
    "ci": "in_channels",
    "h": "height",
    "w": "width",
    "co": "out_channels",
    "k": "kernel",
    "s": "stride",
    "p": "padding",
    "groups": "groups",
    "bias": "bias",
    "shift": "shift",
    "clip": "clip",
}
_EXAMPLE = "conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1,bias=0,shift=8,clip=0:127"


@cache
def _tables() -> dict[str, dict[str, dict[str, object]]]:
    return tomllib.loads(resources.files("hilt.schedule").joinpath("workloads.toml").read_text(encoding="utf-8"))


def workload_names() -> list[str]:
    """Every name that load_workload knows, such as `resnet18.C5`, in the catalogue's order."""
    return [f"{network}.{layer}" for network, layers in _tables().items() for layer in layers]


def load_workload(text: str) -> Conv2d:
    """The workload of this name, or the one spelled out as `conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1`, with
    bias=1, shift=8 and clip=0:127 where they differ from the defaults (no bias, 8, 0:127).

    Raises WorkloadError: unknown (with close names), badly spelled, or of an operator that hilt cannot run yet.
    """
    if text.startswith("conv2d:"):
        workload = _spelled(text)
    else:
        network, _, layer = text.partition(".")
        values = _tables().get(network, {}).get(layer)
        if values is None:
            close = difflib.get_close_matches(text, workload_names(), n=4, cutoff=0.5)
            hint = f"did you mean {', '.join(close)}?" if close else f"spell one out: {_EXAMPLE}"
            raise WorkloadError(f"no workload named {text!r}; {hint}")
        known = {key: value for key, value in values.items() if key in Conv2d.__dataclass_fields__}
        workload = Conv2d.from_dict({"name": text, **known})
    if workload.groups != 1:
        raise WorkloadError(f"workload {text}: grouped convolutions ({workload.groups} groups) cannot be lowered yet")
    return workload


def _spelled(text: str) -> Conv2d:
    values: dict[str, object] = {"name": text}
    for part in text.removeprefix("conv2d:").split(","):
        key, _, value = part.partition("=")
        field = _SPELLED.get(key.strip())
        if field is None:
            raise WorkloadError(f"workload {text}: {part!r} is none of {', '.join(_SPELLED)}; for example {_EXAMPLE}")
        if field in values:
            raise WorkloadError(f"workload {text}: {key.strip()} is given twice")
        try:
            values[field] = _value(field, value)
        except ValueError as error:
            raise WorkloadError(f"workload {text}: cannot read {part!r}; for example {_EXAMPLE}") from error
    missing = [key for key in ("n", "ci", "h", "w", "co", "k") if _SPELLED[key] not in values]
    if missing:
        raise WorkloadError(f"workload {text}: {', '.join(missing)} missing; for example {_EXAMPLE}")
    return Conv2d.from_dict(values)


def _value(field: str, text: str) -> object:
    if field in _PAIRS:
        first, cross, second = text.partition("x")
        return (int(first), int(second) if cross else int(first))
    if field == "clip":
        low, _, high = text.partition(":")
        return (int(low), int(high))
    if field == "bias":
        return {"0": False, "1": True}.get(text.strip()) if text.strip() in ("0", "1") else int("")
    return int(text)
