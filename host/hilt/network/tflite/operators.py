"""TFLite's operators, each as ONNX nodes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hilt.network.onnx_graph import OnnxError
from hilt.network.tflite import fourier, sequences, variables
from hilt.network.tflite.convert import Converter
from hilt.network.tflite.reader import TfliteOperator

_SAME = 0
_MEDIAPIPE_OPTIONS = struct.Struct("<3i")

Convert = Callable[[Converter, TfliteOperator], None]


def _padding(options: Any) -> str:
    return "SAME_UPPER" if options.Padding() == _SAME else "VALID"


def _layer(c: Converter, op: TfliteOperator, weights: np.ndarray[Any, Any], options: Any, group: int) -> None:
    """Add a convolution with weights (CO, CI / group, KH, KW)."""
    inputs = [c.channels_first(c.name(op, 0)), c.constant("weights", np.ascontiguousarray(weights))]
    if c.tensor(op, 2) is not None:
        inputs.append(c.constant("bias", c.value(op, 2)))
    dilations = [options.DilationHFactor() * op.dilations[0], options.DilationWFactor() * op.dilations[1]]
    result = c.add(
        "Conv", inputs, auto_pad=_padding(options), group=group, kernel_shape=list(weights.shape[2:]),
        strides=[options.StrideH(), options.StrideW()], dilations=dilations,
    )  # fmt: skip
    c.finish(op, result, options.FusedActivationFunction(), turned=True)


def _conv(c: Converter, op: TfliteOperator) -> None:
    weights, options = c.value(op, 1).transpose(0, 3, 1, 2), op.option("Conv2DOptions")
    data = c.tensor(op, 0)
    channels = data.shape[-1] if data is not None and data.shape else None
    _layer(c, op, weights, options, (channels or weights.shape[1]) // weights.shape[1])


def _depthwise(c: Converter, op: TfliteOperator) -> None:
    weights, options = c.value(op, 1).transpose(3, 0, 1, 2), op.option("DepthwiseConv2DOptions")
    _layer(c, op, weights, options, len(weights) // max(options.DepthMultiplier(), 1))


def _transposed(c: Converter, op: TfliteOperator) -> None:
    options, weights = op.option("TransposeConvOptions"), c.value(op, 1).transpose(3, 0, 1, 2)
    made = c.output(op).shape
    size = [int(value) for value in c.value(op, 0)[1:3]] if c.is_constant(op, 0) else made[1:3]
    strides = [options.StrideH(), options.StrideW()]
    _add_transposed(c, op, (2, 3), weights, strides, size, options.FusedActivationFunction())


def _transposed_of_mediapipe(c: Converter, op: TfliteOperator) -> None:
    """Convert MediaPipe's own operator: its options are the padding's kind and the strides, as three integers."""
    if len(op.custom) != _MEDIAPIPE_OPTIONS.size:
        raise OnnxError(f"{c.model.name}: {op.name} (it makes {c.output(op).name}) has options that hilt does not know")
    strides = list(_MEDIAPIPE_OPTIONS.unpack(op.custom)[1:])
    _add_transposed(c, op, (0, 2), c.value(op, 1).transpose(3, 0, 1, 2), strides, c.output(op).shape[1:3], 0)


def _add_transposed(
    c: Converter,
    op: TfliteOperator,
    places: tuple[int, int],
    weights: np.ndarray[Any, Any],
    strides: list[int],
    size: Sequence[int | None],
    activation: int,
) -> None:
    """Add a transposed convolution with weights (CI, CO, KH, KW) that makes `size` rows and columns.

    Its data and its bias are the operator's inputs at `places`.
    """
    data = c.tensor(op, places[0])
    inputs = [c.channels_first(c.name(op, places[0])), c.constant("weights", np.ascontiguousarray(weights))]
    if c.tensor(op, places[1]) is not None:
        inputs.append(c.constant("bias", c.value(op, places[1])))
    assert data is not None
    kernel = list(weights.shape[2:])
    pads, extra = [0, 0, 0, 0], [0, 0]
    for axis in (0, 1):
        given, wanted = data.shape[1 + axis], size[axis]
        if given is None or wanted is None:
            raise OnnxError(f"{c.model.name}: {op.name} makes {c.output(op).name} of an open size")
        spare = (given - 1) * strides[axis] + kernel[axis] - wanted
        pads[axis], pads[2 + axis] = max(spare, 0) // 2, max(spare, 0) - max(spare, 0) // 2
        extra[axis] = max(-spare, 0)
    result = c.add("ConvTranspose", inputs, kernel_shape=kernel, strides=strides, pads=pads, output_padding=extra)
    c.finish(op, result, activation, turned=True)


def _dense(c: Converter, op: TfliteOperator) -> None:
    options, weights = op.option("FullyConnectedOptions"), c.value(op, 1)
    data = c.name(op, 0)
    if not options.KeepNumDims():
        data = c.add("Reshape", [data, c.constant("rows", np.array([-1, weights.shape[1]], np.int64))])
    result = c.add("MatMul", [data, c.constant("weights", np.ascontiguousarray(weights.T))])
    if c.tensor(op, 2) is not None:
        result = c.add("Add", [result, c.name(op, 2)])
    c.finish(op, result, options.FusedActivationFunction())


def _pool(kind: str) -> Convert:
    def convert(c: Converter, op: TfliteOperator) -> None:
        options = op.option("Pool2DOptions")
        result = c.add(
            kind, [c.channels_first(c.name(op, 0))], auto_pad=_padding(options),
            kernel_shape=[options.FilterHeight(), options.FilterWidth()],
            strides=[options.StrideH(), options.StrideW()],
        )  # fmt: skip
        c.finish(op, result, options.FusedActivationFunction(), turned=True)

    return convert


def _binary(kind: str, options: str = "") -> Convert:
    def convert(c: Converter, op: TfliteOperator) -> None:
        given = op.option(options) if options else None
        result = c.add(kind, [c.name(op, 0), c.name(op, 1)])
        c.finish(op, result, 0 if given is None else given.FusedActivationFunction())

    return convert


def _unary(kind: str, **attributes: Any) -> Convert:
    def convert(c: Converter, op: TfliteOperator) -> None:
        c.finish(op, c.add(kind, [c.name(op, 0)], **attributes))

    return convert


def _clip(low: float, high: float) -> Convert:
    def convert(c: Converter, op: TfliteOperator) -> None:
        bounds = [c.constant("bound", np.float32(bound)) for bound in (low, high)]
        c.finish(op, c.add("Clip", [c.name(op, 0), *bounds]))

    return convert


def _leaky(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("LeakyRelu", [c.name(op, 0)], alpha=float(op.option("LeakyReluOptions").Alpha())))


def _gelu(c: Converter, op: TfliteOperator) -> None:
    data, options = c.name(op, 0), op.option("GeluOptions")
    half, one = c.constant("half", np.float32(0.5)), c.constant("one", np.float32(1))
    if options is not None and options.Approximate():
        cube = c.add("Mul", [c.add("Mul", [data, data]), data])
        term = c.add("Mul", [cube, c.constant("cubic", np.float32(0.044715))])
        inner = c.add("Mul", [c.add("Add", [data, term]), c.constant("root", np.float32(np.sqrt(2 / np.pi)))])
        gate = c.add("Tanh", [inner])
    else:
        gate = c.add("Erf", [c.add("Mul", [data, c.constant("root", np.float32(np.sqrt(0.5)))])])
    c.finish(op, c.add("Mul", [c.add("Mul", [data, half]), c.add("Add", [gate, one])]))


def _softmax(c: Converter, op: TfliteOperator) -> None:
    data, beta = c.name(op, 0), float(op.option("SoftmaxOptions").Beta())
    if beta != 1:
        data = c.add("Mul", [data, c.constant("beta", np.float32(beta))])
    c.finish(op, c.add("Softmax", [data], axis=-1))


def _rsqrt(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Reciprocal", [c.add("Sqrt", [c.name(op, 0)])]))


def _square(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Mul", [c.name(op, 0), c.name(op, 0)]))


def _squared_difference(c: Converter, op: TfliteOperator) -> None:
    difference = c.add("Sub", [c.name(op, 0), c.name(op, 1)])
    c.finish(op, c.add("Mul", [difference, difference]))


def _reduce(kind: str) -> Convert:
    def convert(c: Converter, op: TfliteOperator) -> None:
        axes = [int(axis) for axis in c.value(op, 1).reshape(-1)]
        keep = int(bool(op.option("ReducerOptions").KeepDims()))
        if kind == "ReduceSum":  # the only one whose axes are an input at this operator set
            result = c.add(kind, [c.name(op, 0), c.constant("axes", np.array(axes, np.int64))], keepdims=keep)
        else:
            result = c.add(kind, [c.name(op, 0)], axes=axes, keepdims=keep)
        c.finish(op, result)

    return convert


def _reshape(c: Converter, op: TfliteOperator) -> None:
    if op.name == "RESHAPE" and c.tensor(op, 1) is not None:
        c.finish(op, c.add("Reshape", [c.name(op, 0), c.integers(op, 1)]))
        return
    shape, axes = c.output(op).shape, _unit_axes(c, op)
    if axes is not None:
        kind = "Unsqueeze" if op.name == "EXPAND_DIMS" else "Squeeze"
        c.finish(op, c.add(kind, [c.name(op, 0), c.constant("axes", axes)]))
        return
    if sum(size is None for size in shape) > 1:
        raise OnnxError(f"{c.model.name}: {op.name} makes {c.output(op).name} of an open shape; fix the shapes first")
    sizes = np.array([-1 if size is None else size for size in shape], np.int64)
    c.finish(op, c.add("Reshape", [c.name(op, 0), c.constant("shape", sizes)]))


def _unit_axes(c: Converter, op: TfliteOperator) -> np.ndarray[Any, Any] | None:
    """Return the axes of size 1 that EXPAND_DIMS adds or SQUEEZE drops; None if the output's shape alone tells."""
    if op.name == "EXPAND_DIMS" and c.is_constant(op, 1):
        return c.value(op, 1).reshape(1).astype(np.int64)
    if op.name == "SQUEEZE" and (options := op.option("SqueezeOptions")) is not None and options.SqueezeDimsLength():
        return np.array([options.SqueezeDims(place) for place in range(options.SqueezeDimsLength())], np.int64)
    return None


