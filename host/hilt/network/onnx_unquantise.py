"""Models that others quantised, back to float: QDQ, ONNX Runtime's QOperator and dynamic quantisation.

An integer tensor becomes the float tensor that it stands for, under the same name. A result that saturates at 0, from
below or from above, keeps its Clip, which quantisers leave out where the zero point does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxError, OnnxGraph, OnnxNode, infer_shapes

_SIGNED = ("Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "BatchNormalization")
"""Operators whose results may be negative, so that a zero point at the lowest value is a Relu."""
_SIGNED_BY_INPUT = ("Mul", "LeakyRelu", "AveragePool", "GlobalAveragePool")
"""Operators whose results may be negative if their data may."""
_KEEPS_SIGN = frozenset(
    (
        "AveragePool", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GlobalAveragePool",
        "GlobalMaxPool", "Identity", "MaxPool", "Pad", "ReduceMax", "ReduceMean", "ReduceSum", "Reshape", "Slice",
        "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
    )
)  # fmt: skip
_POSITIVE = frozenset(("Abs", "Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus", "Sqrt"))
_DATA_PLACES = {
    "QLinearConv": (0,),
    "QLinearMatMul": (0, 3),
    "QGemm": (0,),
    "QLinearAdd": (0, 3),
    "QLinearMul": (0, 3),
}
"""Indices of the inputs of each operator that hold data; the scale and the zero point of the data follow."""
_RESULT_PLACES = {
    "QuantizeLinear": 1,
    "QLinearConv": 6,
    "QLinearMatMul": 6,
    "QGemm": 7,
    "QLinearAdd": 6,
    "QLinearMul": 6,
    "QLinearConcat": 0,
}
"""Index of the input of each operator that holds the scale of its result; the zero point follows."""
_ONE_INPUT = {
    "QLinearSigmoid": "Sigmoid",
    "QLinearLeakyRelu": "LeakyRelu",
    "QLinearGlobalAveragePool": "GlobalAveragePool",
    "QLinearAveragePool": "AveragePool",
    "QLinearSoftmax": "Softmax",
}
"""ONNX Runtime's operators (X, scale, zero point, output's scale, output's zero point) by ONNX's name."""


def is_quantised(graph: OnnxGraph) -> bool:
    """Tell whether a model computes on quantised tensors."""
    return any(node.op in _REWRITES for node in graph.nodes)


def unquantise(graph: OnnxGraph) -> None:
    """Rewrite a fixed graph in place to floats.

    Raises:
        OnnxError: It holds a quantised operator that hilt does not know, a scale that is computed, or one as output.
    """
    _dequantise_inputs(graph)
    _dequantise_padding(graph)
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        rewrite = _REWRITES.get(node.op)
        if rewrite is not None:
            nodes += rewrite(graph, node)
        elif node.op.startswith(("QLinear", "QGemm", "QAttention", "MatMulNBits")):
            raise OnnxError(f"node {node.label} is quantised in an unknown way; give the float model")
        else:
            nodes.append(node)
    graph.nodes = nodes
    kept = set(graph.inputs)
    graph.shapes = {name: shape for name, shape in graph.shapes.items() if name in kept}
    graph.dtypes = {name: dtype for name, dtype in graph.dtypes.items() if name in kept}
    _remove_casts(graph)
    graph.remove_unused()
    infer_shapes(graph)


def _dequantise_inputs(graph: OnnxGraph) -> None:
    """Put a DequantizeLinear between an integer input of the model and a quantised operator that reads it."""
    for node in list(graph.nodes):
        places = _DATA_PLACES.get(node.op, (0,) if node.op in _ONE_INPUT else ())
        for place in range(2, len(node.inputs), 3) if node.op == "QLinearConcat" else places:
            if node.inputs[place] in graph.inputs:
                result = graph.unique(f"{node.inputs[place]}.real")
                made = OnnxNode(
                    f"{node.name}.input{place}", "DequantizeLinear", node.inputs[place : place + 3], [result]
                )
                graph.nodes.insert(graph.nodes.index(node), made)
                node.inputs[place] = result


def _dequantise_padding(graph: OnnxGraph) -> None:
    """Give the Pads of integer tensors the number that they pad with; without a value it is the integer 0."""
    steps: dict[str, tuple[str, str]] = {}
    for node in graph.nodes:
        place = _RESULT_PLACES.get(node.op, 3 if node.op in _ONE_INPUT else None)
        if place is not None and len(node.inputs) > place:
            steps[node.outputs[0]] = (node.inputs[place], (*node.inputs[place + 1 : place + 2], "")[0])
        elif node.inputs and node.inputs[0] in steps and node.op in _KEEPS_SIGN:
            steps.update((name, steps[node.inputs[0]]) for name in node.outputs)
            if node.op == "Pad" and node.attributes.get("mode", "constant") == "constant":
                _dequantise_value(graph, node, *steps[node.inputs[0]])


def _dequantise_value(graph: OnnxGraph, node: OnnxNode, scale: str, zero: str) -> None:
    given = node.inputs[2] if len(node.inputs) > 2 else ""
    value = graph.constants.get(given) if given else np.zeros((), np.int64)
    steps = graph.constants.get(scale)
    if value is None or steps is None:
        raise OnnxError(f"node {node.label} pads integers with a value that is computed; quantise the float model")
    origin = graph.constants.get(zero, np.zeros(()))
    name = graph.unique(f"{node.name}.value")
    graph.constants[name] = dequantised(value.reshape(()), steps.astype(np.float64), origin.astype(np.float64), 0)
    node.inputs[2:3] = [name]


def _remove_casts(graph: OnnxGraph) -> None:
    """Turn the Casts of sums that were integers into nothing."""
    made = {name for node in graph.nodes if node.op in ("Conv", "MatMul") for name in node.outputs}
    for node in graph.nodes:
        if node.op == "Cast" and node.inputs[0] in made and node.attributes.get("to") == 1:
            node.op, node.attributes = "Identity", {}


def _number(graph: OnnxGraph, node: OnnxNode, place: int) -> NDArray[np.float64]:
    """Return a scale or zero point, 0 if it is left out."""
    if len(node.inputs) <= place or not node.inputs[place]:
        return np.zeros(())
    value = graph.constants.get(node.inputs[place])
    if value is None:
        raise OnnxError(f"node {node.label} has a scale or zero point that is computed; quantise the float model")
    return value.astype(np.float64)


def _real(graph: OnnxGraph, node: OnnxNode, place: int, *, axis: int = 0) -> str:
    """Return the float name of input `place`, whose scale and zero point follow it; a constant is dequantised."""
    name = node.inputs[place]
    values = graph.constants.get(name)
    if values is None:
        return name
    scale, zero = _number(graph, node, place + 1), _number(graph, node, place + 2)
    result = graph.unique(f"{name}.float")
    graph.constants[result] = dequantised(values, scale, zero, axis)
    return result


def dequantised(
    values: NDArray[np.generic], scale: NDArray[np.float64], zero: NDArray[np.float64], axis: int
) -> NDArray[np.float32]:
    """Return the floats that integers stand for.

    Scale and zero point are scalars, lie along an axis, or have the shape of the integers.
    """
    along = [1] * values.ndim
    if along:
        along[axis] = -1

    def spread(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        if numbers.size == 1:
            return numbers.reshape(())
        return numbers if numbers.shape == values.shape else numbers.reshape(along)

    result: NDArray[np.float32] = ((values.astype(np.float64) - spread(zero)) * spread(scale)).astype(np.float32)
    return result


def _saturating(graph: OnnxGraph, quantised: OnnxNode, zero_place: int, op: str, inputs: list[str]) -> list[OnnxNode]:
    """Return the float form of a quantised operator."""
    attributes = {key: value for key, value in quantised.attributes.items() if key not in ("channels_last", "opset")}
    if quantised.attributes.get("channels_last", 0):
        raise OnnxError(f"node {quantised.label} has its channels last; quantise the float model")
    zero = graph.constants.get(quantised.inputs[zero_place]) if len(quantised.inputs) > zero_place else None
    output = quantised.outputs[0]
    signed = op in _SIGNED or (op in _SIGNED_BY_INPUT and not _reads_nothing_negative(graph, quantised))
    if not (signed and _at_lowest(zero)) and not _at_highest(zero):
        return [OnnxNode(quantised.name, op, inputs, [output], attributes)]
    inner = graph.unique(f"{output}.signed")
    return [
        OnnxNode(quantised.name, op, inputs, [inner], attributes),
        _saturation(graph, quantised, inner, zero_place - 1),
    ]


def _saturation(graph: OnnxGraph, quantised: OnnxNode, source: str, scale_place: int) -> OnnxNode:
    """Return the Clip that a quantiser with its zero point at an end of its integers is: a Relu, a Relu6."""
    zero = graph.constants[quantised.inputs[scale_place + 1]]
    steps = 2 ** (8 * zero.dtype.itemsize) - 1
    scale = _number(graph, quantised, scale_place)
    farthest = np.asarray(steps * scale.reshape(()) if scale.size == 1 else np.inf, np.float32)
    bounds = [graph.unique(f"{quantised.name}.{part}") for part in ("low", "high")]
    values = (
        (np.zeros((), np.float32), farthest) if _at_lowest(zero) else (np.asarray(-farthest), np.zeros((), np.float32))
    )
    graph.constants.update(zip(bounds, values, strict=True))
    return OnnxNode(f"{quantised.name}.clip", "Clip", [source, *bounds], list(quantised.outputs))


def _reads_nothing_negative(graph: OnnxGraph, quantised: OnnxNode) -> bool:
    """Tell whether the zero points of a quantised operator's data are the lowest integers."""
    places = _DATA_PLACES.get(quantised.op, (0,))
    return all(_at_lowest(graph.constants.get(quantised.inputs[place + 2])) for place in places)


