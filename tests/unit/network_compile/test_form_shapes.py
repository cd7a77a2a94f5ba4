"""Canonical forms state the shapes that ONNX infers of their nodes: later passes and VTA's layout rely on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from hilt.network.onnx_graph import OnnxGraph, to_model
from tests.unit.network import test_random_forms, test_random_layouts
from tests.unit.network.models import canonical, model_of

from . import test_models_of_the_world, test_odd_models
from .test_forms_as_they_were import form_of


def inferred(graph: OnnxGraph) -> dict[str, tuple[int, ...]]:
    """Return the shapes that ONNX infers from the inputs alone, as far as it can."""
    model = onnx.shape_inference.infer_shapes(to_model(graph), strict_mode=True, data_prop=True)
    found: dict[str, tuple[int, ...]] = {}
    for value in model.graph.value_info:
        sizes = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(size.HasField("dim_value") for size in sizes):
            found[value.name] = tuple(size.dim_value for size in sizes)
    return found


def graphs() -> Iterator[tuple[str, OnnxGraph]]:
    for make in test_models_of_the_world.MODELS:
        yield make.__name__, form_of(make())
    for odd in test_odd_models.MODELS:
        yield odd.__name__, form_of(odd(test_odd_models.Numbers()))
    for seed in range(6):
        yield f"forms {seed}", canonical(test_random_forms.drawn_model(seed))
        yield f"layouts {seed}", canonical(test_random_layouts.model(seed)[0])


def test_stated_shapes_are_those_that_onnx_infers() -> None:
    compared = 0
    for name, graph in graphs():
        for tensor, shape in inferred(graph).items():
            stated: Any = graph.shapes.get(tensor)
            if stated is not None:
                compared += 1
                assert tuple(stated) == shape, f"{name}: {tensor}"
    assert compared > 150


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_a_long_filters_steps_have_their_shapes(stride: int) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[1, stride], pads=[0, 3, 0, 70])
    weights = np.random.default_rng(1).normal(0, 1, (1, 1, 1, 64)).astype(np.float32)
    graph = canonical(model_of([node], {"x": (1, 1, 1, 333)}, {"w": weights}))
    found = inferred(graph)
    assert len(found) >= 6 and all(tuple(graph.shapes[name]) == shape for name, shape in found.items())
