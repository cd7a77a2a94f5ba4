"""TFLite's complex tensors as two real ones each, and the transform of Fourier that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hilt.network.onnx_fourier import waves
from hilt.network.onnx_graph import OnnxError
from hilt.network.tflite.convert import Converter
from hilt.network.tflite.reader import TfliteModel, TfliteOperator

_SHAPED = frozenset(
    ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "CONCATENATION", "PACK")
)
"""Operators that move numbers of any kind."""


def part_complex(model: TfliteModel) -> TfliteModel:
    """Return a model whose complex tensors are pairs of real ones.

    Raises:
        OnnxError: An operator on complex numbers is unknown; the message names it.
    """
    return _Parting(model).parted()


class _Parting:
    """The parts of complex tensors by their places: real, imaginary."""

    def __init__(self, model: TfliteModel) -> None:
        self._model = model
        self._tensors = list(model.tensors)
        self._parts: dict[int, tuple[int, int]] = {}

    def parted(self) -> TfliteModel:
        for place, tensor in enumerate(self._model.tensors):
            if tensor.dtype == "complex64":
                self._parts[place] = (len(self._tensors), len(self._tensors) + 1)
                self._tensors += [
                    replace(tensor, name=f"{tensor.name}.{part}", dtype="float32") for part in ("re", "im")
                ]
        if not self._parts:
            return self._model
        operators = [made for operator in self._model.operators for made in self._of(operator)]
        return replace(self._model, tensors=self._tensors, operators=operators)

    def _of(self, operator: TfliteOperator) -> Iterator[TfliteOperator]:
        """Yield an operator's successors."""
        read = [place for place in operator.inputs if place in self._parts]
        if operator.name == "RFFT2D":
            yield replace(operator, outputs=self._parts.get(operator.outputs[0], operator.outputs))
        elif not read:
            yield operator
        elif operator.name in _SHAPED:
            for part in (0, 1):
                yield replace(
                    operator, inputs=self._part(operator.inputs, part), outputs=self._part(operator.outputs, part)
                )
        elif operator.name in ("CAST", "REAL", "IMAG"):
            yield replace(operator, inputs=self._part(operator.inputs, int(operator.name == "IMAG")))
        elif operator.name == "COMPLEX_ABS":
            yield replace(operator, inputs=self._parts[read[0]])
        else:
            made = self._model.tensors[operator.outputs[0]].name
            raise OnnxError(
                f"{self._model.name}: {operator.name} of complex numbers makes {made}; hilt does not convert it"
            )

    def _part(self, places: tuple[int, ...], part: int) -> tuple[int, ...]:
        return tuple(self._parts[place][part] if place in self._parts else place for place in places)


def transform(c: Converter, op: TfliteOperator) -> None:
    """Convert RFFT2D: a DFT of each row, then one of each column if there are several.

    Raises:
        OnnxError: Its length is computed, or its rank is unknown.
    """
    data = c.tensor(op, 0)
    assert data is not None
    rank, lengths = len(data.shape), c.value(op, 1).reshape(-1).astype(np.int64)
    size = data.shape[-1]
    if lengths[0] == 1 and size is not None:  # one product for each part: the other may be read by nobody
        matrix = waves(size, 1, int(lengths[1]) // 2 + 1, int(lengths[1]))
        for part, place in enumerate(op.outputs):
            wave = c.constant("waves", np.ascontiguousarray(matrix[:, part::2]))
            c.add("MatMul", [c.name(op, 0), wave], c.model.tensors[place].name)
        return
    pairs = c.add("Unsqueeze", [c.name(op, 0), c.constant("axes", np.array([rank], np.int64))])
    pairs = c.add("DFT", [pairs, c.constant("length", lengths[1])], axis=rank - 1, onesided=1)
    if lengths[0] > 1:
        pairs = c.add("DFT", [pairs, c.constant("length", lengths[0])], axis=rank - 2)
    axes = c.constant("axes", np.array([rank], np.int64))
    for half, place in zip(c.add_parts("Split", [pairs], 2, axis=rank), op.outputs, strict=True):
        c.add("Squeeze", [half, axes], c.model.tensors[place].name)


def length(c: Converter, op: TfliteOperator) -> None:
    """Convert COMPLEX_ABS of two parts."""
    squares = [c.add("Mul", [c.name(op, part), c.name(op, part)]) for part in (0, 1)]
    c.finish(op, c.add("Sqrt", [c.add("Add", squares)]))