def _never_negative(graph: OnnxGraph, name: str, producers: Mapping[str, OnnxNode]) -> bool:
    """Tell whether a float tensor's makers alone keep it from being negative."""
    if name in graph.constants:
        return bool(np.all(graph.constants[name] >= 0))
    maker = producers.get(name)
    if maker is None:
        return False
    if maker.op == "DequantizeLinear":
        return len(maker.inputs) > 2 and _at_lowest(graph.constants.get(maker.inputs[2]))
    if maker.op == "Clip":
        low = graph.constants.get(maker.inputs[1]) if len(maker.inputs) > 1 else None
        return low is not None and bool(np.all(low >= 0))
    if maker.op in _KEEPS_SIGN:
        return all(_never_negative(graph, each, producers) for each in _data_of(graph, maker))
    return maker.op in _POSITIVE


def _data_of(graph: OnnxGraph, node: OnnxNode) -> list[str]:
    """Return the float tensors that a node moves or joins; its constants are data of a Concat and a Pad alone."""
    read = [each for each in node.inputs if graph.dtypes.get(each, "float32") == "float32" and each]
    return [each for each in read if each not in graph.constants or node.op in ("Concat", "Pad")]


def _at_lowest(zero: NDArray[Any] | None) -> bool:
    return zero is not None and zero.dtype.kind in "iu" and bool(np.all(zero == np.iinfo(zero.dtype).min))


