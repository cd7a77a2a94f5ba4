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
    "int4": schema.TensorType.INT4,
    "complex64": schema.TensorType.COMPLEX64,
    "resource": schema.TensorType.RESOURCE,
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
        self._codes: dict[tuple[int, str], int] = {}

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
        sparsity: Any = None,
    ) -> str:
        """Add a tensor; return its name. Four-bit values come two in a byte, a sparse constant's as it stores them."""
        tensor = schema.TensorT()
        tensor.isVariable, tensor.sparsity = variable, sparsity
        tensor.name, tensor.shape, tensor.type = name, list(shape), _TYPES[dtype]
        if value is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(
                np.ascontiguousarray(value, "uint8" if dtype == "int4" else dtype).tobytes(), np.uint8
            )
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
        operator = self._add(getattr(schema.BuiltinOperator, code), inputs, outputs, version)
        if kind:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            operator.builtinOptions = getattr(schema, f"{kind}T")()
            for name, value in options.items():
                assert hasattr(operator.builtinOptions, name)
                setattr(operator.builtinOptions, name, value)

    def custom(self, code: str, inputs: list[str], outputs: list[str], options: bytes) -> None:
        """Add an operator that is not TFLite's own, with its options as bytes."""
        operator = self._add(schema.BuiltinOperator.CUSTOM, inputs, outputs, 1, code)
        operator.customOptions = np.frombuffer(options, np.uint8)

    def begin_with(self, variable: str, name: str, value: Array) -> None:
        """Let a variable, a handle's tensor, begin with a value: a graph of its own that runs once assigns it."""
        self.operator("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=len(self._model.subgraphs))
        outer, places = self._graph, self._places
        self._graph, self._places = schema.SubGraphT(), {"": -1}
        self._graph.tensors, self._graph.operators = [], []
        self._graph.inputs = self._graph.outputs = []
        self._model.subgraphs.append(self._graph)
        self.tensor(variable, (), "resource")
        self.tensor("value", value.shape, str(value.dtype), value)
        self.operator("VAR_HANDLE", [], [variable], "VarHandleOptions", container="", sharedName=name)
        self.operator("ASSIGN_VARIABLE", [variable, "value"], [], "AssignVariableOptions")
        self._graph, self._places = outer, places

    def _add(self, number: int, inputs: list[str], outputs: list[str], version: int, custom: str = "") -> Any:
        if (number, custom) not in self._codes:
            made = schema.OperatorCodeT()
            made.builtinCode, made.deprecatedBuiltinCode, made.version = number, min(number, 127), version
            made.customCode = custom or None
            self._codes[number, custom] = len(self._model.operatorCodes)
            self._model.operatorCodes.append(made)
        operator = schema.OperatorT()
        operator.opcodeIndex = self._codes[number, custom]
        operator.inputs = [self._places[name] for name in inputs]
        operator.outputs = [self._places[name] for name in outputs]
        self._graph.operators.append(operator)
        return operator

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
    return interpret_stream(path, [feeds])[0]


def interpret_stream(path: Path, frames: list[list[Array]], resolver: str = "BUILTIN_REF") -> list[list[Array]]:
    """Return the outputs of one inference after the other; variables keep their values between them."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(str(path), experimental_op_resolver_type=getattr(OpResolverType, resolver))
    interpreter.allocate_tensors()
    results = []
    for feeds in frames:
        for detail, given in zip(interpreter.get_input_details(), feeds, strict=True):
            scale, zero = detail["quantization"]
            value = np.clip(np.rint(given / scale) + zero, -128, 127) if scale else given
            interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
        interpreter.invoke()
        results.append(
            [_real(detail, interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]
        )
    return results


def _real(detail: Any, made: Array) -> Array:
    scale, zero = detail["quantization"]
    return (made.astype(np.float32) - zero) * np.float32(scale) if scale else made
