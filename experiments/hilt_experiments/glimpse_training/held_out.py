"""The layers and the accelerators that Glimpse is evaluated on, which training must never use."""

from __future__ import annotations

from functools import cache

from hilt import paths
from hilt.schedule import Conv2d, load_convolution, workload_names
from hilt.vta.parameters import VTAParameters, load_parameters

HELD_OUT_NETWORKS = ("deepbench", "resnet18")

Shape = tuple[object, ...]


class HeldOutError(ValueError):
    """An attempt to train on a part of the evaluation."""


def shape_of(workload: Conv2d) -> Shape:
    """Return the key that is equal for layers of the same problem under any name: autotvm.C2 is resnet18.C2."""
    return (
        workload.batch,
        workload.in_channels,
        workload.height,
        workload.width,
        workload.out_channels,
        workload.kernel,
        workload.stride,
        workload.padding,
        workload.groups,
        workload.input_dilation,
    )


@cache
def held_out_shapes() -> frozenset[Shape]:
    """Return the shapes of every layer of deepbench and resnet18."""
    names = [name for name in workload_names() if name.split(".")[0] in HELD_OUT_NETWORKS]
    return frozenset(shape_of(load_convolution(name)) for name in names)


@cache
def held_out_parameters() -> frozenset[VTAParameters]:
    """Return the parameters of every accelerator that hilt ships, and so of every board model.

    A whole parameter set is held out, with any bus, clock and memory.
    """
    files = sorted((paths.bitstreams_directory() / "parameters").glob("*.json"))
    return frozenset(load_parameters(file) for file in files)


def require_not_held_out(workload: Conv2d, parameters: VTAParameters) -> None:
    """Raise HeldOutError if the shape or the parameters are held out."""
    if shape_of(workload) in held_out_shapes():
        raise HeldOutError(f"{workload.name} has the shape of a layer that is held out of training")
    if parameters in held_out_parameters():
        raise HeldOutError(f"the parameters {parameters.name} are held out of training")
