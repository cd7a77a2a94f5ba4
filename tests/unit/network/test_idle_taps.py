"""Taps that read zeros beside the image alone are left out: the same results, and pads that VTA holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from hilt.network.calibration import Runner

from .models import canonical, model_of, run_float


def convolution(size: tuple[int, int], kernel: tuple[int, int], **attributes: Any) -> Any:
    random = np.random.default_rng(4)
    constants = {
        "w": random.normal(0, 1, (3, 2, *kernel)).astype(np.float32),
        "b": random.normal(0, 1, 3).astype(np.float32),
    }
    return model_of([helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)], {"x": (1, 2, *size)}, constants)


def kernels(model: Any) -> list[tuple[int, ...]]:
    graph = canonical(model)
    return [graph.constants[node.inputs[1]].shape[2:] for node in graph.nodes if node.op == "Conv"]


def assert_same(model: Any) -> None:
    graph = canonical(model)
    feeds = {"x": np.random.default_rng(6).normal(0, 1, graph.shape("x")).astype(np.float32)}
    (given,), (wanted,) = Runner(graph, ["y"]).run(feeds).values(), run_float(model, feeds)
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "kernel", "attributes", "left"),
    [
        ((16, 16), (3, 3), {"dilations": [18, 18], "pads": [18] * 4}, (1, 1)),
        ((16, 40), (3, 3), {"dilations": [18, 6], "pads": [18, 6, 18, 6]}, (1, 3)),
        ((200, 1), (5, 1), {"dilations": [512, 1], "pads": [1024, 0, 1024, 0]}, (1, 1)),
        ((200, 1), (3, 1), {"dilations": [256, 1], "pads": [512, 0, 0, 0]}, (1, 1)),  # causal
        ((8, 8), (3, 3), {"pads": [1] * 4}, (3, 3)),
        ((1, 8), (3, 3), {"pads": [1] * 4}, (1, 3)),
        ((2, 8), (3, 3), {"pads": [1] * 4}, (3, 3)),
    ],
)
def test_taps_that_read_zeros_alone_go(
    size: tuple[int, int], kernel: tuple[int, int], attributes: dict[str, Any], left: tuple[int, int]
) -> None:
    model = convolution(size, kernel, **attributes)
    assert kernels(model) == [left]
    assert_same(model)
    if left == (1, 1):
        assert [node.op for node in canonical(model).nodes] == ["Conv"], "its pads go with the taps"


@settings(max_examples=80, deadline=None)
@given(*[st.tuples(*[st.integers(1, high)] * 2) for high in (9, 4, 9, 3)], st.tuples(*[st.integers(0, 12)] * 4))
def test_the_result_is_the_same(
    size: tuple[int, int],
    kernel: tuple[int, int],
    dilations: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, ...],
) -> None:
    reach = [(taps - 1) * step + 1 for taps, step in zip(kernel, dilations, strict=True)]
    if all(size[axis] + pads[axis] + pads[2 + axis] >= reach[axis] for axis in (0, 1)):
        assert_same(convolution(size, kernel, dilations=list(dilations), strides=list(strides), pads=list(pads)))