def _shape(c: Converter, op: TfliteOperator) -> None:
    result = c.add("Shape", [c.name(op, 0)])
    c.finish(op, c.add("Cast", [result], to=6) if c.output(op).dtype == "int32" else result)


def _broadcast(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Expand", [c.name(op, 0), c.integers(op, 1)]))


def _fill(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Expand", [c.name(op, 1), c.integers(op, 0)]))


def _tile(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Tile", [c.name(op, 0), c.integers(op, 1)]))


def _pad(c: Converter, op: TfliteOperator) -> None:
    if not c.value(op, 1).any():
        c.finish(op, c.name(op, 0))
        return
    pads = c.constant("pads", c.value(op, 1).astype(np.int64).T.reshape(-1))
    inputs = [c.name(op, 0), pads]
    if op.name == "PADV2":
        inputs.append(c.constant("filling", np.float32(c.value(op, 2).reshape(()))))
    mode = "constant"
    if op.name == "MIRROR_PAD":
        if op.option("MirrorPadOptions").Mode() != 0:
            raise OnnxError(f"{c.model.name}: MIRROR_PAD in symmetric mode makes {c.output(op).name}; use reflect")
        mode = "reflect"
    c.finish(op, c.add("Pad", inputs, mode=mode))


def _concat(c: Converter, op: TfliteOperator) -> None:
    options = op.option("ConcatenationOptions")
    result = c.add("Concat", [c.name(op, place) for place in range(len(op.inputs))], axis=options.Axis())
    c.finish(op, result, options.FusedActivationFunction())


def _transpose(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Transpose", [c.name(op, 0)], perm=[int(axis) for axis in c.value(op, 1)]))


def _slice(c: Converter, op: TfliteOperator) -> None:
    begin, size = (c.value(op, place).astype(np.int64) for place in (1, 2))
    end = np.where(size < 0, np.iinfo(np.int64).max, begin + size)
    c.finish(op, c.add("Slice", [c.name(op, 0), c.constant("begin", begin), c.constant("end", end)]))


def _has_masks(options: Any) -> bool:
    return bool(options.BeginMask() or options.EndMask() or options.ShrinkAxisMask())


def _strided_slice(c: Converter, op: TfliteOperator) -> None:
    options = op.option("StridedSliceOptions")
    if options.EllipsisMask() or options.NewAxisMask():
        raise OnnxError(f"{c.model.name}: STRIDED_SLICE with an ellipsis or a new axis makes {c.output(op).name}")
    if not (c.is_constant(op, 1) and c.is_constant(op, 2)) and not _has_masks(options):
        axes = c.constant("axes", np.arange(len(c.value(op, 3)), dtype=np.int64))
        c.finish(op, c.add("Slice", [c.name(op, 0), c.integers(op, 1), c.integers(op, 2), axes, c.integers(op, 3)]))
        return
    places, dropped = _bounds(c, op, options)
    result = c.add("Slice", [c.name(op, 0), *(c.constant("places", value) for value in places)])
    if dropped:
        result = c.add("Squeeze", [result, c.constant("axes", np.array(dropped, np.int64))])
    c.finish(op, result)


def _bounds(c: Converter, op: TfliteOperator, options: Any) -> tuple[list[np.ndarray[Any, Any]], list[int]]:
    """Return a STRIDED_SLICE's constant begins, ends, axes and steps as ONNX has them, and the axes that it drops."""
    begin, end, step = (c.value(op, place).astype(np.int64).copy() for place in (1, 2, 3))
    last, dropped = np.iinfo(np.int64).max, []
    for axis in range(len(begin)):
        forward = step[axis] > 0
        if options.ShrinkAxisMask() >> axis & 1:
            dropped.append(axis)
            end[axis], step[axis] = last if begin[axis] == -1 else begin[axis] + 1, 1
            continue
        if options.BeginMask() >> axis & 1:
            begin[axis] = 0 if forward else last
        if options.EndMask() >> axis & 1:
            end[axis] = last if forward else -last
    return [begin, end, np.arange(len(begin), dtype=np.int64), step], dropped


def _split(c: Converter, op: TfliteOperator) -> None:
    data, axis = (1, 0) if op.name == "SPLIT" else (0, 2)
    place = int(c.value(op, axis).reshape(()))
    inputs = [c.name(op, data)]
    if op.name == "SPLIT_V":
        inputs.append(c.constant("sizes", c.value(op, 1).astype(np.int64)))
    c.add_several("Split", inputs, [c.model.tensors[output].name for output in op.outputs], axis=place)


def _resize(mode: str) -> Convert:
    def convert(c: Converter, op: TfliteOperator) -> None:
        options = op.option("ResizeBilinearOptions" if mode == "linear" else "ResizeNearestNeighborOptions")
        given = "half_pixel" if options.HalfPixelCenters() else "asymmetric"
        place = "align_corners" if options.AlignCorners() else given
        image = c.channels_first(c.name(op, 0))
        kept = [c.constant("places", np.array([place], np.int64)) for place in (0, 2)]
        size = c.constant("size", c.value(op, 1).reshape(2).astype(np.int64))
        sizes = c.add("Concat", [c.add("Slice", [c.add("Shape", [image]), *kept]), size], axis=0)
        # TFLite rounds half up but for the asymmetric places: with half pixels too, floor((i + 0.5) * scale) is that.
        rounding = "floor" if place == "asymmetric" else "round_prefer_ceil"
        result = c.add(
            "Resize", [image, "", "", sizes], mode=mode, coordinate_transformation_mode=place, nearest_mode=rounding
        )
        c.finish(op, result, turned=True)

    return convert


def _prelu(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("PRelu", [c.name(op, 0), c.name(op, 1)]))


def _same(c: Converter, op: TfliteOperator) -> None:
    """Pass a tensor on: in floats its integers and its real numbers are one."""
    if c.is_constant(op, 0):
        c.define(c.output(op).name, c.value(op, 0).astype(np.float32))
    else:
        c.finish(op, c.name(op, 0))


def _select(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Where", [c.name(op, 0), c.name(op, 1), c.name(op, 2)]))


def _differs(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Not", [c.add("Equal", [c.name(op, 0), c.name(op, 1)])]))


def _cast(c: Converter, op: TfliteOperator) -> None:
    from onnx import helper

    kind = np.dtype(c.output(op).dtype)
    c.finish(op, c.add("Cast", [c.name(op, 0)], to=helper.np_dtype_to_tensor_dtype(kind)))


def _gather(c: Converter, op: TfliteOperator) -> None:
    options = op.option("GatherOptions")
    c.finish(op, c.add("Gather", [c.name(op, 0), c.name(op, 1)], axis=0 if options is None else options.Axis()))


def _pack(c: Converter, op: TfliteOperator) -> None:
    options = op.option("PackOptions")
    axes = c.constant("axes", np.array([options.Axis()], np.int64))
    parts = [c.add("Unsqueeze", [c.name(op, place), axes]) for place in range(len(op.inputs))]
    c.finish(op, c.add("Concat", parts, axis=options.Axis()))


def _space(kind: str, options: str) -> Convert:
    def convert(c: Converter, op: TfliteOperator) -> None:
        size = op.option(options).BlockSize()
        c.finish(op, c.add(kind, [c.channels_first(c.name(op, 0))], blocksize=size), turned=True)

    return convert


def _batch_product(c: Converter, op: TfliteOperator) -> None:
    options = op.option("BatchMatMulOptions")
    names = [c.name(op, 0), c.name(op, 1)]
    for place, turned in enumerate((options.AdjX(), options.AdjY())):
        if turned:
            tensor = c.tensor(op, place)
            rank = len(tensor.shape) if tensor is not None else 2
            order = [*range(rank - 2), rank - 1, rank - 2]
            names[place] = c.add("Transpose", [names[place]], perm=order)
    c.finish(op, c.add("MatMul", names))


def _place_of(kind: str) -> Convert:
    def convert(c: Converter, op: TfliteOperator) -> None:
        from onnx import TensorProto

        result = c.add(kind, [c.name(op, 0)], axis=int(c.value(op, 1).reshape(-1)[0]), keepdims=0)
        c.finish(op, c.add("Cast", [result], to=TensorProto.INT32) if c.output(op).dtype == "int32" else result)

    return convert


def _normalise(c: Converter, op: TfliteOperator) -> None:
    length = c.add("ReduceL2", [c.name(op, 0)], axes=[-1], keepdims=1)
    length = c.add("Max", [length, c.constant("least", np.float32(1e-6))])
    c.finish(op, c.add("Div", [c.name(op, 0), length]), op.option("L2NormOptions").FusedActivationFunction())


def _floor_division(c: Converter, op: TfliteOperator) -> None:
    """Convert FLOOR_DIV; integers are divided as float64, which is exact below 2^53."""
    from onnx import TensorProto, helper

    operands = [c.name(op, 0), c.name(op, 1)]
    if (dtype := c.output(op).dtype) == "float32":
        c.finish(op, c.add("Floor", [c.add("Div", operands)]))
        return
    wide = [c.add("Cast", [name], to=TensorProto.DOUBLE) for name in operands]
    whole = c.add("Floor", [c.add("Div", wide)])
    c.finish(op, c.add("Cast", [whole], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))


def _range(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Range", [c.name(op, place) for place in range(3)]))


def _sum(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("Sum", [c.name(op, place) for place in range(len(op.inputs))]))


def _gather_places(c: Converter, op: TfliteOperator) -> None:
    c.finish(op, c.add("GatherND", [c.name(op, 0), c.integers(op, 1)]))


def _space_to_batch(c: Converter, op: TfliteOperator) -> None:
    """Convert SPACE_TO_BATCH_ND that surrounds no convolution: pad, cut into blocks, and turn."""
    block, pads = (c.value(op, place).astype(np.int64) for place in (1, 2))
    sizes, spatial = _known(c, op), len(block)
    rest = sizes[spatial:]
    below = [(0, 0), *((int(low), int(high)) for low, high in pads), *[(0, 0)] * len(rest)]
    padded = c.add("Pad", [c.name(op, 0), c.constant("pads", np.array(below, np.int64).T.reshape(-1))])
    lengths = [size + int(low + high) for size, (low, high) in zip(sizes, pads, strict=False)]
    parts = [part for length, step in zip(lengths, block, strict=True) for part in (length // int(step), int(step))]
    cut = c.add("Reshape", [padded, c.constant("shape", np.array([-1, *parts, *rest], np.int64))])
    steps, places = [2 + 2 * axis for axis in range(spatial)], [1 + 2 * axis for axis in range(spatial)]
    last = [1 + 2 * spatial + axis for axis in range(len(rest))]
    turned = c.add("Transpose", [cut], perm=[*steps, 0, *places, *last])
    shape = [-1, *(length // int(step) for length, step in zip(lengths, block, strict=True))]
    c.finish(op, c.add("Reshape", [turned, c.constant("shape", np.array([*shape, *rest], np.int64))]))


def _batch_to_space(c: Converter, op: TfliteOperator) -> None:
    """Convert BATCH_TO_SPACE_ND that surrounds no convolution: turn, join the blocks, and crop."""
    block, crops = (c.value(op, place).astype(np.int64) for place in (1, 2))
    sizes, spatial = _known(c, op), len(block)
    rest = sizes[spatial:]
    parts = np.array([*block, -1, *sizes], np.int64)
    cut = c.add("Reshape", [c.name(op, 0), c.constant("shape", parts)])
    inner = [place for axis in range(spatial) for place in (spatial + 1 + axis, axis)]
    last = [2 * spatial + 1 + axis for axis in range(len(rest))]
    turned = c.add("Transpose", [cut], perm=[spatial, *inner, *last])
    lengths = [size * int(step) for size, step in zip(sizes, block, strict=False)]
    whole = c.add("Reshape", [turned, c.constant("shape", np.array([-1, *lengths, *rest], np.int64))])
    ends = np.array(lengths, np.int64) - crops[:, 1]
    bounds = [crops[:, 0], ends, np.arange(1, spatial + 1, dtype=np.int64)]
    c.finish(op, c.add("Slice", [whole, *(c.constant("places", bound) for bound in bounds)]))


def _known(c: Converter, op: TfliteOperator) -> list[int]:
    """Return the shape of the first input without its images. Raises OnnxError if it is open."""
    data = c.tensor(op, 0)
    sizes = [] if data is None else [size for size in data.shape[1:] if size is not None]
    if data is None or len(sizes) != len(data.shape) - 1:
        raise OnnxError(f"{c.model.name}: {op.name} makes {c.output(op).name} from an open shape; fix the shapes first")
    return sizes


OPERATORS: dict[str, Convert] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _transposed,
    "Convolution2DTransposeBias": _transposed_of_mediapipe,
    "FULLY_CONNECTED": _dense,
    "BATCH_MATMUL": _batch_product,
    "MAX_POOL_2D": _pool("MaxPool"),
    "AVERAGE_POOL_2D": _pool("AveragePool"),
    "ADD": _binary("Add", "AddOptions"),
    "SUB": _binary("Sub", "SubOptions"),
    "MUL": _binary("Mul", "MulOptions"),
    "DIV": _binary("Div", "DivOptions"),
    "MAXIMUM": _binary("Max"),
    "MINIMUM": _binary("Min"),
    "POW": _binary("Pow"),
    "SQUARED_DIFFERENCE": _squared_difference,
    "RELU": _unary("Relu"),
    "RELU6": _clip(0, 6),
    "RELU_N1_TO_1": _clip(-1, 1),
    "RELU_0_TO_1": _clip(0, 1),
    "LEAKY_RELU": _leaky,
    "PRELU": _prelu,
    "ELU": _unary("Elu"),
    "GELU": _gelu,
    "LOGISTIC": _unary("Sigmoid"),
    "TANH": _unary("Tanh"),
    "HARD_SWISH": _unary("HardSwish"),
    "SOFTMAX": _softmax,
    "LOG_SOFTMAX": _unary("LogSoftmax", axis=-1),
    "ABS": _unary("Abs"),
    "NEG": _unary("Neg"),
    "EXP": _unary("Exp"),
    "LOG": _unary("Log"),
    "SQRT": _unary("Sqrt"),
    "SIN": _unary("Sin"),
    "COS": _unary("Cos"),
    "FLOOR": _unary("Floor"),
    "CEIL": _unary("Ceil"),
    "ROUND": _unary("Round"),
    "RSQRT": _rsqrt,
    "SQUARE": _square,
    "MEAN": _reduce("ReduceMean"),
    "SUM": _reduce("ReduceSum"),
    "REDUCE_MAX": _reduce("ReduceMax"),
    "REDUCE_MIN": _reduce("ReduceMin"),
    "REDUCE_PROD": _reduce("ReduceProd"),
    "RESHAPE": _reshape,
    "SQUEEZE": _reshape,
    "EXPAND_DIMS": _reshape,
    "PAD": _pad,
    "PADV2": _pad,
    "MIRROR_PAD": _pad,
    "CONCATENATION": _concat,
    "TRANSPOSE": _transpose,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SHAPE": _shape,
    "BROADCAST_TO": _broadcast,
    "FILL": _fill,
    "TILE": _tile,
    "PACK": _pack,
    "GATHER": _gather,
    "CAST": _cast,
    "ARG_MAX": _place_of("ArgMax"),
    "ARG_MIN": _place_of("ArgMin"),
    "ADD_N": _sum,
    "FLOOR_DIV": _floor_division,
    "RANGE": _range,
    "SIGN": _unary("Sign"),
    "L2_NORMALIZATION": _normalise,
    "GATHER_ND": _gather_places,
    "UNPACK": sequences.unpack,
    "REVERSE_V2": sequences.reverse,
    "TOPK_V2": sequences.top_k,
    "ONE_HOT": sequences.one_hot,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": sequences.lstm,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "RESIZE_BILINEAR": _resize("linear"),
    "RESIZE_NEAREST_NEIGHBOR": _resize("nearest"),
    "SPACE_TO_DEPTH": _space("SpaceToDepth", "SpaceToDepthOptions"),
    "DEPTH_TO_SPACE": _space("DepthToSpace", "DepthToSpaceOptions"),
    "EQUAL": _binary("Equal"),
    "NOT_EQUAL": _differs,
    "LESS": _binary("Less"),
    "LESS_EQUAL": _binary("LessOrEqual"),
    "GREATER": _binary("Greater"),
    "GREATER_EQUAL": _binary("GreaterOrEqual"),
    "LOGICAL_AND": _binary("And"),
    "LOGICAL_OR": _binary("Or"),
    "LOGICAL_NOT": _unary("Not"),
    "SELECT": _select,
    "SELECT_V2": _select,
    "QUANTIZE": _same,
    "DEQUANTIZE": _same,
    "DENSIFY": _same,
    "RFFT2D": fourier.transform,
    "COMPLEX_ABS": fourier.length,
    "REAL": _same,
    "IMAG": _same,
    "VAR_HANDLE": variables.handle,
    "CALL_ONCE": variables.handle,
    "READ_VARIABLE": variables.read,
    "ASSIGN_VARIABLE": variables.assign,
}
"""By TFLite's name."""
