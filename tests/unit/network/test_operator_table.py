"""docs/operators.md is the code's, and its statements hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network import operator_table
from hilt.network.calibration import Calibration
from hilt.network.compile import compile_network
from hilt.network.onnx_graph import OnnxError
from hilt.network.onnx_refusals import require_computable
from hilt.network.onnx_simplify import fixed_model
from hilt.network.quantize.quantizer import quantise
from tests.unit.network_compile.graphs import target

from .models import Array, canonical, model_of

WRITTEN = Path(__file__).parents[3] / "docs" / "operators.md"
RANDOM = np.random.default_rng(3)


def normal(*shape: int) -> Array:
    return RANDOM.normal(0, 1, shape).astype(np.float32)


def test_the_page_is_the_codes() -> None:
    text = WRITTEN.read_text(encoding="utf-8")
    assert text == operator_table.text(), "python -m hilt.network.operator_table > docs/operators.md"


def test_refused_operators_are_refused_by_name() -> None:
    refused = [row.name for row in operator_table.rows() if row.processor == "refused"]
    assert "NonMaxSuppression" in refused and "Conv" not in refused
    model = model_of([helper.make_node("Det", ["x"], ["y"])], {"x": (3, 3)}, {})
    with pytest.raises(OnnxError, match="Det, which neither VTA nor the processor's operators compute"):
        require_computable(fixed_model(model, "m"))


_MIDDLE: dict[str, tuple[list[Any], dict[str, Array]]] = {
    "Add": ([helper.make_node("Conv", ["c", "v"], ["d"]), helper.make_node("Add", ["c", "d"], ["m"])], {}),
    "AveragePool": ([helper.make_node("AveragePool", ["c"], ["m"], kernel_shape=[2, 2])], {}),
    "Conv": ([helper.make_node("Conv", ["c", "v"], ["m"])], {}),
    "ConvTranspose": ([helper.make_node("ConvTranspose", ["c", "t"], ["m"])], {"t": normal(8, 8, 3, 3)}),
    "Gemm": ([helper.make_node("Flatten", ["c"], ["f"]), helper.make_node("Gemm", ["f", "g"], ["y"])],
             {"g": normal(288, 512)}),
    "GlobalAveragePool": ([helper.make_node("GlobalAveragePool", ["c"], ["m"])], {}),
    "HardSigmoid": ([helper.make_node("HardSigmoid", ["c"], ["m"])], {}),
    "MatMul": ([helper.make_node("Flatten", ["c"], ["f"]), helper.make_node("MatMul", ["f", "g"], ["y"])],
               {"g": normal(288, 512)}),
    "MaxPool": ([helper.make_node("MaxPool", ["c"], ["m"], kernel_shape=[2, 2])], {}),
    "ReduceMean": ([helper.make_node("ReduceMean", ["c"], ["m"], axes=[2, 3], keepdims=1)], {}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(_MIDDLE))
def test_an_operator_on_vta_runs_there_between_layers(op: str) -> None:
    nodes, numbers = _MIDDLE[op]
    behind = [] if op in ("Gemm", "MatMul") else [helper.make_node("Conv", ["m", "v"], ["y"])]
    numbers = {"w": normal(8, 8, 1, 1), "v": normal(8, 8, 1, 1), **numbers}
    used = {name for node in (*nodes, *behind) for name in node.input} | {"w"}
    model = model_of(
        [helper.make_node("Conv", ["x", "w"], ["c"]), *nodes, *behind],
        {"x": (1, 8, 6, 6)},
        {name: value for name, value in numbers.items() if name in used},
    )
    samples = tuple({"x": normal(1, 8, 6, 6)} for _ in range(4))
    graph = quantise(canonical(model), Calibration(samples), search=False).graph
    placements = compile_network(graph, target()).placements
    inner = [place for place in placements if graph.tensors[place.node.outputs[0]].dtype == "int8"]
    beside = [place.node.op for place in inner if not place.on_vta and not place.view]
    assert set(beside) <= {"quantize", "reshape", "transpose"}, beside
    assert op in operator_table.VTA


def test_what_vta_computes_and_what_is_native_are_operators_of_onnx() -> None:
    names = {row.name for row in operator_table.rows()}
    assert set(operator_table.VTA) <= names
    assert set(operator_table.LEFT_OUT) <= names
