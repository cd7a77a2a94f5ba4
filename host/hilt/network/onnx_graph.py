"""An ONNX model as plain Python: nodes, numpy constants, static shapes. Only here are protobufs read and written."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.onnx_model import OnnxError as OnnxError

_OLDEST_OPSET = 17
"""Models of older operator sets are rewritten to this one."""
CONSTANT_DOMAIN = "hilt.constant"
"""The domain here, not in files, of an Identity that makes a constant output of the graph."""
_DECIBELS = "hilt.decibels"
"""The key of a model's metadata with the signal-to-noise ratios of its layers, as JSON."""
_LARGE = 1 << 12
"""Constants of more elements are left out when only shapes are inferred."""


@dataclass
class OnnxNode:
    """One node. Attributes are plain values, numpy arrays or GraphProtos; inputs that are left out are ''."""

    name: str
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    domain: str = ""

    @property
    def label(self) -> str:
        """Return the node's name and operator, for messages."""
        return f"{self.name} ({self.op})"

    def subgraphs(self) -> list[Any]:
        """Return the GraphProtos among the attributes."""
        return [value for value in self.attributes.values() if hasattr(value, "node") and hasattr(value, "initializer")]


@dataclass
class OnnxGraph:
    """A model's graph.

    Attributes:
        name: The file's name without its suffix.
        opset: Of ONNX's own domain.
        inputs: Names of the inputs that are no constants, in order.
        outputs: Names of the outputs, in order.
        nodes: In topological order.
        constants: Arrays by name.
        shapes: Static shapes by tensor name, as far as they are known; an open dimension is None.
        dtypes: numpy's type names by tensor name.
        decibels: Signal-to-noise ratios of nodes' outputs against a float model, by node; a quantiser measured them.
    """

    name: str
    opset: int
    inputs: list[str]
    outputs: list[str]
    nodes: list[OnnxNode]
    constants: dict[str, NDArray[Any]]
    shapes: dict[str, tuple[int | None, ...]]
    dtypes: dict[str, str]
    decibels: dict[str, float] = field(default_factory=dict)

    def copied(self) -> OnnxGraph:
        """Return a graph that can be changed without this one; they share the constants' arrays."""
        made = copy.copy(self)
        made.inputs, made.outputs, made.nodes = list(self.inputs), list(self.outputs), copy.deepcopy(self.nodes)
        made.constants, made.decibels = dict(self.constants), dict(self.decibels)
        made.shapes, made.dtypes = dict(self.shapes), dict(self.dtypes)
        return made

    def consumers(self) -> dict[str, list[OnnxNode]]:
        """Return the nodes that read each name; a node that reads it twice is there once."""
        readers: dict[str, list[OnnxNode]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                readers.setdefault(name, []).append(node)
        return readers

    def reads(self, name: str) -> bool:
        """Tell whether a node or the caller reads a tensor."""
        return bool(name) and (name in self.outputs or any(name in node.inputs for node in self.nodes))

    def producers(self) -> dict[str, OnnxNode]:
        """Return the node that makes each name."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    def computed_inputs(self, node: OnnxNode) -> list[str]:
        """Return the inputs of a node that are no constants."""
        return [name for name in node.inputs if name and name not in self.constants]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a static shape.

        Raises:
            OnnxError: It is not known.
        """
        if name in self.constants:
            return self.constants[name].shape
        shape = self.shapes.get(name)
        if shape is None or any(size is None for size in shape):
            raise OnnxError(self._why_unknown(name))
        return tuple(size for size in shape if size is not None)

    def _why_unknown(self, name: str) -> str:
        """Return which node leaves a tensor's shape open."""
        node, behind = self._first_unknown(name)
        if node is None or any(not self._has_shape(source) for source in node.inputs if source):
            return f"tensor {name} has no known shape; give the inputs' with --shape NAME=1,3,224,224"
        kind = f"{node.domain}.{node.op}" if node.domain else node.op
        return (
            f"node {node.name} is {kind}, whose result {behind} has no shape that is known before it runs; "
            "replace it in the model, or cut the model in front of it with onnx.utils.extract_model"
        )

    def _first_unknown(self, name: str) -> tuple[OnnxNode | None, str]:
        """Return the first node, and its result, on the way to a tensor from which on no shape is known."""
        producers = self.producers()
        node, behind = producers.get(name), name
        while node is not None:
            open_inputs = [source for source in node.inputs if source and not self._has_shape(source)]
            if not open_inputs or open_inputs[0] not in producers:
                break
            behind = open_inputs[0]
            node = producers[behind]
        return node, behind

    def _has_shape(self, name: str) -> bool:
        return name in self.constants or None not in self.shapes.get(name, (None,))

    def replace(self, old: str, new: str) -> None:
        """Let every reader of `old` read `new`, outputs included."""
        for node in self.nodes:
            node.inputs = [new if name == old else name for name in node.inputs]
            for subgraph in node.subgraphs():
                rename_captured(subgraph, {old: new})
        self.outputs = [new if name == old else name for name in self.outputs]

    def unique(self, stem: str) -> str:
        """Return a name that no tensor has, `stem` if it is free."""
        names = set(self.constants) | set(self.inputs) | {name for node in self.nodes for name in node.outputs}
        return free_name(stem, names)

    def name_apart(self) -> None:
        """Give a node whose name an earlier one has another name; ONNX does not ask for unique names."""
        taken: set[str] = set()
        for node in self.nodes:
            node.name = free_name(node.name, taken)
            taken.add(node.name)

    def remove_unused(self) -> None:
        """Drop the nodes and constants that no output depends on."""
        needed, nodes = set(self.outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                nodes.append(node)
                needed.update(node.inputs)
                needed.update(_captured(node))
        self.nodes = nodes[::-1]
        self.constants = {name: value for name, value in self.constants.items() if name in needed}


def free_name(stem: str, taken: Container[str]) -> str:
    """Return `stem`, or with a number behind it if it is taken."""
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def new_constant(graph: OnnxGraph, stem: str, value: NDArray[Any]) -> str:
    """Add a constant; return its name, which is `stem` if that is free."""
    name = graph.unique(stem)
    graph.constants[name] = value
    return name


def reshape_node(graph: OnnxGraph, name: str, source: str, result: str, shape: tuple[int, ...]) -> OnnxNode:
    """Return a Reshape of `source` to a fixed shape, and note the type of `result`."""
    constant = new_constant(graph, f"{name}.shape", np.array(shape, np.int64))
    graph.shapes[result] = shape
    graph.dtypes[result] = graph.dtypes.get(source, "float32")
    return OnnxNode(name, "Reshape", [source, constant], [result])


def slice_node(graph: OnnxGraph, name: str, source: str, result: str, parts: Mapping[int, tuple[int, int]]) -> OnnxNode:
    """Return a Slice of `source` from a start to an end along each axis of `parts`, and note the type of `result`."""
    axes, shape = sorted(parts), list(graph.shape(source))
    for axis, (start, end) in parts.items():
        shape[axis] = max(end - start, 0)
    bounds = [
        new_constant(graph, f"{name}.{key}", np.array(values, np.int64))
        for key, values in (
            ("starts", [parts[axis][0] for axis in axes]), ("ends", [parts[axis][1] for axis in axes]), ("axes", axes)
        )
    ]  # fmt: skip
    graph.shapes[result], graph.dtypes[result] = tuple(shape), graph.dtypes.get(source, "float32")
    return OnnxNode(name, "Slice", [source, *bounds], [result])


def reduced_axes(graph: OnnxGraph, node: OnnxNode, rank: int) -> list[int] | None:
    """Return the axes, of `rank`, that a reduction takes together, sorted; None for all axes, or computed ones."""
    axes = node.attributes.get("axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1] in graph.constants:
        axes = graph.constants[node.inputs[1]].ravel().tolist()
    return None if axes is None else sorted(int(axis) % rank for axis in axes)


def load_graph(path: Path, *, weights: bool = True) -> OnnxGraph:
    """Read a model. Shapes are those in the file; model-local functions are inlined.

    Args:
        path: The file.
        weights: Read weights that lie in files of their own; else zeros stand for them.

    Raises:
        OnnxError: The file cannot be read, is no ONNX model, or needs a newer opset.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path), load_external_data=weights)
    except OSError as error:
        raise OnnxError(f"cannot read {path}: {error.strerror or error}") from error
    except (DecodeError, ValueError, onnx.checker.ValidationError) as error:
        raise OnnxError(f"{path} is no ONNX model that can be read: {' '.join(str(error).split())}") from error
    if not model.graph.node:
        raise OnnxError(f"{path} is no ONNX model: it has no nodes")
    return graph_of(model, _name_of(path))


def _name_of(path: Path) -> str:
    """Return the name of a file, which may hold any bytes, as text that protobuf takes."""
    return os.fsencode(path.stem).decode(errors="replace")


def graph_of(model: Any, name: str) -> OnnxGraph:
    """Return a ModelProto as a graph at opset 17 or newer; its functions are inlined.

    Raises:
        OnnxError: Its opset is newer than hilt knows.
    """
    import onnx

    from hilt.network.onnx_functions import inline_functions
    from hilt.network.onnx_opsets import modernise, write_defaults

    newest = onnx.defs.onnx_opset_version()
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    if opset > newest:
        raise OnnxError(f"{name} has opset {opset}; onnx here knows {newest}: update it, or export an older one")
    graph = parse_graph(inline_functions(model).graph, name, opset)
    if opset < _OLDEST_OPSET:
        modernise(graph, opset)
        graph.opset = _OLDEST_OPSET
    write_defaults(graph)
    graph.name_apart()
    graph.decibels = _decibels(model)
    return graph


def _decibels(model: Any) -> dict[str, float]:
    """Return the ratios that `to_model` wrote into a ModelProto; none if it has none that can be read."""
    text = next((entry.value for entry in model.metadata_props if entry.key == _DECIBELS), "{}")
    try:
        values = json.loads(text)
        return {str(name): float(value) for name, value in values.items() if math.isfinite(float(value))}
    except (ValueError, TypeError, AttributeError):
        return {}


def parse_graph(proto: Any, name: str, opset: int) -> OnnxGraph:
    """Return a GraphProto as a graph, operators as they are."""
    outputs = [value.name for value in proto.output]
    graph = OnnxGraph(name, opset, [], outputs, [], _initial_constants(proto), {}, {})
    for value in (*proto.input, *proto.value_info, *proto.output):
        _note_type(graph, value)
    graph.inputs = [value.name for value in proto.input if value.name not in graph.constants]
    for name in graph.inputs:  # some exporters write 0 for an open size
        if name in graph.shapes:
            graph.shapes[name] = tuple(size or None for size in graph.shapes[name])
    for number, node in enumerate(proto.node):
        _add_node(graph, number, node)
    return graph


def _initial_constants(proto: Any) -> dict[str, NDArray[Any]]:
    """Return a GraphProto's initializers by name; zeros stand for those whose file was not read."""
    import onnx
    from onnx import numpy_helper

    constants: dict[str, NDArray[Any]] = {}
    for initializer in proto.initializer:
        if initializer.data_location == onnx.TensorProto.EXTERNAL and not initializer.HasField("raw_data"):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(initializer.data_type)
            constants[initializer.name] = np.broadcast_to(np.zeros((), dtype), tuple(initializer.dims))
        else:
            constants[initializer.name] = numpy_helper.to_array(initializer)
    for sparse in proto.sparse_initializer:
        constants[sparse.values.name] = _dense(sparse)
    return constants


def _add_node(graph: OnnxGraph, number: int, node: Any) -> None:
    """Add a NodeProto to a graph; a Constant becomes one of the graph's."""
    attributes = {attribute.name: _attribute(attribute) for attribute in node.attribute}
    if node.op_type == "Constant":
        graph.constants[node.output[0]] = _constant(attributes)
        return
    label = node.name or f"{node.op_type}_{number}"
    domain = "" if node.domain == "ai.onnx" else node.domain
    graph.nodes.append(OnnxNode(label, node.op_type, list(node.input), list(node.output), attributes, domain))


def _dense(sparse: Any) -> NDArray[Any]:
    """Return a sparse tensor's values in full; its places are flat or one row of coordinates each."""
    from onnx import numpy_helper

    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    whole = np.zeros(tuple(sparse.dims), values.dtype)
    flat = places if places.ndim == 1 else np.ravel_multi_index(tuple(places.T), tuple(sparse.dims))
    whole.reshape(-1)[flat] = values
    return whole


def _note_type(graph: OnnxGraph, value: Any) -> None:
    import onnx

    if not value.type.HasField("tensor_type"):
        return
    kind = value.type.tensor_type
    if kind.elem_type:
        graph.dtypes[value.name] = str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    if kind.HasField("shape"):
        graph.shapes[value.name] = tuple(
            size.dim_value if size.HasField("dim_value") and size.dim_value >= 0 else None for size in kind.shape.dim
        )


def _attribute(attribute: Any) -> Any:
    import onnx
    from onnx import numpy_helper

    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [text.decode("utf-8", "replace") for text in value]
    if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return list(value)
    return value


def _constant(attributes: Mapping[str, Any]) -> NDArray[Any]:
    key, value = next(iter(attributes.items()))
    if key in ("value_int", "value_ints"):
        return np.asarray(value, np.int64)
    if key in ("value_float", "value_floats"):
        return np.asarray(value, np.float32)
    return np.asarray(value)


def _captured(node: OnnxNode) -> Iterator[str]:
    """Yield the names that a node's subgraphs read, those of their own tensors among them."""
    for subgraph in node.subgraphs():
        for inner in subgraph.node:
            yield from inner.input
            for attribute in inner.attribute:
                if attribute.HasField("g"):
                    yield from _captured(OnnxNode("", "", [], [], {"g": attribute.g}))
        yield from (output.name for output in subgraph.output)


def rename_captured(subgraph: Any, names: Mapping[str, str]) -> None:
    """Rename in a GraphProto, and in those within it, the outer tensors that it reads."""
    for node in subgraph.node:
        for place, name in enumerate(node.input):
            node.input[place] = names.get(name, name)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rename_captured(attribute.g, names)
    for output in subgraph.output:
        output.name = names.get(output.name, output.name)


def to_model(graph: OnnxGraph, *, shapes_only: bool = False, extra_outputs: tuple[str, ...] = ()) -> Any:
    """Return a graph as a ModelProto.

    Args:
        graph: The graph.
        shapes_only: Declare large constants by their shapes alone, for shape inference.
        extra_outputs: Further tensors that the model gives out.
    """
    import onnx
    from onnx import helper, numpy_helper

    initializers, inputs = [], [_declared(graph, name) for name in graph.inputs]
    for name, value in graph.constants.items():
        if shapes_only and value.size > _LARGE:
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, value.shape))
        else:
            initializers.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
    outputs = [_declared_output(graph, name) for name in dict.fromkeys((*graph.outputs, *extra_outputs))]
    proto = helper.make_graph([_node_proto(node) for node in graph.nodes], graph.name, inputs, outputs, initializers)
    domains = {node.domain for node in graph.nodes} - {"", CONSTANT_DOMAIN}
    opsets = [helper.make_opsetid("", graph.opset), *(helper.make_opsetid(domain, 1) for domain in sorted(domains))]
    model = helper.make_model(proto, opset_imports=opsets, ir_version=min(10, onnx.IR_VERSION), producer_name="hilt")
    if graph.decibels:
        helper.set_model_props(model, {_DECIBELS: json.dumps(graph.decibels, sort_keys=True)})
    return model


def _declared(graph: OnnxGraph, name: str) -> Any:
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(graph.dtypes.get(name, "float32")))
    return helper.make_tensor_value_info(name, kind, graph.shapes.get(name))


def _declared_output(graph: OnnxGraph, name: str) -> Any:
    """Return a ValueInfoProto, without a type where none is known."""
    from onnx import TensorProto, helper

    if name in graph.dtypes:
        return _declared(graph, name)
    output = helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)
    output.ClearField("type")
    return output


def _node_proto(node: OnnxNode) -> Any:
    from onnx import helper, numpy_helper

    domain = "" if node.domain == CONSTANT_DOMAIN else node.domain
    proto = helper.make_node(node.op, node.inputs, node.outputs, name=node.name, domain=domain)
    for key, value in node.attributes.items():
        plain = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        proto.attribute.append(helper.make_attribute(key, plain))
    return proto


def infer_shapes(graph: OnnxGraph) -> None:
    """Fill in the shapes and types that follow from the inputs'.

    Raises:
        OnnxError: The model contradicts itself.
    """
    import onnx

    try:
        inferred = onnx.shape_inference.infer_shapes(to_model(graph, shapes_only=True), data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise OnnxError(f"the shapes of {graph.name} contradict each other: {' '.join(str(error).split())}") from error
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        _note_type(graph, value)
