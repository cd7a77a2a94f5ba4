"""A TFLite file as plain Python: tensors with numpy constants, operators with their options. Only here is it parsed."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxError
from hilt.network.tflite.sparse import densify

SUFFIX = ".tflite"
_IDENTIFIER = b"TFL3"
_TYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16", 9: "int8", 10: "float64",
    15: "uint32", 16: "uint16",
}  # fmt: skip
_FOUR_BITS = 17
_NO_NUMBERS = {5: "string", 8: "complex64", 11: "complex128", 13: "resource", 14: "variant"}
_MOST_TENSORS = 1 << 20


@dataclass
class TfliteTensor:
    """One tensor.

    Attributes:
        name: Its name, unlike any other's.
        shape: Its sizes; an open one is None.
        dtype: numpy's name of its type.
        value: A constant's integers or floats, as they are stored.
        scales: Scales of a quantised tensor, one or one a channel; empty if it is none.
        zeros: Its zero points.
        axis: The axis of `scales`.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    value: NDArray[Any] | None
    scales: NDArray[np.float32]
    zeros: NDArray[np.int64]
    axis: int

    @property
    def is_quantised(self) -> bool:
        """Return whether its integers stand for real numbers."""
        return len(self.scales) > 0 and self.dtype in ("int8", "uint8", "int16", "int32")

    def real(self) -> NDArray[Any] | None:
        """Return a constant's real numbers, float32 where it is quantised or float16."""
        if self.value is None:
            return None
        if not self.is_quantised:
            return self.value.astype(np.float32) if self.dtype == "float16" else self.value
        shape = [1] * self.value.ndim
        if len(self.scales) > 1:
            shape[self.axis] = -1
        zeros = np.broadcast_to(self.zeros, self.scales.shape).reshape(shape)
        exact: NDArray[np.float64] = (self.value.astype(np.float64) - zeros) * self.scales.reshape(shape)
        return exact.astype(np.float32)


@dataclass(frozen=True)
class TfliteOperator:
    """One operator.

    Attributes:
        name: TFLite's name.
        inputs: The tensors that it reads; -1 is one left out.
        outputs: The tensors that it writes.
        options: Its options' table.
        custom: The bytes of the options of one that is not TFLite's own.
        dilations: A convolution's, beyond those of its options: rows, columns.
    """

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any
    dilations: tuple[int, int] = (1, 1)
    custom: bytes = b""

    def option(self, kind: str) -> Any:
        """Return the options as the schema's class `kind`, None if there are none."""
        import tflite

        if self.options is None:
            return None
        made = getattr(tflite, kind)()
        made.Init(self.options.Bytes, self.options.Pos)
        return made


@dataclass(frozen=True)
class TfliteModel:
    """The first graph of a file."""

    name: str
    tensors: list[TfliteTensor]
    operators: list[TfliteOperator]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def read_tflite(path: Path) -> TfliteModel:
    """Read a file.

    Raises:
        OnnxError: It cannot be read, is no TFLite model, or the package `tflite` is not installed.
    """
    try:
        import tflite  # noqa: F401
    except ImportError as error:
        raise OnnxError("the package tflite is not installed; `pip install hilt[tflite]` brings it") from error
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OnnxError(f"cannot read {path}: {error.strerror or error}") from error
    if data[4:8] != _IDENTIFIER:
        raise OnnxError(f"{path} is no TFLite model: it does not begin with {_IDENTIFIER.decode()} at byte 4")
    try:
        return _parse(data, path.stem)
    except (
        struct.error,
        IndexError,
        ValueError,
        TypeError,
        AttributeError,
        UnicodeDecodeError,
        OverflowError,
    ) as error:
        raise OnnxError(f"{path} is a damaged TFLite model: {' '.join(str(error).split())[:200]}") from error


def _parse(data: bytes, name: str) -> TfliteModel:
    import tflite

    model = tflite.Model.GetRootAs(data, 0)
    if model.SubgraphsLength() < 1:
        raise ValueError("it has no graph")
    graph = model.Subgraphs(0)
    if graph.TensorsLength() > _MOST_TENSORS or graph.OperatorsLength() > _MOST_TENSORS:
        raise ValueError("it has more tensors or operators than bytes allow")
    taken: dict[str, int] = {}
    tensors = [_tensor(model, data, graph.Tensors(place), taken) for place in range(graph.TensorsLength())]
    operators = [_operator(model, graph.Operators(place)) for place in range(graph.OperatorsLength())]
    made = TfliteModel(
        name,
        tensors,
        operators,
        tuple(graph.Inputs(place) for place in range(graph.InputsLength())),
        tuple(graph.Outputs(place) for place in range(graph.OutputsLength())),
    )
    _check_places(made)
    _give_empty_ones(made)
    return made


