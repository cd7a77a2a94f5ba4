"""The networks that are made here, layer by layer, as they were accepted.

A layer of another size or stride, and weights of another spread, show here. If they are meant:
`build/host-env/bin/pytest tests/unit/network/test_zoo_networks.py --snapshot-update`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from syrupy.assertion import SnapshotAssertion

from hilt.network.zoo import NETWORKS, make

SLOW = ("resnet18", "resnet50")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in NETWORKS]
)
def test_layers_and_the_spread_of_weights(name: str, snapshot: SnapshotAssertion) -> None:
    assert "\n".join(_lines(make(name))) == snapshot


def test_another_seed_gives_other_weights() -> None:
    name = min(NETWORKS)
    first, again, other = (make(name, seed).SerializeToString() for seed in (0, 0, 1))
    assert first == again and len(first) == len(other) and first != other


def _lines(model: Any) -> Iterator[str]:
    graph = model.graph
    values = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    for each in (*graph.input, *graph.output):
        yield f"{each.name} {[size.dim_value for size in each.type.tensor_type.shape.dim]}"
    places = {graph.input[0].name: 0}
    for place, node in enumerate(graph.node, 1):
        places[node.output[0]] = place
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        made = " ".join(_value(values[name]) for name in node.input if name in values)
        read = [place - places[name] for name in node.input if name not in values]
        yield f"{node.op_type} of {read} {attributes} {made}"


def _value(array: np.ndarray[Any, Any]) -> str:
    if array.size <= 4:
        return str(array.tolist())
    return f"{list(array.shape)} {array.mean(dtype=np.float64):.2g} {array.std(dtype=np.float64):.4g}"
