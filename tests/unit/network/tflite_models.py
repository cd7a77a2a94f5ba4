"""TFLite models, written by TFLite's own schema classes and run by its own interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .models import Array

schema: Any = pytest.importorskip("ai_edge_litert.schema_py_generated")

_TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int32": schema.TensorType.INT32,
    "int8": schema.TensorType.INT8,
    "bool": schema.TensorType.BOOL,
}


class TfliteBuilder:
    """Builds a model: tensors by name, then operators that read and write them."""

    def __init__(self) -> None:
        self._model = schema.ModelT()
        self._model.version = 3
        self._model.buffers = [schema.BufferT()]
        self._model.operatorCodes = []
        self._graph = schema.SubGraphT()
        self._graph.tensors, self._graph.operators = [], []
        self._model.subgraphs = [self._graph]
        self._places: dict[str, int] = {"": -1}
        self._codes: dict[int, int] = {}

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str = "float32",
        value: Array | None = None,
        scale: Array | float | None = None,
        zero: int = 0,
        axis: int = 0,
        variable: bool = False,
    ) -> str:
        """Add a tensor; return its name."""
        tensor = schema.TensorT()
        tensor.isVariable = variable
        tensor.name, tensor.shape, tensor.type = name, list(shape), _TYPES[dtype]
        if value is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(value, dtype).tobytes(), np.uint8)
            self._model.buffers.append(buffer)
            tensor.buffer = len(self._model.buffers) - 1
        if scale is not None:
            given = np.atleast_1d(np.asarray(scale, np.float32))
            quantised = schema.QuantizationParametersT()
            quantised.scale, quantised.zeroPoint = given, np.full(len(given), zero, np.int64)
            quantised.quantizedDimension = axis
            tensor.quantization = quantised
        self._places[name] = len(self._graph.tensors)
        self._graph.tensors.append(tensor)
        return name

    def operator(
        self, code: str, inputs: list[str], outputs: list[str], kind: str = "", version: int = 1, **options: Any
    ) -> None:
        """Add an operator: its code's name and version, and its options' class without the T, with their fields."""
        number = getattr(schema.BuiltinOperator, code)
        if number not in self._codes:
            made = schema.OperatorCodeT()
            made.builtinCode, made.deprecatedBuiltinCode, made.version = number, min(number, 127), version
            self._codes[number] = len(self._model.operatorCodes)
            self._model.operatorCodes.append(made)
        operator = schema.OperatorT()
        operator.opcodeIndex = self._codes[number]
        operator.inputs = [self._places[name] for name in inputs]
        operator.outputs = [self._places[name] for name in outputs]
        if kind:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            operator.builtinOptions = getattr(schema, f"{kind}T")()
            for name, value in options.items():
                assert hasattr(operator.builtinOptions, name)
                setattr(operator.builtinOptions, name, value)
        self._graph.operators.append(operator)

    def save(self, path: Path, inputs: list[str], outputs: list[str]) -> Path:
        """Write the file."""
        import flatbuffers

        self._graph.inputs = [self._places[name] for name in inputs]
        self._graph.outputs = [self._places[name] for name in outputs]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self._model.Pack(builder), file_identifier=b"TFL3")
        path.write_bytes(bytes(builder.Output()))
        return path


def interpret(path: Path, feeds: list[Array]) -> list[Array]:
    """Return the outputs of TFLite's interpreter, the reference kernels, as real numbers."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    for detail, given in zip(interpreter.get_input_details(), feeds, strict=True):
        scale, zero = detail["quantization"]
        value = np.clip(np.rint(given / scale) + zero, -128, 127) if scale else given
        interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
    interpreter.invoke()
    results = []
    for detail in interpreter.get_output_details():
        scale, zero = detail["quantization"]
        made = interpreter.get_tensor(detail["index"])
        results.append((made.astype(np.float32) - zero) * np.float32(scale) if scale else made)
    return results
