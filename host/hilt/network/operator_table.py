"""The table of ONNX's operators in docs/operators.md: VTA, native, numpy or refused.

`python -m hilt.network.operator_table > docs/operators.md` writes it from the code.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hilt.network.elementwise import UNARY
from hilt.network.onnx_fourier import WRITERS
from hilt.network.onnx_recurrence import RECURRENT
from hilt.network.onnx_unquantise import QUANTISED
from hilt_runtime.native.plans import PLANS
from hilt_runtime.operators import OPERATORS

VTA: Mapping[str, str] = {
    "Add": "of two int8 tensors, or into the layer before it; a constant goes into the layer's bias",
    "AveragePool": "windows of 2^k elements; a mean of the whole image that weights read is padded to 2^k",
    "BatchNormalization": "goes into the layer before it; else a depthwise convolution",
    "Clip": "goes into the layer before it",
    "Concat": "of channels of int8 tensors, in front of layers: nothing moves",
    "Conv": "constant weights, one or two dimensions, groups, dilations; three of one volume without groups",
    "ConvTranspose": "constant weights: a convolution for each phase, then DepthToSpace",
    "DFT": "of a constant length, not an inverse to real numbers: a product with its waves",
    "DepthToSpace": "whole blocks of channels, mode DCR",
    "Div": "by a constant: goes into the layer before it",
    "Einsum": "a product with constant weights",
    "Gemm": "constant weights",
    "Expand": "of pixels: as Resize",
    "GlobalAveragePool": "as AveragePool",
    "GlobalMaxPool": "as MaxPool",
    "HardSigmoid": "behind a layer alone: goes into it",
    "LeakyRelu": "by the table on the way to the store, without it as PRelu",
    "MatMul": "constant weights",
    "MaxPool": "two dimensions; three are two of frames and one along them",
    "Mul": "by a constant: goes into the layer before it; of two int8 tensors (ISA revision A: by a gate only)",
    "PRelu": "constant slopes of 7 bits, as `hilt quantize` writes them",
    "ReduceMean": "over height and width: as AveragePool",
    "Relu": "goes into the layer before it",
    "Resize": "nearest, by whole factors; linear, by 2, 4 or 8 (half_pixel, asymmetric)",
    "Slice": "as Concat",
    "STFT": "of a real signal, constant window: a convolution with its waves",
    "Split": "as Concat",
    "Sub": "of a constant: goes into the layer before it; an image and its means over windows: convolutions of 1 x 1",
    "Tile": "of pixels: as Resize",
}
"""The operators that VTA computes, with the form in which it does; in others the processor does."""
LEFT_OUT: Mapping[str, str] = {
    "Constant": "read as it is",
    "Dropout": "left out; refused where its training mode is computed",
    "If": "the branch of a constant condition",
}
_RECURRENT_NOTE = "`hilt quantize` gives it int8 weights where held-out samples allow it"
_STORED = "by the table on the way to the store"
_LOOKED_UP = "of an int8 tensor: a table of 256 entries; where VTA has none, looked up where the tensor lies"
_FLOAT_ALONE = "where its input is computed; of constants any operator is computed ahead"


@dataclass(frozen=True)
class Row:
    """One operator: where it runs, and how."""

    name: str
    vta: str
    processor: str
    note: str


def rows() -> list[Row]:
    """Return a row for each operator of ONNX's own domain, by name."""
    import onnx.defs

    newest: dict[str, Any] = {}
    for schema in onnx.defs.get_all_schemas():
        if not schema.domain and not schema.deprecated:
            newest[schema.name] = schema
    return [_row(name, newest[name]) for name in sorted(newest)]


def _row(name: str, schema: Any) -> Row:
    vta = VTA.get(name, _STORED if name in UNARY else "")
    inlined = schema.has_function or schema.has_context_dependent_function
    if name in LEFT_OUT:
        return Row(name, "", "-", LEFT_OUT[name])
    if name in QUANTISED:
        return Row(name, "", "-", "a quantised model is read as its float model and quantised anew")
    if name in PLANS:
        note = _LOOKED_UP if name in UNARY else ""
        note = _RECURRENT_NOTE if name in RECURRENT else note
        return Row(name, vta, "native", note)
    if name in OPERATORS:
        return Row(name, vta, "numpy", "")
    if name in WRITERS:
        return Row(name, vta, "by others", "written as its product or convolution")
    if inlined:
        return Row(name, vta, "by others", "written as the operators that ONNX defines it by")
    return Row(name, vta, "refused", "")


def text() -> str:
    """Return the page as Markdown."""
    found = rows()
    kinds = ("native", "numpy", "by others", "refused")
    on_vta = sum(bool(row.vta) for row in found)
    counts = {kind: sum(row.processor == kind for row in found) for kind in kinds}
    lines = [
        "# Operators",
        "",
        "Made by `python -m hilt.network.operator_table` from the code; tests/unit/network/test_operator_table.py says "
        "when it is out of date.",
        "",
        "Where each operator of ONNX runs. **VTA**: the form in which VTA computes it; in any other form the processor "
        "does. **Processor**: `native` is the C engine, with numpy in the forms that it leaves out; `numpy` has no C; "
        "`by others` becomes other operators before anything is computed; `refused` ends `hilt quantize` with one "
        f"line, {_FLOAT_ALONE}.",
        "",
        f"{len(found)} operators: {on_vta} on VTA, {counts['native']} native, {counts['numpy']} in numpy alone, "
        f"{counts['by others']} by others, {counts['refused']} refused. "
        "`make onnx-suite` runs ONNX's own tests of them.",
        "",
        "| operator | VTA | processor | note |",
        "|---|---|---|---|",
    ]
    lines += [f"| {row.name} | {row.vta or '-'} | {row.processor} | {row.note} |" for row in found]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
