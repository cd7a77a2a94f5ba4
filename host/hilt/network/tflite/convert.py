"""Converts a TFLite model to an ONNX graph in floats: images stay (N, H, W, C), with a Transpose around each window.

A quantised model becomes the real numbers that its integers stand for; a range that begins at zero is a Relu.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxError, OnnxGraph, OnnxNode, free_name, infer_shapes
from hilt.network.tflite.dilations import unfold_dilations
from hilt.network.tflite.reader import TfliteModel, TfliteOperator, TfliteTensor, read_tflite

OPSET = 17
TO_CHANNELS_FIRST, TO_CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]
_ACTIVATIONS = {0: "", 1: "Relu", 2: "Clip11", 3: "Clip6", 4: "Tanh"}
_WHOLE_RANGE = 0.02
"""A quantised range up to 6 by so small a share is that of a Relu6."""


def load_tflite(path: Path) -> OnnxGraph:
    """Read a TFLite model as an ONNX graph in floats.

    Raises:
        OnnxError: The file cannot be read, or has an operator that hilt does not convert; the message names it.
    """
    from hilt.network.tflite.fourier import part_complex

    graph = Converter(part_complex(unfold_dilations(read_tflite(path)))).graph()
    infer_shapes(graph)
    return graph


class Converter:
    """The state of a conversion: the graph so far, and the names of the model's tensors in it."""

    def __init__(self, model: TfliteModel) -> None:
        self.model = model
        self._graph = OnnxGraph(model.name, OPSET, [], [], [], {}, {}, {})
        self._taken: set[str] = {tensor.name for tensor in model.tensors}
        self._number = 0
        self.variables: dict[str, str] = {}
        """The tensor that holds a variable's present value, by the variable's name."""

    def graph(self) -> OnnxGraph:
        """Return the whole graph."""
        from hilt.network.tflite import variables
        from hilt.network.tflite.operators import OPERATORS

        graph, tensors = self._graph, self.model.tensors
        for tensor in tensors:
            value = tensor.real()
            if value is not None:
                graph.constants[tensor.name] = value
        for place in self.model.inputs:
            self.add_input(tensors[place].name, tensors[place])
        for operator in self.model.operators:
            convert = OPERATORS.get(operator.name)
            if convert is None:
                where = tensors[operator.outputs[0]].name if operator.outputs else "?"
                raise OnnxError(
                    f"{self.model.name} has the TFLite operator {operator.name} (it makes {where}), which hilt does "
                    "not convert; convert the model to ONNX with tf2onnx, or cut it in front of the operator"
                )
            convert(self, operator)
        graph.outputs = [*(tensors[place].name for place in self.model.outputs), *variables.finish(self)]
        graph.name_apart()
        graph.remove_unused()
        return graph

    def tensor(self, operator: TfliteOperator, place: int) -> TfliteTensor | None:
        """Return an input of an operator; None if it is left out."""
        if place >= len(operator.inputs) or operator.inputs[place] == -1:
            return None
        return self.model.tensors[operator.inputs[place]]

    def name(self, operator: TfliteOperator, place: int) -> str:
        """Return the name of an input. Raises OnnxError if it is left out."""
        tensor = self.tensor(operator, place)
        if tensor is None:
            raise OnnxError(f"{self.model.name}: {operator.name} has no input {place}; convert the model again")
        return tensor.name

    def output(self, operator: TfliteOperator) -> TfliteTensor:
        """Return the first output."""
        return self.model.tensors[operator.outputs[0]]

    def value(self, operator: TfliteOperator, place: int) -> NDArray[Any]:
        """Return a constant input, dequantised. Raises OnnxError if it is computed."""
        tensor = self.tensor(operator, place)
        value = None if tensor is None else self._graph.constants.get(tensor.name)
        if value is None:
            raise OnnxError(
                f"{self.model.name}: {operator.name} (it makes {self.output(operator).name}) reads input {place} from "
                "another operator; hilt converts it with a constant there only"
            )
        return value

    def integers(self, operator: TfliteOperator, place: int) -> str:
        """Return the name of an input as int64, which ONNX takes for shapes and places."""
        name = self.name(operator, place)
        if name in self._graph.constants:
            return self.constant("places", self._graph.constants[name].astype(np.int64))
        return self.add("Cast", [name], to=7)

    def is_constant(self, operator: TfliteOperator, place: int) -> bool:
        tensor = self.tensor(operator, place)
        return tensor is not None and tensor.name in self._graph.constants

    def add_input(self, name: str, like: TfliteTensor) -> str:
        """Add an input of the network with a tensor's shape and type; return its name."""
        self._graph.inputs.append(name)
        self._graph.shapes[name] = like.shape
        self._graph.dtypes[name] = "float32" if like.is_quantised or like.dtype == "float16" else like.dtype
        return name

    def define(self, name: str, value: NDArray[Any]) -> None:
        """Make a tensor of the model a constant."""
        self._graph.constants[name] = value

    def constant(self, stem: str, value: Any) -> str:
        """Add a constant; return its name."""
        name = self._fresh(stem)
        self._graph.constants[name] = np.asarray(value)
        return name

    def add(self, op: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output, a new one if none is given."""
        self._number += 1
        output = output or self._fresh(f"{op.lower()}{self._number}")
        self._graph.nodes.append(OnnxNode(output, op, list(inputs), [output], attributes))
        return output

    def add_several(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node with several outputs."""
        self._graph.nodes.append(OnnxNode(outputs[0], op, list(inputs), list(outputs), attributes))

    def add_parts(self, op: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Add a node with `count` outputs of new names; return these."""
        names = [self._fresh(f"{op.lower()}_part") for _ in range(count)]
        self.add_several(op, inputs, names, **attributes)
        return names

    def channels_first(self, name: str) -> str:
        return self.add("Transpose", [name], perm=list(TO_CHANNELS_FIRST))

    def finish(self, operator: TfliteOperator, result: str, activation: int = 0, *, turned: bool = False) -> None:
        """Apply the fused activation, and turn a result with channels first back, as the operator's output."""
        tensor = self.output(operator)
        for op, bounds in self._clips(tensor, activation):
            result = self.add(op, [result, *(self.constant("bound", np.float32(bound)) for bound in bounds)])
        if turned:
            self.add("Transpose", [result], tensor.name, perm=list(TO_CHANNELS_LAST))
        else:
            self.add("Identity", [result], tensor.name)

    def _clips(self, tensor: TfliteTensor, activation: int) -> list[tuple[str, tuple[float, ...]]]:
        kind = _ACTIVATIONS.get(activation)
        if kind is None:
            raise OnnxError(f"{self.model.name}: {tensor.name} has the fused activation {activation}, unknown to hilt")
        if kind == "Clip6":
            return [("Clip", (0.0, 6.0))]
        if kind == "Clip11":
            return [("Clip", (-1.0, 1.0))]
        if kind:
            return [(kind, ())]
        if not tensor.is_quantised or tensor.dtype not in ("int8", "uint8"):
            return []
        limits = np.iinfo(tensor.dtype)
        if int(tensor.zeros[0]) != limits.min:
            return []
        top = float(tensor.scales[0]) * (limits.max - limits.min)
        return [("Clip", (0.0, 6.0))] if abs(top / 6 - 1) < _WHOLE_RANGE else [("Relu", ())]

    def _fresh(self, stem: str) -> str:
        name = free_name(stem, self._taken)
        self._taken.add(name)
        return name