def _at_highest(zero: NDArray[Any] | None) -> bool:
    return zero is not None and zero.dtype.kind in "iu" and bool(np.all(zero == np.iinfo(zero.dtype).max))


def _quantize(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode]:
    zero = graph.constants.get(node.inputs[2]) if len(node.inputs) > 2 else np.zeros((), np.uint8)
    producers = graph.producers()
    source = node.inputs[0]
    low = _at_lowest(zero) and not _never_negative(graph, source, producers)
    if len(node.inputs) > 2 and source in producers and (low or _at_highest(zero)):
        return [_saturation(graph, node, node.inputs[0], 1)]
    return [OnnxNode(node.name, "Identity", node.inputs[:1], node.outputs)]


def _dequantize(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode]:
    source = node.inputs[0]
    if source in graph.constants:
        values = graph.constants[source]
        axis = node.attributes.get("axis", 1) if values.ndim > 1 else 0
        length = values.shape[axis] if values.ndim else 1
        scale, zero = (_by_element(graph, node, place, length, axis) for place in (1, 2))
        graph.constants[node.outputs[0]] = dequantised(values, scale, zero, axis)
        return []
    if source not in graph.inputs:
        return [OnnxNode(node.name, "Identity", [source], node.outputs)]
    names = [graph.unique(f"{node.name}.{part}") for part in ("zero", "scale", "real", "centred")]
    graph.constants[names[0]] = _number(graph, node, 2).astype(np.float32)
    graph.constants[names[1]] = _number(graph, node, 1).astype(np.float32)
    return [
        OnnxNode(f"{node.name}.cast", "Cast", [source], [names[2]], {"to": 1}),
        OnnxNode(f"{node.name}.centre", "Sub", [names[2], names[0]], [names[3]]),
        OnnxNode(node.name, "Mul", [names[3], names[1]], node.outputs),
    ]


def _by_element(graph: OnnxGraph, node: OnnxNode, place: int, length: int, axis: int) -> NDArray[np.float64]:
    """Return a scale or zero point; one that is given block by block along an axis, for each element."""
    found = _number(graph, node, place)
    block = node.attributes.get("block_size", 0)
    if not block or found.ndim == 0:
        return found
    return np.repeat(found, block, axis=axis).take(np.arange(length), axis=axis)


def _real_bias(graph: OnnxGraph, node: OnnxNode, place: int, scale: NDArray[np.float64]) -> str:
    values = graph.constants.get(node.inputs[place])
    if values is None:
        raise OnnxError(f"node {node.label} has a bias that is computed; quantise the float model")
    name = graph.unique(f"{node.inputs[place]}.float")
    graph.constants[name] = dequantised(values, scale, np.zeros(()), 0)
    return name


def _conv(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode]:
    inputs = [_real(graph, node, 0), _real(graph, node, 3)]
    if len(node.inputs) > 8 and node.inputs[8]:
        inputs.append(_real_bias(graph, node, 8, _number(graph, node, 1) * _number(graph, node, 4)))
    return _saturating(graph, node, 7, "Conv", inputs)


