"""The convolutions and dense layers of an ONNX model as workloads. Only shapes are read, never weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hilt.schedule.catalogue import load_convolution
from hilt.schedule.workload import Conv2d, WorkloadError
from hilt.schedule.workload_syntax import name_of

SUFFIX = ".onnx"

_CONVOLUTIONS = {"Conv": (0, 1, 2), "ConvInteger": (0, 1, None), "QLinearConv": (0, 3, 8)}
"""Operators by where their data, weights and bias stand among the inputs."""
_PRODUCTS = {"Gemm": (0, 1, 2), "MatMul": (0, 1, None), "MatMulInteger": (0, 1, None), "QLinearMatMul": (0, 3, None)}
_TRANSPOSED = "ConvTranspose"


class OnnxError(ValueError):
    """A file that is no readable ONNX model, or a node that hilt cannot place."""


@dataclass
class Layer:
    """Equal layers of a network.

    `nodes` are their names in the model. `workload` is the text for load_convolution. If VTA cannot run the layer,
    `reason`
    holds the reason and `workload` is empty.
    """

    workload: str
    reason: str = ""
    nodes: list[str] = field(default_factory=list)
    macs: int = 0
    """Multiply-accumulates of one of them."""

    @property
    def count(self) -> int:
        return len(self.nodes)

    @property
    def name(self) -> str:
        """Return the workload's name; of one that is spelled out, its first node's name in the model."""
        return self.nodes[0] if ":" in self.workload and self.nodes else self.workload


@dataclass(frozen=True)
class Network:
    """`layers` are different from each other, in the order of the model.

    `others` counts the operators that are neither convolution nor dense layer, which are not VTA's.
    """

    name: str
    layers: tuple[Layer, ...]
    others: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; from_dict makes the same network of them."""
        return {"name": self.name, "layers": [asdict(layer) for layer in self.layers], "others": dict(self.others)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Network:
        return cls(values["name"], tuple(Layer(**layer) for layer in values["layers"]), values["others"])

    @property
    def supported(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in self.layers if not layer.reason)

    @property
    def unsupported(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in self.layers if layer.reason)


def require_layers(network: Network) -> None:
    """Refuse a network in which VTA can run nothing. Raises OnnxError, with the reason of its first layer."""
    if network.supported:
        return
    first = next(iter(network.unsupported), None)
    reason = f": {first.nodes[0]} is {first.reason}" if first and first.nodes else ""
    raise OnnxError(f"{network.name} has no layer that VTA can run{reason}")


class _UnsupportedError(Exception):
    """Why VTA cannot run a layer."""


def read_network(path: Path) -> Network:
    """Read the network of an ONNX file. Raises OnnxError. A batch that the model leaves open is 1."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path), load_external_data=False)
        shaped = onnx.shape_inference.infer_shapes(_with_batch(model), data_prop=True)
    except OSError as error:
        raise OnnxError(f"cannot read {path}: {error.strerror}") from error
    except (DecodeError, ValueError, onnx.shape_inference.InferenceError) as error:
        raise OnnxError(f"{path} is no ONNX model that can be read: {' '.join(str(error).split())}") from error
    if not shaped.graph.node:
        raise OnnxError(f"{path} is no ONNX model: it has no nodes")
    return _network(path.stem, shaped.graph)


def network_of(model: Any, name: str) -> Network:
    """Return the layers of a ModelProto whose input shapes are known."""
    import onnx

    return _network(name, onnx.shape_inference.infer_shapes(model, data_prop=True).graph)


def _with_batch(model: Any) -> Any:
    """Return the model with 1 for an open first dimension of its inputs, so that shapes follow."""
    weights = {initializer.name for initializer in model.graph.initializer}
    for value in model.graph.input:
        dimensions = value.type.tensor_type.shape.dim
        open_batch = dimensions and (not dimensions[0].HasField("dim_value") or dimensions[0].dim_value < 0)
        if value.name not in weights and open_batch:
            dimensions[0].dim_value = 1
    return model


def _network(name: str, graph: Any) -> Network:
    shapes = _Shapes(graph)
    layers: dict[tuple[str, str], Layer] = {}
    others: Counter[str] = Counter()
    for number, node in enumerate(graph.node):
        try:
            if node.op_type in _CONVOLUTIONS:
                workload = _convolution(node, shapes)
            elif node.op_type in _PRODUCTS:
                workload = _product(node, shapes)
            elif node.op_type == _TRANSPOSED:
                workload = _transposed(node, shapes)
            else:
                others[node.op_type] += 1
                continue
            layer = Layer(name_of(workload), macs=workload.macs)
        except (_UnsupportedError, WorkloadError) as error:
            layer = Layer("", f"{node.op_type}: {error}")
        found = layers.setdefault((layer.workload, layer.reason), layer)
        found.nodes.append(node.name or f"{node.op_type} {number}")
    return Network(name, tuple(layers.values()), dict(others.most_common()))


class _Shapes:
    """The known shapes of a graph's tensors."""

    def __init__(self, graph: Any) -> None:
        self._found: dict[str, list[int]] = {}
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.tensor_type.HasField("shape"):
                self._found[value.name] = [size.dim_value for size in value.type.tensor_type.shape.dim]
        self.weights = {initializer.name for initializer in graph.initializer}
        for initializer in graph.initializer:
            self._found[initializer.name] = list(initializer.dims)

    def of(self, node: Any, place: int) -> list[int]:
        """Return the shape of a node's input. Raises _UnsupportedError if it is not fully known."""
        name = node.input[place]
        shape = self._found.get(name)
        if shape is None or any(size <= 0 for size in shape):
            raise _UnsupportedError(f"the shape of its input {name!r} is not known")
        return shape


def _attributes(node: Any) -> dict[str, Any]:
    import onnx

    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def _has_input(node: Any, place: int | None) -> bool:
    return place is not None and len(node.input) > place and bool(node.input[place])


def _convolution(node: Any, shapes: _Shapes) -> Conv2d:
    data_place, weight_place, bias_place = _CONVOLUTIONS[node.op_type]
    data, weight, attributes = _planar(node, shapes, data_place, weight_place)
    groups = _groups(attributes)
    if data[1] != groups * weight[1]:
        raise _UnsupportedError(f"{data[1]} input channels by weights for {groups * weight[1]}")
    stride = _pair(_numbers(attributes, "strides", (1, 1)))
    if min(stride) < 1:
        raise _UnsupportedError(f"its strides are {stride[0]} and {stride[1]}")
    kernel = _pair(weight[2:])
    dilation = _pair(_numbers(attributes, "dilations", (1, 1)))
    reach = _pair([(taps - 1) * gap + 1 for taps, gap in zip(kernel, dilation, strict=True)])
    before, pad_end = _padding(attributes, _pair(data[2:]), reach, stride)
    return Conv2d(
        name=node.name,
        batch=data[0],
        in_channels=data[1],
        height=data[2],
        width=data[3],
        out_channels=weight[0],
        kernel=kernel,
        stride=stride,
        padding=before,
        padding_end=pad_end,
        groups=groups,
        bias=_has_input(node, bias_place),
        dilation=dilation,
    )


def _transposed(node: Any, shapes: _Shapes) -> Conv2d:
    """Its weights are (in, out / groups, height, width)."""
    data, weight, attributes = _planar(node, shapes, 0, 1)
    dilations = _numbers(attributes, "dilations", (1, 1))
    if max(dilations) > 1:
        raise _UnsupportedError(f"dilations {dilations[0]} and {dilations[1]} of a transposed convolution")
    if "output_shape" in attributes or attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise _UnsupportedError("padding by its output's shape; hilt needs pads")
    groups = _groups(attributes)
    if data[1] != weight[0]:
        raise _UnsupportedError(f"{data[1]} input channels by weights for {weight[0]}")
    before, pad_end = _sides(_numbers(attributes, "pads", (0, 0, 0, 0)))
    pairs = {
        "k": weight[2:],
        "s": _numbers(attributes, "strides", (1, 1)),
        "p": before,
        "pb": pad_end,
        "op": _numbers(attributes, "output_padding", (0, 0)),
    }
    text = f"conv2d_transpose:n={data[0]},ci={data[1]},h={data[2]},w={data[3]},co={groups * weight[1]},groups={groups}"
    text += "".join(f",{key}={begin}x{other}" for key, (begin, other) in pairs.items())
    return load_convolution(text + (",bias=1" if _has_input(node, 2) else ""))


def _planar(
    node: Any, shapes: _Shapes, data_place: int, weight_place: int
) -> tuple[list[int], list[int], dict[str, Any]]:
    """Return the shapes of data and weights of a two-dimensional convolution, and its attributes."""
    data, weight = shapes.of(node, data_place), shapes.of(node, weight_place)
    if len(data) != 4 or len(weight) != 4:
        raise _UnsupportedError(f"a convolution of {len(data) - 2} dimensions; VTA has those of two")
    attributes = _attributes(node)
    return data, weight, attributes


def _padding(
    attributes: Mapping[str, Any], size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the padding above and to the left, and the padding below and to the right."""
    automatic = attributes.get("auto_pad", b"NOTSET")
    if automatic == b"NOTSET":
        return _sides(_numbers(attributes, "pads", (0, 0, 0, 0)))
    if automatic == b"VALID":
        return (0, 0), (0, 0)
    if automatic not in (b"SAME_UPPER", b"SAME_LOWER"):
        raise _UnsupportedError(f"its auto_pad is {automatic!r}")
    # SAME_UPPER, SAME_LOWER: as many outputs as inputs over stride
    total = [
        max((-(-extent // step) - 1) * step + taps - extent, 0)
        for extent, taps, step in zip(size, kernel, stride, strict=True)
    ]
    less = [padding // 2 for padding in total]
    more = [padding - padding // 2 for padding in total]
    return _sides([*less, *more] if automatic == b"SAME_UPPER" else [*more, *less])


def _numbers(attributes: Mapping[str, Any], name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """Return as many whole numbers as the default has. Raises _UnsupportedError for another attribute of that name."""
    found = attributes.get(name, default)
    whole = isinstance(found, list | tuple) and all(type(entry) is int for entry in found)
    if not whole or len(found) != len(default):
        raise _UnsupportedError(f"its {name} are {found!r}, not {len(default)} whole numbers")
    return tuple(found)


def _groups(attributes: Mapping[str, Any]) -> int:
    groups = attributes.get("group", 1)
    if type(groups) is not int:
        raise _UnsupportedError(f"its group is {groups!r}, not a whole number")
    return groups


def _sides(pads: Sequence[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (before, after) pairs from ONNX's top, left, bottom, right."""
    top, left, bottom, right = pads
    return (int(top), int(left)), (int(bottom), int(right))


def _product(node: Any, shapes: _Shapes) -> Conv2d:
    """Return a convolution for a dense layer: one pixel, a kernel of one, each row of the data an image."""
    data_place, weight_place, bias_place = _PRODUCTS[node.op_type]
    if node.input[weight_place] not in shapes.weights and len(shapes.of(node, weight_place)) != 2:
        raise _UnsupportedError("both of its operands are computed")
    data, weight = shapes.of(node, data_place), shapes.of(node, weight_place)
    if len(weight) != 2 or len(data) < 2:
        raise _UnsupportedError(f"a product of {len(data)} by {len(weight)} dimensions; VTA has matrices as weights")
    attributes = _attributes(node)
    if attributes.get("transB", 0):
        weight = weight[::-1]
    if attributes.get("transA", 0):
        data = data[::-1]
    rows = 1
    for size in data[:-1]:
        rows *= size
    if data[-1] != weight[0]:
        raise _UnsupportedError(f"{data[-1]} columns by {weight[0]} rows")
    return Conv2d(
        name=node.name,
        batch=rows,
        in_channels=weight[0],
        height=1,
        width=1,
        out_channels=weight[1],
        kernel=(1, 1),
        bias=_has_input(node, bias_place),
    )


def _pair(values: Sequence[int]) -> tuple[int, int]:
    first, second = values
    return (int(first), int(second))
