"""Canonical forms of odd models and of the seeded networks, beside those that were accepted.

Other tests hold that a form computes right. A rewrite that is missed, or a network that is another one than that of the
published figures, shows here. If it is meant: `build/host-env/bin/pytest
tests/unit/network_compile/test_forms_as_they_were.py --snapshot-update`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from syrupy.assertion import SnapshotAssertion

from hilt.network import zoo
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph, graph_of
from hilt.network.onnx_simplify import fix
from hilt.network.onnx_unquantise import is_quantised, unquantise
from tests.unit.network.test_as_it_was import _lines

from . import test_models_of_the_world, test_odd_models


def form_of(model: Any) -> OnnxGraph:
    """Return a model's canonical form, a quantised one's in floats."""
    graph = graph_of(model, "odd")
    fix(graph, {}, {})
    if is_quantised(graph):
        unquantise(graph)
        fix(graph, {}, {})
    canonicalise(graph)
    return graph


def form(model: Any) -> Iterator[str]:
    graph = form_of(model)
    yield from _lines(graph)
    yield f"  outputs {graph.outputs}"


def test_models_of_exporters(snapshot: SnapshotAssertion) -> None:
    lines: list[str] = []
    for make in test_models_of_the_world.MODELS:
        lines += [make.__name__, *form(make())]
    assert "\n".join(lines) == snapshot


def test_models_of_odd_sizes(snapshot: SnapshotAssertion) -> None:
    lines: list[str] = []
    for make in test_odd_models.MODELS:
        lines += [make.__name__, *form(make(test_odd_models.Numbers()))]
    assert "\n".join(lines) == snapshot


@pytest.mark.parametrize("name", [name for name in zoo.NETWORKS if name not in ("resnet18", "resnet50")])
def test_seeded_networks(name: str, snapshot: SnapshotAssertion) -> None:
    model = zoo.make(name)
    arrays = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    lines = [
        f"{each.name} {[size.dim_value for size in each.type.tensor_type.shape.dim]}" for each in model.graph.input
    ]
    for node in model.graph.node:
        attributes = {each.name: list(each.ints) or each.i or round(each.f, 6) for each in node.attribute}
        shapes = [arrays[each].shape for each in node.input if each in arrays]
        lines.append(f"{node.op_type} {attributes} {shapes}")
    sums = [float(np.abs(array.astype(np.float64)).sum()) for array in arrays.values()]
    data = zoo.calibration_data(name, 2, seed=3)
    lines.append(f"{sum(sums):.6g} in all, data {data.shape} {float(np.abs(data).mean()):.5g}")
    assert "\n".join([*lines, *form(model)]) == snapshot