def _matmul(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode]:
    return _saturating(graph, node, 7, "MatMul", [_real(graph, node, 0), _real(graph, node, 3, axis=-1)])


def _gemm(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode]:
    axis = 0 if node.attributes.get("transB", 0) else 1
    inputs = [_real(graph, node, 0), _real(graph, node, 3, axis=axis)]
    if len(node.inputs) > 6 and node.inputs[6]:
        scale = _number(graph, node, 1) * _number(graph, node, 4) * node.attributes.get("alpha", 1.0)
        inputs.append(_real_bias(graph, node, 6, scale))
    return _saturating(graph, node, 8, "Gemm", inputs)


def _binary(op: str) -> Callable[[OnnxGraph, OnnxNode], list[OnnxNode]]:
    return lambda graph, node: _saturating(graph, node, 7, op, [_real(graph, node, 0), _real(graph, node, 3)])


def _single(op: str) -> Callable[[OnnxGraph, OnnxNode], list[OnnxNode]]:
    return lambda graph, node: _saturating(graph, node, 4, op, [_real(graph, node, 0)])


def _concat(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode]:
    inputs = [_real(graph, node, place) for place in range(2, len(node.inputs), 3)]
    return [OnnxNode(node.name, "Concat", inputs, node.outputs, dict(node.attributes))]


def _dynamic(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode]:
    """Keep a tensor that is quantised at run time as it is, with scale 1 and zero point 0."""
    for name in node.outputs[1:]:
        if name in graph.outputs:
            raise OnnxError(
                f"output {name} is a scale or zero point of the model in integers; take it out of the outputs"
            )
    graph.constants[node.outputs[1]] = np.ones((), np.float32)
    graph.constants[node.outputs[2]] = np.zeros((), np.uint8)
    return [OnnxNode(node.name, "Identity", node.inputs[:1], node.outputs[:1])]


def _integer(op: str) -> Callable[[OnnxGraph, OnnxNode], list[OnnxNode]]:
    def rewrite(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode]:
        if node.inputs[1] not in graph.constants:
            raise OnnxError(f"node {node.label} has computed weights; quantise the float model")
        name = graph.unique(f"{node.inputs[1]}.float")
        axis = 0 if op == "Conv" else -1
        weights = graph.constants[node.inputs[1]]
        graph.constants[name] = dequantised(weights, np.ones(()), _number(graph, node, 3), axis)
        real, centred, zero = (graph.unique(f"{node.name}.{part}") for part in ("real", "centred", "zero"))
        graph.constants[zero] = _number(graph, node, 2).astype(np.float32)
        return [
            OnnxNode(f"{node.name}.cast", "Cast", [node.inputs[0]], [real], {"to": 1}),
            OnnxNode(f"{node.name}.centre", "Sub", [real, zero], [centred])
            if graph.constants[zero].any()
            else OnnxNode(f"{node.name}.same", "Identity", [real], [centred]),
            OnnxNode(node.name, op, [centred, name], node.outputs, dict(node.attributes)),
        ]

    return rewrite


def float_lstm(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Turn DynamicQuantizeLSTM, whose weights are (directions, input, 4 * hidden), back; None if they are computed.

    Nothing infers the shapes of its results, so this comes before the others.
    """
    inputs = list(node.inputs[:8])
    if any(name not in graph.constants for name in (*inputs[1:3], *node.inputs[8:12])):
        return None
    for place, scale_place in ((1, 8), (2, 10)):
        values = graph.constants[node.inputs[place]]
        scale, zero = _number(graph, node, scale_place), _number(graph, node, scale_place + 1)
        shape = (len(values), 1, -1) if scale.size > 1 else ()
        real = (values.astype(np.float64) - zero.reshape(shape or zero.shape)) * scale.reshape(shape or scale.shape)
        name = graph.unique(f"{node.inputs[place]}.float")
        graph.constants[name] = np.ascontiguousarray(real.transpose(0, 2, 1)).astype(np.float32)
        inputs[place] = name
    while inputs and not inputs[-1]:
        inputs.pop()
    return [OnnxNode(node.name, "LSTM", inputs, node.outputs, dict(node.attributes))]


_REWRITES: dict[str, Callable[[OnnxGraph, OnnxNode], list[OnnxNode]]] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
    "QGemm": _gemm,
    "QLinearAdd": _binary("Add"),
    "QLinearMul": _binary("Mul"),
    "QLinearConcat": _concat,
    "DynamicQuantizeLinear": _dynamic,
    "ConvInteger": _integer("Conv"),
    "MatMulInteger": _integer("MatMul"),
    **{op: _single(plain) for op, plain in _ONE_INPUT.items()},
}
QUANTISED = frozenset(_REWRITES)
"""The operators of quantised models."""
