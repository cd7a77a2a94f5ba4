"""Canonical forms and quantised graphs of random models, beside those that were accepted.

Other tests hold that both compute right. A rewrite that is missed, a tensor that loses precision or a layer that leaves
VTA shows here. If it is meant: `build/host-env/bin/pytest tests/unit/network/test_as_it_was.py --snapshot-update`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.network.graph import Graph
from hilt.network.onnx_graph import OnnxGraph

from . import test_random_forms, test_random_layouts
from .models import canonical, quantised


@pytest.mark.parametrize("first", [0, 10])
def test_canonical_forms(first: int, snapshot: SnapshotAssertion) -> None:
    lines = []
    for seed in range(first, first + 10):
        made, _ = test_random_layouts.model(seed)
        for name, model in (("forms", test_random_forms.drawn_model(seed)), ("layouts", made)):
            lines += [f"{name} {seed}", *_lines(canonical(model))]
    assert "\n".join(lines) == snapshot


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_quantised_graphs(seed: int, snapshot: SnapshotAssertion) -> None:
    result = quantised(test_random_forms.drawn_model(seed), search=seed == 3, channel_block=16 * (seed == 8))
    lines = [*_integers(result.graph), f"{len(result.model.nodes)} nodes of QDQ, {_rounded(result.costs.decibels)} dB"]
    lines += [f"layer {layer.name}: {layer.macs} MACs, {_rounded(layer.decibels)} dB" for layer in result.costs.layers]
    lines += [f"equalised {result.equalised}, centred {result.centred}", *map(str, result.kept), *result.notes]
    assert "\n".join(lines) == snapshot


def _rounded(decibels: float | None) -> str:
    """Return a ratio to two decibels: sums of floats differ between processors."""
    return "none" if decibels is None or not np.isfinite(decibels) else f"{2 * round(decibels / 2)}"


def _lines(graph: OnnxGraph) -> Iterator[str]:
    for node in graph.nodes:
        constants = [_constant(graph.constants[name]) for name in node.inputs if name in graph.constants]
        shapes = " ".join(str(graph.shapes.get(name)) for name in node.outputs)
        yield f"  {node.op} {_attributes(node.attributes)} {' '.join(constants)} -> {shapes}"


def _constant(array: np.ndarray[Any, Any]) -> str:
    """Return the values of a few integers, as starts or sizes; of others the shape."""
    return f"{array.tolist()}" if array.dtype == np.int64 and array.size <= 8 else f"{array.shape}"


def _integers(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        made = graph.tensors[node.outputs[0]]
        yield f"{node.op} {_attributes(node.attributes)} -> {made.dtype} {made.shape} scale {made.scale}"
        for name in node.inputs:
            if name in graph.constants and graph.constants[name].dtype == np.int8:
                yield f"  weights {graph.constants[name].shape}, {int(np.abs(graph.constants[name]).max())} at most"


def _attributes(attributes: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_value(value)}" for name, value in sorted(attributes.items()))


def _value(value: Any) -> str:
    return (
        f"{value.shape}"
        if isinstance(value, np.ndarray)
        else f"{value:.4g}"
        if isinstance(value, float)
        else f"{value}"
    )
