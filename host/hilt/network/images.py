"""Images of bytes as a network's input: layout, mean and scale become the network's first nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import CalibrationError
from hilt.network.onnx_graph import OnnxError, OnnxGraph, OnnxNode, new_constant

Layout = Literal["nchw", "nhwc"]
_CHANNELS = (1, 3, 4)
_FLOAT = 1
"""ONNX's number of float32."""


@dataclass(frozen=True)
class Images:
    """Images that a network reads: value = (pixel - mean) / scale, pixels from 0 to 255.

    Attributes:
        mean: One value, or one a channel.
        scale: The same.
        layout: Of the images; that of the model is found by its sizes.
    """

    mean: Sequence[float] = (0.0,)
    scale: Sequence[float] = (1.0,)
    layout: Layout = "nhwc"


def as_model_reads(
    arrays: Mapping[str, NDArray[Any]], graph: OnnxGraph, images: Images, labels: str
) -> dict[str, NDArray[Any]]:
    """Return calibration images with their axes in the order of the model's, so that its open sizes follow.

    Raises:
        CalibrationError: The images are no bytes.
    """
    found = dict(arrays)
    shape = graph.shapes.get(graph.inputs[0], ()) if graph.inputs else ()
    for name, array in arrays.items():
        if name == labels or array.ndim != 4:
            continue
        if array.dtype != np.uint8:
            raise CalibrationError(
                f"the calibration data's {name} is {array.dtype}; with --mean, --scale or --layout give images of uint8"
            )
        if len(shape) == 4 and (shape[1] in _CHANNELS) == (images.layout == "nhwc"):
            found[name] = np.moveaxis(array, -1, 1) if images.layout == "nhwc" else np.moveaxis(array, 1, -1)
    return found


def take_images(graph: OnnxGraph, images: Images) -> None:
    """Let a fixed graph read images of uint8 in place of its float input.

    Raises:
        OnnxError: It has no single float input of four axes, or has another number of channels.
    """
    name = _image_input(graph)
    shape = graph.shape(name)
    last = shape[3] in _CHANNELS and shape[1] not in _CHANNELS
    _require_channels(images, name, shape[3] if last else shape[1])
    values = _read_as(graph, name, f"{name}_values")
    graph.shapes[values], graph.dtypes[values], graph.dtypes[name] = shape, "float32", "uint8"
    made: list[OnnxNode] = []
    source = name
    if last != (images.layout == "nhwc"):
        perm = [0, 3, 1, 2] if images.layout == "nhwc" else [0, 2, 3, 1]
        graph.shapes[name] = tuple(shape[perm.index(axis)] for axis in range(4))
        source = _step(graph, made, "Transpose", [name], shape, "uint8", perm=perm)
    source = _step(graph, made, "Cast", [source], shape, "float32", to=_FLOAT)
    for op, stem, numbers, neutral in (("Sub", "mean", images.mean, 0.0), ("Div", "scale", images.scale, 1.0)):
        if set(numbers) != {neutral}:
            constant = new_constant(graph, f"{name}_{stem}", _along_channels(numbers, last))
            source = _step(graph, made, op, [source, constant], shape, "float32")
    made[-1].outputs = [values]
    graph.nodes = made + graph.nodes


def _image_input(graph: OnnxGraph) -> str:
    name = graph.inputs[0] if len(graph.inputs) == 1 else ""
    if not name or len(graph.shape(name)) != 4 or graph.dtypes.get(name, "float32") != "float32":
        raise OnnxError(f"{graph.name} has no single float input of four axes, as --mean, --scale and --layout need")
    return name


def _require_channels(images: Images, name: str, channels: int) -> None:
    for option, values in (("mean", images.mean), ("scale", images.scale)):
        if len(values) not in (1, channels):
            raise OnnxError(f"--{option} has {len(values)} values, {name} has {channels} channels")
    if 0 in images.scale:
        raise OnnxError("--scale holds 0, by which pixels cannot be divided")


def _read_as(graph: OnnxGraph, name: str, stem: str) -> str:
    """Let the nodes that read an input read a tensor of another name; return it."""
    other = graph.unique(stem)
    for node in graph.nodes:
        node.inputs = [other if each == name else each for each in node.inputs]
    return other


def _along_channels(values: Sequence[float], last: bool) -> NDArray[np.float32]:
    """Return one value, or one a channel, with the axes of images whose channels are last, or first."""
    whole = np.array(values if len(set(values)) > 1 else values[:1], np.float32)
    return whole.reshape((1, 1, 1, -1) if last else (1, -1, 1, 1))


def _step(
    graph: OnnxGraph, nodes: list[OnnxNode], op: str, inputs: list[str], shape: tuple[int, ...], dtype: str,
    **attributes: int | list[int],
) -> str:  # fmt: skip
    """Add a node; return its output."""
    name = graph.unique(f"{inputs[0]}_{op.lower()}")
    graph.shapes[name], graph.dtypes[name] = shape, dtype
    nodes.append(OnnxNode(name, op, inputs, [name], dict(attributes)))
    return name