def _operator(model: Any, operator: Any) -> TfliteOperator:
    import tflite

    code = model.OperatorCodes(operator.OpcodeIndex())
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    custom = (code.CustomCode() or b"?").decode()
    return TfliteOperator(
        custom if number == tflite.BuiltinOperator.CUSTOM else tflite.opcode2name(number),
        tuple(operator.Inputs(item) for item in range(operator.InputsLength())),
        tuple(operator.Outputs(item) for item in range(operator.OutputsLength())),
        operator.BuiltinOptions(),
        custom=bytes(operator.CustomOptionsAsNumpy()) if operator.CustomOptionsLength() else b"",
    )


def _give_empty_ones(model: TfliteModel) -> None:
    """Make constants of the tensors without elements that nothing makes: the file has no bytes of them."""
    made = {*model.inputs, *(place for operator in model.operators for place in operator.outputs)}
    for place, tensor in enumerate(model.tensors):
        if place not in made and 0 in tensor.shape and tensor.dtype in _TYPES.values():
            tensor.value = np.zeros(tuple(size or 0 for size in tensor.shape), tensor.dtype)


def _check_places(model: TfliteModel) -> None:
    places = [*model.inputs, *model.outputs]
    for operator in model.operators:
        places += [*operator.outputs, *(place for place in operator.inputs if place != -1)]
    if any(not 0 <= place < len(model.tensors) for place in places):
        raise ValueError("an operator names a tensor that is not there")


def _tensor(model: Any, data: bytes, tensor: Any, taken: dict[str, int]) -> TfliteTensor:
    stem = (tensor.Name() or b"tensor").decode(errors="replace")
    taken[stem] = taken.get(stem, 0) + 1
    name = stem if taken[stem] == 1 else f"{stem}#{taken[stem]}"
    kinds = {**_TYPES, **_NO_NUMBERS, _FOUR_BITS: "int8"}
    if tensor.Type() not in kinds:
        raise ValueError(f"tensor {name} has type {tensor.Type()}, which is unknown")
    dtype = kinds[tensor.Type()]
    sizes = tuple(tensor.Shape(place) for place in range(tensor.ShapeLength()))
    signature = tuple(tensor.ShapeSignature(place) for place in range(tensor.ShapeSignatureLength())) or sizes
    shape = tuple(None if size < 0 else size for size in signature)
    raw = None if tensor.Type() in _NO_NUMBERS else _bytes_of(model, data, tensor.Buffer())
    value = None if raw is None else _value(raw, tensor, dtype, sizes)
    scales, zeros, axis = np.zeros(0, np.float32), np.zeros(0, np.int64), 0
    quantised = tensor.Quantization()
    if quantised is not None and quantised.ScaleLength():
        scales = np.array(quantised.ScaleAsNumpy(), np.float32)
        zeros = np.array(quantised.ZeroPointAsNumpy() if quantised.ZeroPointLength() else [0], np.int64)
        axis = int(quantised.QuantizedDimension())
    return TfliteTensor(name, shape, dtype, value, scales, zeros, axis)


def _value(raw: NDArray[np.uint8], tensor: Any, dtype: str, sizes: tuple[int, ...]) -> NDArray[Any]:
    """Return a constant's numbers from its bytes."""
    if tensor.Type() == _FOUR_BITS:
        raw = _halves(raw)[: math.prod(sizes)]
    value = raw.view(np.dtype(dtype).newbyteorder("<")).astype(dtype)
    sparsity = tensor.Sparsity()
    return value.reshape(sizes) if sparsity is None else densify(value, sizes, sparsity)


def _halves(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return each byte's two four-bit integers as bytes with the same sign, the low one first."""
    high: NDArray[np.int8] = np.stack([raw << 4, raw & 0xF0], axis=-1).reshape(-1).view(np.int8)
    return (high >> 4).view(np.uint8)


def _bytes_of(model: Any, data: bytes, place: int) -> NDArray[np.uint8] | None:
    """Return a constant's bytes; None of a tensor that an operator computes."""
    if not 0 <= place < model.BuffersLength():
        raise ValueError(f"a tensor's buffer {place} is not there")
    buffer = model.Buffers(place)
    if place == 0:
        return None
    if buffer.Offset() > 1:
        if buffer.Offset() + buffer.Size() > len(data):
            raise ValueError("a constant lies behind the end of the file")
        return np.frombuffer(data, np.uint8, buffer.Size(), buffer.Offset())
    if not buffer.DataLength():
        return None
    return np.asarray(buffer.DataAsNumpy(), np.uint8)
